"""A server that speaks OpenAI's HTTP protocol: address, key, timeouts, repeated attempts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ...envs.core.errors import BadValueError, ContextFullError, TurngymError
from ...envs.utils.http import HttpClient, HttpError, bearer_headers, parse_json, wait_in_thread

T = TypeVar("T")
Read = Callable[[Any], T]
TOO_LONG = ("context_length_exceeded", "exceed_context_size_error")
"""What OpenAI (as ``code``) and llama.cpp (as ``type``) call a request that is too long."""
TOO_LONG_WORDS = ("maximum context length", "maximum model length", "model's context length")
"""What vLLM and SGLang write in their ``message``; they have no code for it."""


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
        """Return the whole address of ``path``."""
        return f"{self.url.rstrip('/')}/{path}"

    def headers(self) -> dict[str, str]:
        """Return the headers that carry the key, read anew each time."""
        return bearer_headers(self.key_variable)

    def ask(self, path: str, body: Mapping[str, Any], read: Read[T]) -> T:
        """Post ``body`` and wait.

        Args:
            path: Below the base address.
            body: Sent as JSON.
            read: Takes what is wanted out of the reply's JSON; ValueError, KeyError, IndexError
                and TypeError mean that it is not there.

        Raises:
            EndpointContextError: The request is longer than the model's context.
            EndpointError: Refused, or no usable reply after all attempts.
        """
        try:
            return self._http.send(
                self.address(path),
                body,
                headers=self.headers(),
                read=lambda reply: read(parse_json(reply)),
            )
        except HttpError as error:
            raise self._explain(self.address(path), error) from None

    async def ask_async(self, path: str, body: Mapping[str, Any], read: Read[T]) -> T:
        """Do what :meth:`ask` does in a thread, so that many requests wait together."""
        return await wait_in_thread(lambda: self.ask(path, body, read))

    @property
    def _http(self) -> HttpClient:
        return HttpClient(
            owner="endpoint",
            timeout_s=self.timeout,
            attempts=self.attempts,
            wait_s=self.first_pause,
            retried_statuses=(408, 409, 425, 429),
        )

    def _explain(self, address: str, error: HttpError) -> EndpointError:
        problem = error.reply.problem
        if not error.refused:
            return EndpointError(
                f"{address} gave no usable reply in {self.attempts} attempts (last: {problem})."
            )
        if _is_too_long(error.reply.body):
            return EndpointContextError(
                f"{address}: the request is longer than the model's context ({problem})."
            )
        key = "whether it wants a key (none was sent)"
        if variable := self.key_variable:
            there = "is set" if os.environ.get(variable) else "is not set"
            key = f"the key in {variable} (the variable {there})"
        return EndpointError(
            f"{address} refuses the request ({problem}). Check the address, the model's name and "
            f"{key}."
        )


def _is_too_long(body: bytes) -> bool:
    """Return whether a refusal says that the request is longer than the model's context."""
    try:
        reply = parse_json(body)
    except ValueError:
        return False
    error = reply.get("error", reply) if isinstance(reply, Mapping) else None
    if not isinstance(error, Mapping):
        return False
    if any(error.get(name) in TOO_LONG for name in ("code", "type")):
        return True
    message = str(error.get("message", "")).lower()
    return any(words in message for words in TOO_LONG_WORDS)
