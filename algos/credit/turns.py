"""Turn returns: each turn against all turns of its prompt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..core.checks import check_choices
from ..core.forest import Forest, Turn
from ..core.protocols import Annotations, Credit, Credits, Floats
from .gae import Doubles
from .group import GroupCredit, by_prompt
from .returns import returns_to_go


@dataclass(frozen=True, kw_only=True)
class TurnReturns(Credit):
    """``G_i = sum over j >= i of r_j``, normalised within the prompt (TARL, 2509.14480, 3).

    Every token of turn i gets its turn's normalised return. The parts of an action that was cut
    for a fork inside it are one turn. Where an episode has several sessions, what the others earned
    stands at the end of each.

    Degenerate cases: a scope of one turn or of equal returns gets 0; episodes of one turn make it
    :class:`~turngym.algos.credit.GroupCredit`.

    Attributes:
        over: Compare with all turns of the prompt's paths, or with those of the same index.
        eps: Keeps the division finite.
    """

    over: Literal["turns", "index"] = "turns"
    eps: float = 1e-6

    needs_turn_rewards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choices(self)
        self._rule()

    @property
    def min_paths(self) -> int:
        """Minimum of two: an episode of one turn is compared with other episodes' turns."""
        return 2

    def __call__(self, forest: Forest, annotations: Annotations) -> Credits:  # noqa: ARG002 - the protocol's
        """Return one advantage per turn, on its action tokens."""
        actions = [whole_actions(forest.turns(path)) for path in forest]
        to_go: list[Doubles] = []
        for path, turns, episode in zip(forest, actions, forest.returns(), strict=True):
            rewards = np.array([sum(t.reward for t in parts) for parts in turns])
            rewards[-1] += episode - forest.reward(path)
            to_go.append(returns_to_go(rewards, 1.0))
        scores = self._compared(to_go, by_prompt(forest))
        return Credits(advantages=on_actions(forest, scores))

    def _compared(self, to_go: list[Doubles], prompts: list[list[int]]) -> list[Doubles]:
        rule = self._rule()
        scores = [np.zeros_like(g) for g in to_go]
        for members in prompts:
            scopes: dict[int, list[tuple[int, int]]] = defaultdict(list)
            for i in members:
                for t in range(len(to_go[i])):
                    scopes[t if self.over == "index" else 0].append((i, t))
            for scope in scopes.values():
                values = rule.compare(np.array([to_go[i][t] for i, t in scope]))
                for (i, t), value in zip(scope, values, strict=True):
                    scores[i][t] = value
        return scores

    def _rule(self) -> GroupCredit:
        return GroupCredit(eps=self.eps)


def whole_actions(turns: list[Turn]) -> list[list[Turn]]:
    """Group a path's turns by action: parts of an action cut for a fork stay together."""
    actions: list[list[Turn]] = [[]]
    for turn in turns:
        actions[-1].append(turn)
        if not turn.partial:
            actions.append([])
    return [parts for parts in actions if parts]


def action_lengths(forest: Forest, at: int) -> list[int]:
    """Return the number of tokens of each action of a path."""
    return [_n_act(parts) for parts in whole_actions(forest.turns(forest.paths[at]))]


def action_means(forest: Forest, at: int, tokens: Floats) -> Doubles:
    """Return the mean of ``[n_act]`` values over each action of a path ``[actions]``."""
    lengths = action_lengths(forest, at)
    return np.add.reduceat(tokens.astype(np.float64), np.cumsum([0, *lengths[:-1]])) / lengths


def on_actions(forest: Forest, rows: Sequence[Doubles]) -> list[Floats]:
    """Broadcast one score per action ``[actions]`` of each path to its ``[n_act]`` tokens."""
    return [
        np.repeat(row, action_lengths(forest, i)).astype(np.float32) for i, row in enumerate(rows)
    ]


def _n_act(parts: list[Turn]) -> int:
    return sum(len(turn.act_ids) for turn in parts)
