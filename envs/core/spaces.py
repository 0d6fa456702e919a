"""The space of observations and actions: any UTF-8 text."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import create_shared_memory

from .errors import BadValueError
from .settings import check_integer

_SAMPLE_ALPHABET = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,?!<>/\n-äßéñ漢字"
)


class Utf8Text(gym.Space[str]):
    """Strings of at most ``max_chars`` characters that can be written as UTF-8.

    Gymnasium's own ``Text`` space excludes blanks and everything outside its character set. This
    one contains every ``str`` without lone surrogates.

    Args:
        max_chars: Upper bound on ``len(text)``, in characters.
        seed: Seed of the sampler.

    Raises:
        BadValueError: ``max_chars`` is not a positive integer.
    """

    def __init__(
        self, max_chars: int = 100_000, seed: int | np.random.Generator | None = None
    ) -> None:
        check_integer("max_chars", max_chars, "Utf8Text", min=1)
        self.max_chars = max_chars
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no flat numeric form."""
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Draw a short random string (uniform length from 1 to 32, mixed scripts)."""
        if mask is not None or probability is not None:
            raise BadValueError("Utf8Text.sample takes neither a mask nor probabilities.")
        length = int(self.np_random.integers(1, min(32, self.max_chars) + 1))
        picks = self.np_random.integers(0, len(_SAMPLE_ALPHABET), size=length)
        return "".join(_SAMPLE_ALPHABET[i] for i in picks)

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a str of legal length that encodes as UTF-8."""
        if not isinstance(x, str) or len(x) > self.max_chars:
            return False
        if x.isascii():  # a flag of the string, while encoding reads all of it
            return True
        try:
            x.encode("utf-8")
        except UnicodeEncodeError:
            return False
        return True

    def to_jsonable(self, sample_n: Iterable[str]) -> list[str]:
        """Return the strings, which are JSON already."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """Return the strings of :meth:`to_jsonable`."""
        return [str(s) for s in sample_n]

    def fork(self) -> Utf8Text:
        """Return an independent copy whose sampler continues from here."""
        twin = object.__new__(Utf8Text)
        twin.__dict__ = self.__dict__.copy()
        if self._np_random is not None:
            twin._np_random = copy.deepcopy(self._np_random)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Utf8Text:
        return self.fork()

    def __repr__(self) -> str:
        return f"Utf8Text(max_chars={self.max_chars})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Utf8Text) and other.max_chars == self.max_chars

    def __hash__(self) -> int:
        return hash((Utf8Text, self.max_chars))


@create_shared_memory.register(Utf8Text)
def _refuse_shared_memory(space: Utf8Text, *_: Any, **__: Any) -> NoReturn:
    # gymnasium reads shared memory once and expects arrays that change in place: texts cannot.
    raise BadValueError(
        f"{space}: texts do not fit into gymnasium's shared memory, whose arrays have one size. "
        'Add vector_kwargs={"shared_memory": False} to gym.make_vec (shared_memory=False to '
        "AsyncVectorEnv), or leave vectorization_mode out: that batches calls, and processes=2 "
        "spreads the copies over two processes."
    )
