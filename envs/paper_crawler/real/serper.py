"""Google by Serper: the search engine that PaSa uses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import BadValueError, EnvFault
from ...utils.http import excerpt, parse_json
from ..papers import Search
from .arxiv_ids import find_id_in_link, read_date
from .engines import HttpSearch


@dataclass(frozen=True, kw_only=True)
class SerperSearch(HttpSearch):
    """Searches arXiv's pages by Google; see :class:`~.engines.HttpSearch` for the other settings.

    What is sent is ``<text> before:YYYY-MM-DD site:arxiv.org``. Ids are taken from links to
    abstracts, PDFs and HTML pages, in the order of the results. Papers are dated again by their
    id, and those that are not from before the limit are left out. Where a search fails, PaSa's
    program goes on with an empty list, as if there were no such papers; this one does not.

    Attributes:
        key: The key of the service. Left out, the environment variable ``key_env`` holds it, which
            keeps it out of pickles and of the settings that runs record.
        key_env: Name of that variable.

    Raises:
        BadValueError: No key, or a value out of range.
    """

    url: str = "https://google.serper.dev/search"
    key: str | None = field(default=None, repr=False)
    key_env: str = "SERPER_API_KEY"
    _headers: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        key = os.environ.get(self.key_env) if self.key is None else self.key
        if not key or not key.isascii() or not key.isprintable():
            raise BadValueError(
                f"SerperSearch: no usable key; set the environment variable {self.key_env} to that "
                "of your account at serper.dev, or name another variable by key_env."
            )
        object.__setattr__(self, "_headers", {"X-API-KEY": key})

    @property
    def identity(self) -> str:
        """The service; the key is no part of it."""
        return f"serper-{self.url}"

    def write_query(self, asked: Search) -> str:
        """Return what Google is asked: the text on one line, the date limit and the site."""
        if not asked.text.strip():
            return ""
        day = f"{asked.before:08d}"
        text = " ".join(asked.text.encode("utf-8", "replace").decode().split())
        return f"{text} before:{day[:4]}-{day[4:6]}-{day[6:]} site:arxiv.org"

    def _ask(self, asked: Search, query: str) -> list[str]:
        body = {"q": query, "num": asked.k, "page": 1}
        said = self._client.send(self.url, body, headers=self._headers)
        ids = [
            i for link in _read_links(said, self.url) if (i := find_id_in_link(link)) is not None
        ]
        early = [paper_id for paper_id in dict.fromkeys(ids) if read_date(paper_id) < asked.before]
        return early[: asked.k]


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
