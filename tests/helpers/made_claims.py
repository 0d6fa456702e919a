"""Claims of seconds, and values made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from turngym.benchmarks.claims.claim import Claim, Comparison, Rerun, Source
from turngym.benchmarks.claims.experiments import TrainedArm, Training
from turngym.benchmarks.claims.outcome import RUN, ArmRuns, SeedRun
from turngym.benchmarks.matrix.suite import BlankStart, Limits, SuiteEnv

BLANK = {"hidden": 16, "layers": 1, "inner": 16, "episodes": 10}
COLUMN = SuiteEnv(
    id="Bandit-v0",
    settings={"size": "micro"},
    start=BlankStart(settings=BLANK),
    limits=Limits(tokens=60, calls=24),
    max_tokens=3,
    eval_split="train",
    eval_tasks=4,
    eval_every=1,
)
RERUN = Rerun(paper="Another paper, arXiv 0000.00001", figure="0.1 below", where="here")
SOURCE = Source(paper="A paper, arXiv 0000.00000", where="a <table>", figure="1 against 0")


def above(better: str = "ours", worse: str | None = "theirs", **changes: Any) -> Comparison:
    given: dict[str, Any] = {"measure": "success", "min_effect": 0.05, **changes}
    return Comparison(better=better, worse=worse, **given)


def tiny_arm(name: str, **changes: Any) -> TrainedArm:
    settings = {"groups_per_step": 2, "rollout.n": 3}
    given: dict[str, Any] = {"recipe": "grpo", "settings": settings, "column": COLUMN, **changes}
    return TrainedArm(name=name, **given)


def tiny_claim(name: str = "tiny", *comparisons: Comparison, **second: Any) -> Claim:
    return Claim(
        name=name,
        statement="Ours is above <theirs>.",
        source=SOURCE,
        experiment=Training(arms=(tiny_arm("ours"), tiny_arm("theirs", **second)), trials=1),
        comparisons=comparisons or (above(),),
        minutes=1,
        weaker="Everything.",
        reruns=(RERUN,),
    )


def by_task(name: str, *seeds: Sequence[float], measure: str = "success") -> ArmRuns:
    """One value per task and seed."""
    runs = [
        SeedRun(seed=i, values={measure: {f"dev/{t}": float(v) for t, v in enumerate(row)}})
        for i, row in enumerate(seeds)
    ]
    return ArmRuns(name=name, folder=name, runs=tuple(runs))


def by_run(name: str, values: Iterable[float], measure: str = "fall") -> ArmRuns:
    """One value per seed."""
    runs = [SeedRun(seed=i, values={measure: {RUN: v}}) for i, v in enumerate(values)]
    return ArmRuns(name=name, folder=name, runs=tuple(runs))


def named(*arms: ArmRuns) -> Mapping[str, ArmRuns]:
    return {arm.name: arm for arm in arms}
