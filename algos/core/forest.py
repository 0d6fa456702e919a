"""The data structure of all algorithms: turns form trees, trees of one task form a group.

Lists are flat and a parent always comes before its children. A chain is a tree that never
branches, a single-turn task is one turn, a session of its own is a SPAWN edge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...agents.engines.base import StopReason
from ...envs.core.env import Status
from ...envs.core.errors import BadValueError

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
ROOT = -1


class Edge(StrEnum):
    """How a turn is attached to its parent."""

    CONTINUE = "continue"  # its context is all up to and including the parent
    SPAWN = "spawn"  # a new context, asked for by the parent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """One observation and the action that answered it.

    Attributes:
        parent: Index of the parent turn in the tree, :data:`ROOT` for a start.
        edge: CONTINUE or SPAWN; a start is CONTINUE.
        obs_ids: Tokens that were put in front of the action ``[n_obs]``; never trained.
        act_ids: Tokens that the model sampled ``[n_act]``, at least one; always trained.
        logprobs: Log-probabilities in nats as sampled ``[n_act]``.
        entropies: Entropies in nats as sampled ``[n_act]``.
        rewards: Reward per action token ``[n_act]``; a scalar sits on the last token.
        verdict: Judge's view of the turn: +1, 0 or -1 (0 where nobody judged).
        status: Status of the episode after the turn. A running last turn is an episode (or a
            session of one) that the rollout left there.
        version: Version of the weights that sampled it.
        action: The text that went to the environment.
        valid: False when the environment could not read the action.
        reward_terms: Named parts of the reward, in the environment's order.
        metrics: The environment's measures of the finished episode, on its last turn.
        stop: Why sampling ended ("stop", "eos", "length").
        overflow: True when the runner, not the environment, truncated the episode: the next
            observation left no room for an action token in the context.
        partial: True for the first part of an action that was cut so that it can fork inside: the
            turn that continues it has no observation and continues the same action. Nothing was
            executed yet.
        previous: Turn that was taken right before this one in the same episode, where that is not
            the parent (another session's turn); None when it is.
        spawned: First prompts ``[n]`` of the sessions that the action asked for and that can
            still be opened.
        debug_info: The environment's ``debug_info`` about the action, JSON data for people to read.
        state: The environment's ``state_digest`` where the action was taken, the same in all parts
            of a cut action; empty unless the runner records states.
        end_state: The same where the episode ended, on its last turn; empty on others.
        gold_opener: What an action writes before the final answer ``[n]``; empty unless the runner
            records the accepted answers, on the first turn of a context.
        gold: The accepted final answers, likewise.
        hinted_prompt: The first prompt of the context with a demonstration in it ``[n]``, see
            :class:`~turngym.algos.core.privileged.ContextLogprobs`; empty unless the runner
            records demonstrations. The policy has not seen it.
    """

    parent: int
    edge: Edge = Edge.CONTINUE
    obs_ids: Ids
    act_ids: Ids
    logprobs: Floats
    entropies: Floats
    rewards: Floats
    verdict: int = 0
    status: Status
    version: int = 0
    action: str = ""
    valid: bool = True
    reward_terms: tuple[tuple[str, float], ...] = ()
    metrics: tuple[tuple[str, float], ...] = ()
    stop: StopReason = "stop"
    overflow: bool = False
    partial: bool = False
    previous: int | None = None
    spawned: tuple[Ids, ...] = ()
    debug_info: Mapping[str, Any] = field(default_factory=dict)
    state: str = ""
    end_state: str = ""
    gold_opener: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    gold: tuple[Ids, ...] = ()
    hinted_prompt: Ids = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def reward(self) -> float:
        """Sum of the token rewards."""
        return float(self.rewards.sum(dtype=np.float64))


def _refuse_assignment(turn: Turn, name: str, value: Any) -> None:
    """Refuse to set anything, in words; that of a frozen class with slots knows fields alone."""
    raise FrozenInstanceError(
        f"{type(turn).__name__}: {name} cannot be set to {value!r:.60}, as a turn is what was "
        "recorded and others read it too. A credit rule returns its numbers: "
        "Credits(advantages=...). A shaper returns a forest with other turns (see replaced in "
        "turngym.algos.rewards.shaping)."
    )


Turn.__setattr__ = _refuse_assignment


def _check_measures(turn: Turn, n: int, at: int) -> None:
    """Check that there is one finite value of each kind for each of the ``n`` action tokens."""
    logprobs, entropies, rewards = turn.logprobs, turn.entropies, turn.rewards
    if (
        logprobs.shape == entropies.shape == rewards.shape == (n,)
        # a sum of products is finite only where both are, and says so soonest
        and math.isfinite(logprobs.dot(entropies))
        and math.isfinite(logprobs.dot(rewards))
    ):
        return
    for name in ("logprobs", "entropies", "rewards"):
        values = getattr(turn, name)
        if values.shape != (n,):
            raise BadValueError(f"turn {at}: {name} has shape {values.shape}; expected ({n},).")
        if not np.isfinite(values).all():
            raise BadValueError(f"turn {at}: {name} {values} are not finite.")


def last_token_reward(reward: float, n_act: int) -> Floats:
    """Return a scalar reward as ``[n_act]`` with all of it on the last token."""
    rewards = np.zeros(n_act, dtype=np.float32)
    rewards[-1] = reward
    return rewards


def are_equal(values: npt.NDArray[np.float64]) -> bool:
    """Return whether all values ``[n]``, at least one, are equal but for rounding.

    Rewards are kept in float32, so that .1 and .2 on the way are not quite .3 at the end. Divided
    by their own deviation such differences would be as large as any.
    """
    return math.isclose(values.max(), values.min(), rel_tol=1e-6)


@dataclass(slots=True)
class Tree:
    """Turns grown from one start."""

    turns: list[Turn] = field(default_factory=list)

    def add(self, turn: Turn, *, checked: bool = False) -> int:
        """Append a turn and return its index.

        Args:
            turn: The turn.
            checked: Whether it was checked already, where it was added behind the same turns.

        Raises:
            BadValueError: The turn breaks an invariant of the structure.
        """
        at = len(self.turns)
        if checked:
            self.turns.append(turn)
            return at
        if not ROOT <= turn.parent < at:
            raise BadValueError(
                f"turn {at}: parent is {turn.parent}; expected an index from {ROOT} to {at - 1}."
            )
        if turn.parent == ROOT and turn.edge is Edge.SPAWN:
            raise BadValueError(f"turn {at}: a SPAWN edge needs a parent that asked for it.")
        n = len(turn.act_ids)
        if n == 0:
            raise BadValueError(f"turn {at}: no action tokens; a turn has at least one.")
        _check_measures(turn, n, at)
        if turn.previous is not None and not ROOT <= turn.previous < at:
            raise BadValueError(
                f"turn {at}: previous is {turn.previous}; expected an index from {ROOT} to "
                f"{at - 1}, or None."
            )
        if turn.partial and (turn.status != "running" or turn.rewards.any()):
            raise BadValueError(f"turn {at}: part of an action has no outcome and no reward yet.")
        if turn.parent != ROOT and turn.edge is Edge.CONTINUE:
            self._check_continued(at, turn)
        self.turns.append(turn)
        return at

    def _check_continued(self, at: int, turn: Turn) -> None:
        before = self.turns[turn.parent]
        if before.status != "running":
            raise BadValueError(
                f"turn {at}: continues turn {turn.parent}, which ended as {before.status!r}."
            )
        if before.partial and len(turn.obs_ids):
            raise BadValueError(
                f"turn {at}: continues the action of turn {turn.parent}, so nothing can be "
                "observed in between."
            )

    def chain(self, last: int) -> tuple[int, ...]:
        """Turn indices from the start (or SPAWN) of ``last``'s context down to ``last``."""
        line, turn = [last], self.turns[last]
        while turn.edge is Edge.CONTINUE and turn.parent != ROOT:
            line.append(turn.parent)
            turn = self.turns[turn.parent]
        return tuple(reversed(line))

    def previous(self, at: int) -> int:
        """Turn taken right before turn ``at`` in its episode, :data:`ROOT` for the first."""
        turn = self.turns[at]
        return turn.parent if turn.previous is None else turn.previous

    def episode(self, last: int) -> tuple[int, ...]:
        """Return the turns of the episode that ended with ``last``, in order."""
        line = [last]
        while (before := self.previous(line[-1])) != ROOT:
            line.append(before)
        return tuple(reversed(line))

    def finals(self) -> list[int]:
        """Return the turns after which no other was taken: the ends of the episodes, in order."""
        followed = {self.previous(i) for i in range(len(self.turns))}
        return [i for i in range(len(self.turns)) if i not in followed]

    def leaves(self) -> list[int]:
        """Return the turns that nothing continues: the last turns of the paths, in order."""
        continued = {t.parent for t in self.turns if t.edge is Edge.CONTINUE}
        return [i for i in range(len(self.turns)) if i not in continued]

    def whole_leaves(self) -> list[int]:
        """Return the leaves of episodes that did not break: a session may be of broken ones alone.

        What such an episode returns is not known, as its later sessions are missing.
        """
        broken = {i for i, turn in enumerate(self.turns) if turn.status == "env_error"}
        if not broken:
            return self.leaves()
        whole = {i for last in self.finals() if last not in broken for i in self.episode(last)}
        return [leaf for leaf in self.leaves() if leaf in whole - broken]


@dataclass(slots=True, repr=False)
class Group:
    """All trees grown from one task.

    Attributes:
        uid: Unique per occurrence of the task in a batch (never a row index of the data).
        task_id: The environment's id of the task.
        trees: Grown trees.
        faults: Attempts that ended before the first turn because the environment was broken.
        pruned_tokens: Action tokens that were sampled but are in no tree any more: they were paid
            for.
        pruned_turns: Environment steps of such turns.
    """

    uid: str
    task_id: str
    trees: list[Tree] = field(default_factory=list)
    faults: int = 0
    pruned_tokens: int = 0
    pruned_turns: int = 0

    def __repr__(self) -> str:
        turns = sum(len(tree.turns) for tree in self.trees)
        return f"Group({self.uid!r}, {len(self.trees)} trees, {turns} turns)"


End = tuple[int, int, int]
"""Group, tree and last turn of an episode."""


class Path(NamedTuple):
    """A maximal CONTINUE chain: one row that the model is trained on."""

    group: int
    tree: int
    turns: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Forest:
    """The groups of one batch, and its paths in a fixed order (group, tree, leaf)."""

    groups: Sequence[Group]
    paths: tuple[Path, ...]

    def __repr__(self) -> str:
        # asyncio and debuggers print what they hold; ten thousand arrays would take a while
        return f"Forest({len(self.groups)} groups, {len(self.paths)} paths)"

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Forest:
        """Collect the trainable paths: those of episodes that did not end in ``env_error``."""
        paths = [
            Path(g, t, tree.chain(leaf))
            for g, group in enumerate(groups)
            for t, tree in enumerate(group.trees)
            for leaf in tree.whole_leaves()
        ]
        return cls(groups, tuple(paths))

    def turns(self, path: Path) -> list[Turn]:
        """Return the turns of a path, in order."""
        turns = self.groups[path.group].trees[path.tree].turns
        return [turns[i] for i in path.turns]

    def reward(self, path: Path) -> float:
        """Return the undiscounted return of a path."""
        return sum(t.reward for t in self.turns(path))

    def returns(self) -> npt.NDArray[np.float64]:
        """Return of the whole episode that each path belongs to ``[paths]``.

        Where a path is one session of an episode, the other sessions' rewards count too; where
        several episodes pass through its last turn (they forked in a later session), their mean.
        Episodes that ended in ``env_error`` count nowhere. Without sessions it is the path's own
        return.
        """
        of_tree: dict[tuple[int, int], npt.NDArray[np.float64]] = {}
        out = np.empty(len(self.paths))
        for i, path in enumerate(self.paths):
            at = path.group, path.tree
            if at not in of_tree:
                of_tree[at] = _mean_returns(self.groups[path.group].trees[path.tree])
            out[i] = of_tree[at][path.turns[-1]]
        return out

    def endings(self) -> tuple[dict[End, float], list[list[End]]]:
        """Return the returns of the episodes by their ends, and which ends each path leads to.

        An end is (group, tree, last turn). A path leads to the ends of the episodes that pass
        through its last turn, those that broke left out: to one, its own, in environments without
        sessions.
        """
        worth: dict[End, float] = {}
        through: dict[End, list[End]] = {}
        for g, group in enumerate(self.groups):
            for t, tree in enumerate(group.trees):
                for last in tree.finals():
                    if tree.turns[last].status != "env_error":
                        line = tree.episode(last)
                        worth[g, t, last] = sum(tree.turns[i].reward for i in line)
                        for i in line:
                            through.setdefault((g, t, i), []).append((g, t, last))
        return worth, [through.get((p.group, p.tree, p.turns[-1]), []) for p in self.paths]

    def n_act(self, path: Path) -> int:
        """Return the number of action tokens of a path."""
        return sum(len(t.act_ids) for t in self.turns(path))

    @property
    def env_errors(self) -> int:
        """Number of failed episodes, which are not among the paths."""
        broken = sum(
            tree.turns[leaf].status == "env_error"
            for group in self.groups
            for tree in group.trees
            if any(turn.status == "env_error" for turn in tree.turns)
            for leaf in tree.leaves()
        )
        return broken + sum(group.faults for group in self.groups)

    def __iter__(self) -> Iterator[Path]:
        return iter(self.paths)


def _mean_returns(tree: Tree) -> npt.NDArray[np.float64]:
    """Return the mean return of the episodes that pass through each turn ``[turns]``."""
    so_far = np.zeros(len(tree.turns))
    for i, turn in enumerate(tree.turns):
        before = tree.previous(i)
        so_far[i] = turn.reward + (so_far[before] if before != ROOT else 0.0)
    total, count = np.zeros_like(so_far), np.zeros_like(so_far)
    for last in tree.finals():
        if tree.turns[last].status != "env_error":
            total[last], count[last] = so_far[last], 1.0
    for i in range(len(tree.turns) - 1, -1, -1):
        before = tree.previous(i)
        if before != ROOT:
            total[before] += total[i]
            count[before] += count[i]
    return np.where(count > 0, total / np.maximum(count, 1.0), so_far)
