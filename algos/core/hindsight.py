"""Annotators that score by what came out later: the accepted answer, or how the episode ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from .forest import ROOT, Edge, Forest, Group, Ids, Tree, Turn
from .protocols import Annotator, Floats, Scorer


@dataclass(frozen=True, kw_only=True)
class GoldLogprobs(Annotator):
    """How likely the policy finds the accepted answer, before each of its actions.

    In place of each action the policy is made to write the environment's own opener of a final
    answer, and the tokens of the answer are scored, their mean in nats (IGPO, arXiv 2510.14967,
    section 3). Of several accepted answers the likeliest counts.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"gold_logprobs"})
    reads_gold: ClassVar[bool] = True

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment whose tasks have no accepted answers.

        Raises:
            BadValueError: They have none.
        """
        if not env.has_gold:
            raise BadValueError(
                f"{env.name} has no accepted answers (has_gold), so there is none whose "
                "probability could be asked for after a turn. Use a recipe without GoldLogprobs."
            )

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """Return ``[n_act]`` per path: the mean log-probability, on every token of an action.

        Raises:
            BadValueError: The rollout recorded no accepted answers.
        """
        asked = Forest.of(
            [Group(str(i), "", [_ask(forest.turns(p))]) for i, p in enumerate(forest)]
        )
        answers = iter(zip(asked, scorer.logprobs(asked), strict=True))
        rows: list[Floats] = []
        for path in forest:
            turns = forest.turns(path)
            row = np.empty(len(turns))
            for k in _first_parts(turns):
                found = [next(answers) for _ in turns[0].gold]
                lengths = [len(asked.turns(one)[-1].act_ids) for one, _ in found]
                means = [
                    float(scores[-n:].mean(dtype=np.float64))
                    for (_, scores), n in zip(found, lengths, strict=True)
                ]
                row[k:] = max(means)
            counts = [len(turn.act_ids) for turn in turns]
            rows.append(np.repeat(row, counts).astype(np.float32))
        return {"gold_logprobs": rows}


@dataclass(frozen=True, kw_only=True)
class HindsightLogprobs(Annotator):
    """How likely the policy finds its own actions once it is told how the episode ended.

    The last observation and action of the path are put in front of its first prompt, and its
    actions are scored behind them (HCAPO, arXiv 2603.08754, section 3): an action that mattered for
    the end has become likelier than one that did not.
    """

    provides: ClassVar[frozenset[str]] = frozenset({"hindsight_logprobs"})

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """Return ``[n_act]`` per path, in nats."""
        informed: list[Group] = []
        for i, path in enumerate(forest):
            turns = forest.turns(path)
            last = turns[_first_parts(turns)[-1] :]
            end = [last[0].obs_ids, *(turn.act_ids for turn in last)]
            tree, hint = Tree(), np.concatenate(end)
            for k, turn in enumerate(turns):
                tree.add(
                    _link(turn, k - 1, np.concatenate([hint, turn.obs_ids]) if not k else None)
                )
            informed.append(Group(str(i), "", [tree]))
        return {"hindsight_logprobs": scorer.logprobs(Forest.of(informed))}


def _ask(turns: list[Turn]) -> Tree:
    """Return the path up to its last action, and behind each place of an action the answers.

    Raises:
        BadValueError: No answer was recorded.
    """
    if not turns[0].gold:
        raise BadValueError(
            "GoldLogprobs: a path has no accepted answers. They are recorded in rollouts of a "
            "recipe that reads them, where the environment has some (has_gold)."
        )
    tree, starts = Tree(), _first_parts(turns)
    for k, turn in enumerate(turns[: starts[-1]]):
        tree.add(_link(turn, k - 1))
    for k in starts:
        for answer in turns[0].gold:
            obs = np.concatenate([turns[k].obs_ids, turns[0].gold_opener])
            none = np.zeros(len(answer), np.float32)
            tree.add(
                Turn(
                    parent=k - 1 if k else ROOT,
                    obs_ids=obs,
                    act_ids=answer,
                    logprobs=none,
                    entropies=none,
                    rewards=none,
                    status="running",
                )
            )
    return tree


def _link(turn: Turn, parent: int, obs_ids: Ids | None = None) -> Turn:
    """Return the turn as one of a chain by itself."""
    obs = turn.obs_ids if obs_ids is None else obs_ids
    return replace(turn, parent=parent, edge=Edge.CONTINUE, previous=None, spawned=(), obs_ids=obs)


def _first_parts(turns: list[Turn]) -> list[int]:
    """Return where the actions of a path begin."""
    return [k for k in range(len(turns)) if not (k and turns[k - 1].partial)]
