"""A store of what went well, trained on again: SPEAR's tracker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from ..core.annotators import sampled_logprobs
from ..core.checks import check_minimum, check_shares
from ..core.forest import Edge, Forest, Group, Path, Tree
from ..core.forest_io import group_from_json, group_to_json
from ..core.protocols import (
    Annotations,
    Credits,
    Floats,
    Replay,
    Scorer,
    Start,
    TaskSource,
    Tracker,
)
from ..credit.group import by_prompt
from .task_order import OrderedTasks, Size

_DRAW = 31


@dataclass(frozen=True, kw_only=True)
class SelfImitation(Tracker):
    """Paths that were better than their group, imitated some steps later (SPEAR, 2509.22601).

    Paths with an advantage above 0 are stored with their return and their log-probabilities. Once
    more than ``fill * paths`` of them lie there, none older than ``age`` steps, each gets a new
    advantage, its return less the median of the last groups' mean returns (of all tasks); of those
    above 0 a random subset, a power of two and at most ``paths``, is trained on in an update of its
    own after the step's, and the store is emptied. Advantages are weighted by ``(1 - cos(pi u /
    warmup)) / 2`` in step u, and by 1 from ``warmup`` on.

    A share of tokens is left out of that update: drawn from those whose covariance of
    log-probability and advantage, as centred over the update, lies in ``covariance``.

    Attributes:
        paths: Most paths of an update.
        fill: How full the store gets before it is used.
        age: Steps for which a path is kept.
        groups: Groups whose mean returns are remembered.
        warmup: Steps until imitation has its whole weight.
        drop: Share of the tokens that is left out, in [0, 1].
        covariance: Bounds of the covariance, in nats times return.
    """

    paths: int = 2048
    fill: float = 1.5
    age: int = 5
    groups: int = 10_240
    warmup: int = 100
    drop: float = 0.02
    covariance: tuple[float, float] = (2.0, 60.0)

    replays: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_minimum(self, paths=1, fill=0.0, age=0, groups=1, warmup=0)
        check_shares(self, "drop")
        if not self.covariance[0] < self.covariance[1]:
            raise BadValueError(
                f"SelfImitation.covariance is {self.covariance}; expected a lower and a higher "
                "bound."
            )

    @property
    def provides(self) -> frozenset[str]:
        """Nothing: it makes no annotations."""
        return frozenset()

    def start(
        self,
        seed: int,
        split: str,
        size: Size,
        reward_range: tuple[float, float],  # noqa: ARG002 - returns are compared among themselves
    ) -> PathStore:
        """Create an empty store."""
        return PathStore(self, OrderedTasks(seed, split, size))

    def weight(self, step: int) -> float:
        """Return the weight of imitation in a step, from 0 to 1."""
        if step >= self.warmup:
            return 1.0
        return (1.0 - math.cos(math.pi * step / self.warmup)) / 2.0

    def left_out(
        self, logprobs: Floats, advantages: Floats, rng: np.random.Generator
    ) -> npt.NDArray[np.bool_]:
        """Return which tokens ``[n]`` of an update are left out, see the class."""
        mine, worth = logprobs.astype(np.float64), advantages.astype(np.float64)
        together = (mine - mine.mean()) * (worth - worth.mean())
        low, high = self.covariance
        found = np.flatnonzero((low < together) & (together < high))
        out = np.zeros(len(mine), dtype=bool)
        out[rng.permutation(found)[: math.ceil(self.drop * len(mine))]] = True
        return out


@dataclass(slots=True)
class Stored:
    """A path that may be imitated.

    Attributes:
        group: A group that holds it alone, as one chain.
        worth: The return of its episode.
        logprobs: Of its tokens under the policy that played it ``[n_act]``.
        step: When it was played.
    """

    group: Group
    worth: float
    logprobs: Floats
    step: int


@dataclass(slots=True)
class PathStore(TaskSource):
    """The state of :class:`SelfImitation` in one run.

    Attributes:
        rule: The tracker.
        order: The order of the tasks.
        rows: What is stored, the oldest first.
        means: Mean returns of the last groups, the oldest first.
        step: The last step that was begun.
    """

    rule: SelfImitation
    order: OrderedTasks
    rows: list[Stored] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    step: int = 0

    def starts(self, step: int, count: int, extra_round: int = 0) -> list[Start]:
        """Return the tasks of a training step, in the plain order."""
        self.step = step
        return self.order.starts(step, count, extra_round)

    def starts_from(self, step: int, played: int, at: int, count: int) -> list[Start]:
        """Return the tasks at these places, in the plain order."""
        self.step = step
        return self.order.starts_from(step, played, at, count)

    def replay(
        self, forest: Forest, annotations: Annotations, credits: Credits, scorer: Scorer
    ) -> Replay | None:
        """Store the step's good paths, and return what is imitated now, if anything."""
        self._store(forest, annotations, credits)
        if len(self.rows) <= self.rule.fill * self.rule.paths:
            return None
        rows, self.rows = self.rows, []
        median = float(np.percentile(self.means, 50))
        better = [row for row in rows if row.worth > median]
        if not better:
            return None
        rng = np.random.default_rng([self.order.seed, _DRAW, self.step])
        count = 1 << (min(len(better), self.rule.paths).bit_length() - 1)
        chosen = [better[i] for i in sorted(rng.permutation(len(better))[:count])]
        again = Forest.of([row.group for row in chosen])
        worth = [np.full(len(row.logprobs), row.worth - median, np.float32) for row in chosen]
        now = np.concatenate(scorer.logprobs(again))
        out = self.rule.left_out(now, np.concatenate(worth), rng)
        ends = np.cumsum([len(row) for row in worth])[:-1]
        weight = np.float32(self.rule.weight(self.step))
        advantages = [
            np.where(gone, np.float32(0.0), weight * row)
            for row, gone in zip(worth, np.split(out, ends), strict=True)
        ]
        old = [row.logprobs for row in chosen]
        return Replay(again, {"old_logprobs": old}, Credits(advantages=advantages))

    def _store(self, forest: Forest, annotations: Annotations, credits: Credits) -> None:
        returns = forest.returns()
        self.means += [float(np.mean(returns[members])) for members in by_prompt(forest)]
        self.means = self.means[-self.rule.groups :]
        base = annotations.get("old_logprobs") or sampled_logprobs(forest)
        for at, path in enumerate(forest):
            if credits.advantages[at].mean() > 0:
                name = f"{self.step}/{at}"
                group = Group(name, forest.groups[path.group].task_id, [chain_of(forest, path)])
                self.rows.append(Stored(group, float(returns[at]), base[at], self.step))
        self.rows = [row for row in self.rows if self.step - row.step <= self.rule.age]

    def learn(self, forest: Forest, scorer: Scorer) -> dict[str, float]:  # noqa: ARG002 - the protocol's
        """Return how many paths are stored."""
        return {"stored_paths": float(len(self.rows))}

    def state(self) -> dict[str, Any]:
        """Return the store as JSON data; every float32 survives."""
        rows = [
            {
                "group": group_to_json(row.group),
                "worth": row.worth,
                "logprobs": row.logprobs.tolist(),
                "step": row.step,
            }
            for row in self.rows
        ]
        return {"rows": rows, "means": self.means}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore :meth:`state`."""
        self.means = [float(mean) for mean in state["means"]]
        self.rows = [
            Stored(
                group_from_json(row["group"]),
                float(row["worth"]),
                np.array(row["logprobs"], np.float32),
                int(row["step"]),
            )
            for row in state["rows"]
        ]


def chain_of(forest: Forest, path: Path) -> Tree:
    """Return a tree that is this path alone, without what is only for people to read."""
    tree = Tree()
    for at, turn in enumerate(forest.turns(path)):
        tree.add(
            replace(
                turn, parent=at - 1, edge=Edge.CONTINUE, previous=None, spawned=(), debug_info={}
            )
        )
    return tree
