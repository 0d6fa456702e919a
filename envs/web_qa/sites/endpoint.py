"""The web by a search endpoint that speaks SearXNG's JSON; its pages are fetched over HTTP."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from ...core.errors import BadValueError, EnvFault
from ...core.fork import Shared
from ...tools.retrieval.base import Hit
from .fetch import Fetched, Fetcher, Unreachable
from .html_text import decode, make_encodable, make_web_join, read_html, read_plain
from .pages import MAX_TITLE, NoPage, Page, clip, escape_tags
from .rules import BadAddress, Rules, Target, read_address

_TRIES = 3
_FIRST_WAIT_S = 0.5
_PARALLEL = 8
_CACHE_SIZE = 512
"""Searches and pages that are remembered: a further part of a page comes from the same page."""
_MAX_ADDRESS = 1000
_MAX_ENDPOINT = 500
_MAX_QUERY = 256
_MAX_REASON = 500
_COMMANDS = re.compile(r"(?<!\S)[!:]+")
"""Signs before a word that SearXNG takes for orders, such as leaving for another engine."""
T = TypeVar("T")


class _Cache(Generic[T]):
    """The last answers, by question; safe to share between threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: object) -> T | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: object, value: T) -> None:
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > _CACHE_SIZE:
                self._kept.popitem(last=False)


@dataclass(frozen=True, kw_only=True)
class EndpointSite(Shared):
    """Searches by an endpoint, opens what the rules allow.

    The endpoint itself is the caller's choice and may be anywhere; pages keep the rules. What does
    not answer is asked three times. An endpoint that then still fails breaks the episode; a page
    that cannot be had is an ordinary observation, unless it lies on the endpoint's own host.
    Searches and pages are remembered as long as the process lives, so that a group of episodes
    sees one web. Of a query the signs that SearXNG takes for orders (``!`` and ``:`` before a word)
    and what follows its 256th character are not sent; results without an address that could be
    visited are left out.

    Attributes:
        search_url: Address of the endpoint; the query is added to it.
        pages: Gets pages.
        snippet_chars: Most characters of a snippet.
        wait_s: Seconds before the second try; the third waits twice as long.

    Raises:
        BadValueError: ``search_url`` is no web address.
    """

    search_url: str
    pages: Fetcher
    snippet_chars: int
    wait_s: float = _FIRST_WAIT_S
    _found: _Cache[list[Hit]] = field(default_factory=_Cache, repr=False, compare=False)
    _opened: _Cache[Page | NoPage] = field(default_factory=_Cache, repr=False, compare=False)

    def __post_init__(self) -> None:
        _ = self._endpoint

    def __reduce__(self) -> Any:
        return _make_endpoint_site, (self.search_url, self.pages, self.snippet_chars, self.wait_s)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit] | EnvFault]:
        """What the endpoint finds, in its order."""
        return _ask_in_parallel(lambda query: self._search(query, k), queries)

    def open(self, addresses: Sequence[str]) -> list[Page | NoPage | EnvFault]:
        """The pages, fetched side by side."""
        return _ask_in_parallel(self._open, addresses)

    @property
    def _endpoint(self) -> Target:
        try:
            if not isinstance(self.search_url, str):
                raise BadAddress("It is no text.")
            if len(self.search_url) > _MAX_ENDPOINT:
                raise BadAddress(f"It has more than {_MAX_ENDPOINT} characters.")
            return read_address(self.search_url)
        except BadAddress as fault:
            raise BadValueError(
                f"WebQA: search_url is {self.search_url!r}; expected an address such as "
                f"'http://localhost:8888/search'. {fault}"
            ) from None

    def _search(self, query: str, k: int) -> list[Hit] | EnvFault:
        query = _COMMANDS.sub("", query)[:_MAX_QUERY].strip()
        if not query:
            return []
        if (known := self._found.get((query, k))) is not None:
            return known
        target = self._endpoint
        host = f"[{target.host}]" if ":" in target.host else target.host
        # Redirects of the endpoint stay on its own host and port, wherever that is.
        ask = replace(self.pages, rules=Rules(allow=(f"{host}:{target.port}",), allow_private=True))
        mark = "&" if "?" in target.address else "?"
        address = f"{target.address}{mark}{urlencode({'q': query, 'format': 'json'})}"
        try:
            rows = _parse_rows(self._retry(lambda: ask(address)))
        except (BadAddress, Unreachable) as fault:
            return EnvFault(f"the search endpoint {self.search_url} failed: {fault}")
        hits = [hit for row in rows if (hit := _parse_hit(row, self.snippet_chars)) is not None]
        self._found.keep((query, k), hits[:k])
        return hits[:k]

    def _open(self, address: str) -> Page | NoPage | EnvFault:
        if (known := self._opened.get(address)) is not None:
            return known
        try:
            page: Page | NoPage = _make_page(self._retry(lambda: self.pages(address)))
        except BadAddress as fault:
            page = NoPage(_describe_fault(fault))
        except Unreachable as fault:
            target, home = read_address(address), self._endpoint
            if (target.host, target.port) == (home.host, home.port):
                return EnvFault(f"the site {self.search_url} failed: {fault}")
            return NoPage(f"The page cannot be reached now ({_describe_fault(fault)}).")
        self._opened.keep(address, page)
        return page

    def _retry(self, ask: Callable[[], Fetched]) -> Fetched:
        for tried in range(1, _TRIES):
            try:
                return ask()
            except Unreachable:
                time.sleep(self.wait_s * 2 ** (tried - 1))
        return ask()


def _make_endpoint_site(
    search_url: str, pages: Fetcher, snippet_chars: int, wait_s: float
) -> EndpointSite:
    return EndpointSite(
        search_url=search_url, pages=pages, snippet_chars=snippet_chars, wait_s=wait_s
    )


def _ask_in_parallel(ask: Callable[[str], T], requests: Sequence[str]) -> list[T]:
    if len(requests) < 2:
        return [ask(request) for request in requests]
    with ThreadPoolExecutor(min(_PARALLEL, len(requests))) as pool:
        return list(pool.map(ask, requests))


def _parse_rows(fetched: Fetched) -> list[Any]:
    """The result rows of an answer.

    Raises:
        Unread: It is not what such an endpoint answers.
    """
    try:
        answer = json.loads(fetched.body)
    except (ValueError, RecursionError):
        raise BadAddress(
            f"it answered {fetched.kind} that is no JSON; is its format json switched on?"
        ) from None
    rows = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise BadAddress('it answered JSON without "results"; expected a list of results.')
    return rows


def _parse_hit(row: Any, snippet_chars: int) -> Hit | None:
    """One result; None for a row without an address that could be opened."""
    if not isinstance(row, dict) or not isinstance(row.get("url"), str):
        return None
    try:
        address = read_address(row["url"].strip()).address
    except BadAddress:
        return None
    if len(address) > _MAX_ADDRESS:
        return None
    title, content = (_clean_text(row.get(key)) for key in ("title", "content"))
    shown = clip(title, MAX_TITLE) or address
    return Hit(address, shown, clip(content, snippet_chars), 0.0)


def _clean_text(value: Any) -> str:
    return escape_tags(make_encodable(value)) if isinstance(value, str) else ""


def _describe_fault(fault: Exception) -> str:
    return clip(escape_tags(make_encodable(str(fault))), _MAX_REASON)


def _make_page(fetched: Fetched) -> Page:
    source = decode(fetched.body, fetched.charset)
    if fetched.kind == "text/html":
        title, text = read_html(source, make_web_join(fetched.address))
    else:
        title, text = read_plain(source)
    shown = escape_tags(clip(title, MAX_TITLE)) or fetched.address
    return Page(fetched.address, shown, escape_tags(text))
