"""Claims of PaSa (arXiv 2501.10120)."""

from __future__ import annotations

from typing import Any

from ..matrix.starts import READS_LABELS, letters_start
from ..matrix.suite import Limits, SuiteEnv, TaughtStart
from .claim import Claim, Comparison, Source, above, equal
from .experiments import CrawledArm, Crawling, TrainedArm, Training, letters, taught, train_arm

_PASA = "PaSa, arXiv 2501.10120"
_STEPS = {"steps": 60, "requests": 12}
_LINEAR = (
    "A linear policy that decides section by section in the generated citation world, scored "
    "with the usual reward; the paper trains a 7B model on real papers."
)
_SPAWN = SuiteEnv(
    id="Spawn-v0",
    settings={"size": "micro"},
    start=TaughtStart(
        settings={
            "hidden": 64,
            "heads": 2,
            "inner": 128,
            "vocab_size": 300,
            "texts": 200,
            "read_steps": 30,
            "read_least": 0.0,
            "held_out": 4,
            "err_steps": 30,
        }
    ),
    limits=Limits(tokens=40_000, calls=20_000),
    max_tokens=3,
    eval_split="train",
    eval_tasks=19,
    eval_every=0,
)
_READER = letters_start(5, {"boxes": 4}, **READS_LABELS)


def _boxes(**settings: Any) -> SuiteEnv:
    """Make a column of Spawn-v0 with the start, the rate and the budget of the ladder's family."""
    return taught(letters("Spawn-v0", 12_000, lr=1e-3, boxes=4, **settings), _READER)


_SESSIONS, _FORCED = _boxes(), _boxes(forced=True, deep=True)
_PPO_LR = 3e-4
"""The rate that ``ladder-rates`` found for PPO in Spawn-v0."""
_UNTRAINED = _SPAWN.model_copy(update={"limits": Limits(tokens=1, calls=1, steps=1)})


def _crawler(name: str, **settings: Any) -> CrawledArm:
    return CrawledArm(name=name, env_settings=settings)


_USUAL = _crawler("alpha 1.5, cost 0.1")


def _critic(name: str, recipe: str, column: SuiteEnv, **settings: Any) -> TrainedArm:
    """Make an arm with a critic that learns from the first step."""
    changes = {"optim__critic_only_steps": 0, "credit__kl_coef": 0.0, **settings}
    return train_arm(name, recipe, column, **changes)


def _apart(better: str, worse: str, measure: str, least: float) -> Comparison:
    unit = "points" if measure == "recall" else "plain"
    return above(better, worse, least, measure, unit=unit)


PASA_CLAIMS = (
    Claim(
        name="pasa-training",
        statement="Session training improves on the imitation that it starts from.",
        source=Source(
            paper=_PASA,
            where="ablation, AutoScholarQuery",
            figure="crawler recall .7931 against .6556 without RL",
        ),
        experiment=Training(
            arms=(
                train_arm(
                    "sessions",
                    "pasa",
                    _SPAWN,
                    groups_per_step=32,
                    optim__lr=1e-3,
                    optim__critic_lr=5e-3,
                    optim__critic_only_steps=5,
                    optim__minibatches=1,
                    optim__warmup_steps=0,
                    credit__kl_coef=0.0,
                ),
                train_arm("imitation", "sft", _UNTRAINED, groups_per_step=1, optim__lr=1e-9),
            ),
            trials=8,
        ),
        comparisons=(above("sessions", "imitation", measure="return", unit="plain"),),
        minutes=5,
        weaker="Boxes in boxes instead of papers that cite papers. The arm imitation is the "
        "starting model: one step at a learning rate of 1e-9 leaves it as it is, so tokens and "
        "steps differ by design.",
    ),
    Claim(
        name="pasa-sessions",
        statement="Credit through the sessions that were asked for trains a better agent than PPO "
        "on the same episodes.",
        source=Source(
            paper=_PASA,
            where="section 4.3, session-level PPO",
            figure="the paper has no run without it",
        ),
        experiment=Training(
            arms=(
                _critic("sessions", "pasa", _SESSIONS),
                _critic("ppo", "ppo", _SESSIONS, optim__lr=_PPO_LR),
            )
        ),
        comparisons=(above("sessions", "ppo", 0.05, "area_coins", floor=0.0),),
        minutes=5,
        weaker="Boxes in boxes instead of papers that cite papers, and a model of 0.1M parameters "
        "that starts by following the labels now and then: from random letters asking only costs, "
        "and nobody goes on asking. Each arm has the learning rate that was searched for it.",
    ),
    Claim(
        name="pasa-control",
        statement="Where all boxes are opened without asking, session credit and PPO are equal.",
        source=Source(
            paper=_PASA,
            where="a control of pasa-sessions, not in the paper",
            figure="none",
        ),
        experiment=Training(
            arms=(
                _critic("sessions, forced", "pasa", _FORCED),
                _critic("ppo, forced", "ppo", _FORCED, optim__lr=_PPO_LR),
            )
        ),
        comparisons=(equal("sessions, forced", "ppo, forced", 0.05, "area_coins", floor=0.0),),
        minutes=5,
        weaker="Each arm has the learning rate that was searched for it where boxes are asked for.",
    ),
    Claim(
        name="pasa-alpha",
        statement="A larger reward coefficient alpha finds more papers with more actions.",
        source=Source(
            paper=_PASA,
            where="table of the reward coefficient, AutoScholarQuery",
            figure="alpha 0.5, 1, 1.5, 2: recall .7227, .7708, .7931, .8063 with 176, 319, 382, "
            "786 actions",
        ),
        experiment=Crawling(
            arms=(
                _crawler("alpha 0.5", alpha=0.5),
                _crawler("alpha 1", alpha=1.0),
                _USUAL,
                _crawler("alpha 2", alpha=2.0),
            ),
            requests=40,
            settings=_STEPS,
        ),
        comparisons=tuple(
            _apart(more, less, measure, least)
            for measure, least in (("actions", 5.0), ("recall", 0.005))
            for more, less in (
                ("alpha 1", "alpha 0.5"),
                (_USUAL.name, "alpha 1"),
                ("alpha 2", _USUAL.name),
            )
        ),
        minutes=7,
        weaker=_LINEAR,
    ),
    Claim(
        name="pasa-cost",
        statement="A larger cost of actions finds fewer papers with fewer actions.",
        source=Source(
            paper=_PASA,
            where="table of the action cost, AutoScholarQuery",
            figure="cost 0, 0.1, 0.2: recall .8239, .7931, .7478 with 1296, 382, 230 actions",
        ),
        experiment=Crawling(
            arms=(
                _crawler("cost 0", cost_search=0.0, cost_expand=0.0),
                _USUAL,
                _crawler("cost 0.2", cost_search=0.2, cost_expand=0.2),
            ),
            requests=40,
            settings=_STEPS,
        ),
        comparisons=tuple(
            _apart(more, less, measure, least)
            for measure, least in (("actions", 5.0), ("recall", 0.005))
            for more, less in (("cost 0", _USUAL.name), (_USUAL.name, "cost 0.2"))
        ),
        minutes=7,
        weaker=_LINEAR,
    ),
    Claim(
        name="pasa-selector",
        statement="The selector's opinion in the reward finds more papers than incomplete labels "
        "alone.",
        source=Source(
            paper=_PASA,
            where="ablation, AutoScholarQuery",
            figure="crawler recall .7931 against .7041 without the selector",
        ),
        experiment=Crawling(
            arms=(_USUAL, _crawler("no selector", label="annotated")),
            requests=40,
            settings=_STEPS,
        ),
        comparisons=(_apart(_USUAL.name, "no selector", "recall", 0.02),),
        minutes=5,
        weaker=_LINEAR,
    ),
)
