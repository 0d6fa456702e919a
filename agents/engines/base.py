"""Engines: token ids in, token ids out. What was sampled comes back as it was sampled."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from inspect import isawaitable
from types import CoroutineType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...envs.core.errors import (
    BadValueError,
    ContextFullError,
    EngineFault,
    MissingExtraError,
    TurngymError,
)
from ..models.out_of_memory import memory_full
from .stopping import StopRules, check_stop

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
StopReason = Literal["stop", "eos", "length"]
_COLDEST, _HOTTEST = 1e-30, 1e30
_ARRAYS = (("ids", "iu"), ("logprobs", "f"), ("entropies", "f"))
"""Arrays of a completion, and the kinds of their numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How an action is drawn.

    Attributes:
        max_tokens: Maximum tokens of one action.
        temperature: 0 is greedy, else from 1e-30 to 1e30, by which float32 can be divided;
            log-probabilities are those of the tempered distribution.
        top_p: Nucleus mass in (0, 1]; log-probabilities stay those of the full distribution.
        top_k: Keep the k likeliest tokens; 0 keeps all.
        stop: Strings that end an action; the stop string stays in the action.
        top_logprobs: How many of the likeliest tokens to report the log-probabilities of, at each
            place; 0 reports none.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0

    def __post_init__(self) -> None:
        for name, low in (("max_tokens", 1), ("top_k", 0), ("top_logprobs", 0)):
            value = getattr(self, name)
            if not _is_number(value, int) or value < low:
                raise BadValueError(
                    f"Sampling.{name} is {value!r}; expected an integer, {low} or more."
                )
        heat = self.temperature
        if not _is_number(heat, float) or not (heat == 0 or _COLDEST <= heat <= _HOTTEST):
            raise BadValueError(
                f"Sampling.temperature is {heat!r}; expected 0 (greedy), or a number from "
                f"{_COLDEST:g} to {_HOTTEST:g}."
            )
        if not _is_number(self.top_p, float) or not 0 < self.top_p <= 1:
            raise BadValueError(f"Sampling.top_p is {self.top_p!r}; expected a value in (0, 1].")
        if isinstance(self.stop, list):
            object.__setattr__(self, "stop", tuple(self.stop))
        check_stop(self.stop)


def _is_number(value: Any, kind: type) -> bool:
    """Return whether a value is a number, of Python or numpy: a whole one where that is asked."""
    if type(value) is kind:
        return True
    kinds = (int, np.integer) if kind is int else (int, np.integer, np.floating)
    return isinstance(value, kinds) and not isinstance(value, bool)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One action to sample.

    Attributes:
        ids: The whole context, ``[n]``.
        sampling: How to draw.
        seed: Seeds this request alone: the same request gives the same action whatever else is in
            the batch (up to the rounding of batched arithmetic).
        cache: ``Completion.cache`` of an earlier request whose context and action are a prefix of
            ``ids``: its key-value cache is continued. Several requests may name the same one
            (a fork). None starts from nothing; a handle that was evicted costs time, never truth.
    """

    ids: Sequence[int] | Ids
    sampling: Sampling
    seed: int
    cache: int | None = None

    def __post_init__(self) -> None:
        if type(self.seed) is int:
            return
        if not _is_number(self.seed, int):
            raise BadValueError(f"Request.seed is {self.seed!r}; expected an integer.")
        object.__setattr__(self, "seed", int(self.seed))


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What was sampled.

    Attributes:
        ids: Sampled token ids ``[n]``, end of text and stop string included.
        logprobs: Log-probability in nats of each sampled token ``[n]``, as sampled.
        entropies: Entropy in nats of each token's distribution ``[n]``, at least 0.
        stop: Why it ended: a stop string, the end-of-text token, or the length limit.
        cache: Handle for :attr:`Request.cache`; None when the engine keeps none.
        top_logprobs: The likeliest tokens' log-probabilities ``[n, top_logprobs]``, falling; None
            when none were asked for.
    """

    # asyncio prints the results of tasks; arrays would take longer than the sampling
    ids: Ids = field(repr=False)
    logprobs: Floats = field(repr=False)
    entropies: Floats = field(repr=False)
    stop: StopReason
    cache: int | None = None
    top_logprobs: Floats | None = field(default=None, repr=False)

    @property
    def written(self) -> list[int]:
        """Ids of what was written: all but the end-of-text token.

        Models have several of those, and not every tokenizer knows the one that was sampled.
        """
        ids: list[int] = self.ids.tolist()
        return ids[:-1] if self.stop == "eos" else ids


class Engine(Protocol):
    """Samples actions; awaits inside, so that many trajectories run as one batch."""

    @property
    def version(self) -> int:
        """Number of weight updates so far; stamped on every turn."""
        ...

    @property
    def max_context(self) -> int:
        """Maximum tokens that context and action may have together."""
        ...

    @property
    def vocabulary(self) -> int:
        """Number of token ids that it samples from."""
        ...

    async def generate(self, request: Request) -> Completion:
        """Sample one action.

        Raises:
            BadValueError: The context leaves no room for a single token.
        """
        ...

    def release(self, cache: int | None) -> None:
        """Forget a cache handle, which will not be used again."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineStats:
    """What an engine counted since it was made; differences are the cost of one rollout.

    Attributes:
        prompt_tokens: Context tokens of all requests.
        cached_tokens: Those of them whose keys and values were there already.
        sampled_tokens: Tokens sampled.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    sampled_tokens: int = 0

    def __sub__(self, earlier: EngineStats) -> EngineStats:
        """Return what was counted since ``earlier``."""
        return EngineStats(
            prompt_tokens=self.prompt_tokens - earlier.prompt_tokens,
            cached_tokens=self.cached_tokens - earlier.cached_tokens,
            sampled_tokens=self.sampled_tokens - earlier.sampled_tokens,
        )

    @property
    def read_tokens(self) -> int:
        """Context tokens that were not cached, and the sampled ones."""
        return self.prompt_tokens - self.cached_tokens + self.sampled_tokens

    @property
    def prefix_hit_frac(self) -> float:
        """Share of the context tokens that were cached; 0 before any request."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


class TrainingEngine(Engine, Protocol):
    """An engine that follows a learner's weights."""

    @property
    def stats(self) -> EngineStats:
        """What was counted so far."""
        ...

    @property
    def shares_weights(self) -> bool:
        """True where training the learner's model changes what is sampled before a sync."""
        ...

    def sync(self, model: Any, version: int | None = None) -> None:
        """Take the learner's present weights; every cache handle dies.

        Args:
            model: Same architecture as the engine's.
            version: New :attr:`version`; None counts on.

        Raises:
            EpisodeError: Requests are being sampled.
        """
        ...

    def rest(self) -> None:
        """Nothing will be asked until the next sync or request: give back what can be spared."""
        ...


_MEMBERS = (
    *("version", "max_context", "vocabulary", "stats", "shares_weights"),
    *("generate", "release", "sync", "rest"),
)


def check_engine(engine: Any, maker: str) -> None:
    """Refuse what is no engine.

    Args:
        engine: What was made.
        maker: What made it, for the message.

    Raises:
        BadValueError: A class in place of an instance, or something that lacks a member.
    """
    missing = [name for name in _MEMBERS if not hasattr(engine, name)]
    if isinstance(engine, type) or missing:
        what = f"the class {engine.__name__}" if isinstance(engine, type) else f"{engine!r:.100}"
        lacks = f", which has no {', '.join(missing)}" if missing else ""
        raise BadValueError(
            f"engine: {maker} gave {what}{lacks}; expected an object that is a TrainingEngine "
            "(turngym.agents.engines.base)."
        )


async def sample(engine: Engine, request: Request) -> Completion:
    """Return what an engine samples.

    Raises:
        TypeError: The engine gave something else than a completion with arrays.
        BadValueError: These do not have one entry per token, or there is none.
    """
    asked = engine.generate(request)
    if not isinstance(asked, CoroutineType) and not isawaitable(asked):
        raise TypeError(
            f"{type(engine).__name__}.generate gave a {type(asked).__name__}; expected a coroutine "
            "that returns a Completion: async def generate(self, request)."
        )
    done: Any = await asked
    if not _is_whole(done):
        _refuse(done, f"{type(engine).__name__}.generate")
    return done


def _is_whole(done: Any) -> bool:
    """Return whether a completion has one number of each kind per token, and a token."""
    if not isinstance(done, Completion):
        return False
    ids, logprobs, entropies = done.ids, done.logprobs, done.entropies
    return (
        isinstance(ids, np.ndarray)
        and isinstance(logprobs, np.ndarray)
        and isinstance(entropies, np.ndarray)
        and ids.dtype.kind in "iu"
        and logprobs.dtype.kind == entropies.dtype.kind == "f"
        and ids.shape == logprobs.shape == entropies.shape == (ids.size,)
        and ids.size > 0
    )


def _refuse(done: Any, name: str) -> None:
    """Say what is wrong with what an engine's method ``name`` gave."""
    if not isinstance(done, Completion):
        raise TypeError(f"{name} gave a {type(done).__name__}; expected a Completion.")
    for what, kinds in _ARRAYS:
        values = getattr(done, what)
        if not isinstance(values, np.ndarray) or values.dtype.kind not in kinds:
            raise TypeError(
                f"{name} gave {what} as a {type(values).__name__} ({values!r:.60}); expected a "
                f"NumPy array of {'integers' if kinds == 'iu' else 'floats'}."
            )
        if values.shape != (len(done.ids),) or not len(values):
            raise BadValueError(
                f"{name} gave {what} of shape {values.shape} with ids of {done.ids.shape}; "
                "expected one for each sampled token, at least one."
            )


class Requirement(NamedTuple):
    """A package that an engine needs.

    Attributes:
        module: What is imported.
        package: What is installed, as the error names it.
        extra: The extra of turngym that installs it.
    """

    module: str
    package: str
    extra: str

    def check(self, user: str) -> None:
        """Refuse to continue without the package.

        Args:
            user: Who needs it, for the message.

        Raises:
            MissingExtraError: It is not installed.
        """
        if find_spec(self.module) is None:
            raise MissingExtraError(user, self.package, self.extra)


@dataclass(frozen=True, kw_only=True)
class EngineSource:
    """What an engine is built from.

    Attributes:
        model: Folder or hub name.
        tokenizer: Its tokenizer.
        learner: The model whose weights the engine will follow; None where nothing is trained.
        dtype: Number format of sampling.
        max_batch: Maximum number of requests that are sampled at a time.
        max_context: Maximum tokens of context and action together; None is the model's own limit.
        device: Where the model is put.
        elsewhere: Whether the engine samples there though the learner's model is not there.
        cache_gib: Memory for keys and values at most; None is the engine's own choice.
        cuda_graphs: Whether decode steps may be captured as CUDA graphs.
        own: The settings of this engine alone; None where it has none.
    """

    model: str
    tokenizer: Any
    learner: Any = None
    dtype: str = "auto"
    max_batch: int = 64
    max_context: int | None = None
    device: str = "auto"
    elsewhere: bool = False
    cache_gib: float | None = None
    cuda_graphs: bool = True
    own: Any = None


OPEN_BATCHES = 1.5
"""Episodes to keep open, in batches of an engine: while some of them are in their environments
the others fill the batch, and the contexts of all have room in the cache."""


@dataclass(slots=True, eq=False, kw_only=True)
class PendingRequest:
    """A request on its way.

    Attributes:
        completion: The answer once it is done.
        fault: Why there will be none.
        signal: Wakes the coroutine that waits for it.
    """

    completion: Completion | None = None
    fault: BaseException | None = None
    signal: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Let its coroutine look again."""
        if self.signal is not None and not self.signal.done():
            self.signal.set_result(None)


class CopiedEngine(ABC):
    """What engines share that sample from a copy of the learner's weights.

    It states the facts of an engine, counts its tokens, checks its requests, and has one of the
    coroutines that wait take the engine's steps for all of them.

    Args:
        stops: What ends an action.
        vocabulary: Number of token ids that it samples from.
        max_context: Maximum tokens that context and action may have together.
        when_full: What to change when memory runs out, a sentence.

    Attributes:
        max_open: Most episodes that should be played at a time, so that their contexts stay in the
            cache from turn to turn; None for as many as there are.
    """

    def __init__(self, stops: StopRules, vocabulary: int, max_context: int, when_full: str) -> None:
        self._when_full = when_full
        self._driver: PendingRequest | None = None
        self._stops, self._vocabulary, self._max_context = stops, vocabulary, max_context
        self._version = 0
        self.max_open: int | None = None
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
        """Maximum tokens that context and action may have together."""
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

    def settle(self, learner_bytes: int, *, in_turn: bool = False) -> None:  # noqa: B027 - a default
        """Decide how much memory to take, beside a learner that is built but has not trained.

        Args:
            learner_bytes: What the learner will take of the device beyond what it has by now,
                while the engine has its own; below 0 where it will have less.
            in_turn: Whether :meth:`rest` is to give memory back for the learner, which gives up
                its own while the engine plays.
        """

    @abstractmethod
    def _pending(self) -> Iterable[PendingRequest]:
        """Return the requests that are not answered yet, those that are sampled first."""

    @abstractmethod
    def _step(self) -> None:
        """Sample one token for every request that has a place; answer those that end."""

    @abstractmethod
    def _drop_all(self) -> None:
        """Forget all requests: half-sampled ones cannot be trusted after a failure."""

    @abstractmethod
    def _leave(self, request: PendingRequest) -> None:
        """Forget a request whose coroutine is done with it, answered or not."""

    async def _answer(self, request: PendingRequest) -> Completion:
        """Wait for the completion of a request, and drive the engine while nobody else does."""
        loop = asyncio.get_running_loop()
        try:
            while request.completion is None:
                if request.fault is not None:
                    raise request.fault
                if self._driver is None:
                    await self._drive(request)
                else:
                    request.signal = loop.create_future()
                    await request.signal
        finally:
            try:
                self._leave(request)
            finally:
                self._hand_over()
        return request.completion

    async def _drive(self, own: PendingRequest) -> None:
        self._driver = own
        try:
            while own.completion is None and own.fault is None:
                # whoever is ready runs first, so that freed places are filled before the step
                await asyncio.sleep(0)
                try:
                    self._step()
                except Exception as fault:
                    others = [request for request in self._pending() if request is not own]
                    with suppress(Exception):  # a device that is broken fails at this too
                        self._drop_all()
                    for request in others:
                        request.fault = step_failure(fault, self._when_full)
                        request.wake()
                    if isinstance(fault, TurngymError):
                        raise
                    raise step_failure(fault, self._when_full) from fault
        finally:
            self._driver = None

    def _hand_over(self) -> None:
        """Wake one of those that wait, who must drive now."""
        if self._driver is None:
            for request in self._pending():
                if request.signal is not None:
                    request.wake()
                    return


def open_episodes(max_batch: int) -> int:
    """Return how many episodes an engine should have open that samples so many actions at once."""
    return math.ceil(OPEN_BATCHES * max_batch)


def check_request(request: Request, vocabulary: int, max_context: int) -> tuple[Ids, int]:
    """Return the context of a request, and how many tokens its action may have.

    Args:
        request: What was asked.
        vocabulary: Number of token ids of the model.
        max_context: Maximum tokens that context and action may have together.

    Raises:
        BadValueError: No context, values that are no integers, or an id that the model does not
            have.
        ContextFullError: No room for a single token.
    """
    ids = _integers(request.ids)
    if ids.ndim != 1 or not len(ids):
        raise BadValueError(
            f"engine: the context has shape {ids.shape}; expected [n] with at least one token."
        )
    if np.maximum.reduce(ids.view(np.uint64)) >= vocabulary:  # where those below 0 are huge
        bad = ids[(ids < 0) | (ids >= vocabulary)][0]
        raise BadValueError(f"engine: the context holds id {bad}; expected 0 to {vocabulary - 1}.")
    room = max_context - len(ids)
    if room < 1:
        raise ContextFullError(
            f"engine: the context has {len(ids)} tokens and max_context is {max_context}: no room "
            "for a single token. Shorten the context."
        )
    return ids, min(request.sampling.max_tokens, room)


def _integers(ids: Any) -> Ids:
    """Return token ids as an array; a cast of numpy's would cut fractions off."""
    if isinstance(ids, np.ndarray):
        if ids.dtype.kind not in "iu" and len(ids):
            raise BadValueError(
                f"engine: the context is an array of {ids.dtype}; expected integers, token ids."
            )
        return ids.astype(np.int64, copy=False)
    try:
        return np.asarray(array("q", ids))  # no slower than numpy's own reading of a list
    except (TypeError, OverflowError) as fault:
        raise BadValueError(
            f"engine: the context holds what is no token id ({fault}); expected integers."
        ) from fault


def step_failure(fault: BaseException, settings: str) -> TurngymError:
    """Return the error for all requests of a batch whose step failed.

    Args:
        fault: What went wrong.
        settings: What to change when memory ran out, a sentence.
    """
    if (full := memory_full(fault, "sampling", settings)) is not None:
        return full
    if isinstance(fault, TurngymError):
        return EngineFault(f"engine: the step of the whole batch failed. {fault}")
    reason = f"{type(fault).__name__}: {str(fault).strip()[:500]}"
    return EngineFault(f"engine: the step of the whole batch failed: {reason}")
