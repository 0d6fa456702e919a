"""Claims of ARPO (arXiv 2507.19849) and of TARL (arXiv 2509.14480)."""

from __future__ import annotations

from typing import Any

from ..matrix.suite import Limits, SuiteEnv, TaughtStart
from .claim import Claim, Comparison, Source, above
from .experiments import PlayedArm, TrainedArm, Training, play_search, probe, search, train_arm

_ARPO = "ARPO, arXiv 2507.19849"
_TARL = "TARL, arXiv 2509.14480"
_CALLS = 9_000
_TOY = "A diagnostic environment and a blank model of 0.1 million parameters."
_SEARCH = search(20_000, hops=2)


def _arpo(name: str, calls: int, **settings: Any) -> TrainedArm:
    return train_arm(name, "arpo", probe("Fork-v0", calls), groups_per_step=8, **settings)


def _grpo(name: str, calls: int) -> TrainedArm:
    return train_arm(name, "grpo", probe("Fork-v0", calls), groups_per_step=8, rollout__n=8)


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
        statement="ARPO with half the tool calls scores about what GRPO does with all of them, and "
        "GRPO with half of them scores less.",
        source=Source(
            paper=_ARPO,
            where="abstract and the comparison of tool calls",
            figure="about half the tool calls of GRPO at a better score",
        ),
        experiment=Training(
            arms=(
                _arpo("arpo, half the calls", _CALLS // 2),
                _grpo("grpo, half the calls", _CALLS // 2),
                _grpo("grpo, all calls", _CALLS),
            )
        ),
        comparisons=(
            above("arpo, half the calls", "grpo, all calls", margin=-0.05),
            above("grpo, all calls", "grpo, half the calls"),
        ),
        minutes=3,
        weaker=_TOY + " Every action counts as a call, an answer too.",
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
                _arpo("soft", _CALLS, credit__shared="own", optim__epochs=2),
                _arpo("hard", _CALLS, credit__shared="mean", optim__epochs=2),
            )
        ),
        comparisons=(above("soft", "hard"),),
        minutes=3,
        weaker=_TOY + " Each batch is gone through twice: in the first pass, where no probability "
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
        experiment=Training(
            arms=(
                train_arm("tarl", "tarl", _SEARCH),
                train_arm("grpo", "grpo", _SEARCH),
            )
        ),
        comparisons=(above("tarl", "grpo", 0.03),),
        minutes=5,
        weaker="Two-hop questions instead of a shop, one model of under a million parameters. The "
        "judge is the environment's rule and never errs; the paper's is a language model.",
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
        minutes=5,
        weaker="Searching instead of a shop; hardly any maths (1 in 100) stands for none. The two "
        "tasks share a model of under a million parameters.",
    ),
)
