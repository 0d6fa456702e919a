"""Claims of ARPO (arXiv 2507.19849) and of TARL (arXiv 2509.14480)."""

from __future__ import annotations

from ..matrix.starts import KNOWS_PLACES, LOOKS, letters_start
from ..matrix.suite import Limits, SuiteEnv, TaughtStart
from .claim import Claim, Comparison, Rerun, Source, above, equal
from .experiments import (
    GUESS,
    NO_REFERENCE,
    ONE_UPDATE,
    SEARCH_LR,
    PlayedArm,
    TrainedArm,
    Training,
    letters,
    play_search,
    taught,
    train_arm,
)

_ARPO = "ARPO, arXiv 2507.19849"
_TARL = "TARL, arXiv 2509.14480"
_CALLS = 12_000
_LOOKER = letters_start(4, {"fog": 0.3, "looks": 3}, **LOOKS)


def _fog(fog: float, calls: int = _CALLS) -> SuiteEnv:
    """Make a column of Fog-v0 with the start, the rate and the steps of the ladder's family."""
    column = letters("Fog-v0", _CALLS, 512, lr=5e-4, calls=calls, fog=fog, looks=3)
    return taught(column, _LOOKER)


_FOG, _HALF, _CLEAR = _fog(0.3), _fog(0.3, _CALLS // 2), _fog(0.0)
_PLACES = letters_start(3, {"doors": 6}, **KNOWS_PLACES)


def _judge(judged: bool) -> SuiteEnv:
    """Make a column of Judge-v0 with the start, the rate and the steps of the ladder's family."""
    return taught(letters("Judge-v0", 12_000, lr=1e-3, doors=6, judged=judged), _PLACES)


_JUDGE, _UNJUDGED = _judge(True), _judge(False)
_JUDGED_RATE = 2e-3
"""What the ladder's search chose for the rows that are judged; GRPO's is that of the column."""
_TOY = (
    "A diagnostic environment whose actions are single letters, and a model of 0.1 million "
    "parameters; one update a step, equal tokens a step."
)
_RATES = " Start, tokens and each arm's learning rate are those of the ladder's Judge."
_SEEN = (
    _TOY + " The start has seen a player who looks before it names the letter: from random "
    "letters nobody learns to look, and all arms guess."
)
_RERUNS = (
    Rerun(
        paper="RAPO, arXiv 2603.03078, table 1",
        figure="ARPO above GRPO: mean of ten sets 43.0 against 40.7 (3B) and 49.3 against 46.7 "
        "(7B)",
        where="Qwen2.5-Instruct, one run, the calls not said",
    ),
)


def _branches(name: str, column: SuiteEnv, **settings: object) -> TrainedArm:
    """Make an arm of ARPO: four chains that grow to eight paths."""
    changes = {"rollout__initial": 4, "rollout__budget": 8, **settings}
    return train_arm(name, "arpo", column, loss__kl__coef=0.0, **changes)


def _chains(name: str, column: SuiteEnv, recipe: str = "grpo", **settings: object) -> TrainedArm:
    return train_arm(name, recipe, column, loss__kl__coef=0.0, rollout__n=8, **settings)


_JUDGED, _BY_TURN = (
    _chains(name, _JUDGE, recipe, optim__lr=_JUDGED_RATE)
    for name, recipe in (("tarl", "tarl"), ("tarl by turn", "tarlturns"))
)


def _mixed(weight: float) -> SuiteEnv:
    """SearchQA with mathematics: the weight is what of it comes in training, not in scoring."""
    members = [["SearchQA-v0", {"hops": 1}, 1], ["MathWord-v0", {}, weight]]
    taught = [["SearchQA-v0", {"hops": 1}, 1], ["MathWord-v0", {}, 1]]
    return SuiteEnv(
        id="MixedTasks-v0",
        settings={"size": "micro", "members": members},
        start=TaughtStart(settings={"read_least": 0.0}, world={"size": "micro", "members": taught}),
        limits=Limits(tokens=30_000, calls=30_000),
        max_tokens=64,
        eval_tasks=100,
        eval_every=0,
        recipe_settings={
            **ONE_UPDATE,
            **NO_REFERENCE,
            "optim.lr": SEARCH_LR,
            "tokens_per_step": 1_000,
        },
    )


ARPO_CLAIMS = (
    Claim(
        name="entropy-after-tools",
        statement="The policy is less certain right after a tool's answer than at the start: the "
        "entropy of its first tokens rises.",
        source=Source(
            paper=_ARPO,
            where="section 2, pilot study",
            figure="entropy rises in the first 10 to 50 tokens after each tool call",
        ),
        experiment=play_search(PlayedArm(name="chains", rollout="chains", settings={"n": 4})),
        comparisons=(
            Comparison(better="chains", measure="entropy_rise", min_effect=0.02, unit="plain"),
        ),
        minutes=1,
        weaker="A model that was taught in the environment and writes actions of five tokens.",
    ),
    Claim(
        name="arpo-half-calls",
        statement="Where tools are uncertain, ARPO with half the tool calls scores about what GRPO "
        "does with all of them, and GRPO with half of them scores less.",
        source=Source(
            paper=_ARPO,
            where="abstract and the comparison of tool calls",
            figure="about half the tool calls of GRPO at a better score",
        ),
        experiment=Training(
            arms=(
                _branches("arpo, half the calls", _HALF),
                _chains("grpo, half the calls", _HALF),
                _chains("grpo, all calls", _FOG),
            ),
            trials=8,
        ),
        comparisons=(
            above("arpo, half the calls", "grpo, all calls", margin=-0.05, floor=GUESS),
            above("grpo, all calls", "grpo, half the calls", floor=GUESS),
        ),
        minutes=5,
        weaker=_SEEN + " Every action counts as a call, an answer too. Arms with half the calls "
        "take half the tokens and steps, which is the statement. Starts and tasks are the same.",
        reruns=_RERUNS,
    ),
    Claim(
        name="arpo-above-grpo",
        statement="Where tools are uncertain, ARPO trains a better agent than GRPO at equal "
        "tokens.",
        source=Source(
            paper=_ARPO,
            where="main tables",
            figure="above GRPO on all thirteen benchmarks",
        ),
        experiment=Training(arms=(_branches("arpo", _FOG), _chains("grpo", _FOG))),
        comparisons=(above("arpo", "grpo", 0.03, "area", floor=GUESS),),
        minutes=5,
        weaker=_SEEN,
        reruns=_RERUNS,
    ),
    Claim(
        name="arpo-control",
        statement="Where a tool never errs, branching at high entropy has nothing to find: ARPO "
        "and GRPO are equal.",
        source=Source(
            paper=_ARPO,
            where="a control of arpo-above-grpo, not in the paper",
            figure="none",
        ),
        experiment=Training(
            arms=(_branches("arpo, no fog", _CLEAR), _chains("grpo, no fog", _CLEAR))
        ),
        comparisons=(equal("arpo, no fog", "grpo, no fog", 0.03, "area", floor=GUESS),),
        minutes=5,
        weaker=_SEEN,
    ),
    Claim(
        name="arpo-soft",
        statement="The soft advantage (every path's own on shared tokens) trains a better agent "
        "than the hard one (their mean).",
        source=Source(
            paper=_ARPO,
            where="section 3.2",
            figure="the soft one earns more reward in training; it is the default",
        ),
        experiment=Training(
            arms=(
                _branches("soft", _FOG, credit__shared="own", optim__epochs=2),
                _branches("hard", _FOG, credit__shared="mean", optim__epochs=2),
            )
        ),
        comparisons=(above("soft", "hard", 0.03, "area", floor=GUESS),),
        minutes=6,
        weaker=_SEEN + " Each batch is gone through twice: in the first pass, where no probability "
        "has moved yet, both advantages have the same gradient.",
    ),
)

TARL_CLAIMS = (
    Claim(
        name="tarl-above-grpo",
        statement="Judging turns beside the outcome trains a better agent than the outcome alone.",
        source=Source(
            paper=_TARL,
            where="main table, tau-bench retail, Qwen3-8B",
            figure="pass^1 55.4 against GRPO's 51.2",
        ),
        experiment=Training(arms=(_JUDGED, _chains("grpo, judged", _JUDGE))),
        comparisons=(above("tarl", "grpo, judged", 0.05, "area"),),
        minutes=3,
        weaker=_TOY
        + _RATES
        + " The judge is the environment's rule and never errs; the paper's is a "
        "language model. Success is all doors or nothing.",
    ),
    Claim(
        name="tarl-control",
        statement="Where nobody judges, TARL is GRPO.",
        source=Source(
            paper=_TARL,
            where="a control of tarl-above-grpo, not in the paper",
            figure="none",
        ),
        experiment=Training(
            arms=(_chains("tarl, not judged", _UNJUDGED, "tarl"), _chains("grpo", _UNJUDGED))
        ),
        comparisons=(equal("tarl, not judged", "grpo", 0.05, "area"),),
        minutes=3,
        weaker=_TOY + " Both arms have GRPO's rate: without a verdict they are one rule.",
    ),
    Claim(
        name="tarl-trajectory",
        statement="One reward per trajectory trains a better agent than a reward at each turn.",
        source=Source(
            paper=_TARL,
            where="section 3, comparison of where the reward is put",
            figure="the sum at the end trains more stably; the figure is not at hand",
        ),
        experiment=Training(arms=(_JUDGED, _BY_TURN)),
        comparisons=(above("tarl", "tarl by turn", 0.05, "area"),),
        minutes=3,
        weaker=_TOY + _RATES + " Verdicts that never err favour the reward at each turn.",
    ),
    Claim(
        name="tarl-mixed",
        statement="Mixing mathematics into training improves tool use.",
        source=Source(
            paper=_TARL,
            where="main table, tau-bench retail, Qwen3-8B",
            figure="pass^1 57.4 with maths tasks mixed in, 55.4 without",
        ),
        experiment=Training(
            arms=(
                train_arm("mixed", "tarl", _mixed(1.0)),
                train_arm("alone", "tarl", _mixed(0.01)),
            ),
            trials=2,
        ),
        comparisons=(above("mixed", "alone", 0.03),),
        minutes=12,
        weaker="Searching instead of a shop; hardly any maths (1 in 100) stands for none. The two "
        "tasks share a model of under a million parameters.",
    ),
)
