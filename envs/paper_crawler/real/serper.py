"""Google by Serper: the search engine that PaSa uses."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...core.errors import BadValueError, EnvFault
from ...utils.http import HttpClient, check_url, excerpt, parse_json
from ..papers import Search
from .arxiv_ids import find_id_in_link, read_date
from .engines import Question, cache_results, check_asked


@dataclass(frozen=True, kw_only=True)
class SerperSearch:
    """Searches arXiv's pages by Google, one request per search; nothing is asked before that.

    What is sent is ``<text> before:YYYY-MM-DD site:arxiv.org``. Ids are taken from links to
    abstracts, PDFs and HTML pages, in the order of the results. Papers are dated again by their
    id, and those that are not from before the limit are left out. A search that fails is an
    :class:`EnvFault` after all tries; PaSa's program goes on with an empty list instead, as if
    there were no such papers.

    Attributes:
        url: Address of the service.
        key: Its key. Left out, the environment variable ``key_env`` holds it, which keeps it out
            of pickles and of the settings that runs record.
        key_env: Name of that variable.
        timeout_s: Seconds that one try may take.
        attempts: Tries per search.
        wait_s: Seconds before the second try; every further wait is twice as long.
        pause_s: Seconds between two requests.
        cache: Folder where found ids are remembered; None for no memory.

    Raises:
        BadValueError: No key, or a value out of range.
    """

    blocking: ClassVar[bool] = True

    url: str = "https://google.serper.dev/search"
    key: str | None = field(default=None, repr=False)
    key_env: str = "SERPER_API_KEY"
    timeout_s: float = 30.0
    attempts: int = 3
    wait_s: float = 1.0
    pause_s: float = 0.0
    cache: str | None = None
    _client: HttpClient = field(init=False, repr=False, compare=False)
    _headers: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_url(self.url, "SerperSearch: url")
        key = os.environ.get(self.key_env) if self.key is None else self.key
        if not key or not key.isascii() or not key.isprintable():
            raise BadValueError(
                f"SerperSearch: no usable key; set the environment variable {self.key_env} to that "
                "of your account at serper.dev, or name another variable by key_env."
            )
        client = HttpClient(
            owner="search_settings",
            timeout_s=self.timeout_s,
            attempts=self.attempts,
            wait_s=self.wait_s,
            pause_s=self.pause_s,
        )
        object.__setattr__(self, "_client", client)
        object.__setattr__(self, "_headers", {"X-API-KEY": key})

    @property
    def identity(self) -> str:
        """The service; the key is no part of it."""
        return f"serper-{self.url}"

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        """See :meth:`~.engines.SearchEngine.search`; a blank text finds nothing.

        Raises:
            EnvFault: No answer after all tries, or one that is no result of a search.
            BadValueError: ``k`` is below 1.
        """
        found: dict[Search, list[str]] = {}
        for asked in requests:
            check_asked(asked)
            if asked not in found:
                found[asked] = self._ids(asked) if asked.text.strip() else []
        return [list(found[asked]) for asked in requests]

    def _ids(self, asked: Search) -> list[str]:
        question = Question(self.identity, write_query(asked), asked.k)
        return cache_results(self.cache, question, lambda: self._found(asked))

    def _found(self, asked: Search) -> list[str]:
        body = {"q": write_query(asked), "num": asked.k, "page": 1}
        said = self._client.send(self.url, body, headers=self._headers)
        ids = [
            i for link in _read_links(said, self.url) if (i := find_id_in_link(link)) is not None
        ]
        early = [paper_id for paper_id in dict.fromkeys(ids) if read_date(paper_id) < asked.before]
        return early[: asked.k]


def write_query(asked: Search) -> str:
    """What Google is asked: the text on one line, the date limit and the site."""
    day = f"{asked.before:08d}"
    text = " ".join(asked.text.encode("utf-8", "replace").decode().split())
    return f"{text} before:{day[:4]}-{day[4:6]}-{day[6:]} site:arxiv.org"


def _read_links(said: bytes, url: str) -> list[str]:
    """The links of the results.

    Raises:
        EnvFault: The answer is none of a search.
    """
    try:
        reply: Any = parse_json(said)
    except ValueError:
        raise EnvFault(f"{url}: the reply is no JSON: {excerpt(said)}") from None
    results = reply.get("organic") if isinstance(reply, dict) else None
    if results is None and isinstance(reply, dict) and "searchParameters" in reply:
        return []
    fits = isinstance(results, list) and all(isinstance(result, dict) for result in results)
    if not fits:
        raise EnvFault(
            f"{url}: the reply has no list of results ('organic', as Serper sends it): "
            f"{excerpt(said)}"
        )
    return [link for result in results or () if isinstance(link := result.get("link"), str)]
