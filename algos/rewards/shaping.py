"""Reward terms of the papers' trainers, added to a forest before credit is given.

Each is a :class:`~turngym.algos.core.protocols.Shaper`: what it adds lands on the last token of a
path
and is listed among that turn's reward terms. A path's last turn is its own, also in a tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from ...envs.core.errors import BadValueError
from ..core.checks import check_above_zero, check_choices, check_weights
from ..core.forest import Forest, Group, Path, Tree, Turn, last_token_reward
from ..core.protocols import Shaper

Place = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Overlong(Shaper):
    """Soft overlong punishment (DAPO, arXiv 2503.14476, equation 13).

    0 up to ``limit - cache`` sampled tokens of a path, then falling to -1 at ``limit``.

    Attributes:
        limit: Longest path that is wanted, in sampled tokens.
        cache: Tokens over which the penalty grows.
        factor: What it is multiplied by.
        floor: Stop at ``-factor`` (the paper); False continues to fall (verl).
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
        check_above_zero(self, "factor")

    def penalty(self, length: int) -> float:
        """Return the penalty of a path of ``length`` sampled tokens."""
        over = (length - (self.limit - self.cache)) / self.cache
        return -self.factor * max(0.0, min(over, 1.0) if self.floor else over)

    def __call__(self, forest: Forest) -> Forest:
        """Add the penalty to every path that is too long."""
        return rewarded(forest, [self.penalty(forest.n_act(p)) for p in forest], "overlong")


@dataclass(frozen=True, kw_only=True)
class MultiToolBonus(Shaper):
    """A bonus for solved paths that used all of some tools (ARPO, arXiv 2507.19849, eq. 7).

    Right means that its outcome is above 0: the reward term of that name where the environment
    gives one, else the return. So a reward for the format alone earns no bonus.

    Attributes:
        bonus: What is added.
        tools: Names of the tools; a call is known by its closing tag in an action.
    """

    bonus: float = 0.1
    tools: tuple[str, ...] = ("search", "python")

    def __post_init__(self) -> None:
        if not self.tools:
            raise BadValueError("MultiToolBonus.tools is empty; expected names of tools.")
        check_above_zero(self, "bonus")

    def __call__(self, forest: Forest) -> Forest:
        """Add the bonus where outcome and return are above 0 and every tool occurs."""
        return rewarded(forest, [self._of(forest, p) for p in forest], "multi_tool")

    def _of(self, forest: Forest, path: Path) -> float:
        said = "".join(turn.action for turn in forest.turns(path))
        used = all(f"</{tool}>" in said for tool in self.tools)
        right = outcome_of(forest, path) > 0 and forest.reward(path) > 0
        return self.bonus if used and right else 0.0


@dataclass(frozen=True, kw_only=True)
class TurnBonus(Shaper):
    """A bonus for every turn of a path, which fades out (SPEAR, arXiv 2509.22601).

    ``min(most, bonus * turns) * (1 + cos(pi u / until)) / 2``, u being the steps of training that
    the policy which played the path had had; 0 from ``until`` on. An action that was cut for a fork
    inside it is one turn.

    Attributes:
        bonus: Per turn.
        most: Of a path.
        until: Steps after which there is none.
    """

    bonus: float = 0.1
    most: float = 1.0
    until: int = 200

    def __post_init__(self) -> None:
        check_above_zero(self, "bonus", "most", "until")

    @property
    def rewards_turns(self) -> bool:
        """Return False: all of it stands at the end."""
        return False

    def amount(self, turns: int, step: int) -> float:
        """Return the bonus of a path of so many turns after so many steps."""
        if step >= self.until:
            return 0.0
        return min(self.most, self.bonus * turns) * (1 + math.cos(math.pi * step / self.until)) / 2

    def __call__(self, forest: Forest) -> Forest:
        """Add the bonus to every path."""
        lines = [forest.turns(path) for path in forest]
        amounts = [self.amount(sum(not t.partial for t in ts), ts[0].version) for ts in lines]
        return rewarded(forest, amounts, "turns")


@dataclass(frozen=True, kw_only=True)
class InvalidActionPenalty(Shaper):
    """A penalty on every invalid action of a path.

    Attributes:
        coef: Taken off per action.
    """

    coef: float = 0.1

    def __post_init__(self) -> None:
        check_above_zero(self, "coef")

    def __call__(self, forest: Forest) -> Forest:
        """Take the price off each path's last reward."""
        prices = [-self.coef * sum(not t.valid for t in forest.turns(p)) for p in forest]
        return rewarded(forest, prices, "invalid_actions")


@dataclass(frozen=True, kw_only=True)
class FormatGate(Shaper):
    """A fixed score instead of the return for a path with an invalid format.

    The first step of ARPO's hierarchical reward (arXiv 2507.19849, section 3.3; -1 in the released
    code): whatever was found, an action that the environment could not read, or an episode that
    the limit cut off before the task's verdict, scores ``score``. :class:`MultiToolBonus` is the
    next step.

    Attributes:
        score: The return of such a path.
    """

    score: float = -1.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise BadValueError(f"FormatGate.score is {self.score}; expected a finite number.")

    def __call__(self, forest: Forest) -> Forest:
        """Set the return of each path that broke the format."""
        return rewarded(forest, [self._of(forest, p) for p in forest], "format_gate")

    def _of(self, forest: Forest, path: Path) -> float:
        turns = forest.turns(path)
        broken = turns[-1].status == "truncated" or not all(turn.valid for turn in turns)
        return self.score - forest.reward(path) if broken else 0.0


@dataclass(frozen=True, kw_only=True)
class VerdictRewards(Shaper):
    """TARL's rewards (arXiv 2509.14480, section 3): the outcome and the judged turns together.

    ``S = outcome_weight * R + turn_budget * (turns judged +1) / turns - major_weight * [some turn
    judged -1]``, R the path's return. With the defaults success without a major mistake scores 10
    to 15, with one 5 to 10, failure without 0 to 5, with one -5 to 0. At most one -1 counts.

    It replaces the environment's rewards and names its parts ``outcome`` and ``verdicts``. An
    action that was cut for a fork inside it is one turn. With both verdict weights 0 it is a
    multiple of the environment's return.

    Attributes:
        at: ``"trajectory"`` puts S on the path's last token (the paper's best); ``"turns"`` puts
            each turn's part at the turn's end and the outcome at the last (for GAE or
            :class:`~turngym.algos.credit.TurnReturns`).
        outcome_weight: What success is worth.
        turn_budget: What the turns are worth together when all are judged +1.
        major_weight: What a -1 costs.
    """

    at: Literal["trajectory", "turns"] = "trajectory"
    outcome_weight: float = 10.0
    turn_budget: float = 5.0
    major_weight: float = 5.0

    reads_verdicts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choices(self)
        check_above_zero(self, "outcome_weight")
        check_weights(self, "turn_budget", "major_weight")

    @property
    def rewards_turns(self) -> bool:
        """Whether each turn's part stands at its own end."""
        return self.at == "turns"

    def score(self, verdicts: Sequence[int], outcome: float) -> float:
        """Return S; of an episode without a turn, the outcome's part alone."""
        return sum(self._judged(verdicts)) + self.outcome_weight * outcome

    def parts(self, verdicts: Sequence[int], outcome: float) -> list[float]:
        """Return the reward of each turn; their sum is S.

        Args:
            verdicts: One per turn, in {-1, 0, 1}.
            outcome: R.
        """
        parts = self._judged(verdicts)
        if parts:
            parts[-1] += self.outcome_weight * outcome
        return parts

    def __call__(self, forest: Forest) -> Forest:
        """Return the same forest with these rewards.

        Raises:
            BadValueError: Rewards at turns in a tree whose paths share turns: a shared turn would
                need one reward per path.
        """
        new: dict[Place, Turn] = {}
        for path in forest:
            ends = action_ends(forest, path)
            judged = self._judged([turn.verdict for _, turn in ends])
            if self.at == "trajectory":
                judged = [0.0] * (len(judged) - 1) + [sum(judged)]
            for i, ((at, turn), part) in enumerate(zip(ends, judged, strict=True)):
                terms = {"verdicts": part} if part else {}
                if i == len(ends) - 1:
                    terms["outcome"] = self.outcome_weight * forest.reward(path)
                place, fresh = (path.group, path.tree, at), _with_terms(turn, terms)
                if place in new and new[place].reward_terms != fresh.reward_terms:
                    raise BadValueError(
                        "VerdictRewards: at='turns' needs paths that share no turn (Chains); use "
                        "at='trajectory' on trees."
                    )
                new[place] = fresh
        return replaced(forest, new)

    def _judged(self, verdicts: Sequence[int]) -> list[float]:
        """Return the reward of each turn's verdict; only the first -1 counts."""
        parts = [self.turn_budget * (v == 1) / len(verdicts) for v in verdicts]
        if -1 in verdicts:
            parts[list(verdicts).index(-1)] = -self.major_weight
        return parts


def outcome_of(forest: Forest, path: Path) -> float:
    """Return the outcome's reward: the reward term ``outcome``, else the path's return."""
    named = [v for t in forest.turns(path) for name, v in t.reward_terms if name == "outcome"]
    return sum(named) if named else forest.reward(path)


def rewarded(forest: Forest, amounts: Sequence[float], term: str) -> Forest:
    """Return the forest with ``amounts[i]`` added to the last token of path i as a named term."""
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
    """Return a copy of the forest with some turns (by group, tree, place) replaced."""
    groups: list[Group] = []
    for g, group in enumerate(forest.groups):
        trees = [
            Tree([new.get((g, t, i), turn) for i, turn in enumerate(tree.turns)])
            for t, tree in enumerate(group.trees)
        ]
        groups.append(replace(group, trees=trees))
    return Forest(groups, forest.paths)


def action_ends(forest: Forest, path: Path) -> list[tuple[int, Turn]]:
    """Return the turn in which each action of a path ended, with its place in the tree.

    Parts of an action that was cut for a fork inside it are left out, unless the path ends there.
    """
    line = list(zip(path.turns, forest.turns(path), strict=True))
    return [(at, turn) for at, turn in line if not turn.partial or at == path.turns[-1]]


def _with_terms(turn: Turn, terms: Mapping[str, float]) -> Turn:
    rewards = last_token_reward(sum(terms.values()), len(turn.act_ids))
    return replace(turn, rewards=rewards, reward_terms=tuple(terms.items()))
