"""What all routes share: who asks, how often, how much, and how errors are told."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from ...envs.core.errors import DataError
from ..schema.base import Form, parse_form
from ..schema.limits import ReadLimits
from ..schema.result import Refused
from ..schema.untrusted_json import strict_json
from ..site.rendering import POLICY
from .accounts import account_of
from .settings import ServerSettings

F = TypeVar("F", bound=Form)
_HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Fault(Exception):
    """An answer other than the one that was asked for.

    Args:
        status: Of HTTP.
        kind: One word for programs.
        message: What is wrong, and what to do.
        retry_s: Seconds after which asking again makes sense.
    """

    def __init__(self, status: int, kind: str, message: str, retry_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.retry_s = status, kind, message, retry_s

    def response(self) -> JSONResponse:
        """The answer."""
        headers = {} if self.retry_s is None else {"Retry-After": str(math.ceil(self.retry_s))}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        told = {"error": {"kind": self.kind, "message": self.message}}
        return JSONResponse(told, self.status, headers)


class Rate:
    """Allows each caller so many requests per minute: a bucket that refills with time.

    Args:
        per_minute: How many.
        clock: Tells seconds.
        callers: Most callers that are remembered; the longest silent ones are forgotten.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        callers: int = 100_000,
    ) -> None:
        self._max = float(per_minute)
        self._clock = clock
        self._callers = callers
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, caller: str) -> float:
        """Count one thing; 0 when it is allowed, else the seconds after which it will be."""
        with self._lock:
            now = self._clock()
            left, then = self._left.pop(caller, (self._max, now))
            left = min(self._max, left + (now - then) * self._max / 60)
            allowed = left >= 1
            self._left[caller] = (left - 1 if allowed else left, now)
            while len(self._left) > self._callers:
                self._left.popitem(last=False)
            return 0.0 if allowed else (1 - left) * 60 / self._max


@dataclass
class Gate:
    """Lets callers in: by token, and not too often.

    Attributes:
        settings: Of the server.
    """

    settings: ServerSettings
    _requests: Rate = field(init=False)
    _steps: Rate = field(init=False)

    def __post_init__(self) -> None:
        self._requests = Rate(self.settings.requests_per_minute)
        self._steps = Rate(self.settings.steps_per_minute)

    def address(self, request: Request) -> str:
        """Where a request comes from."""
        if self.settings.trust_proxy and (said := request.headers.get("x-forwarded-for")):
            return said.rpartition(",")[2].strip()[:64]
        return request.client.host if request.client else ""

    def visitor(self, request: Request) -> None:
        """Count a request that needs no token.

        Raises:
            Fault: Too many.
        """
        _limit(self._requests, f"address {self.address(request)}")

    def account(self, request: Request, steps: bool = False) -> str:
        """Whose request it is.

        Args:
            request: What came.
            steps: Whether it counts as a step of an episode.

        Raises:
            Fault: No valid token, or too many requests.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        account = account_of(self.settings, token.strip()) if scheme.lower() == "bearer" else None
        if account is None:
            self.visitor(request)
            raise Fault(
                401,
                "token",
                "no valid token came; expected the header 'Authorization: Bearer tg_…' with a "
                "token that the operator of this server gave you.",
            )
        _limit(self._steps if steps else self._requests, f"account {account}")
        return account


def _limit(rate: Rate, caller: str) -> None:
    if wait := rate.wait(caller):
        raise Fault(429, "rate", f"too many requests; ask again in {wait:.0f} seconds.", wait)


async def limited_body(request: Request, most: int) -> bytes:
    """The whole body.

    Raises:
        Fault: It is larger than ``most`` bytes.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise Fault(413, "size", f"the request has more than {most:,} bytes.")
    return bytes(body)


async def form_of(kind: type[F], request: Request, most: int) -> F:
    """The body as a form.

    Raises:
        Fault: It is too large, no JSON, or not of the form.
    """
    body = await limited_body(request, most)
    try:
        strict_json(body, "the request", ReadLimits())
        return parse_form(kind, body, "the request")
    except Refused as error:
        raise Fault(422, "format", error.refusal.message) from error
    except DataError as error:
        raise Fault(422, "format", str(error)) from error


Next = Callable[[Request], Awaitable[Response]]


async def with_headers(request: Request, call_next: Next) -> Response:
    """Every answer says what a browser may do with it."""
    response = await call_next(request)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    if not request.url.path.startswith(("/assets/", "/entries/")):
        response.headers.setdefault("Cache-Control", "no-store")
    return response
