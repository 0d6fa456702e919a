"""A retriever behind HTTP: the client of servers that speak Search-R1's ``/retrieve``."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ...core.errors import BadValueError, DataError, TurngymError
from ...core.fork import Shared
from ...core.settings import check_integer, check_settings
from ...utils.http import HttpClient, HttpError, bearer_headers, check_url, excerpt, parse_json
from .base import Hit, words
from .http_cache import FoundCache

_ROUTE = "/retrieve"
_UNAUTHORISED = 401
_NO_RETRIEVER = (403, 404, 405)
_HEALTH_S = 2.0
_MAX_BYTES = 1 << 28
_EXPECTED = (
    'expected {"result": [[{"document": {"id", "contents"}, "score"}, …], …]}, one list per query'
)


class RetrieverError(TurngymError, OSError):
    """A retrieval server did not answer; only the episodes that asked end with a fault."""


@dataclass(frozen=True)
class HttpRetriever(Shared):
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
        token_variable: Environment variable with the server's token, which every request sends;
            where it is empty or not set none is sent.

    Raises:
        BadValueError: A value out of range.
    """

    blocking: ClassVar[bool] = True
    """A search waits for another machine."""

    url: str
    timeout_s: float = 30.0
    attempts: int = 4
    wait_s: float = 0.5
    cache: str | None = None
    token_variable: str = ""
    _client: HttpClient = field(init=False, repr=False, compare=False)
    _health: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        base = check_url(self.url, "HttpRetriever: the address").rstrip("/")
        object.__setattr__(self, "url", base.removesuffix(_ROUTE) + _ROUTE)
        client = HttpClient(
            owner="HttpRetriever",
            timeout_s=self.timeout_s,
            attempts=self.attempts,
            wait_s=self.wait_s,
            max_bytes=_MAX_BYTES,
            proxies=False,
        )
        object.__setattr__(self, "_client", client)
        if self.cache is not None:
            if not isinstance(self.cache, (str, os.PathLike)) or not str(self.cache):
                raise BadValueError(
                    f"HttpRetriever: cache is {self.cache!r}; expected a folder, or None."
                )
            object.__setattr__(self, "cache", os.fspath(self.cache))
        if not isinstance(self.token_variable, str):
            raise BadValueError(
                f"HttpRetriever: token_variable is {self.token_variable!r}; expected the name of "
                "an environment variable, or '' for no token."
            )

    def __reduce__(self) -> Any:
        tries = self.timeout_s, self.attempts, self.wait_s
        return HttpRetriever, (self.url, *tries, self.cache, self.token_variable)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most ``k`` hits for each query, in the server's order.

        Raises:
            RetrieverError: No answer after all attempts, or a request that the server refuses.
            DataError: The address is no retrieval server: it lacks the route, or answers
                something else.
            BadValueError: ``k`` is below 1.
        """
        check_integer("k", k, "HttpRetriever.search", min=1)
        asked = [query.encode("utf-8", "replace").decode() for query in queries]
        wanted = [query for query in dict.fromkeys(asked) if words(query)]
        found = self._recall(wanted, k) if wanted else {}
        return [list(found.get(query, ())) for query in asked]

    def _recall(self, queries: Sequence[str], k: int) -> dict[str, list[Hit]]:
        if self.cache is None:
            return self._fetch(queries, k)
        cache = FoundCache(self.cache)
        identity = self._find_identity(cache)
        known = cache.read(identity, queries, k)
        if missing := [query for query in queries if query not in known]:
            fresh = self._fetch(missing, k)
            index = self._ask_identity() if identity != self.url else None
            if index == self.url:  # it names none any more, so whose these are nobody knows
                return known | fresh
            if index not in (None, identity):  # and nobody knows which one answered
                fresh = self._fetch(queries, k)
                identity = self._note_identity(cache, str(index))
            cache.keep(identity, fresh, k)
            known |= fresh
        return known

    def _fetch(self, queries: Sequence[str], k: int) -> dict[str, list[Hit]]:
        asked = {"queries": list(queries), "topk": k, "return_scores": True}
        try:
            body = self._client.send(self.url, asked, headers=bearer_headers(self.token_variable))
        except HttpError as error:
            status = error.reply.status
            if status == _UNAUTHORISED:
                raise DataError(
                    f"{self.url}: {error.reply.problem}. Set the token in an environment variable, "
                    "and name that as token_variable in the retriever's settings."
                ) from None
            if error.refused and (status in _NO_RETRIEVER or status < 400):
                raise DataError(
                    f"{self.url}: {error.reply.problem}. Is this a retrieval server? Expected one "
                    f"that answers POST {_ROUTE}."
                ) from None
            raise RetrieverError(str(error)) from None
        try:
            reply = parse_json(body)
        except ValueError:
            raise DataError(
                f"{self.url}: the reply is no JSON: {excerpt(body)}; {_EXPECTED}."
            ) from None
        return dict(zip(queries, _read_hits(reply, len(queries), k, self.url), strict=True))

    def _find_identity(self, cache: FoundCache) -> str:
        """Return the index that the server searches, asked once per process; else its address."""
        if self._health:
            return self._health["index"]
        identity = self._ask_identity()
        if identity is None:  # it may be back later, or never be needed
            return cache.identity(self.url) or self.url
        return self._note_identity(cache, identity)

    def _note_identity(self, cache: FoundCache, identity: str) -> str:
        cache.keep_identity(self.url, identity)
        self._health["index"] = identity
        return identity

    def _ask_identity(self) -> str | None:
        """Return the index that the server names, or its address; None where nobody answers."""
        health = replace(self._client, attempts=1, timeout_s=min(self.timeout_s, _HEALTH_S))
        try:
            return health.send(
                f"{self.url.removesuffix(_ROUTE)}/health",
                headers=bearer_headers(self.token_variable),
                read=_read_index,
            )
        except HttpError as error:
            return self.url if error.reply.status else None


def as_retriever(given: Any, settings: Mapping[str, Any] | None = None) -> Any:
    """Return the retriever that a setting means: an address becomes its client.

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
    if isinstance(given, type) or (
        given is not None and not callable(getattr(given, "search", None))
    ):
        raise BadValueError(
            f"retriever is {given!r}; expected the address of a server, as in "
            "'http://localhost:8000', or an object with a method search(queries, k)."
        )
    return given


def _read_index(body: bytes) -> str:
    index = parse_json(body)["index"]
    if not isinstance(index, str) or not index:
        raise ValueError("it names no index")
    return index


def _read_hits(reply: Any, asked: int, k: int, url: str) -> list[list[Hit]]:
    """Return the hits in the JSON of a reply.

    Args:
        reply: The JSON.
        asked: How many queries were asked.
        k: Most hits per query; more are dropped.
        url: Who replied, for messages.

    Raises:
        DataError: It has another shape.
    """
    result = reply.get("result") if isinstance(reply, dict) else None
    if not isinstance(result, list):
        raise DataError(f"{url}: the reply is {excerpt(reply)}; {_EXPECTED}.")
    if len(result) != asked:
        raise DataError(
            f"{url}: the reply holds {len(result)} lists for {asked} queries; {_EXPECTED}."
        )
    found: list[list[Hit]] = []
    for q, rows in enumerate(result):
        if not isinstance(rows, list):
            raise DataError(f"{url}: result[{q}] of the reply is {excerpt(rows)}; {_EXPECTED}.")
        found.append([_read_hit(row, f"{url}: result[{q}][{d}]") for d, row in enumerate(rows[:k])])
    return found


def _read_hit(row: Any, where: str) -> Hit:
    document = row.get("document", row) if isinstance(row, dict) else row
    contents = _read_contents(document)
    if contents is None:
        raise DataError(f"{where} of the reply is {excerpt(row)}; {_EXPECTED}.")
    contents = contents.encode("utf-8", "replace").decode()
    score = _read_score(row.get("score") if isinstance(row, dict) else None)
    if score is None:
        raise DataError(f"{where} of the reply is {excerpt(row)}; expected a number as score.")
    named = document.get("id") if isinstance(document, dict) else None
    if named is None or named == "":
        named = hashlib.blake2b(contents.encode(), digest_size=8).hexdigest()
    title, _, text = contents.partition("\n")
    named = str(named).encode("utf-8", "replace").decode()
    return Hit(named, title.strip(), text, score)


def _read_contents(document: Any) -> str | None:
    if isinstance(document, str):
        return document
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("contents"), str):
        return document["contents"]
    title, text = document.get("title"), document.get("text")
    if isinstance(text, str) and (title is None or isinstance(title, str)):
        return f"{title or ''}\n{text}"
    return None


def _read_score(given: Any) -> float | None:
    """Return the score, 0 where the server gives none; None for something else than a number."""
    if given is None:
        return 0.0
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    try:
        score = float(given)
    except OverflowError:  # an integer of hundreds of digits
        return None
    return score if math.isfinite(score) else None
