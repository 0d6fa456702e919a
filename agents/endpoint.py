"""A server that speaks OpenAI's HTTP protocol: address, key, timeouts, repeated attempts."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..envs.errors import BadValueError, ContextFullError, MissingExtraError, TurngymError

T = TypeVar("T")
Read = Callable[[Any], T]
BUSY = (408, 409, 425, 429)
"""Statuses below 500 that another attempt may change."""
TOO_LONG = ("context_length_exceeded", "exceed_context_size_error")
"""What OpenAI (as ``code``) and llama.cpp (as ``type``) call a request that is too long."""
TOO_LONG_WORDS = ("maximum context length", "maximum model length", "model's context length")
"""What vLLM and SGLang write in their ``message``; they have no code for it."""
LONGEST_PAUSE = 30.0
_SHOWN = 200


class EndpointError(TurngymError, RuntimeError):
    """A model server that refuses a request or stays without a usable reply."""


class EndpointContextError(EndpointError, ContextFullError):
    """A server's refusal of a request that its model's context has no room for."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where a model server is and how patient to be with it.

    A busy server (429, 5xx), a timeout, a broken connection and a reply that cannot be read are
    tried again after growing pauses; ``Retry-After`` is kept to. Any other refusal is final, and
    one of a request that is longer than the model's context is told apart.

    Attributes:
        url: Base address, as ``http://localhost:8000/v1``.
        key_variable: Environment variable that holds the key; empty sends none.
        timeout: Seconds for one reply.
        attempts: Tries per request.
        first_pause: Seconds before the second try; every further pause is twice as long.
    """

    url: str
    key_variable: str = ""
    timeout: float = 60.0
    attempts: int = 5
    first_pause: float = 1.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise BadValueError(
                f"endpoint: the url is {self.url!r}; expected an address such as "
                "'http://localhost:8000/v1'."
            )
        for name in ("timeout", "attempts"):
            if not getattr(self, name) > 0:
                raise BadValueError(f"endpoint: {name} is {getattr(self, name)}; expected above 0.")
        if self.first_pause < 0:
            raise BadValueError(f"endpoint: first_pause is {self.first_pause}; expected 0 or more.")

    def address(self, path: str) -> str:
        """The whole address of ``path``."""
        return f"{self.url.rstrip('/')}/{path}"

    def headers(self) -> dict[str, str]:
        """The headers that carry the key, read anew each time."""
        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def ask(self, path: str, body: Mapping[str, Any], read: Read[T]) -> T:
        """Post ``body`` and wait.

        Args:
            path: Below the base address.
            body: Sent as JSON.
            read: Takes what is wanted, never None, out of the reply's JSON; ValueError, KeyError,
                IndexError and TypeError mean that it is not there.

        Raises:
            EndpointContextError: The request is longer than the model's context.
            EndpointError: Refused, or no usable reply after all attempts.
            MissingExtraError: httpx is not installed.
        """
        httpx, tries = _httpx(), _Tries(self, path)
        while True:
            try:
                answer = httpx.post(**self._request(path, body))
            except (httpx.HTTPError, httpx.InvalidURL) as fault:
                tries.fail(_told(fault))
            else:
                if (found := tries.read(answer, read)) is not None:
                    return found
            time.sleep(tries.pause)

    async def ask_async(self, client: Any, path: str, body: Mapping[str, Any], read: Read[T]) -> T:
        """:meth:`ask` with an ``httpx.AsyncClient``, so that many requests wait together."""
        httpx, tries = _httpx(), _Tries(self, path)
        while True:
            try:
                answer = await client.post(**self._request(path, body))
            except (httpx.HTTPError, httpx.InvalidURL) as fault:
                tries.fail(_told(fault))
            else:
                if (found := tries.read(answer, read)) is not None:
                    return found
            await asyncio.sleep(tries.pause)

    def client(self) -> Any:
        """A client for :meth:`ask_async`, to be closed by who asked for it.

        Raises:
            MissingExtraError: httpx is not installed.
        """
        httpx = _httpx()
        return httpx.AsyncClient(limits=httpx.Limits(max_connections=None))

    def _request(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a post; the key is read anew for every attempt."""
        return {
            "url": self.address(path),
            "json": dict(body),
            "headers": self.headers(),
            "timeout": self.timeout,
        }


class _Tries:
    """The attempts of one request: what went wrong last, and how long to wait."""

    def __init__(self, endpoint: Endpoint, path: str) -> None:
        self._endpoint = endpoint
        self._address = endpoint.address(path)
        self._made = 0
        self.pause = 0.0

    def read(self, answer: Any, read: Read[T]) -> T | None:
        """What was wanted; None when it is worth another attempt."""
        status = int(answer.status_code)
        if 200 <= status < 300:
            try:
                return read(answer.json())
            except (ValueError, KeyError, IndexError, TypeError) as fault:
                reason = f"{type(fault).__name__}: {fault}"
                self.fail(f"a reply that cannot be read ({reason}): {answer.text[:_SHOWN]!r}")
                return None
        problem = f"{status} {answer.text[:_SHOWN]}".strip()
        if status < 500 and _too_long(answer):
            raise EndpointContextError(
                f"{self._address}: the request is longer than the model's context ({problem})."
            )
        if status < 500 and status not in BUSY:
            raise EndpointError(
                f"{self._address} refuses the request ({problem}). Check the address, the model's "
                f"name and {self._key()}."
            )
        self.fail(problem, answer.headers.get("Retry-After", ""))
        return None

    def fail(self, problem: str, wanted: str = "") -> None:
        """Note a failed attempt and set :attr:`pause`.

        Raises:
            EndpointError: It was the last one.
        """
        self._made += 1
        if self._made >= self._endpoint.attempts:
            raise EndpointError(
                f"{self._address} gave no usable reply in {self._endpoint.attempts} attempts "
                f"(last: {problem})."
            )
        own = self._endpoint.first_pause * 2 ** (self._made - 1)
        asked = float(wanted) if wanted.replace(".", "", 1).isdecimal() else 0.0
        self.pause = min(max(own, asked), LONGEST_PAUSE)

    def _key(self) -> str:
        variable = self._endpoint.key_variable
        if not variable:
            return "whether it wants a key (none was sent)"
        there = "is set" if os.environ.get(variable) else "is not set"
        return f"the key in {variable} (the variable {there})"


def _too_long(answer: Any) -> bool:
    """Whether a refusal says that the request is longer than the model's context."""
    try:
        reply = answer.json()
    except ValueError:
        return False
    error = reply.get("error", reply) if isinstance(reply, Mapping) else None
    if not isinstance(error, Mapping):
        return False
    if any(error.get(name) in TOO_LONG for name in ("code", "type")):
        return True
    message = str(error.get("message", "")).lower()
    return any(words in message for words in TOO_LONG_WORDS)


def _told(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}".rstrip(": ")


def _httpx() -> Any:
    try:
        import httpx
    except ImportError as fault:
        raise MissingExtraError("a model behind an address", "httpx", "train") from fault
    return httpx
