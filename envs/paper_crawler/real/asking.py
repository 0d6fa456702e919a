"""One patient request to a service on the internet."""

from __future__ import annotations

import http.client
import math
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ...errors import BadValueError, EnvFault
from ...retriever_reply import shown

_AGAIN = (408, 429)
_LONGEST_WAIT_S = 30.0
_BLOCK = 1 << 16
_MOST_BYTES = 1 << 25
_AGENT = "turngym (https://pypi.org/project/turngym)"


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a key is for the address that was named, and for no other one."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002
        return None


_OPENER = urllib.request.build_opener(_Stay)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a service is waited for, and how often it is asked.

    Attributes:
        timeout_s: Seconds that one try may take, give or take one wait for the next bytes.
        attempts: Tries per request.
        wait_s: Seconds before the second try; every further wait is twice as long.
        pause_s: Seconds between the beginnings of two requests of this process.

    Raises:
        BadValueError: A value out of range.
    """

    timeout_s: float = 30.0
    attempts: int = 3
    wait_s: float = 1.0
    pause_s: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (("timeout_s", 0.001), ("wait_s", 0.0), ("pause_s", 0.0)):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and least <= value and math.isfinite(value)):
                raise BadValueError(
                    f"search_settings: {name} is {value!r}; expected at least {least:g} seconds."
                )
        tries = self.attempts
        if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
            raise BadValueError(
                f"search_settings: attempts is {tries!r}; expected an integer from 1."
            )


class Asker:
    """Asks one service: waits between requests, tries again, and hides its key in messages.

    No connection, no answer in time, 408, 429 and 5xx are tried again with doubling waits.

    Args:
        patience: How long and how often.
        secret: What no message may show; empty for nothing.
    """

    def __init__(self, patience: Patience, secret: str = "") -> None:
        self._patience, self._secret = patience, secret
        self._turn, self._next = threading.Lock(), 0.0

    def ask(self, url: str, body: bytes | None = None, headers: Mapping[str, str] = {}) -> bytes:
        """The body of the answer; POST where there is a body.

        Raises:
            EnvFault: No answer after all tries, or a request that the service refuses.
        """
        fault = ""
        for tried in range(self._patience.attempts):
            if tried:
                time.sleep(min(self._patience.wait_s * 2 ** (tried - 1), _LONGEST_WAIT_S))
            self._wait_for_turn()
            request = urllib.request.Request(url, body, {"User-Agent": _AGENT, **headers})
            try:
                return self._read(request)
            except urllib.error.HTTPError as error:
                fault = f"status {error.code}: {_said(error)}"
                if error.code < 500 and error.code not in _AGAIN:
                    raise self._fault(f"{address(url)} refused the request: {fault}") from None
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", None) or error
                timed = isinstance(reason, TimeoutError)
                waited = f"no answer within {self._patience.timeout_s:g} seconds"
                fault = waited if timed else str(reason) or type(reason).__name__
        tries = self._patience.attempts
        times = "1 attempt" if tries == 1 else f"{tries} attempts"
        raise self._fault(f"{address(url)} gave no answer after {times}: {fault}")

    def _read(self, request: urllib.request.Request) -> bytes:
        deadline = time.monotonic() + self._patience.timeout_s
        with _OPENER.open(request, timeout=self._patience.timeout_s) as response:
            said = bytearray()
            while block := response.read1(_BLOCK):
                said += block
                if len(said) > _MOST_BYTES:
                    raise OSError(f"the reply is larger than {_MOST_BYTES:,} bytes")
                if time.monotonic() > deadline:
                    raise TimeoutError
            if response.length:
                raise OSError(f"the reply broke off after {len(said):,} bytes")
            return bytes(said)

    def _wait_for_turn(self) -> None:
        """Take the next free moment; threads that wait get moments of their own."""
        with self._turn:
            moment = max(time.monotonic(), self._next)
            self._next = moment + self._patience.pause_s
        if (left := moment - time.monotonic()) > 0:
            time.sleep(left)

    def _fault(self, text: str) -> EnvFault:
        return EnvFault(text.replace(self._secret, "***") if self._secret else text)


def _said(error: urllib.error.HTTPError) -> str:
    """The beginning of what came with an error."""
    try:
        with error:
            return shown(error.read(_BLOCK)) or str(error.reason)
    except (OSError, http.client.HTTPException):
        return str(error.reason)


def address(url: str) -> str:
    """An address without its question, for messages."""
    return url.partition("?")[0]


def checked_url(url: Any, who: str) -> str:
    """The address of a service.

    Raises:
        BadValueError: It is none.
    """
    fault = BadValueError(
        f"{who}: url is {url!r}; expected an address as 'https://host/path', without user, query "
        "and fragment."
    )
    if not isinstance(url, str):
        raise fault
    try:
        split = urlsplit(url)
        fits = split.scheme in ("http", "https") and split.hostname and split.port != 0
    except ValueError:
        raise fault from None
    extra = split.query or split.fragment or "@" in split.netloc
    if not fits or extra or not url.isascii() or not url.isprintable() or " " in url:
        raise fault
    return url
