"""Annotators that score the policy's own actions by someone who knows more.

A teacher: another model (``teacher_logprobs``), or the policy itself with an expert's demonstration
in its context (``context_logprobs``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError
from .checks import check_choices, check_minimum, check_shares
from .forest import ROOT, Edge, Forest, Group, Ids, Tree, Turn
from .protocols import Annotator, Floats, Scorer


@dataclass(frozen=True, kw_only=True)
class TeacherLogprobs(Annotator):
    """Log-probabilities of the sampled tokens under another model (on-policy distillation).

    Attributes:
        model: Folder or hub name of the teacher; its tokenizer must be the policy's.
    """

    model: str = ""

    provides: ClassVar[frozenset[str]] = frozenset({"teacher_logprobs"})

    def check(self, env: TextEnv[Any, Any]) -> None:  # noqa: ARG002 - the protocol's
        """Refuse to begin without a teacher.

        Raises:
            BadValueError: None is named.
        """
        if not self.model:
            raise BadValueError(
                "TeacherLogprobs.model is empty: there is no teacher to learn from. Name a model "
                "with the policy's tokenizer (--recipe.annotators.teacher_logprobs.model FOLDER)."
            )

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """Return ``[n_act]`` per path, in nats."""
        return {"teacher_logprobs": scorer.teacher_logprobs(forest)}


@dataclass(frozen=True, kw_only=True)
class ContextLogprobs(Annotator):
    """Log-probabilities of the sampled tokens where the context begins with a demonstration.

    The demonstration is what the environment's scripted expert does from the very state that the
    action was taken in: the runner lets it go on in a fork, so it is valid off the expert's own
    way too. It stands where the instructions do, in front of all else; the actions behind it are
    those that the policy sampled, token by token (SDFT, arXiv 2601.19897; prime-rl's ``opsd``).

    Degenerate cases: where a context has no room for a demonstration, or the expert does nothing,
    the tokens have the policy's own log-probabilities, from which nothing is learned.

    Attributes:
        actions: Most actions of a demonstration.
        mistakes: Probability per action that the expert errs; 1 demonstrates what is wrong, which
            is a control.
        weights: Whose log-probabilities: of the policy as it is now (SDFT, prime-rl), or of the
            policy that the run started from (TRL's default), which does not drift.
        intro: What stands in front of the demonstration's tags; empty saves a small model tokens.
    """

    actions: int = 8
    mistakes: float = 0.0
    intro: str = "This is how an expert would go on:\n"
    weights: Literal["live", "start"] = "live"

    provides: ClassVar[frozenset[str]] = frozenset({"context_logprobs"})

    def __post_init__(self) -> None:
        check_choices(self)
        check_minimum(self, actions=1)
        check_shares(self, "mistakes")

    def check(self, env: TextEnv[Any, Any]) -> None:
        """Refuse an environment without an expert.

        Raises:
            BadValueError: It has none.
        """
        if env.find_expert() is None:
            raise BadValueError(
                f"{env.name} has no scripted expert, so there is nobody to demonstrate anything. "
                "Choose a recipe that learns from outcomes."
            )

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """Return ``[n_act]`` per path, in nats.

        Raises:
            BadValueError: The rollout recorded no demonstration.
        """
        asked: dict[tuple[int, int, int], Group] = {}
        alone = 0
        for path in forest:
            line = forest.turns(path)
            for k, (at, turn) in enumerate(zip(path.turns, line, strict=True)):
                place = path.group, path.tree, at
                alone += not len(turn.hinted_prompt)
                if len(turn.hinted_prompt) and place not in asked:
                    asked[place] = Group(str(len(asked)), "", [_behind_hint(line[: k + 1])])
        if forest.paths and not asked:
            raise BadValueError(
                "ContextLogprobs: no turn has a demonstration. They are recorded in rollouts of a "
                "recipe that reads them; if these were, contexts have no room for one: use fewer "
                "actions (annotators.context_logprobs.actions), or a model with a longer context."
            )
        hinted = Forest.of(list(asked.values()))
        known = scorer.logprobs(hinted) if self.weights == "live" else scorer.ref_logprobs(hinted)
        scores = dict(zip(asked, known, strict=True))
        own = scorer.logprobs(forest) if alone else []
        rows: list[Floats] = []
        for i, path in enumerate(forest):
            pieces: list[Floats] = []
            start = 0
            for at, turn in zip(path.turns, forest.turns(path), strict=True):
                stop = start + len(turn.act_ids)
                found = scores.get((path.group, path.tree, at))
                pieces.append(own[i][start:stop] if found is None else found)
                start = stop
            rows.append(np.concatenate(pieces).astype(np.float32, copy=False))
        return {"context_logprobs": rows}


def _behind_hint(line: list[Turn]) -> Tree:
    """Return the last turn of a path as the only one, behind its demonstration and all before."""
    last = line[-1]
    context: list[Ids] = [last.hinted_prompt]
    for before, turn in zip([None, *line[:-1]], line, strict=True):
        if before is not None:
            context += [before.act_ids, turn.obs_ids]
    tree = Tree()
    alone = replace(
        last,
        parent=ROOT,
        edge=Edge.CONTINUE,
        previous=None,
        spawned=(),
        obs_ids=np.concatenate(context),
    )
    tree.add(alone)
    return tree
