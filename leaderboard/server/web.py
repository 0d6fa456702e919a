"""Shared by all routes: authentication, rate limits, body limits and error responses."""

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
from ..schema.untrusted_json import parse_untrusted_json
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
    """An error response.

    Args:
        status: HTTP status.
        kind: Machine-readable error name.
        message: Description of the error and its remedy.
        retry_s: Seconds after which the client may retry.
    """

    def __init__(self, status: int, kind: str, message: str, retry_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.retry_s = status, kind, message, retry_s

    def response(self) -> JSONResponse:
        """Return the HTTP response."""
        headers = {} if self.retry_s is None else {"Retry-After": str(math.ceil(self.retry_s))}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        error = {"error": {"kind": self.kind, "message": self.message}}
        return JSONResponse(error, self.status, headers)


class RateLimiter:
    """Limits the requests per minute of each caller: a token bucket.

    Args:
        per_minute: Allowed requests per minute.
        clock: Returns the time in seconds.
        callers: Maximum number of remembered callers; the longest inactive ones are dropped.
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
        """Count one request; return 0 if it is allowed, else the seconds to wait."""
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
    """Authenticates callers by token and limits their rates.

    Attributes:
        settings: Settings of the server.
    """

    settings: ServerSettings
    _requests: RateLimiter = field(init=False)
    _steps: RateLimiter = field(init=False)

    def __post_init__(self) -> None:
        self._requests = RateLimiter(self.settings.requests_per_minute)
        self._steps = RateLimiter(self.settings.steps_per_minute)

    def address(self, request: Request) -> str:
        """Return the address that a request comes from."""
        if self.settings.trust_proxy and (forwarded := request.headers.get("x-forwarded-for")):
            return forwarded.rpartition(",")[2].strip()[:64]
        return request.client.host if request.client else ""

    def limit_visitor(self, request: Request) -> None:
        """Count a request that needs no token.

        Raises:
            Fault: Too many requests.
        """
        _limit(self._requests, f"address {self.address(request)}")

    def authenticate(self, request: Request, steps: bool = False) -> str:
        """Return the account of a request.

        Args:
            request: The request.
            steps: Whether the request is a step of an episode.

        Raises:
            Fault: No valid token, or too many requests.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        account = account_of(self.settings, token.strip()) if scheme.lower() == "bearer" else None
        if account is None:
            self.limit_visitor(request)
            raise Fault(
                401,
                "token",
                "the token is missing or invalid; send a header 'Authorization: Bearer tg_…' with "
                "a token from the operator of this server.",
            )
        _limit(self._steps if steps else self._requests, f"account {account}")
        return account


def _limit(rate: RateLimiter, caller: str) -> None:
    if wait := rate.wait(caller):
        raise Fault(429, "rate", f"too many requests; retry in {wait:.0f} seconds.", wait)


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Read the request's body.

    Raises:
        Fault: It is larger than ``max_bytes``.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise Fault(413, "size", f"the request has more than {max_bytes:,} bytes.")
    return bytes(body)


async def parse_body(kind: type[F], request: Request, max_bytes: int) -> F:
    """Parse the request's body as a record.

    Raises:
        Fault: It is too large, not JSON, or does not match the schema.
    """
    body = await read_body(request, max_bytes)
    try:
        parse_untrusted_json(body, "the request", ReadLimits())
        return parse_form(kind, body, "the request")
    except Refused as error:
        raise Fault(422, "format", error.refusal.message) from error
    except DataError as error:
        raise Fault(422, "format", str(error)) from error


Next = Callable[[Request], Awaitable[Response]]


async def add_headers(request: Request, call_next: Next) -> Response:
    """Add the security headers to every response."""
    return set_headers(await call_next(request), request.url.path)


def set_headers(response: Response, path: str) -> Response:
    """Set the security headers of a response to a path, and return it."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    if not path.startswith(("/assets/", "/entries/")):
        response.headers.setdefault("Cache-Control", "no-store")
    return response
