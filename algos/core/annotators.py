"""Annotators: arrays that a credit rule or a loss needs besides what was sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .checks import check_choices, check_minimum
from .forest import Forest, Ids
from .protocols import Annotator, Floats, Scorer


@dataclass(frozen=True, kw_only=True)
class OldLogprobs(Annotator):
    """The base of the importance ratio: the policy at the start of this optimisation.

    A recipe may leave it out: the learner then computes them by itself where more than one
    optimiser step makes them differ from the current ones. A KL penalty in the reward needs it.

    Attributes:
        source: ``"learner"`` recomputes them in the learner's own precision, needed when the
            engine samples in another one (a bf16 engine is off by 7e-3); ``"sampled"`` takes those
            that the engine recorded, exact when both compute in the same precision.
    """

    source: Literal["learner", "sampled"] = "learner"

    provides: ClassVar[frozenset[str]] = frozenset({"old_logprobs"})

    def __post_init__(self) -> None:
        check_choices(self)

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """Return ``[n_act]`` per path, in nats."""
        if self.source == "learner":
            return {"old_logprobs": scorer.logprobs(forest)}
        return {"old_logprobs": sampled_logprobs(forest)}


@dataclass(frozen=True, kw_only=True)
class RefLogprobs(Annotator):
    """Log-probabilities under the frozen reference policy."""

    provides: ClassVar[frozenset[str]] = frozenset({"ref_logprobs"})

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """Return ``[n_act]`` per path, in nats."""
        return {"ref_logprobs": scorer.ref_logprobs(forest)}


@dataclass(frozen=True, kw_only=True)
class CriticValues(Annotator):
    """The critic's values before each action token, and after the last."""

    provides: ClassVar[frozenset[str]] = frozenset({"values"})

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """Return ``[n_act + 1]`` per path."""
        return {"values": scorer.values(forest)}


@dataclass(frozen=True, kw_only=True)
class SpawnedValues(Annotator):
    """The critic's values of each turn's requested sessions, summed on its last token.

    ``sum_j V(S_{q + p_j})`` of PaSa's equation 3 (arXiv 2501.10120, section 4.3). Sessions that
    cannot be opened any more, as beyond the last layer, are not among a turn's ``spawned``, so they
    count 0. Each first prompt is valued once, however many paths share the turn.

    Attributes:
        max_sessions: Maximum sessions per turn that count, best scored first (PaSa's released code:
            5).
    """

    max_sessions: int = 5

    def __post_init__(self) -> None:
        check_minimum(self, max_sessions=1)

    provides: ClassVar[frozenset[str]] = frozenset({"spawned_values"})

    def __call__(self, forest: Forest, scorer: Scorer) -> dict[str, list[Floats]]:
        """Return ``[n_act]`` per path; 0 where no session was requested."""
        asked: dict[tuple[int, int, int], slice] = {}
        prompts: list[Ids] = []
        for path in forest:
            for at, turn in zip(path.turns, forest.turns(path), strict=True):
                place = path.group, path.tree, at
                if turn.spawned and place not in asked:
                    first = len(prompts)
                    prompts += turn.spawned[: self.max_sessions]
                    asked[place] = slice(first, len(prompts))
        values = scorer.prompt_values(prompts) if prompts else np.zeros(0, np.float32)
        worth = {place: values[s].sum(dtype=np.float64) for place, s in asked.items()}
        rows: list[Floats] = []
        for path in forest:
            ends = np.cumsum([len(turn.act_ids) for turn in forest.turns(path)])
            row = np.zeros(ends[-1], np.float32)
            row[ends - 1] = [worth.get((path.group, path.tree, at), 0.0) for at in path.turns]
            rows.append(row)
        return {"spawned_values": rows}


def sampled_logprobs(forest: Forest) -> list[Floats]:
    """Return the engine's log-probabilities ``[n_act]`` per path, as recorded when sampled."""
    return [np.concatenate([t.logprobs for t in forest.turns(p)]) for p in forest.paths]
