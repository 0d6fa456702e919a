"""Reward terms of the papers' trainers, added to a forest before credit is given.

Each is a :class:`~turngym.algos.contracts.Shaper`: what it adds lands on the last token of a path
and is listed among that turn's reward terms. A path's last turn is its own, also in a tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..envs.errors import BadValueError
from .forest import Forest, Group, Path, Tree, Turn

Place = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Overlong:
    """Soft overlong punishment (DAPO, arXiv 2503.14476, equation 13).

    0 up to ``limit - cache`` sampled tokens of a path, then falling to -1 at ``limit``.

    Attributes:
        limit: Longest path that is wanted, in sampled tokens.
        cache: Tokens over which the penalty grows.
        factor: What it is multiplied by.
        floor: Stop at ``-factor`` (the paper); False goes on falling (verl).
    """

    limit: int = 20_480
    cache: int = 4_096
    factor: float = 1.0
    floor: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.cache <= self.limit:
            raise BadValueError(
                f"Overlong: limit {self.limit}, cache {self.cache}; expected 0 < cache <= limit."
            )
        if not self.factor > 0:
            raise BadValueError(f"Overlong.factor is {self.factor}; expected above 0.")

    def penalty(self, length: int) -> float:
        """What a path of ``length`` sampled tokens gets."""
        over = (length - (self.limit - self.cache)) / self.cache
        return -self.factor * max(0.0, min(over, 1.0) if self.floor else over)

    def __call__(self, forest: Forest) -> Forest:
        """Add the penalty to every path that is too long."""
        return rewarded(forest, [self.penalty(forest.n_act(p)) for p in forest], "overlong")


@dataclass(frozen=True, kw_only=True)
class MultiToolBonus:
    """A bonus for a rewarded path that used all of some tools (ARPO, arXiv 2507.19849, eq. 7).

    Attributes:
        bonus: What is added.
        tools: Names of the tools; a call is known by its closing tag in an action.
    """

    bonus: float = 0.1
    tools: tuple[str, ...] = ("search", "python")

    def __post_init__(self) -> None:
        if not self.tools:
            raise BadValueError("MultiToolBonus.tools is empty; expected names of tools.")

    def __call__(self, forest: Forest) -> Forest:
        """Add the bonus where the path's return is above 0 and every tool occurs."""
        return rewarded(forest, [self._of(forest, p) for p in forest], "multi_tool")

    def _of(self, forest: Forest, path: Path) -> float:
        said = "".join(turn.action for turn in forest.turns(path))
        used = all(f"</{tool}>" in said for tool in self.tools)
        return self.bonus if used and forest.reward(path) > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class InvalidActionPenalty:
    """A price on every action of a path that the environment could not read.

    Attributes:
        coef: Taken off per action.
    """

    coef: float = 0.1

    def __post_init__(self) -> None:
        if not self.coef > 0:
            raise BadValueError(f"InvalidActionPenalty.coef is {self.coef}; expected above 0.")

    def __call__(self, forest: Forest) -> Forest:
        """Take the price off each path's last reward."""
        prices = [-self.coef * sum(not t.valid for t in forest.turns(p)) for p in forest]
        return rewarded(forest, prices, "invalid_actions")


@dataclass(frozen=True, kw_only=True)
class VerdictRewards:
    """TARL's rewards (arXiv 2509.14480, section 3): the outcome and the judged turns together.

    ``S = outcome_weight * R + turn_budget * (turns judged +1) / turns - major_weight * [some turn
    judged -1]``, R the path's return. With the defaults success without a major mistake scores 10
    to 15, with one 5 to 10, failure without 0 to 5, with one -5 to 0. At most one -1 counts.

    It replaces the environment's rewards. With both verdict weights 0 it is their multiple.

    Attributes:
        at: ``"trajectory"`` puts S on the path's last token (the paper's best); ``"turns"`` puts
            each turn's part at the turn's end and the outcome at the last (for GAE or
            :class:`~turngym.algos.credit.TurnReturns`).
        outcome_weight: What success is worth.
        turn_budget: What the turns are worth together when all are judged +1.
        major_weight: What a -1 costs.
    """

    at: str = "trajectory"
    outcome_weight: float = 10.0
    turn_budget: float = 5.0
    major_weight: float = 5.0

    def __post_init__(self) -> None:
        if self.at not in ("trajectory", "turns"):
            raise BadValueError(f"VerdictRewards.at is {self.at!r}; expected trajectory or turns.")
        if not self.outcome_weight > 0 or self.turn_budget < 0 or self.major_weight < 0:
            raise BadValueError(
                f"VerdictRewards: outcome_weight {self.outcome_weight}, turn_budget "
                f"{self.turn_budget}, major_weight {self.major_weight}; expected the first above "
                "0 and the others 0 or more."
            )

    def parts(self, verdicts: Sequence[int], outcome: float) -> list[float]:
        """Reward of each turn; their sum is S.

        Args:
            verdicts: One per turn, in {-1, 0, 1}.
            outcome: R.
        """
        parts = [self.turn_budget * (v == 1) / len(verdicts) for v in verdicts]
        if -1 in verdicts:
            parts[list(verdicts).index(-1)] = -self.major_weight
        if parts:
            parts[-1] += self.outcome_weight * outcome
        return parts

    def __call__(self, forest: Forest) -> Forest:
        """The same forest with these rewards.

        Raises:
            BadValueError: Rewards at turns in a tree whose paths share turns: a shared turn would
                need one reward per path.
        """
        new: dict[Place, tuple[float, tuple[tuple[str, float], ...]]] = {}
        for path in forest:
            whole = [
                (at, t)
                for at, t in zip(path.turns, forest.turns(path), strict=True)
                if not t.partial
            ]
            parts = self.parts([t.verdict for _, t in whole], forest.reward(path))
            if self.at == "trajectory":
                parts = [0.0] * (len(parts) - 1) + [sum(parts)]
            for (at, _), part in zip(whole, parts, strict=True):
                place = path.group, path.tree, at
                if place in new and new[place][0] != part:
                    raise BadValueError(
                        "VerdictRewards: at='turns' needs paths that share no turn (Chains); use "
                        "at='trajectory' on trees."
                    )
                new[place] = part, (("verdict", part),)
        return replaced(
            forest, {place: _with_reward(forest, place, *what) for place, what in new.items()}
        )


def rewarded(forest: Forest, amounts: Sequence[float], term: str) -> Forest:
    """The forest with ``amounts[i]`` added to the last token of path i, under this term's name."""
    new: dict[Place, Turn] = {}
    for path, amount in zip(forest, amounts, strict=True):
        if amount:
            last = forest.turns(path)[-1]
            rewards = last.rewards.copy()
            rewards[-1] += np.float32(amount)
            terms = (*last.reward_terms, (term, amount))
            new[path.group, path.tree, path.turns[-1]] = replace(
                last, rewards=rewards, reward_terms=terms
            )
    return replaced(forest, new)


def replaced(forest: Forest, new: Mapping[Place, Turn]) -> Forest:
    """The forest with some turns (by group, tree, place) exchanged; the old one stays as it is."""
    groups: list[Group] = []
    for g, group in enumerate(forest.groups):
        trees = [
            Tree([new.get((g, t, i), turn) for i, turn in enumerate(tree.turns)])
            for t, tree in enumerate(group.trees)
        ]
        groups.append(replace(group, trees=trees))
    return Forest(groups, forest.paths)


def _with_reward(
    forest: Forest, place: Place, amount: float, terms: tuple[tuple[str, float], ...]
) -> Turn:
    group, tree, at = place
    turn = forest.groups[group].trees[tree].turns[at]
    rewards = np.zeros_like(turn.rewards)
    rewards[-1] = amount
    return replace(turn, rewards=rewards, reward_terms=terms)
