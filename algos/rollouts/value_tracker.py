"""Expected returns per task: SPO's Beta tracker and its sampling of tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from ..core.checks import check_numbers
from ..core.forest import ROOT, Edge, Forest, Group, Tree
from ..core.forest_io import group_from_json, group_to_json
from ..core.protocols import Floats, Scorer, Start, TaskSource, Tracker
from . import seed_at

_TASKS, _EPISODES, _FIRST = 11, 12, 13


@dataclass(frozen=True, kw_only=True)
class BetaTracker(Tracker):
    """A Beta distribution of success per task (SPO, arXiv 2509.13232, section 3.1).

    ``v = a / (a + b)`` is the expected return. A new return R updates ``a <- rho a + R`` and
    ``b <- rho b + 1 - R``; ``rho = clamp(2^(-D / half_life), rho_min, rho_max)`` forgets faster the
    more the policy has moved, D being the mean ``|logprob now - logprob then|`` on the task's
    previous path. Tasks are drawn without replacement with weight ``sqrt(v (1 - v)) + floor``.

    Returns are scaled by the environment's reward range to [0, 1]; others are refused.

    Attributes:
        pool: The first ``pool`` tasks of the split are tracked and trained on (all of a smaller
            split): a tracker needs tasks that come back.
        first: Episodes per task that are played before training for its first value; 0 starts
            every task at 1/2.
        half_life: Of the memory, in nats of D.
        rho_min: Minimum share of the past that is kept; also sets the first values' weight
            ``1 / (1 - rho_min)``.
        rho_max: Most.
        floor: Weight of a task that is always or never solved.
    """

    pool: int = 14_000
    first: int = 8
    half_life: float = 0.06
    rho_min: float = 0.875
    rho_max: float = 0.96
    floor: float = 0.05

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.pool < 1 or self.first < 0:
            raise BadValueError(
                f"BetaTracker: pool {self.pool}, first {self.first}; expected at least 1 and 0."
            )
        if not 0 < self.rho_min <= self.rho_max < 1:
            raise BadValueError(
                f"BetaTracker: rho_min {self.rho_min}, rho_max {self.rho_max}; expected "
                "0 < rho_min <= rho_max < 1."
            )
        if not (self.half_life > 0 and 0 < self.floor < math.inf):
            raise BadValueError(
                f"BetaTracker: half_life {self.half_life}, floor {self.floor}; expected above 0, "
                "and a finite floor."
            )

    @property
    def provides(self) -> frozenset[str]:
        """The expected returns."""
        return frozenset({"tracked_values"})

    def start(
        self, seed: int, split: str, size: int | None, reward_range: tuple[float, float]
    ) -> BetaMemory:
        """Create a memory in which every task's expected return is 1/2.

        Raises:
            BadValueError: All returns are the same.
        """
        if not reward_range[0] < reward_range[1]:
            raise BadValueError(
                f"BetaTracker: the environment's returns are in {reward_range}; expected a lower "
                "and a higher one, to expect something between them."
            )
        tracked = self.pool if size is None else min(self.pool, size)
        return BetaMemory(self, seed, split, tracked, reward_range)

    def prior(self, solved: float, played: int) -> tuple[float, float]:
        """Return the prior (a, b) of a task after ``solved`` of ``played`` episodes succeeded."""
        if played == 0:
            return 0.5, 0.5
        weight = 1.0 / (1.0 - self.rho_min)
        a = weight * (solved + 0.5) / (played + 1)
        return a, weight - a

    def memory(self, drift: float) -> float:
        """Return rho, the forgetting factor."""
        return min(max(2.0 ** (-drift / self.half_life), self.rho_min), self.rho_max)

    def weights(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the unnormalised sampling weights of tasks of these values."""
        return np.sqrt(values * (1.0 - values)) + self.floor


@dataclass(slots=True)
class BetaMemory(TaskSource):
    """The state of a :class:`BetaTracker` in one run.

    Attributes:
        rule: The tracker.
        seed: Of the run.
        split: Split of the tasks.
        size: Number of tracked tasks.
        reward_range: Lowest and highest return; in between they count 0 to 1.
        beliefs: (a, b) by task, of those that have been played.
        paths: Last path of each task with the updated policy's log-probabilities on it, as the
            JSON of a group of one chain.
        firsts: Successes and episodes by task in what :meth:`score_first` was given so far; not
            part of the state, the first episodes are played in one go.
    """

    rule: BetaTracker
    seed: int
    split: str
    size: int
    reward_range: tuple[float, float] = (0.0, 1.0)
    beliefs: dict[int, tuple[float, float]] = field(default_factory=dict)
    paths: dict[int, dict[str, Any]] = field(default_factory=dict)
    firsts: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def first_episodes(self) -> Sequence[Start]:
        """``first`` episodes of every task of the pool."""
        return [
            Start(self.split, task, seed_at(self.seed, _FIRST, task, i), f"first/{task}/{i}")
            for task in range(self.size)
            for i in range(self.rule.first)
        ]

    def score_first(self, forest: Forest) -> None:
        """Count the successes: returns above the lowest. May be given part after part."""
        returns = forest.returns()
        for i in _endings(forest):
            task = _first_task(forest.groups[forest.paths[i].group].uid)
            solved, played = self.firsts.get(task, (0, 0))
            solved += self.scaled(float(returns[i])) > 1e-6
            self.firsts[task] = solved, played + 1
            self.beliefs[task] = self.rule.prior(solved, played + 1)

    def value(self, task: int) -> float:
        """Return the expected return, scaled to [0, 1]."""
        a, b = self.beliefs.get(task, (0.5, 0.5))
        return a / (a + b)

    def scaled(self, gain: float) -> float:
        """Scale a return to a share of the environment's range."""
        low, high = self.reward_range
        return (gain - low) / (high - low)

    def starts(self, step: int, count: int, extra_round: int = 0) -> list[Start]:  # noqa: ARG002 - filters and trackers exclude each other
        """Draw the tasks of a step by their weights, without replacement.

        Raises:
            BadValueError: The pool holds fewer tasks than a step plays.
        """
        if count > self.size:
            raise BadValueError(
                f"BetaTracker: a step plays {count} groups, but only {self.size} tasks are "
                "tracked. Raise tracker.pool, or lower groups_per_step."
            )
        return self._starts(step, self._draw(step, count), 0)

    def starts_from(self, step: int, played: int, at: int, count: int) -> list[Start]:  # noqa: ARG002 - every step draws anew
        """Return these places of the step's order of tasks.

        It is the whole pool, drawn by the weights without replacement, then the pool drawn anew,
        for a step that plays more groups than tasks are tracked.
        """
        found: list[Start] = []
        while len(found) < count:
            lap, first = divmod(at + len(found), self.size)
            tasks = self._draw(step, self.size, lap)[first : first + count - len(found)]
            found += self._starts(step, tasks, at + len(found), lap)
        return found

    def _draw(self, step: int, count: int, lap: int = 0) -> npt.NDArray[np.int64]:
        weights = self.rule.weights(np.array([self.value(t) for t in range(self.size)]))
        rng = np.random.default_rng([self.seed, _TASKS, step, *([lap] if lap else [])])
        return rng.choice(self.size, size=count, replace=False, p=weights / weights.sum())

    def _starts(
        self, step: int, tasks: npt.NDArray[np.int64], first: int, lap: int = 0
    ) -> list[Start]:
        again = (lap,) if lap else ()
        return [
            Start(
                self.split,
                int(task),
                seed_at(self.seed, _EPISODES, step, int(task), *again),
                f"{step}/{place}/{task}",
            )
            for place, task in enumerate(tasks, first)
        ]

    def annotations(self, forest: Forest) -> dict[str, list[Floats]]:
        """Return each path's expected return on every token."""
        low, high = self.reward_range
        expected = [low + (high - low) * self.value(_task(forest, p.group)) for p in forest]
        return {
            "tracked_values": [
                np.full(forest.n_act(p), value, np.float32)
                for p, value in zip(forest, expected, strict=True)
            ]
        }

    def learn(self, forest: Forest, scorer: Scorer) -> dict[str, float]:
        """Update the beliefs of the step's tasks, and keep their paths.

        An episode of several sessions counts once, with its last session's path.

        Raises:
            BadValueError: A return outside the environment's range.
        """
        returns = forest.returns()
        endings = _endings(forest)
        tasks = [_task(forest, forest.paths[i].group) for i in endings]
        before = [self.value(task) for task in tasks]
        drifts = self._drifts(forest, scorer)
        logprobs = scorer.logprobs(forest)
        kept = []
        groups: dict[int, int] = {}  # the first of each task: what is drawn again drifts once
        for i, task in zip(endings, tasks, strict=True):
            gain = self.scaled(float(returns[i]))
            if not -1e-6 <= gain <= 1 + 1e-6:
                raise BadValueError(
                    f"BetaTracker: task {task} returned {returns[i]}; expected a return in the "
                    f"environment's range {self.reward_range}. Drop the shapers that leave it."
                )
            group = forest.paths[i].group
            fresh = groups.setdefault(task, group) == group
            rho = self.rule.memory(drifts.get(task, 0.0) if fresh else 0.0)
            a, b = self.beliefs.get(task, (0.5, 0.5))
            self.beliefs[task] = rho * a + gain, rho * b + 1.0 - gain
            self.paths[task] = _keep(forest, i, logprobs[i])
            kept.append(rho)
        if not kept:
            return {}
        return {
            "value_mean": float(np.mean(before)),
            "memory_mean": float(np.mean(kept)),
            "drift_mean_nats": float(np.mean(list(drifts.values()))) if drifts else 0.0,
        }

    def state(self) -> dict[str, Any]:
        """Return beliefs and paths as JSON data."""
        return {
            "beliefs": {str(task): list(ab) for task, ab in sorted(self.beliefs.items())},
            "paths": {str(task): path for task, path in sorted(self.paths.items())},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore :meth:`state`."""
        self.beliefs = {int(t): (float(a), float(b)) for t, (a, b) in state["beliefs"].items()}
        self.paths = {int(task): path for task, path in state["paths"].items()}

    def _drifts(self, forest: Forest, scorer: Scorer) -> dict[int, float]:
        """Return D of the step's tasks that were played before."""
        tasks = sorted({_task(forest, p.group) for p in forest} & self.paths.keys())
        old = Forest.of([group_from_json(self.paths[task]) for task in tasks])
        if not old.paths:
            return {}
        out = {}
        for i, (path, now) in enumerate(zip(old, scorer.logprobs(old), strict=True)):
            then = np.concatenate([t.logprobs for t in old.turns(path)])
            out[tasks[old.paths[i].group]] = float(np.abs(now - then).mean(dtype=np.float64))
        return {task: drift for task, drift in out.items() if math.isfinite(drift)}


def _endings(forest: Forest) -> list[int]:
    """Return the paths on whose last turn an episode ended, one per scored episode."""
    finals = [[set(tree.finals()) for tree in group.trees] for group in forest.groups]
    return [i for i, p in enumerate(forest) if p.turns[-1] in finals[p.group][p.tree]]


def _task(forest: Forest, group: int) -> int:
    """Return a group's tracked task, from the uid set by :meth:`BetaMemory.starts`."""
    return int(forest.groups[group].uid.rsplit("/", 1)[1])


def _first_task(uid: str) -> int:
    return int(uid.split("/")[1])


def _keep(forest: Forest, at: int, logprobs: Floats) -> dict[str, Any]:
    """Return a path as a group of one chain with these log-probabilities, as JSON data."""
    path = forest.paths[at]
    group = forest.groups[path.group]
    chain = Tree()
    start = 0
    for number, turn in enumerate(forest.turns(path)):
        stop = start + len(turn.act_ids)
        chain.add(
            replace(
                turn,
                parent=number - 1 if number else ROOT,
                edge=Edge.CONTINUE,
                previous=None,
                logprobs=logprobs[start:stop],
                spawned=(),
            )
        )
        start = stop
    return group_to_json(Group(group.uid, group.task_id, [chain]))
