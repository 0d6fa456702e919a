"""A folder of HTML, text and Markdown files as a site."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ...core.errors import BadValueError, DataError
from ...core.fork import Shared
from ...tools.retrieval.base import Corpus, Hit
from ...tools.retrieval.bm25 import Bm25
from .html_text import Join, Text, decode, make_web_join, read_html, read_markdown, read_plain
from .pages import NoPage, Page, clip, escape_tags, pick_sentence, strip_links

ENDINGS = (".html", ".htm", ".md", ".txt")


class FolderSite(Shared):
    """The pages of a folder; a page's address is its path in the folder, with ``/`` between.

    Blanks, brackets and the signs ``%#?`` of a name are percent-encoded in its address.
    Links between files of the folder lead to their addresses; links to the web stay as they are,
    but cannot be opened. Read-only; pickles as its path and refuses a folder that has changed.

    Args:
        folder: The folder; files below it with one of :data:`ENDINGS` are pages.
        pages: The pages, by address.
        digest: Hash of their files.
        snippet_chars: Most characters of a snippet.
    """

    def __init__(
        self, folder: Path, pages: Mapping[str, Page], digest: str, snippet_chars: int
    ) -> None:
        self.folder, self.pages, self.digest = folder, pages, digest
        self.snippet_chars = snippet_chars
        self._plain = {page.address: strip_links(page.text) for page in pages.values()}
        titles = [page.title for page in pages.values()]
        corpus = Corpus(ids=list(pages), titles=titles, texts=list(self._plain.values()))
        try:
            self._index = Bm25(corpus, name=f"webqa-folder-{digest}")
        except BadValueError:
            raise DataError(f"{folder}: no page holds a word; expected pages of text.") from None

    def __reduce__(self) -> Any:
        return _build_site, (self.folder, self.snippet_chars, self.digest)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best pages, with the sentence that fits the query best."""
        found = self._index.search(queries, k)
        return [
            [self._hit(query, hit) for hit in hits]
            for query, hits in zip(queries, found, strict=True)
        ]

    def open(self, addresses: Sequence[str]) -> list[Page | NoPage]:
        """The page at each address; a leading ``./`` or ``/`` does not matter."""
        return [self._open(address) for address in addresses]

    def _open(self, address: str) -> Page | NoPage:
        known = _normalise_address(address)
        for name in (known, _make_address(unquote(known))):
            if name in self.pages:
                return self.pages[name]
        if "://" in address:
            return NoPage(f"{clip(address, 200)} is not on this site and cannot be opened.")
        return NoPage(f"There is no page {clip(address, 200)}.")

    def _hit(self, query: str, hit: Hit) -> Hit:
        snippet = pick_sentence(self._plain[hit.id], query, but=hit.title)
        return hit._replace(text=clip(snippet, self.snippet_chars))


def load_folder_site(folder: str | Path, snippet_chars: int) -> FolderSite:
    """The site of a folder; the same object for a folder that has not changed.

    Raises:
        DataError: No such folder, a file that cannot be read, or no page in it.
    """
    path = Path(folder).expanduser().resolve()
    if not path.is_dir():
        raise DataError(f"{folder}: no such folder; expected one with {', '.join(ENDINGS)} files.")
    stamps = tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in _list_files(path))
    return _load_site(path, stamps, snippet_chars)


@lru_cache(maxsize=4)
def _load_site(path: Path, stamps: tuple[Any, ...], snippet_chars: int) -> FolderSite:
    names = {stamp[0] for stamp in stamps}
    digest = hashlib.blake2b(digest_size=16)
    pages: dict[str, Page] = {}
    for name in sorted(names):
        try:
            body = (path / name).read_bytes()
        except OSError as fault:
            reason = fault.strerror or str(fault)
            raise DataError(f"{path / name}: cannot be read ({reason}).") from None
        digest.update(f"{len(name)} {len(body)} {name}".encode("utf-8", "surrogateescape"))
        digest.update(body)
        title, text = _read_text(name, body, names)
        address = _make_address(name)
        pages[address] = Page(address, escape_tags(title or Path(name).stem), escape_tags(text))
    if not pages:
        raise DataError(f"{path}: holds no page; expected {', '.join(ENDINGS)} files.")
    return FolderSite(path, pages, digest.hexdigest(), snippet_chars)


def _build_site(path: Path, snippet_chars: int, digest: str) -> FolderSite:
    """The site of a pickled environment.

    Raises:
        DataError: A file has changed since.
    """
    site = load_folder_site(path, snippet_chars)
    if site.digest != digest:
        raise DataError(f"{path}: the pages have changed since this environment was pickled.")
    return site


def _list_files(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Addresses of the pages in order; links that lead out of the folder are left out."""
    found: list[tuple[str, os.stat_result]] = []
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder) / name
            if file.suffix.lower() not in ENDINGS or not file.is_file():
                continue
            if file.resolve().is_relative_to(path) and _is_address(name):
                found.append((file.relative_to(path).as_posix(), file.stat()))
    yield from sorted(found, key=lambda pair: pair[0])


def _is_address(name: str) -> bool:
    """Whether a file's name is text that a model can write."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return name.isprintable()


def _read_text(name: str, body: bytes, names: set[str]) -> Text:
    source, ending = decode(body), posixpath.splitext(name)[1].lower()
    if ending == ".md":
        return read_markdown(source, _make_join(name, names))
    if ending == ".txt":
        return read_plain(source)
    return read_html(source, _make_join(name, names))


def _make_join(page: str, names: set[str]) -> Join:
    def join(href: str) -> str | None:
        try:
            parts = urlsplit(href.strip())
        except ValueError:
            return None
        if parts.scheme in ("http", "https"):
            return make_web_join(href)(href)
        if parts.scheme or parts.netloc or not parts.path:
            return None
        place = unquote(parts.path)
        if not place.startswith("/"):
            place = posixpath.join(posixpath.dirname(page), place)
        place = _normalise_address(place)
        return _make_address(place) if place in names else None

    return join


def _make_address(name: str) -> str:
    """A file's place as an address: without signs that would end it or a link to it."""
    return "".join(f"%{ord(c):02X}" if c in " %#?()" else c for c in name)


def _normalise_address(address: str) -> str:
    return posixpath.normpath(address.partition("#")[0].lstrip("/") or ".")
