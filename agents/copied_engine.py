"""What engines share that sample from a copy of the learner's weights."""

from __future__ import annotations

import numpy as np

from ..envs.errors import BadValueError, ContextFullError
from .engine import EngineStats, Request
from .kv_pool import Ids
from .stopping import StopRules


class CopiedEngine:
    """The facts of an engine, what it has counted, and the check of a request.

    Args:
        stops: What ends an action.
        vocabulary: Number of token ids that it samples from.
        max_context: Most tokens that context and action may have together.
    """

    def __init__(self, stops: StopRules, vocabulary: int, max_context: int) -> None:
        self._stops, self._vocabulary, self._max_context = stops, vocabulary, max_context
        self._version = 0
        self._counts = np.zeros(3, dtype=np.int64)  # prompt, cached, sampled tokens

    @property
    def version(self) -> int:
        """Number of weight updates so far."""
        return self._version

    @property
    def vocabulary(self) -> int:
        """Number of token ids that it samples from."""
        return self._vocabulary

    @property
    def max_context(self) -> int:
        """Most tokens that context and action may have together."""
        return self._max_context

    @property
    def eos_ids(self) -> frozenset[int]:
        """Ids that end every action."""
        return self._stops.eos_ids

    @property
    def stats(self) -> EngineStats:
        """What was counted so far."""
        prompt, cached, sampled = (int(n) for n in self._counts)
        return EngineStats(prompt_tokens=prompt, cached_tokens=cached, sampled_tokens=sampled)

    @property
    def shares_weights(self) -> bool:
        """False: the engine samples from a copy."""
        return False

    def _checked(self, request: Request) -> tuple[Ids, int]:
        """The context of a request, and how many tokens its action may have.

        Raises:
            BadValueError: No context, or an id that the model does not have.
            ContextFullError: No room for a single token.
        """
        ids = np.asarray(request.ids, dtype=np.int64)
        if ids.ndim != 1 or not len(ids):
            raise BadValueError(
                f"engine: the context has shape {ids.shape}; expected [n] with at least one token."
            )
        if ids.min() < 0 or ids.max() >= self._vocabulary:
            bad = ids[(ids < 0) | (ids >= self._vocabulary)][0]
            raise BadValueError(
                f"engine: the context holds id {bad}; expected 0 to {self._vocabulary - 1}."
            )
        room = self._max_context - len(ids)
        if room < 1:
            raise ContextFullError(
                f"engine: the context has {len(ids)} tokens and max_context is "
                f"{self._max_context}: no room for a single token. Shorten the context."
            )
        return ids, min(request.sampling.max_tokens, room)
