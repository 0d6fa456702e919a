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
from .html_text import decoded, encodable, html_text, plain_text, web_join
from .pages import MAX_TITLE, NoPage, Page, clipped, escape_tags
from .rules import Rules, Target, Unread, read_address

_TRIES = 3
_FIRST_WAIT_S = 0.5
_PARALLEL = 8
_KEPT = 512
"""Searches and pages that are remembered: a further part of a page comes from the same page."""
_MOST_ADDRESS = 1000
_MOST_ENDPOINT = 500
_MOST_QUERY = 256
_MOST_REASON = 500
_COMMANDS = re.compile(r"(?<!\S)[!:]+")
"""Signs before a word that SearXNG takes for orders, such as leaving for another engine."""
T = TypeVar("T")


class _Memory(Generic[T]):
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
            while len(self._kept) > _KEPT:
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
    _found: _Memory[list[Hit]] = field(default_factory=_Memory, repr=False, compare=False)
    _opened: _Memory[Page | NoPage] = field(default_factory=_Memory, repr=False, compare=False)

    def __post_init__(self) -> None:
        _ = self._endpoint

    def __reduce__(self) -> Any:
        return _endpoint_site, (self.search_url, self.pages, self.snippet_chars, self.wait_s)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit] | EnvFault]:
        """What the endpoint finds, in its order."""
        return _together(lambda query: self._search(query, k), queries)

    def open(self, addresses: Sequence[str]) -> list[Page | NoPage | EnvFault]:
        """The pages, fetched side by side."""
        return _together(self._open, addresses)

    @property
    def _endpoint(self) -> Target:
        try:
            if not isinstance(self.search_url, str):
                raise Unread("It is no text.")
            if len(self.search_url) > _MOST_ENDPOINT:
                raise Unread(f"It has more than {_MOST_ENDPOINT} characters.")
            return read_address(self.search_url)
        except Unread as fault:
            raise BadValueError(
                f"WebQA: search_url is {self.search_url!r}; expected an address such as "
                f"'http://localhost:8888/search'. {fault}"
            ) from None

    def _search(self, query: str, k: int) -> list[Hit] | EnvFault:
        query = _COMMANDS.sub("", query)[:_MOST_QUERY].strip()
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
            rows = _rows(self._patiently(lambda: ask(address)))
        except (Unread, Unreachable) as fault:
            return EnvFault(f"the search endpoint {self.search_url} failed: {fault}")
        hits = [hit for row in rows if (hit := _hit(row, self.snippet_chars)) is not None]
        self._found.keep((query, k), hits[:k])
        return hits[:k]

    def _open(self, address: str) -> Page | NoPage | EnvFault:
        if (known := self._opened.get(address)) is not None:
            return known
        try:
            page: Page | NoPage = _page(self._patiently(lambda: self.pages(address)))
        except Unread as fault:
            page = NoPage(_why(fault))
        except Unreachable as fault:
            target, home = read_address(address), self._endpoint
            if (target.host, target.port) == (home.host, home.port):
                return EnvFault(f"the site {self.search_url} failed: {fault}")
            return NoPage(f"The page cannot be reached now ({_why(fault)}).")
        self._opened.keep(address, page)
        return page

    def _patiently(self, ask: Callable[[], Fetched]) -> Fetched:
        for tried in range(1, _TRIES):
            try:
                return ask()
            except Unreachable:
                time.sleep(self.wait_s * 2 ** (tried - 1))
        return ask()


def _endpoint_site(
    search_url: str, pages: Fetcher, snippet_chars: int, wait_s: float
) -> EndpointSite:
    return EndpointSite(
        search_url=search_url, pages=pages, snippet_chars=snippet_chars, wait_s=wait_s
    )


def _together(ask: Callable[[str], T], requests: Sequence[str]) -> list[T]:
    if len(requests) < 2:
        return [ask(request) for request in requests]
    with ThreadPoolExecutor(min(_PARALLEL, len(requests))) as pool:
        return list(pool.map(ask, requests))


def _rows(fetched: Fetched) -> list[Any]:
    """The result rows of an answer.

    Raises:
        Unread: It is not what such an endpoint answers.
    """
    try:
        answer = json.loads(fetched.body)
    except (ValueError, RecursionError):
        raise Unread(
            f"it answered {fetched.kind} that is no JSON; is its format json switched on?"
        ) from None
    rows = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise Unread('it answered JSON without "results"; expected a list of results.')
    return rows


def _hit(row: Any, snippet_chars: int) -> Hit | None:
    """One result; None for a row without an address that could be opened."""
    if not isinstance(row, dict) or not isinstance(row.get("url"), str):
        return None
    try:
        address = read_address(row["url"].strip()).address
    except Unread:
        return None
    if len(address) > _MOST_ADDRESS:
        return None
    title, content = (_said(row.get(key)) for key in ("title", "content"))
    shown = clipped(title, MAX_TITLE) or address
    return Hit(address, shown, clipped(content, snippet_chars), 0.0)


def _said(value: Any) -> str:
    return escape_tags(encodable(value)) if isinstance(value, str) else ""


def _why(fault: Exception) -> str:
    return clipped(escape_tags(encodable(str(fault))), _MOST_REASON)


def _page(fetched: Fetched) -> Page:
    source = decoded(fetched.body, fetched.charset)
    if fetched.kind == "text/html":
        title, text = html_text(source, web_join(fetched.address))
    else:
        title, text = plain_text(source)
    shown = escape_tags(clipped(title, MAX_TITLE)) or fetched.address
    return Page(fetched.address, shown, escape_tags(text))
