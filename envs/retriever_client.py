"""A retriever behind HTTP: the client of servers that speak Search-R1's ``/retrieve``."""

from __future__ import annotations

import http.client
import json
import math
import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from .errors import BadValueError, DataError, TurngymError
from .retrieval import Hit, words
from .retriever_cache import FoundCache
from .retriever_reply import EXPECTED, read_reply, shown
from .settings import check_settings

_ROUTE = "/retrieve"
_AGAIN = (408, 429)
_NO_RETRIEVER = (401, 403, 404, 405)
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0
_HEALTH_S = 2.0
_BLOCK = 1 << 16
_MOST_BYTES = 1 << 28
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


class RetrieverError(TurngymError, OSError):
    """A retrieval server that gave no answer; breaks the episodes that asked, and nothing else."""


class _Links:
    """Open connections that nobody uses; a fork starts with none."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._free: deque[http.client.HTTPConnection] = deque()
        self.identity: str | None = None

    def take(self) -> http.client.HTTPConnection | None:
        if self._owner != os.getpid():
            self._owner, self._free = os.getpid(), deque()
        try:
            return self._free.pop()
        except IndexError:
            return None

    def give(self, link: http.client.HTTPConnection) -> None:
        self._free.append(link)


@dataclass(frozen=True)
class HttpRetriever:
    """Asks a server for passages; one request per batch of queries, over kept connections.

    Reads what Search-R1's servers answer: passages as ``{"id", "contents"}``, with or without
    title, text, id and score, or as plain text. The title is the first line of the contents. A
    passage without ``id`` is called by a digest of its contents. No connection, no answer in time,
    429 and 5xx are tried again with doubling waits. Safe to share between threads; forks and
    pickles go on with connections of their own.

    Attributes:
        url: Address of the server, as ``http://localhost:8000``; ``/retrieve`` is added to an
            address that does not end in it.
        timeout_s: Seconds that one try may take.
        attempts: Tries per request.
        wait_s: Seconds before the second try; every further wait is twice as long.
        cache: Folder where passages are remembered; None for no memory. They are kept by the
            index that the server's ``/health`` names, or by the address where it names none: then
            remove the folder when the server's passages change. Queries without passages are
            asked again.

    Raises:
        BadValueError: A value out of range.
    """

    blocking: ClassVar[bool] = True
    """A search waits for another machine."""

    url: str
    timeout_s: float = 30.0
    attempts: int = 4
    wait_s: float = _FIRST_WAIT_S
    cache: str | None = None
    _links: _Links = field(default_factory=_Links, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", _whole(self.url))
        _check_seconds("timeout_s", self.timeout_s, 0.001)
        _check_seconds("wait_s", self.wait_s, 0.0)
        if (
            isinstance(self.attempts, bool)
            or not isinstance(self.attempts, int)
            or self.attempts < 1
        ):
            raise BadValueError(
                f"HttpRetriever: attempts is {self.attempts!r}; expected an integer from 1."
            )
        if self.cache is not None:
            if not isinstance(self.cache, (str, os.PathLike)) or not str(self.cache):
                raise BadValueError(
                    f"HttpRetriever: cache is {self.cache!r}; expected a folder, or None."
                )
            object.__setattr__(self, "cache", os.fspath(self.cache))

    def __deepcopy__(self, memo: Mapping[int, Any]) -> HttpRetriever:
        return self

    def __reduce__(self) -> Any:
        return HttpRetriever, (self.url, self.timeout_s, self.attempts, self.wait_s, self.cache)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most ``k`` hits for each query, in the server's order.

        Raises:
            RetrieverError: No answer after all attempts, or a request that the server refuses.
            DataError: The address is no retrieval server: it lacks the route, or answers
                something else.
            BadValueError: ``k`` is below 1.
        """
        if k < 1:
            raise BadValueError(f"HttpRetriever.search: k is {k}; expected at least 1.")
        asked = [query.encode("utf-8", "replace").decode() for query in queries]
        wanted = [query for query in dict.fromkeys(asked) if words(query)]
        found = self._remembered(wanted, k) if wanted else {}
        return [list(found.get(query, ())) for query in asked]

    def _remembered(self, queries: Sequence[str], k: int) -> dict[str, list[Hit]]:
        if self.cache is None:
            return self._found(queries, k)
        cache = FoundCache(self.cache)
        identity = self._identity(cache)
        known = cache.read(identity, queries, k)
        if missing := [query for query in queries if query not in known]:
            fresh = self._found(missing, k)
            cache.keep(identity, fresh, k)
            known |= fresh
        return known

    def _found(self, queries: Sequence[str], k: int) -> dict[str, list[Hit]]:
        asked = {"queries": list(queries), "topk": k, "return_scores": True}
        reply = self._patiently(json.dumps(asked).encode())
        return dict(zip(queries, read_reply(reply, len(queries), k, self.url), strict=True))

    def _patiently(self, body: bytes) -> Any:
        """The reply's JSON."""
        fault = ""
        for tried in range(self.attempts):
            if tried:
                time.sleep(min(self.wait_s * 2 ** (tried - 1), _LONGEST_WAIT_S))
            try:
                status, said = self._asked("POST", self.url, body, self.timeout_s)
            except TimeoutError:
                fault = f"no answer within {self.timeout_s:g} seconds"
                continue
            except (OSError, http.client.HTTPException) as broken:
                fault = str(broken) or type(broken).__name__
                continue
            if status == http.client.OK:
                return self._parsed(said)
            fault = f"status {status}: {shown(said)}"
            if status in _NO_RETRIEVER or 300 <= status < 400:
                raise DataError(
                    f"{self.url}: {fault}. Is this a retrieval server? Expected one that answers "
                    f"POST {_ROUTE}."
                )
            if status < 500 and status not in _AGAIN:
                raise RetrieverError(f"{self.url} refused the request: {fault}")
        times = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        raise RetrieverError(f"{self.url} gave no answer after {times}: {fault}")

    def _parsed(self, said: bytes) -> Any:
        try:
            return json.loads(said)
        except (ValueError, RecursionError):
            raise DataError(
                f"{self.url}: the reply is no JSON: {shown(said)}; {EXPECTED}."
            ) from None

    def _asked(self, method: str, url: str, body: bytes | None, wait: float) -> tuple[int, bytes]:
        """Status and body; a kept connection that the server has closed is replaced at once."""
        deadline = time.monotonic() + wait
        if (link := self._links.take()) is not None:
            try:
                return self._exchanged(link, method, url, body, deadline)
            except (ConnectionError, http.client.BadStatusLine, http.client.CannotSendRequest):
                pass
        split = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if split.scheme == "https" else http.client.HTTPConnection
        )
        fresh = kind(split.hostname or "", split.port)
        return self._exchanged(fresh, method, url, body, deadline)

    def _exchanged(
        self,
        link: http.client.HTTPConnection,
        method: str,
        url: str,
        body: bytes | None,
        deadline: float,
    ) -> tuple[int, bytes]:
        try:
            if link.sock is None:
                link.timeout = _left(deadline)
                link.connect()
            wire: Any = link.sock  # kept here: the response of a server that closes takes it along
            wire.settimeout(_left(deadline))
            link.request(method, urlsplit(url).path, body, _HEADERS)
            wire.settimeout(_left(deadline))
            response = link.getresponse()
            said = bytearray()
            while block := response.read1(_BLOCK):
                said += block
                if len(said) > _MOST_BYTES:
                    raise OSError(f"the reply is larger than {_MOST_BYTES:,} bytes")
                wire.settimeout(_left(deadline))
            if response.length:
                raise OSError(f"the reply broke off after {len(said):,} bytes")
            response.close()
        except BaseException:
            link.close()
            raise
        if link.sock is not None:
            self._links.give(link)
        return response.status, bytes(said)

    def _identity(self, cache: FoundCache) -> str:
        """The index that the server searches, asked once per process; else its address."""
        if self._links.identity is not None:
            return self._links.identity
        health = f"{self.url.removesuffix(_ROUTE)}/health"
        try:
            status, said = self._asked("GET", health, None, min(self.timeout_s, _HEALTH_S))
        except (OSError, http.client.HTTPException):  # it may be back later, or never be needed
            return cache.identity(self.url) or self.url
        identity = _index_in(said) if status == http.client.OK else None
        if identity is None:
            identity = self.url
        cache.keep_identity(self.url, identity)
        self._links.identity = identity
        return identity


def as_retriever(given: Any, settings: Mapping[str, Any] | None = None) -> Any:
    """A retriever as a setting of an environment: an address becomes its client.

    Args:
        given: A retriever, the address of a server, or None.
        settings: Settings of the client, ``{"timeout_s": 5}``.

    Raises:
        UnknownNameError: A setting that the client does not have.
        BadValueError: Settings without an address, or a value out of range.
    """
    if isinstance(given, str):
        if settings is not None and not isinstance(settings, Mapping):
            raise BadValueError(
                f"retriever_settings is {settings!r}; expected settings of the client: "
                "{'timeout_s': 5}."
            )
        check_settings(HttpRetriever, settings or {})
        if "url" in (settings or {}):
            raise BadValueError("retriever_settings: url is what retriever is; leave it out.")
        return HttpRetriever(given, **(settings or {}))
    if settings is not None:
        came = "missing" if given is None else f"a {type(given).__name__}"
        raise BadValueError(
            f"retriever_settings={settings!r} belong to a server, but retriever is {came}; "
            "expected its address, as in retriever='http://localhost:8000'."
        )
    if given is not None and not callable(getattr(given, "search", None)):
        raise BadValueError(
            f"retriever is {given!r}; expected the address of a server, as in "
            "'http://localhost:8000', or an object with a method search(queries, k)."
        )
    return given


def _whole(url: Any) -> str:
    """The address with its route.

    Raises:
        BadValueError: It is no address of a server.
    """
    fault = BadValueError(
        f"HttpRetriever: the address is {url!r}; expected one such as 'http://localhost:8000', "
        "without user, query and fragment."
    )
    try:
        split = urlsplit(url)
        known = split.scheme in ("http", "https") and split.hostname and split.port != 0
    except (ValueError, TypeError, AttributeError):
        raise fault from None
    extra = split.query or split.fragment or "@" in split.netloc
    if not known or extra or not url.isprintable() or not url.isascii() or " " in url:
        raise fault
    base = url.rstrip("/")
    return base if base.endswith(_ROUTE) else base + _ROUTE


def _check_seconds(name: str, value: Any, least: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (number and least <= value and math.isfinite(value)):
        raise BadValueError(
            f"HttpRetriever: {name} is {value!r}; expected at least {least:g} seconds."
        )


def _left(deadline: float) -> float:
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left


def _index_in(said: bytes) -> str | None:
    try:
        health = json.loads(said)
    except (ValueError, RecursionError):
        return None
    index = health.get("index") if isinstance(health, dict) else None
    return index if isinstance(index, str) and index else None
