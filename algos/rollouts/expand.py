"""Tree-GRPO's rollout: whole chains first, then new endings from earlier points of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...envs.core.errors import BadValueError, EnvFault
from ..core.checks import check_choices, check_minimum
from ..core.forest import Edge, Group, Tree, Turn
from ..core.protocols import Rollout, Start
from .budget import GroupBudget, Line, finished_episodes, keep_episodes, play_lines
from .episode_runner import EpisodeHandle, EpisodeRunner, StepResult
from .seeds import seed_at

_SNAPSHOT, _DRAW, _KEEP = -1, -2, -3
SPAN = 16
"""Tokens between two points where an action may fork, unless said otherwise."""


@dataclass(frozen=True, kw_only=True)
class Expand(Rollout):
    """Initialise, then expand (Tree-GRPO, arXiv 2509.21240, section 3.2).

    ``trees`` chains are played to the end. Then, ``rounds`` times, every tree draws ``nodes`` of
    its points uniformly with replacement and plays a new ending from each. A point is the start of
    the tree, or a turn after which the episode went on; the new turns are points in the next round.
    A point is a fork of the environment, so no tool runs twice. A group has
    ``trees * (1 + nodes * rounds)`` paths at an expected cost of
    ``trees * (1 + nodes * rounds / 2)`` chains (the start counts as a point, which makes it a
    little more: 4.67 instead of 4 for 2 trees, 2 nodes and chains of 3 turns).

    Degenerate cases: an episode of one turn has its start as the only point, so its expansions
    are further chains. ``rounds=0`` is :class:`Chains`.

    Attributes:
        trees: M in the paper.
        nodes: N: points drawn per tree and round.
        rounds: L.
        keep: k: endings kept per tree, drawn at random; None keeps all. Endings that broke
            (``env_error``) stay beside them, to be counted.
        granularity: Where forks may hang: at the ends of turns (``"step"``, the paper's), or also
            inside actions, after sentences or every ``span`` tokens (its ablation).
        span: Tokens between points, with ``granularity="tokens"``.
        limit_tokens: Most tokens that a group may sample, see :class:`Chains`.
        limit_calls: Most actions that a group may take.
    """

    trees: int = 2
    nodes: int = 2
    rounds: int = 1
    keep: int | None = None
    granularity: Literal["step", "sentence", "tokens"] = "step"
    span: int | None = None
    limit_tokens: int | None = None
    limit_calls: int | None = None

    def __post_init__(self) -> None:
        check_minimum(self, trees=1, nodes=0, rounds=0)
        check_choices(self)
        most = 1 + self.nodes * self.rounds
        if self.keep is not None and not 1 <= self.keep <= most:
            raise BadValueError(
                f"Expand.keep is {self.keep}; expected 1 to {most}: a tree has 1 + nodes * rounds "
                "endings."
            )
        if self.span is not None and (self.granularity != "tokens" or self.span < 1):
            raise BadValueError(
                f"Expand.span is {self.span} with granularity {self.granularity!r}; it needs "
                "granularity 'tokens' and at least 1."
            )
        GroupBudget(self.limit_tokens, self.limit_calls)

    @property
    def max_paths(self) -> int:
        """Total number of leaves of all trees."""
        return self.trees * (self.keep or 1 + self.nodes * self.rounds)

    @property
    def forks(self) -> bool:
        """Whether a tree can have more than one ending."""
        return self.max_paths > self.trees

    async def __call__(self, runner: EpisodeRunner, start: Start) -> Group:
        """Play the chains, then the rounds; the trees come in their order."""
        try:
            handle = await runner.open(start)
        except EnvFault:
            return Group(start.uid, str(start.task), faults=self.trees)
        budget = GroupBudget(self.limit_tokens, self.limit_calls)
        span = (self.span or SPAN) if self.granularity == "tokens" else None
        garden = _Garden(runner, self.granularity, span)
        garden.grows = self.rounds > 0
        lines = [Line(handle.fork(i), Tree()) for i in range(self.trees)]
        for line in lines:
            garden.points[id(line.tree)] = [_Point(line.handle.fork(_SNAPSHOT))]
        trees = [line.tree for line in lines]
        await play_lines(runner, lines, budget, garden)
        for number in range(self.rounds):
            lines = [
                Line(point.open(number * self.nodes + i), tree)
                for t, tree in enumerate(trees)
                for i, point in enumerate(self._drawn(garden.points[id(tree)], start, number, t))
            ]
            garden.grows = number + 1 < self.rounds
            await play_lines(runner, lines, budget, garden)
        garden.close()
        group = Group(start.uid, handle.task_id, trees)
        ends = [finished_episodes(tree) for tree in trees]
        if self.keep is not None:
            ends = [self._some(trees[t], last, start, t) for t, last in enumerate(ends)]
        elif budget.off:
            return group
        return keep_episodes(group, ends)

    def _drawn(
        self, points: Sequence[_Point], start: Start, number: int, tree: int
    ) -> list[_Point]:
        rng = np.random.default_rng(seed_at(start.seed, _DRAW, number, tree))
        return [points[i] for i in rng.integers(len(points), size=self.nodes)]

    def _some(self, tree: Tree, ends: list[int], start: Start, number: int) -> list[int]:
        broken = [last for last in ends if tree.turns[last].status == "env_error"]
        whole = [last for last in ends if last not in broken]
        rng = np.random.default_rng(seed_at(start.seed, _KEEP, number))
        return sorted([*broken, *(whole[i] for i in rng.permutation(len(whole))[: self.keep])])


@dataclass(slots=True, eq=False)
class _Point:
    """A fork point: a handle, and the first tokens of the action there."""

    handle: EpisodeHandle
    given: list[int] = field(default_factory=list)
    parent: int = 0

    def open(self, branch: int) -> EpisodeHandle:
        handle = self.handle.fork(branch)
        if self.given:
            handle.now.given = list(self.given)
            handle.now.parent = handle.last = self.parent
            handle.now.edge = Edge.CONTINUE
        return handle


class _Garden:
    """Stores the fork points of the trees while lines are played.

    Attributes:
        points: By tree.
        grows: Whether further endings will be drawn; without them nothing needs to be kept.
    """

    def __init__(
        self,
        runner: EpisodeRunner,
        granularity: Literal["step", "sentence", "tokens"],
        span: int | None,
    ) -> None:
        self.points: dict[int, list[_Point]] = {}
        self.grows = True
        self._runner = runner
        self._inside = granularity != "step"
        self._span = span
        self._before: dict[int, EpisodeHandle] = {}

    def ready(self, line: Line) -> None:
        """Store the line's position: fork points inside the action attach there."""
        if self._inside and self.grows:
            self._before[id(line)] = line.handle.fork(_SNAPSHOT)

    def append(self, runner: EpisodeRunner, line: Line, result: StepResult) -> Turn:
        """Append the turn, cut where it may fork, and note its points."""
        if not self.grows:
            return runner.append(line.handle, line.tree, result)
        points = self.points[id(line.tree)]
        given = list(line.handle.now.given)
        cuts = self._cuts(given, result.done.ids.tolist()) if self._inside else []
        first = len(line.tree.turns)
        turn = runner.append(line.handle, line.tree, result, cuts)
        if self._inside:
            before = self._before.pop(id(line))
            new = result.done.ids.tolist()
            points += [_Point(before, given + new[:cut], first + i) for i, cut in enumerate(cuts)]
            if not cuts:
                runner.leave(before)
        if turn.status == "running":
            points.append(_Point(line.handle.fork(_SNAPSHOT)))
        return turn

    def close(self) -> None:
        """Release the stored positions."""
        for points in self.points.values():
            for point in points:
                if not point.handle.done:
                    self._runner.leave(point.handle)

    def _cuts(self, given: list[int], new: list[int]) -> list[int]:
        """Return where the sampled tokens may be cut without cutting a stop string."""
        text = self._runner.renderer.text
        if self._span is None:
            places = [i for i in range(1, len(new)) if text([new[i - 1]]).rstrip(" ")[-1:] in _ENDS]
        else:
            shift = -len(given) % self._span
            places = [i for i in range(shift, len(new), self._span) if i > 0]
        stops = self._runner.sampling.stop
        return [i for i in places if not mid_stop(text(given + new[:i]), stops)]


_ENDS = (".", "!", "?", ";", "\n", ">")


def mid_stop(text: str, stops: Sequence[str]) -> bool:
    """Return whether ``text`` ends with a proper prefix of a stop string."""
    return any(text.endswith(stop[:n]) for stop in stops for n in range(1, len(stop)))
