"""When an action ends: a stop string in the decoded text, or the end-of-text token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import BadValueError
from ...envs.utils.bounded_cache import BoundedCache
from ..rendering.factory import end_of_message
from ..rendering.token_text import TokenText

Ids = npt.NDArray[np.int64]
_FIRST_WINDOW = 12
_SHORT = 32
"""Most tokens of an action whose verdict is remembered: a group's paths begin alike."""
_REMEMBERED = 1 << 14


def check_stop(stop: Any) -> None:
    """Refuse what are no stop strings.

    Raises:
        BadValueError: Not a tuple of non-empty strings.
    """
    texts = isinstance(stop, tuple) and all(isinstance(text, str) and text for text in stop)
    if not texts:
        raise BadValueError(f"Sampling.stop is {stop!r}; expected a tuple of non-empty strings.")


class StopRules:
    """Finds stop strings without decoding every token of every row.

    A token is looked at closely only if it could hold the last character of a stop string; that
    is worked out once per token, when it is first seen.

    Args:
        text: Decodes pieces exactly.
        vocabulary: Number of token ids.
        eos_ids: Ids that end every action.
    """

    def __init__(self, text: TokenText, vocabulary: int, eos_ids: frozenset[int]) -> None:
        self._text = text
        self._vocabulary = vocabulary
        self.eos_ids = eos_ids
        self._sets: dict[tuple[str, ...], int] = {}
        self._stops: list[tuple[str, ...]] = []
        self._watch = np.zeros((0, vocabulary), dtype=bool)
        self._ending: dict[tuple[int, int], bool] = {}  # by set and token, once it was seen
        self._hits: BoundedCache[tuple[int, bytes], bool] = BoundedCache(_REMEMBERED)

    def index(self, stop: tuple[str, ...]) -> int:
        """Return the number of a set of stop strings, for :meth:`suspects`.

        Raises:
            BadValueError: A stop string is empty.
        """
        known = self._sets.get(stop)
        if known is not None:
            return known
        check_stop(stop)
        row = np.zeros((1, self._vocabulary), dtype=bool)
        row[:] = bool(stop)
        row[0, list(self.eos_ids)] = True
        self._watch = np.concatenate([self._watch, row])
        self._stops.append(stop)
        self._sets[stop] = len(self._stops) - 1
        return self._sets[stop]

    def suspects(
        self, sets: npt.NDArray[np.int64], tokens: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Which of the new ``tokens`` may end their action, both arrays ``[rows]``."""
        return self._watch[sets, tokens]

    def hit(self, which: int, action: Sequence[int] | Ids) -> bool:
        """True if the last token of ``action`` completed a stop string of set ``which``."""
        if not self._stops[which]:
            return False
        if len(action) > _SHORT:
            return self._completes(which, action)
        key = which, np.asarray(action, dtype=np.int64).tobytes()
        if (hit := self._hits.get(key)) is None:
            hit = self._completes(which, action)
            self._hits.put(key, hit)
        return hit

    def _completes(self, which: int, action: Sequence[int] | Ids) -> bool:
        stops = self._stops[which]
        token = int(action[-1])
        if (ending := self._ending.get((which, token))) is None:
            ending = self._ending[which, token] = self._may_end(which, token)
        if not ending:
            return False
        longest = max(map(len, stops))
        window = _FIRST_WINDOW
        while True:
            text = self._text.decode([int(i) for i in action[-window:]])
            # four characters more than needed: the first ones may be torn from a longer character
            if len(text) >= longest + 4 or window >= len(action):
                break
            window *= 2
        # an earlier match would have ended the action, so any match is the last token's
        return any(s in text for s in stops)

    def _may_end(self, which: int, token: int) -> bool:
        stops = self._stops[which]
        text = self._text.decode([token])
        ends = {s[-1] for s in stops}
        may = (
            any(e in text for e in ends)
            or any(e.isspace() for e in ends)
            or ("\ufffd" in text and any(not e.isascii() for e in ends))
        )
        if not may and token not in self.eos_ids:
            self._watch[which, token] = False
        return may


def end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """All ids that end a text according to model, generation settings, tokenizer and template."""
    found: set[int] = {end_of_message(tokenizer), int(tokenizer.eos_token_id)}
    for config in (model.config, getattr(model, "generation_config", None)):
        value = getattr(config, "eos_token_id", None)
        if value is not None:
            found |= set(value) if isinstance(value, (list, tuple)) else {int(value)}
    return frozenset(int(i) for i in found)
