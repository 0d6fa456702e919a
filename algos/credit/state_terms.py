"""What the visits of a group's states say of each action: GiGPO's, HGPO's, G2PO's, GraphGPO's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ...envs.core.errors import BadValueError
from ..core.checks import check_above_zero, check_choices, check_minimum, check_shares
from .gae import Doubles
from .states import Comparison, Visits, group_equal

SUCCESS = "success"
"""The node of the transition graph that a solved episode ends in; no state has this name."""


@dataclass(frozen=True, kw_only=True)
class StateReturns:
    """Discounted rewards to go, among the visits of the same state (GiGPO, 2505.10978, 4.2).

    Attributes:
        gamma: Discount per action, in [0, 1].
    """

    gamma: float = 0.95

    name: ClassVar[str] = "returns"
    fixed_transitions: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_shares(self, "gamma")

    def __call__(self, visits: Visits, penalties: Doubles, compare: Comparison) -> Doubles:
        """Return a score per visit ``[n]``; ``penalties`` ``[n]`` go off the rewards to go."""
        return compare.among_equals(visits.states, visits.to_go - penalties)


@dataclass(frozen=True, kw_only=True)
class WindowReturns:
    """The same among visits that share 1, 2, .. last states, averaged (HGPO, 2602.22817).

    ``sum_k w_k a_k / (sum_k w_k + eps)`` over windows of k = 1 .. ``context + 1`` states, a_k the
    score among equal windows by the population's deviation, ``w_k = (k + offset) ** alpha``. What
    is exactly 0, as of a window that nobody shares, has no weight.

    Attributes:
        context: States before the present one that the longest window holds.
        alpha: How much more the longer windows weigh; 0 weighs all alike.
        offset: Added to a window's length in its weight: 1 (the code) for 2 : 3 : 4, 0 for 1 : 2.
        base: Put the episode's return among the group's in as another item, of weight 1.
        gamma: Discount per action, in [0, 1].
    """

    context: int = 2
    alpha: float = 1.0
    offset: int = 1
    base: bool = False
    gamma: float = 0.95

    name: ClassVar[str] = "windows"
    fixed_transitions: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_shares(self, "gamma")
        check_minimum(self, context=0, alpha=0.0, offset=0)

    def __call__(self, visits: Visits, penalties: Doubles, compare: Comparison) -> Doubles:
        """Return a score per visit ``[n]``; ``penalties`` ``[n]`` go off the rewards to go."""
        worth = visits.to_go - penalties
        total, weights = np.zeros(len(visits)), np.zeros(len(visits))
        items = [(1.0, visits.scores)] if self.base else []
        for k in range(1, self.context + 2):
            windows = [line[-k:] if len(line) >= k else None for line in visits.lines]
            weight = float((k + self.offset) ** self.alpha)
            items.append((weight, compare.among_equals(windows, worth, ddof=0)))
        for weight, scores in items:
            total += weight * scores
            weights += weight * (scores != 0)
        return total / (weights + compare.eps)


@dataclass(frozen=True, kw_only=True)
class StateValues:
    """Where an action led, by the values of states in the group (G2PO, 2606.22995).

    V is the mean of gamma times the rewards to go over all visits of a state, and a path's end has
    none. An action is worth ``w = r + V(next state)``; its score is w among the visits of the same
    state, plus ``w - V(state)`` among all visits of the group.

    Attributes:
        gamma: Discount per action, in [0, 1].
        terms: Both scores, or one of them.
    """

    gamma: float = 0.95
    terms: Literal["both", "siblings", "differences"] = "both"

    name: ClassVar[str] = "values"
    fixed_transitions: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choices(self)
        check_shares(self, "gamma")

    def __call__(self, visits: Visits, penalties: Doubles, compare: Comparison) -> Doubles:
        """Return a score per visit ``[n]``; ``penalties`` ``[n]`` are taken off among siblings."""
        values = self.values(visits)
        worth = visits.rewards + [0.0 if s is None else values[s] for s in visits.after]
        siblings = compare.among_equals(visits.states, worth - penalties)
        differences = compare(worth - [values[s] for s in visits.states])
        return siblings * (self.terms != "differences") + differences * (self.terms != "siblings")

    def values(self, visits: Visits) -> dict[Hashable, float]:
        """Return V by state."""
        to_go = self.gamma * visits.to_go
        return {s: float(to_go[at].mean()) for s, at in group_equal(visits.states).items()}


@dataclass(frozen=True, kw_only=True)
class GoalDistances:
    """How near to success an action led, by the group's transition graph (GraphGPO, 2605.26684).

    The edges are the transitions of the group, and one from each solved episode's last state to
    success; d is the number of edges to success, one more than the largest where no way leads
    there. The score is ``reward * gamma ** d(next state)`` among the visits of the same state. It
    asks for the best continuation that anyone found, not for what the policy makes of it, which
    is meaningless where the same action may lead elsewhere.

    Attributes:
        gamma: Factor per edge, in (0, 1): a temperature, no discount of rewards.
        reward: Scale of the score; without effect but on what penalties weigh.
        progress: Use ``d(next state) - d(state) + 1`` in place of the distance.
    """

    gamma: float = 0.1
    reward: float = 10.0
    progress: bool = False

    name: ClassVar[str] = "distances"
    fixed_transitions: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_shares(self, "gamma")
        check_above_zero(self, "gamma", "reward")

    def __call__(self, visits: Visits, penalties: Doubles, compare: Comparison) -> Doubles:
        """Return a score per visit ``[n]``; ``penalties`` ``[n]`` go off before comparing."""
        return compare.among_equals(visits.states, self.rewards(visits) - penalties)

    def rewards(self, visits: Visits, known: Iterable[tuple[Hashable, Hashable]] = ()) -> Doubles:
        """Return what each action earns by where it led ``[n]``.

        Args:
            visits: The visits of a group.
            known: Further edges of the same task's graph.
        """
        distances = self.distances(visits, known)
        ends = [end_of(visits, i) for i in range(len(visits))]
        ways = np.array([distances[end] for end in ends], dtype=np.float64)
        if self.progress:
            ways -= np.array([distances[s] for s in visits.states]) - 1.0
        return self.reward * self.gamma**ways

    def distances(
        self, visits: Visits, known: Iterable[tuple[Hashable, Hashable]] = ()
    ) -> Mapping[Hashable, int]:
        """Return the number of edges from each state to success."""
        before: dict[Hashable, set[Hashable]] = defaultdict(set)
        nodes: set[Hashable] = {SUCCESS}
        for here, there in [*edges_of(visits), *known]:
            before[there].add(here)
            nodes |= {here, there}
        found: dict[Hashable, int] = {SUCCESS: 0}
        frontier: list[Hashable] = [SUCCESS]
        while frontier:
            ring = {s for node in frontier for s in before[node]} - found.keys()
            found |= dict.fromkeys(ring, max(found.values()) + 1)
            frontier = list(ring)
        far = max(found.values()) + 1
        return {node: found.get(node, far) for node in nodes}


def end_of(visits: Visits, at: int) -> Hashable:
    """Return where an action led: the next state, success, or another end of the episode."""
    after = visits.after[at]
    if after is not None:
        return after
    if visits.solved[at]:
        return SUCCESS
    end = visits.ends[at]
    return ("end", visits.states[at], visits.texts[at]) if end is None else end


def edges_of(visits: Visits) -> list[tuple[Hashable, Hashable]]:
    """Return the transitions of the visits."""
    return [(state, end_of(visits, i)) for i, state in enumerate(visits.states)]


def check_transitions(visits: Visits) -> None:
    """Refuse visits of which the same action in the same state led to different states.

    Raises:
        BadValueError: One did.
    """
    led: dict[tuple[Hashable, str], Hashable] = {}
    for state, text, after in zip(visits.states, visits.texts, visits.after, strict=True):
        if after is not None and led.setdefault((state, text), after) != after:
            raise BadValueError(
                f"credit by distances: action {text!r:.80} led from one state to different ones, "
                "so the environment's transitions are random, and the length of a way means "
                "nothing. Use a term that averages over visits: gigpo, hgpo or g2po."
            )


StateTerm = StateReturns | WindowReturns | StateValues | GoalDistances
