"""The one data structure: turns hang in trees, trees of one task form a group.

Lists are flat and a parent always comes before its children. A chain is a tree that never
branches, a single-turn task is one turn, a session of its own is a SPAWN edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..agents.engine import StopReason
from ..envs.api import Status
from ..envs.errors import BadValueError

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
ROOT = -1


class Edge(StrEnum):
    """How a turn hangs on its parent."""

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
        overflow: True when not the world but the player ended the episode, as truncated: what
            came next left no room for a single action token in the context.
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

    @property
    def reward(self) -> float:
        """Sum of the token rewards."""
        return float(self.rewards.sum(dtype=np.float64))


def last_token_reward(reward: float, n_act: int) -> Floats:
    """A scalar reward as ``[n_act]`` with all of it on the last token."""
    rewards = np.zeros(n_act, dtype=np.float32)
    rewards[-1] = reward
    return rewards


@dataclass(slots=True)
class Tree:
    """Turns grown from one start."""

    turns: list[Turn] = field(default_factory=list)

    def add(self, turn: Turn) -> int:
        """Append a turn and return its index.

        Raises:
            BadValueError: The turn breaks an invariant of the structure.
        """
        at = len(self.turns)
        if not ROOT <= turn.parent < at:
            raise BadValueError(
                f"turn {at}: parent is {turn.parent}; expected an index from {ROOT} to {at - 1}."
            )
        if turn.parent == ROOT and turn.edge is Edge.SPAWN:
            raise BadValueError(f"turn {at}: a SPAWN edge needs a parent that asked for it.")
        n = len(turn.act_ids)
        if n == 0:
            raise BadValueError(f"turn {at}: no action tokens; a turn has at least one.")
        for name in ("logprobs", "entropies", "rewards"):
            values = getattr(turn, name)
            if values.shape != (n,):
                raise BadValueError(f"turn {at}: {name} has shape {values.shape}; expected ({n},).")
            if not np.isfinite(values).all():
                raise BadValueError(f"turn {at}: {name} {values} are not finite.")
        if turn.parent != ROOT and turn.edge is Edge.CONTINUE:
            before = self.turns[turn.parent].status
            if before != "running":
                raise BadValueError(
                    f"turn {at}: continues turn {turn.parent}, which ended as {before!r}."
                )
        self.turns.append(turn)
        return at

    def chain(self, last: int) -> tuple[int, ...]:
        """Turn indices from the start (or SPAWN) of ``last``'s context down to ``last``."""
        line = [last]
        while self.turns[line[-1]].edge is Edge.CONTINUE and self.turns[line[-1]].parent != ROOT:
            line.append(self.turns[line[-1]].parent)
        return tuple(reversed(line))

    def leaves(self) -> list[int]:
        """Turns that nothing continues: the last turns of the paths, in order."""
        continued = {t.parent for t in self.turns if t.edge is Edge.CONTINUE}
        return [i for i in range(len(self.turns)) if i not in continued]


@dataclass(slots=True, repr=False)
class Group:
    """All trees grown from one task.

    Attributes:
        uid: Unique per occurrence of the task in a batch (never a row index of the data).
        task_id: The environment's id of the task.
        trees: Grown trees.
        faults: Attempts that ended before the first turn because the environment was broken.
    """

    uid: str
    task_id: str
    trees: list[Tree] = field(default_factory=list)
    faults: int = 0

    def __repr__(self) -> str:
        turns = sum(len(tree.turns) for tree in self.trees)
        return f"Group({self.uid!r}, {len(self.trees)} trees, {turns} turns)"


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
        """Collect the trainable paths: those whose last turn is no ``env_error``."""
        paths = [
            Path(g, t, tree.chain(leaf))
            for g, group in enumerate(groups)
            for t, tree in enumerate(group.trees)
            for leaf in tree.leaves()
            if tree.turns[leaf].status != "env_error"
        ]
        return cls(groups, tuple(paths))

    def turns(self, path: Path) -> list[Turn]:
        """The turns of a path, in order."""
        turns = self.groups[path.group].trees[path.tree].turns
        return [turns[i] for i in path.turns]

    def reward(self, path: Path) -> float:
        """Undiscounted return of a path."""
        return sum(t.reward for t in self.turns(path))

    def n_act(self, path: Path) -> int:
        """Action tokens of a path."""
        return sum(len(t.act_ids) for t in self.turns(path))

    @property
    def env_errors(self) -> int:
        """Episodes that broke: left out of the paths, never out of the count."""
        broken = sum(
            tree.turns[leaf].status == "env_error"
            for group in self.groups
            for tree in group.trees
            for leaf in tree.leaves()
        )
        return broken + sum(group.faults for group in self.groups)

    def __iter__(self) -> Iterator[Path]:
        return iter(self.paths)
