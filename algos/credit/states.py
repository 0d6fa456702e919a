"""Which actions of a group were taken in the same state: the one grouping of credit by state."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

import numpy as np

from ...envs.core.errors import BadValueError
from ..core.checks import check_above_zero, check_choices
from ..core.forest import Forest, Turn, are_equal
from .gae import Doubles
from .returns import returns_to_go
from .turns import whole_actions

Identity = Literal["state", "state+turn", "history", "text"]
"""When two turns of a group count as taken in one state: ``"state"``, the environment's
``state_digest`` is equal; ``"state+turn"``, and so is their number in the path; ``"history"``, all
tokens before them are equal; ``"text"``, the tokens of the newest observation are, which is what
one has to guess by where the state is hidden (a path's first observation has the instructions in
front, so it equals first observations alone)."""
RECORDED = ("state", "state+turn")
"""Identities that read :attr:`~turngym.algos.core.forest.Turn.state`."""


@dataclass(slots=True, eq=False)
class Visits:
    """The distinct actions of a group, each a visit of the state that it was taken in.

    An action that several paths share is one visit; the parts of a cut action are one action.

    Attributes:
        lines: States of the path from its start up to the visit's own ``[n]``.
        after: The state that came next ``[n]``; None where the path ends.
        ends: The state that the episode ended in ``[n]``; None where it goes on, or is not known.
        texts: What was done ``[n]``.
        invalid: 1 where the environment could not read the action ``[n]``.
        rewards: Reward of the action ``[n]``, mean over the paths that hold it; at the end of a
            path with what other sessions of the episode earned.
        to_go: Discounted rewards from the action on ``[n]``, mean over these paths.
        returns: Return of the episodes of these paths ``[n]``, mean.
        scores: What the episodes of these paths are among the group's ``[n]``, mean; set by
            whoever compares them.
        solved: Whether an episode through the action was solved ``[n]``.
        of_path: Visits by path, in order.
    """

    lines: list[tuple[Hashable, ...]] = field(default_factory=list)
    after: list[Hashable | None] = field(default_factory=list)
    ends: list[Hashable | None] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    invalid: Doubles = field(default_factory=lambda: np.zeros(0))
    rewards: Doubles = field(default_factory=lambda: np.zeros(0))
    to_go: Doubles = field(default_factory=lambda: np.zeros(0))
    returns: Doubles = field(default_factory=lambda: np.zeros(0))
    scores: Doubles = field(default_factory=lambda: np.zeros(0))
    solved: list[bool] = field(default_factory=list)
    of_path: dict[int, list[int]] = field(default_factory=dict)

    def mean_of_paths(self, values: Doubles) -> Doubles:
        """Return for every visit ``[n]`` the mean of its paths' values, given by path."""
        total, paths = np.zeros(len(self)), np.zeros(len(self))
        for at, mine in self.of_path.items():
            total[mine] += values[at]
            paths[mine] += 1.0
        return total / paths

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def states(self) -> list[Hashable]:
        """The state of each visit ``[n]``."""
        return [line[-1] for line in self.lines]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How numbers that are compared with each other become scores: less their mean, over a scale.

    Numbers that are all equal, and a number alone, get exactly 0.

    Attributes:
        scale: What divides: the standard deviation plus ``eps``, or nothing.
        eps: Keeps the division finite.
    """

    scale: Literal["std", "none"] = "std"
    eps: float = 1e-6

    def __post_init__(self) -> None:
        check_choices(self)
        check_above_zero(self, "eps")

    def __call__(self, values: Doubles, ddof: int = 1) -> Doubles:
        """Return scores ``[n]`` of the values ``[n]``; ``ddof`` 1 is the unbiased deviation."""
        if len(values) < 2 or are_equal(values):
            return np.zeros(len(values))
        centred = values - values.mean()
        return centred if self.scale == "none" else centred / (values.std(ddof=ddof) + self.eps)

    def among_equals(
        self, keys: Sequence[Hashable | None], values: Doubles, ddof: int = 1
    ) -> Doubles:
        """Return scores ``[n]``, each among the values of equal keys; 0 where the key is None."""
        scores = np.zeros(len(values))
        for members in group_equal(keys).values():
            scores[members] = self(values[members], ddof)
        return scores


@dataclass(frozen=True)
class Behind:
    """Compares numbers with each other and with others, which get no score.

    Attributes:
        others: They.
        compare: How all are compared.
    """

    others: Doubles
    compare: Comparison

    def __call__(self, values: Doubles) -> Doubles:
        """Return scores ``[n]`` of the values ``[n]``."""
        return self.compare(np.concatenate([self.others, values]))[len(self.others) :]


def group_equal(keys: Sequence[Hashable | None]) -> dict[Hashable, list[int]]:
    """Return the places of equal keys, without those of None."""
    places: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        if key is not None:
            places.setdefault(key, []).append(i)
    return places


def find_visits(
    forest: Forest,
    members: Sequence[int],
    identity: Identity,
    gamma: float,
    returns: Doubles,
) -> Visits:
    """Return the visits of one group's paths.

    Args:
        forest: The paths.
        members: Places of the group's paths in ``forest.paths``.
        identity: What makes two states equal.
        gamma: Discount per action of the rewards to go.
        returns: Returns of all episodes by path, ``forest.returns()``.

    Raises:
        BadValueError: The identity reads states and a turn has none.
    """
    found, number = Visits(), dict[tuple[int, ...], int]()
    solved = _solved_turns(forest, members)
    columns: list[tuple[list[float], list[float], list[float]]] = []
    invalid: list[float] = []
    for at in members:
        path, turns = forest.paths[at], forest.turns(forest.paths[at])
        actions = whole_actions(turns)
        keys = name_states(actions, identity)
        rewards = np.array([sum(t.reward for t in parts) for parts in actions])
        rewards[-1] += returns[at] - forest.reward(path)
        to_go = returns_to_go(rewards, gamma)
        first, mine = 0, []
        for k, parts in enumerate(actions):
            place = (path.tree, *path.turns[first : first + len(parts)])
            first += len(parts)
            i = number.setdefault(place, len(number))
            mine.append(i)
            if i == len(found.lines):
                found.lines.append(tuple(keys[: k + 1]))
                found.after.append(keys[k + 1] if k + 1 < len(keys) else None)
                found.ends.append(_name_end(parts[-1].end_state, k + 1, identity))
                found.texts.append(parts[-1].action)
                invalid.append(float(not parts[-1].valid))
                found.solved.append((path.tree, path.turns[first - 1]) in solved)
                columns.append(([], [], []))
            for column, value in zip(columns[i], (rewards[k], to_go[k], returns[at]), strict=True):
                column.append(float(value))
        found.of_path[at] = mine
    means = np.array([[np.mean(column) for column in row] for row in columns]).reshape(-1, 3)
    found.rewards, found.to_go, found.returns = means.T.astype(np.float64)
    found.invalid = np.array(invalid)
    return found


def name_states(actions: Sequence[Sequence[Turn]], identity: Identity) -> list[Hashable]:
    """Return a name for the state of each action of a path; equal states have equal names.

    Args:
        actions: The parts of each action, see :func:`~turngym.algos.credit.turns.whole_actions`.
        identity: What makes two states equal.

    Raises:
        BadValueError: The identity reads states and a turn has none.
    """
    if identity in RECORDED:
        if any(not parts[0].state for parts in actions):
            raise BadValueError(
                f"credit by state: a turn has no state, and identity is {identity!r}. States are "
                "recorded in rollouts of a recipe whose credit reads them; for other rollouts, "
                "and environments without state_digest, use identity='history' or 'text'."
            )
        states: list[Hashable] = [parts[0].state for parts in actions]
        return states if identity == "state" else list(zip(states, range(len(states)), strict=True))
    if identity == "text":
        return [parts[0].obs_ids.tobytes() for parts in actions]
    seen, names = sha256(), list[Hashable]()
    for parts in actions:
        for k, turn in enumerate(parts):
            seen.update(b"o" + turn.obs_ids.tobytes())
            if k == 0:
                names.append(seen.digest())
            seen.update(b"a" + turn.act_ids.tobytes())
    return names


def _name_end(state: str, turn: int, identity: Identity) -> Hashable | None:
    """Return the name of the state that an episode ended in before turn ``turn``."""
    if not state or identity not in RECORDED:
        return None
    return state if identity == "state" else (state, turn)


def _solved_turns(forest: Forest, members: Sequence[int]) -> set[tuple[int, int]]:
    """Return (tree, turn) of all turns through which an episode was solved."""
    if not members:
        return set()
    group = forest.groups[forest.paths[members[0]].group]
    return {
        (t, i)
        for t, tree in enumerate(group.trees)
        for last in tree.finals()
        if tree.turns[last].status == "solved"
        for i in tree.episode(last)
    }
