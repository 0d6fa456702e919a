"""A suite of seconds, results made by hand, and an executor that trains nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from turngym.benchmarks.matrix.board import Board
from turngym.benchmarks.matrix.cell import (
    Cell,
    CellResult,
    ColumnResult,
    Machine,
    Point,
    SearchResult,
    TrainingCurve,
    TriedRate,
    Tries,
    Used,
)
from turngym.benchmarks.matrix.executors import Ended
from turngym.benchmarks.matrix.jobs import Job
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.suite import BlankStart, Limits, Suite, SuiteEnv, SuiteRecipe
from turngym.benchmarks.matrix.train_cell import make_result

BLANK = {"hidden": 16, "layers": 1, "inner": 16, "episodes": 10}
MACHINE = Machine(
    system="Linux",
    processor="a <processor>",
    cores=2,
    memory_gb=4,
    gpu="",
    threads=1,
    started="2026-01-02T03:04:05Z",
    versions={"python": "3.11"},
)
FEW = {
    "grpo": {"groups_per_step": 2, "rollout.n": 3},
    "ppo": {"groups_per_step": 4},
    "rloo": {"groups_per_step": 2, "rollout.n": 3},
}


def tiny(
    recipes: Iterable[str] = ("grpo", "ppo"),
    envs: Iterable[str] = ("Bandit-v0",),
    seeds: Iterable[int] = (0,),
    **changes: Any,
) -> Suite:
    """A suite on diagnostic worlds; cells end after a few steps."""
    return Suite(
        name="tiny",
        version=1,
        about="for tests",
        recipes=tuple(SuiteRecipe(name=name, settings=FEW.get(name, {})) for name in recipes),
        envs=tuple(
            SuiteEnv(
                id=env_id,
                settings={"size": "micro"},
                start=BlankStart(settings=BLANK),
                limits=Limits(tokens=60, calls=24),
                max_tokens=3,
                eval_tasks=4,
                eval_every=2,
            )
            for env_id in envs
        ),
        seeds=tuple(seeds),
        **{"trials": 2, **changes},
    )


def tries(*rows: Iterable[float]) -> Tries:
    """Tries whose return is 1 where solved."""
    listed = [list(row) for row in rows]
    return Tries(
        tasks=[f"dev/{i}" for i in range(len(listed[0]))],
        solved=[[value >= 1 for value in row] for row in listed],
        returns=[list(row) for row in listed],
    )


def share(solved: float, n: int) -> Tries:
    """One trial of each task; that share of the tasks is solved."""
    return tries([float(i < round(solved * n)) for i in range(n)])


def column(suite: Suite, name: str, before: float = 0.0) -> ColumnResult:
    """A start that solves a share of the tasks; the expert always gets 1, the random player 0."""
    n = suite.column(name).eval_tasks
    return ColumnResult(
        suite_digest=suite.digest,
        digest=suite.column_digest(name),
        column=name,
        state="finished",
        start="nowhere",
        settings=suite.column(name).settings,
        about={"parameters": 1234},
        reference={"expert": tries([1.0] * n), "random": tries([0.0] * n)},
        tries=share(before, n),
        greedy_tries=share(before, n),
        machine=MACHINE,
    )


def search(suite: Suite, recipe: str, name: str) -> SearchResult:
    """A search whose second rate was better."""
    plan = suite.lr_search
    assert plan is not None
    return SearchResult(
        suite_digest=suite.digest,
        digest=suite.search_digest(recipe, name),
        recipe=recipe,
        column=name,
        state="finished",
        tried=tuple(
            TriedRate(rate=1e-3 * scale, seed=seed, area=0.1 * i, used=Used(tokens=10, steps=1))
            for seed in plan.seeds
            for i, scale in enumerate(plan.scales[:2])
        ),
        rate=1e-3 * plan.scales[1],
    )


def finished(
    suite: Suite,
    cell: Cell,
    rows: Iterable[Iterable[float]],
    before: float = 0.0,
    greedy: float | None = None,
) -> CellResult:
    """A finished cell with these returns.

    Its evaluations rise in a straight line to their mean; so do its four training steps, from a
    quarter of the way.
    """
    tried = tries(*rows)
    after = tried.mean("returns")
    assert after is not None
    limits = suite.column(cell.column).limits
    curve = [
        Point(
            step=step,
            tokens=limits.tokens * step // 2,
            calls=limits.calls * step // 2,
            success=value,
            return_low95=value,
            return_high95=value,
            **{"return": value},
        )
        for step, value in ((0, before), (2, after))
    ]
    training = TrainingCurve(
        tokens=tuple(limits.tokens * i // 4 for i in (1, 2, 3, 4)),
        calls=tuple(limits.calls * i // 8 for i in (1, 2, 3, 4)),
        values=tuple(before + (after - before) * i / 4 for i in (1, 2, 3, 4)),
    )
    return make_result(suite, cell, "finished").model_copy(
        update={
            "used": Used(
                tokens=limits.tokens,
                calls=limits.calls // 2,
                steps=4,
                optimizer_steps=8,
                seconds=3.0,
            ),
            "rate": 3e-4,
            "curve": tuple(curve),
            "training": training,
            "area": sum(training.values) / 4,
            "tries": tried,
            "greedy_tries": share(after if greedy is None else greedy, len(tried.tasks)),
            "seconds": 4.0,
            "machine": MACHINE,
        }
    )


def filled(
    folder: Path, suite: Suite, returns: Callable[[Cell], Any], before: float = 0.0
) -> Layout:
    """A folder with results: what ``returns`` gives is tries, a whole result, or None for none."""
    layout = Layout(folder)
    folder.mkdir(parents=True, exist_ok=True)
    layout.claim(suite)
    for env in suite.envs:
        column(suite, env.name, before).write(layout.column_file(env.name))
    for cell in suite.cells:
        given = returns(cell)
        if given is None:
            continue
        result = given if isinstance(given, CellResult) else finished(suite, cell, given)
        result.write(layout.cell_file(cell))
    return layout


class Pretender:
    """Writes results at once instead of computing them, and remembers what it was asked.

    Args:
        suite: The suite.
        layout: The folder.
        act: Does a job; may write a result, raise KeyboardInterrupt, or return a death.
    """

    def __init__(self, suite: Suite, layout: Layout, act: Callable[[Job], str | None]) -> None:
        self.asked: list[str] = []
        self.stopped = 0
        self._suite, self._layout, self._act = suite, layout, act
        self._ended: list[Ended] = []

    @property
    def slots(self) -> int:
        return 2

    def submit(self, job: Job) -> None:
        self.asked.append(str(job))
        death = self._act(job)
        if death is None and job.cell is not None:
            result = finished(self._suite, job.cell, [[1.0, 0.0, 0.0, 0.0]])
            result.write(self._layout.cell_file(job.cell))
        elif death is None and job.recipe:
            made = search(self._suite, job.recipe, job.column)
            made.write(self._layout.search_file(job.recipe, job.column))
        elif death is None:
            column(self._suite, job.column).write(self._layout.column_file(job.column))
        self._ended.append(Ended(job, death or ""))

    def wait(self, seconds: float) -> list[Ended]:
        return [self._ended.pop(0)] if self._ended else []

    def stop(self) -> None:
        self.stopped += 1


class Quiet:
    """Shows nothing, keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __enter__(self) -> Quiet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def show(self, board: Board, ended: Iterable[CellResult], slots: int) -> None:
        self.told += [f"{result.cell.key} {result.state}" for result in ended]
