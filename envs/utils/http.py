"""One HTTP client for every server: time limits, retries, bounded replies, errors without keys."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from ipaddress import ip_address
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ..core.errors import BadValueError, EnvFault
from ..core.settings import check_integer, check_number

T = TypeVar("T")
MAX_PAUSE_S = 30.0
"""The longest pause before another attempt."""
_TOO_MANY_REQUESTS = 429
_EXCERPT_CHARS = 200
_USUAL_HEADERS = {
    "User-Agent": "turngym (https://pypi.org/project/turngym)",
    "Accept-Encoding": "identity",  # a compressed reply may be larger than it looks
    "Content-Type": "application/json",
}
_next_turns: dict[str, float] = {}
_next_turns_lock = threading.Lock()


class Reply(NamedTuple):
    """The result of one attempt.

    Attributes:
        problem: Why it is unusable; empty if it is usable.
        status: 0 without a complete reply.
        body: The bytes.
        after_s: The seconds of ``Retry-After``, from now on where it is a date; 0 where the server
            names none.
    """

    problem: str = ""
    status: int = 0
    body: bytes = b""
    after_s: float = 0.0


_NOTHING = Reply()


class HttpError(EnvFault):
    """A server that refused a request, or gave no usable answer in all attempts.

    The message names the address without its query; values of headers never show.

    Attributes:
        reply: Result of the last attempt.
        refused: Whether that was final, so that no further attempt was made.
    """

    def __init__(self, message: str, reply: Reply = _NOTHING, refused: bool = False) -> None:
        super().__init__(message)
        self.reply, self.refused = reply, refused


@dataclass(frozen=True, kw_only=True)
class HttpClient:
    """Sends JSON and returns replies; what may pass by itself is tried again.

    No connection, no answer in time, a reply that breaks off or cannot be read, a status of 5xx and
    those in ``retried_statuses`` are followed by another attempt after doubling pauses, or after
    the ``Retry-After`` that the server asks for, up to :data:`MAX_PAUSE_S`. Any other status
    but 2xx is final. Redirects are not followed: a key is for the address that was named. All
    clients of a process share connections, threads included; a fork opens its own.

    Attributes:
        owner: Whose settings these are, for messages.
        timeout_s: Seconds that one attempt may take, headers and interim answers included.
        attempts: Attempts per request.
        wait_s: Seconds before the second attempt; every further pause is twice as long.
        pause_s: Seconds between the beginnings of two requests of this process to one address.
        max_bytes: Most bytes of a reply.
        retried_statuses: Statuses below 500 that another attempt may change.
        busy_wait_s: Seconds for which a status 429 with ``Retry-After`` is waited for without
            counting as an attempt; 0 treats it as any other status.
        proxies: Whether the proxies of the environment are used; for this machine they never are.

    Raises:
        BadValueError: A value out of range.
    """

    owner: str
    timeout_s: float = 30.0
    attempts: int = 4
    wait_s: float = 0.5
    pause_s: float = 0.0
    max_bytes: int = 1 << 26
    retried_statuses: tuple[int, ...] = (408, 425, 429)
    busy_wait_s: float = 0.0
    proxies: bool = True

    def __post_init__(self) -> None:
        for name, least in (("timeout_s", 0.001), ("wait_s", 0.0), ("pause_s", 0.0)):
            check_number(name, getattr(self, name), self.owner, min=least)
        check_integer("attempts", self.attempts, self.owner, min=1)

    def send(
        self,
        url: str,
        body: Any = None,
        *,
        method: str = "",
        headers: Mapping[str, str] | None = None,
        read: Callable[[bytes], Any] = bytes,
        feed: Callable[[bytes], None] | None = None,
    ) -> Any:
        """Send a request and return what ``read`` takes out of the reply's body.

        Args:
            url: The whole address.
            body: Sent as JSON, bytes as they are; None for no body.
            method: ``POST`` where there is a body and ``GET`` where there is none, if left out.
            headers: What is sent beside the usual ones.
            read: ValueError, KeyError, IndexError and TypeError mean that the reply is unusable,
                which is tried again.
            feed: Is given a usable reply's body block by block as it arrives, in this thread;
                nothing is then kept of it for ``read``. ValueError as there.

        Raises:
            HttpError: The server refused the request, or gave no usable answer.
            BadValueError: A header holds what HTTP does not allow.
        """
        place = re.sub("//[^/]*@", "//", url.partition("?")[0])
        _check_headers(headers or {}, place)
        every = _USUAL_HEADERS | dict(headers or {})
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        method = method or ("GET" if body is None else "POST")
        made, busy_until = 0, time.monotonic() + self.busy_wait_s
        while True:
            self._wait_for_turn(place)
            reply = self._exchange(method, url, content, every, feed)
            if not reply.problem:
                try:
                    return read(reply.body)
                except (ValueError, KeyError, IndexError, TypeError) as fault:
                    reason = _excerpt_text(str(fault), every)
                    why = f"a reply that cannot be read ({type(fault).__name__}: {reason})"
                    said = _hide(reply.body, every)
                    reply = Reply(f"{why}: {excerpt(said)}", reply.status, said)
            busy = reply.status == _TOO_MANY_REQUESTS and reply.after_s > 0
            if busy and time.monotonic() + reply.after_s <= busy_until:
                time.sleep(reply.after_s)
                continue
            made += 1
            self._check_hope(place, reply, made)
            time.sleep(min(max(self.wait_s * 2 ** (made - 1), reply.after_s), MAX_PAUSE_S))

    def _exchange(
        self,
        method: str,
        url: str,
        content: bytes | None,
        headers: Mapping[str, str],
        feed: Callable[[bytes], None] | None = None,
    ) -> Reply:
        """Return the reply of one attempt; one that is no use has a problem."""
        import httpx

        from .deadlines import deadline

        connections = _connections(not self.proxies or _is_loopback(url))
        sent: dict[str, Any] = {"content": content, "headers": headers, "timeout": self.timeout_s}
        body, size, end = bytearray(), 0, time.monotonic() + self.timeout_s
        try:
            with deadline(end), connections.stream(method, url, **sent) as response:
                for block in response.iter_raw():
                    size += len(block)
                    if size > self.max_bytes:
                        raise OSError(f"the reply is larger than {self.max_bytes:,} bytes")
                    if time.monotonic() > end:
                        raise TimeoutError
                    if feed is not None and response.is_success:
                        _feed(feed, block, headers)
                    else:
                        body += block
        except (TimeoutError, httpx.TimeoutException):
            return Reply(problem=f"no answer within {self.timeout_s:g} seconds")
        except httpx.RemoteProtocolError as fault:
            return Reply(problem=f"the connection broke off ({_excerpt_text(str(fault), headers)})")
        except _Unreadable as fault:
            return Reply(problem=str(fault))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as fault:
            why = _excerpt_text(str(fault), headers)
            return Reply(problem=f"{type(fault).__name__}: {why}".rstrip(": "))
        if response.is_success:
            return Reply("", response.status_code, bytes(body))
        said = _hide(bytes(body), headers)
        why = excerpt(said) or _excerpt_text(response.reason_phrase, headers)
        problem = f"status {response.status_code}: {why}"
        after_s = _seconds_until(response.headers.get("Retry-After", ""))
        return Reply(problem, response.status_code, said, after_s)

    def _check_hope(self, place: str, reply: Reply, made: int) -> None:
        """Give up on a request that is refused, or has used its attempts.

        Raises:
            HttpError: It has.
        """
        if 300 <= reply.status < 500 and reply.status not in self.retried_statuses:
            why = f"refused the request: {reply.problem}. Check the address, the key and the text."
            raise HttpError(f"{place} {why}", reply, refused=True)
        if made >= self.attempts:
            times = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
            why = f"gave no answer after {times}: {reply.problem}. Check that the server runs."
            raise HttpError(f"{place} {why}", reply)

    def _wait_for_turn(self, place: str) -> None:
        """Take the next free moment; threads that wait get moments of their own."""
        if not self.pause_s:
            return
        with _next_turns_lock:
            moment = max(time.monotonic(), _next_turns.get(place, 0.0))
            _next_turns[place] = moment + self.pause_s
        if (left := moment - time.monotonic()) > 0:
            time.sleep(left)


async def wait_in_thread(work: Callable[[], T]) -> T:
    """Wait for work of :func:`start_in_thread`, so that any number of requests wait together.

    The thread is not waited for by a task that is cancelled either.
    """
    return await asyncio.wrap_future(start_in_thread(work))


def start_in_thread(work: Callable[[], T]) -> Future[T]:
    """Start work in a thread of its own, which the end of the process does not wait for."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def check_url(url: Any, name: str) -> str:
    """Return the address of a server, which ``name`` calls in the message.

    Raises:
        BadValueError: It is none, or has a user, query or fragment.
    """
    try:
        split = urlsplit(url)
        known = split.scheme in ("http", "https") and split.hostname and split.port != 0
        extra = split.query or split.fragment or "@" in split.netloc
        fits = known and not extra and url.isascii() and url.isprintable() and " " not in url
    except (ValueError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise BadValueError(
            f"{name} is {url!r}; expected an address such as 'http://localhost:8000', without "
            "user, query and fragment."
        )
    return url


def bearer_headers(key_variable: str) -> dict[str, str]:
    """Return the header with the key that an environment variable holds; none where it is unset."""
    key = os.environ.get(key_variable, "") if key_variable else ""
    return {"Authorization": f"Bearer {key}"} if key else {}


def parse_json(body: bytes) -> Any:
    """Return the JSON in a body.

    Raises:
        ValueError: It is none, or nested too deeply.
    """
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def excerpt(what: Any) -> str:
    """Return the beginning of bytes or of JSON on one line, for messages."""
    text = what.decode("utf-8", "replace") if isinstance(what, bytes) else json.dumps(what)
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS] + "…"


class _Unreadable(Exception):
    """A block of a reply that is no use."""


def _feed(feed: Callable[[bytes], None], block: bytes, headers: Mapping[str, str]) -> None:
    try:
        feed(block)
    except (ValueError, KeyError, IndexError, TypeError) as fault:
        reason = _excerpt_text(str(fault), headers)
        raise _Unreadable(
            f"a reply that cannot be read ({type(fault).__name__}: {reason})"
        ) from None


def _check_headers(headers: Mapping[str, str], place: str) -> None:
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise BadValueError(
                f"{place}: the header {name} holds characters that HTTP does not allow, such as "
                "line breaks; check where its value is set."
            )


def _hide(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return the body with stars for the values of headers that are not the usual ones."""
    for name, value in headers.items():
        if name not in _USUAL_HEADERS and (key := value.removeprefix("Bearer ")):
            body = body.replace(key.encode(), b"***")
    return body


def _excerpt_text(text: str, headers: Mapping[str, str]) -> str:
    """Return the beginning of a text that a server may have written, its echo of keys hidden."""
    return excerpt(_hide(text.encode("utf-8", "replace"), headers))


def _seconds_until(moment: str) -> float:
    """Return the seconds that a ``Retry-After`` asks for: a number of them, or HTTP's date."""
    if moment.replace(".", "", 1).isdecimal():
        return float(moment)
    try:
        date = parsedate_to_datetime(moment)
    except (ValueError, OverflowError):
        return 0.0
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)  # "-0000" gives a naive one, in UTC
    return max((aware - datetime.now(UTC)).total_seconds(), 0.0)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@cache
def _connections(direct: bool) -> Any:
    """Return the process's open connections, with the proxies of the environment or without."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    from .deadlines import TimedBackend

    certificates = httpx.create_ssl_context()
    certificates.load_default_certs()  # the system's, beside httpx's own
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))  # users share connections alone
    made = httpx.Client(
        trust_env=not direct, limits=limits, verify=certificates, cookies=no_cookies
    )
    for transport in (made._transport, *made._mounts.values()):
        pool: Any = getattr(transport, "_pool", None)  # None: an address without a proxy
        if pool is not None:  # httpx has no argument for it
            pool._network_backend = TimedBackend(pool._network_backend)
    return made


os.register_at_fork(after_in_child=_connections.cache_clear)
