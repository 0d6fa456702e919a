"""Markdown pages by path, and their links: where they lead, and whether there is something."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from ...envs.core.errors import BadValueError

_CODE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$|`+[^`\n]+`+", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^()\s]+)((?:\s+\"[^\"]*\")?\))")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)")


class Link(NamedTuple):
    """A link of a page: the line it stands in, and where it leads."""

    line: int
    target: str


class BrokenLink(NamedTuple):
    """A link that leads nowhere."""

    page: str
    line: int
    target: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} links to {self.target}: {self.reason}"


def join_pages(*parts: Mapping[str, str]) -> dict[str, str]:
    """Return the pages of several parts as one.

    Raises:
        BadValueError: Two pages have one path, so that one of them would be lost.
    """
    pages: dict[str, str] = {}
    for part in parts:
        if taken := sorted(pages.keys() & part.keys()):
            raise BadValueError(
                f"documentation: two pages have the path {', '.join(taken)}; name one of them "
                "otherwise."
            )
        pages |= part
    return pages


def find_links(text: str) -> Iterator[Link]:
    """Yield the links and pictures of a Markdown text, those in code left out."""
    bare = _blank_code(text)
    for found in _LINK.finditer(bare):
        yield Link(bare.count("\n", 0, found.start()) + 1, found.group(2))


def relink(text: str, written_at: str, shown_at: str, place: Callable[[str], str]) -> str:
    """Return a page whose relative links are those of another place.

    Args:
        text: Markdown.
        written_at: Path of the file in the repository, from which its links are relative.
        shown_at: Path of the page on the site.
        place: Says which path of the site shows a path of the repository.
    """
    bare = _blank_code(text)
    parts, end = [], 0
    for found in _LINK.finditer(bare):
        target, hash_sign, anchor = found.group(2).partition("#")
        if not target or _ADDRESS.match(target):
            continue
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(written_at), target))
        new = posixpath.relpath(place(inside), posixpath.dirname(shown_at) or ".")
        parts += [text[end : found.start(2)], new, hash_sign, anchor]
        end = found.end(2)
    return "".join([*parts, text[end:]])


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as mkdocs and GitHub name them."""
    found: dict[str, int] = {}
    known = set()
    for heading in _HEADING.findall(_blank_fences(text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = _slug(plain)
        count = found.get(slug, 0)
        found[slug] = count + 1
        known.add(f"{slug}_{count}" if count else slug)
    return known


def broken_links(
    pages: Mapping[str, str], files: Collection[str] = (), checked: Collection[str] | None = None
) -> list[BrokenLink]:
    """Return the relative links that lead to no page, no file, or no heading of a page.

    Args:
        pages: Markdown by path; links are relative to these paths.
        files: Paths of other files that links may name (pictures, sources, folders).
        checked: Paths of the pages whose links are looked at; all unless given.
    """
    found = []
    headings: dict[str, set[str]] = {}
    for page in checked if checked is not None else pages:
        for line, target in find_links(pages[page]):
            if _ADDRESS.match(target):
                continue
            path, _, anchor = target.partition("#")
            where = (
                posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            )
            if where not in pages and where not in files:
                found.append(BrokenLink(page, line, target, "there is no such page or file"))
            elif anchor and where in pages:
                known = headings.setdefault(where, anchors(pages[where]))
                if anchor not in known:
                    found.append(BrokenLink(page, line, target, "no heading has this anchor"))
    return found


def _blank_code(text: str) -> str:
    """Return the text with code blocks and code spans blanked, every position as it was."""
    return _CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def _blank_fences(text: str) -> str:
    return re.sub(r"^(```+|~~~+).*?^\1[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)


def _slug(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
