"""What engine servers and their clients say to each other, and the checks of both sides.

Arrays travel as the bytes of little-endian numbers in base64, so that a log-probability arrives bit
for bit. Answers come as JSON lines, each as soon as its request is done: nobody waits for the
longest action of a call.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from ....envs.core.errors import BadValueError, ContextFullError, EngineFault, TurngymError
from ..base import Completion, EngineStats, Request, Sampling, StopReason

MAX_REQUESTS = 4096
"""Most requests of one call."""
_KINDS: Mapping[str, type[TurngymError]] = {
    "context_full": ContextFullError,
    "bad_value": BadValueError,
    "fault": EngineFault,
}
_STOPS = frozenset(get_args(StopReason))
_SAMPLING = ("max_tokens", "temperature", "top_p", "top_k", "stop", "top_logprobs")
_ROUNDING = 1e-3
_MAX_STOPS, _MAX_STOP_CHARS, _MAX_CARDS = 64, 1000, 64


@dataclass(frozen=True, slots=True)
class WeightsId:
    """Which weights a server samples from.

    Attributes:
        version: The learner's count of updates.
        digest: Of the file that they came in, ``sha256:…``; of the starting model ``start:…``.
    """

    version: int
    digest: str

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"version": self.version, "digest": self.digest}

    @classmethod
    def read(cls, found: Any) -> WeightsId:
        """Return what JSON data says.

        Raises:
            ValueError: It is none.
        """
        match found:
            case {"version": int() as version, "digest": str() as digest}:
                if version >= 0 and not isinstance(version, bool) and len(digest) < 100:
                    return cls(version, digest)
        raise ValueError(f"weights {str(found)[:80]!r}; expected a version and a digest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a server says about itself.

    Attributes:
        engine: What samples there.
        vocabulary: Number of token ids.
        max_context: Maximum tokens of context and action together.
        max_batch: Actions that it samples at a time.
        max_open: Episodes that its cache has room for; None for any number.
        dtype: Number format of sampling.
        tokenizer: Digest of its tokenizer's vocabulary.
        weights: What it samples from; None while it has none that are whole.
        can_sleep: Whether it can give its card's memory back.
        folder: Whether it reads weights from a folder.
        group: What it speaks in a group that weights are sent through: gloo, nccl (and gloo); empty
            where it joins none.
        cards: The cards of its members of a group, one or several; an empty name is main memory.
    """

    engine: str
    vocabulary: int
    max_context: int
    max_batch: int
    max_open: int | None
    dtype: str
    tokenizer: str
    weights: WeightsId | None
    can_sleep: bool
    folder: bool
    group: str = ""
    cards: tuple[str, ...] = ("",)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return data | {"weights": None if self.weights is None else self.weights.to_json()}

    @classmethod
    def read(cls, found: Any) -> Facts:
        """Return what JSON data says.

        Raises:
            ValueError: Something is missing or of another type.
        """
        if not isinstance(found, Mapping):
            raise ValueError("no object")
        for name in ("vocabulary", "max_context", "max_batch"):
            _integer(found.get(name), name, 1)
        for name in ("engine", "dtype", "tokenizer"):
            if not isinstance(found.get(name), str) or len(found[name]) > 100:
                raise ValueError(f"{name} is no short text")
        for name in ("can_sleep", "folder"):
            if not isinstance(found.get(name), bool):
                raise ValueError(f"{name} is neither true nor false")
        if found.get("max_open") is not None:
            _integer(found["max_open"], "max_open", 1)
        held = None if found.get("weights") is None else WeightsId.read(found["weights"])
        cards = _read_members(found)
        names: dict[str, Any] = {k: found[k] for k in cls.__slots__ if k in found}
        names |= {"weights": held, "cards": cards}
        return cls(**names)


def _read_members(found: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return a server's cards; older ones name none, and join no group."""
    cards = found.get("cards", [""])
    if not isinstance(cards, list) or not 0 < len(cards) <= _MAX_CARDS:
        raise ValueError(f"cards is no list of at most {_MAX_CARDS} names")
    for name in (found.get("group", ""), *cards):
        if not isinstance(name, str) or len(name) > 100:
            raise ValueError("group or a card is no short text")
    return tuple(cards)


def encode_request(request: Request, cache: int | None) -> dict[str, Any]:
    """Return a request as JSON data; ``cache`` is the server's own handle."""
    sampling = {name: _plain(getattr(request.sampling, name)) for name in _SAMPLING}
    return {
        "ids": encode_array(request.ids, "<i4"),
        "seed": request.seed,
        "cache": cache,
        "sampling": sampling | {"stop": list(request.sampling.stop)},
    }


def _plain(value: Any) -> Any:
    """Return a number of numpy as one of Python, which JSON can say."""
    return value.item() if isinstance(value, np.generic) else value


def decode_request(found: Any) -> Request:
    """Return the request that JSON data describes.

    Raises:
        ValueError: It describes none.
    """
    if not isinstance(found, Mapping) or not isinstance(found.get("sampling"), Mapping):
        raise ValueError("a request without sampling")
    sampling = _read_sampling(dict(found["sampling"]))
    _integer(found.get("seed"), "seed", 0)
    if found.get("cache") is not None:
        _integer(found["cache"], "cache", 0)
    ids = decode_array(found.get("ids"), "<i4").astype(np.int64)
    return Request(ids=ids, sampling=sampling, seed=found["seed"], cache=found.get("cache"))


def _read_sampling(sampling: dict[str, Any]) -> Sampling:
    if sampling.keys() != set(_SAMPLING):
        raise ValueError(f"sampling has {sorted(map(str, sampling))[:9]}")
    for name in ("max_tokens", "top_k", "top_logprobs"):
        _integer(sampling[name], name, 0)
    for name in ("temperature", "top_p"):
        number = sampling[name]
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ValueError(f"{name} is no number")
        if not math.isfinite(number):
            raise ValueError(f"{name} is {number}")
    stop = sampling["stop"]
    if not isinstance(stop, list) or len(stop) > _MAX_STOPS:
        raise ValueError(f"stop is no list of at most {_MAX_STOPS} texts")
    if not all(isinstance(text, str) and len(text) <= _MAX_STOP_CHARS for text in stop):
        raise ValueError(f"stop holds what is no text of at most {_MAX_STOP_CHARS} characters")
    settings: dict[str, Any] = sampling | {"stop": tuple(stop)}
    return Sampling(**settings)


def encode_answer(at: int, answer: Completion | BaseException) -> dict[str, Any]:
    """Return an answer to request ``at`` of a call as JSON data."""
    if isinstance(answer, BaseException):
        kind = next((k for k, of in _KINDS.items() if isinstance(answer, of)), "fault")
        return {"at": at, "error": kind, "message": str(answer)[:2000]}
    top = answer.top_logprobs
    return {
        "at": at,
        "ids": encode_array(answer.ids, "<i4"),
        "logprobs": encode_array(answer.logprobs, "<f4"),
        "entropies": encode_array(answer.entropies, "<f4"),
        "stop": answer.stop,
        "cache": answer.cache,
        "top_logprobs": None if top is None else encode_array(top, "<f4"),
    }


def decode_answer(
    found: Mapping[str, Any], request: Request, vocabulary: int
) -> Completion | TurngymError:
    """Return the answer to a request, which is checked before anybody trains on it.

    Raises:
        ValueError: It is none.
    """
    if "error" in found:
        kind, message = _KINDS.get(found["error"]), found.get("message")
        if kind is None or not isinstance(message, str):
            raise ValueError("an error of no kind")
        return kind(message[:2000])
    ids = decode_array(found.get("ids"), "<i4").astype(np.int64)
    n, sampling = len(ids), request.sampling
    if not 1 <= n <= sampling.max_tokens:
        raise ValueError(f"{n} tokens, where 1 to {sampling.max_tokens} were asked for")
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise ValueError(f"token ids that are not of the {vocabulary} of the vocabulary")
    logprobs, entropies = (_numbers(found, name, n) for name in ("logprobs", "entropies"))
    if logprobs.max() > _ROUNDING or entropies.min() < -_ROUNDING:
        raise ValueError("log-probabilities above 0, or entropies below")
    if found.get("stop") not in _STOPS:
        raise ValueError(f"the reason {str(found.get('stop'))[:40]!r} for ending")
    cache = found.get("cache")
    if cache is not None:
        _integer(cache, "cache", 0)
    top = None
    if sampling.top_logprobs:
        top = decode_array(found.get("top_logprobs"), "<f4")
        if top.size != n * sampling.top_logprobs or np.isnan(top).any():
            raise ValueError(f"top_logprobs of {top.size} numbers")
        top = top.reshape(n, sampling.top_logprobs)
    return Completion(
        ids=ids,
        logprobs=logprobs,
        entropies=entropies,
        stop=found["stop"],
        cache=cache,
        top_logprobs=top,
    )


def _numbers(found: Mapping[str, Any], name: str, n: int) -> npt.NDArray[np.float32]:
    numbers = decode_array(found.get(name), "<f4")
    if numbers.shape != (n,) or not np.isfinite(numbers).all():
        raise ValueError(f"{name} of shape {numbers.shape} for {n} tokens, or not finite")
    return numbers


def decode_stats(found: Any) -> EngineStats:
    """Return counts.

    Raises:
        ValueError: They are none.
    """
    names = ("prompt_tokens", "cached_tokens", "sampled_tokens")
    if not isinstance(found, Mapping) or found.keys() != set(names):
        raise ValueError("no counts of tokens")
    return EngineStats(**{name: _integer(found[name], name, 0) for name in names})


def reply_bytes(requests: Sequence[Request]) -> int:
    """Return the most bytes that answers to these requests can have, with room to spare."""
    each = ((2 + r.sampling.top_logprobs + 1) * 6 * r.sampling.max_tokens + 4096 for r in requests)
    return sum(each) + (1 << 16)


def encode_array(numbers: Any, kind: str) -> str:
    """Return numbers as text."""
    return base64.b64encode(np.ascontiguousarray(numbers, dtype=kind).tobytes()).decode()


def decode_array(text: Any, kind: str) -> npt.NDArray[Any]:
    """Return the numbers ``[n]`` of :func:`encode_array`.

    Raises:
        ValueError: The text holds none.
    """
    if not isinstance(text, str):
        raise ValueError("an array that is no text")
    try:
        data = base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, UnicodeEncodeError) as fault:
        raise ValueError(f"an array that is no base64 ({fault})") from None
    size = np.dtype(kind).itemsize
    if len(data) % size:
        raise ValueError(f"an array of {len(data)} bytes, {size} per number")
    return np.frombuffer(data, dtype=kind).copy()


def json_line(data: Any) -> bytes:
    """Return JSON data as one line."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _integer(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
        raise ValueError(f"{name} is {str(value)[:40]!r}; expected a whole number from {least} up")
    return value
