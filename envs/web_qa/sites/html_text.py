"""Text of HTML, Markdown and plain pages, links kept as ``[words](address)``."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

_SILENT = re.compile(r"script|style|noscript|template|svg|math|iframe|object|select")
_BREAKS = re.compile(
    r"address|article|aside|blockquote|body|br|caption|d[dlt]|div|figcaption|figure|footer|form|"
    r"h[1-6]|header|hr|li|main|nav|ol|p|pre|section|table|tbody|tfoot|thead|tr|ul"
)
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9_-]{2,40})", re.IGNORECASE)
# html.parser takes quadratic time for tags that never end, and fails on odd declarations. What is
# no whole tag becomes text before it sees it; each look stops at the next "<", so time is linear.
_STRAY = re.compile(r"<(?!/?[a-zA-Z](?>[^<>\"']+|\"[^\"<]*\"|'[^'<]*')*+>)")
_DECLARATION = re.compile(r"<[!?][^<>]*+>?")
_MAX_DEPTH = 100
_BLANKS = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\s*\n\s*")
_MD_LINK = re.compile(r"(!?)\[([^\[\]\n]*)\]\(\s*<?([^()\s<>]*)>?(?:\s+\"[^\"\n]*\")?\s*\)")
_MD_TITLE = re.compile(r"^#{1,6}[ \t]+(\S.*)$", re.MULTILINE)
_MAX_TITLE = 200

Join = Callable[[str], str | None]


class Text(NamedTuple):
    """A page's title (empty when it has none) and text."""

    title: str
    text: str


def read_html(html: str, join: Join) -> Text:
    """Title and visible text of an HTML page.

    Args:
        html: The page.
        join: The address that a link's ``href`` leads to, None for what is no page.
    """
    reader = _Reader(join)
    reader.feed(_STRAY.sub("&lt;", _DECLARATION.sub("", _drop_comments(html))))
    reader.close()
    reader.end_link()
    return Text(_join_lines("".join(reader.title)), _tidy("".join(reader.parts)))


def read_markdown(source: str, join: Join) -> Text:
    """Title (the first heading) and text of a Markdown page."""

    def linked(match: re.Match[str]) -> str:
        place = None if match[1] else join(match[3])
        return f"[{match[2]}]({place})" if place else match[2]

    title = _MD_TITLE.search(source)
    return Text(
        _join_lines(title[1].rstrip("# \t\r")) if title else "", _tidy(_MD_LINK.sub(linked, source))
    )


def read_plain(source: str) -> Text:
    """Title (the first line, when it is short) and text of a plain page."""
    text = _tidy(source)
    first = text.partition("\n")[0]
    return Text(first if len(first) <= _MAX_TITLE else "", text)


def decode(body: bytes, charset: str = "") -> str:
    """Bytes of a page as text: by the given name, the page's own, else UTF-8."""
    if not charset and (found := _CHARSET.search(body[:2048])):
        charset = found[1].decode("ascii")
    try:
        text = body.decode(charset or "utf-8", "replace")
    except (LookupError, UnicodeError):  # a name that Python does not know, or no charset
        text = body.decode("utf-8", "replace")
    return make_encodable(text.removeprefix("\ufeff"))


def make_encodable(text: str) -> str:
    """``text`` without lone surrogates, which UTF-8 cannot hold, and without zero bytes."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


def make_web_join(base: str) -> Join:
    """Links of the page at the web address ``base``."""

    def join(href: str) -> str | None:
        try:
            address = urljoin(base, href.strip())
            scheme = urlsplit(address).scheme
        except ValueError:
            return None
        address = address.partition("#")[0].replace(" ", "%20")
        inside = not href.strip() or href.strip().startswith("#")
        ok = scheme in ("http", "https") and not inside
        return address.replace("(", "%28").replace(")", "%29") if ok else None

    return join


def _drop_comments(html: str) -> str:
    """``html`` without comments; the text after one that never ends stays."""
    kept, at = [], 0
    while (start := html.find("<!--", at)) >= 0:
        end = html.find("-->", start + 4)
        if end < 0:
            break
        kept.append(html[at:start])
        at = end + 3
    return "".join(kept) + html[at:]


def _tidy(text: str) -> str:
    """Blanks and line breaks collapsed, none at the ends."""
    return _EMPTY_LINES.sub("\n", _BLANKS.sub(" ", text.replace("\r", "\n"))).strip()


def _join_lines(text: str) -> str:
    return " ".join(text.split())[:_MAX_TITLE]


class _Reader(HTMLParser):
    def __init__(self, join: Join) -> None:
        super().__init__(convert_charrefs=True)
        self.join = join
        self.title: list[str] = []
        self.parts: list[str] = []
        self._silent: list[str] = []
        self._in_title = self._titled = False  # the first title is the page's
        self._link: tuple[str, int] | None = None  # address, place of its words in parts

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif _SILENT.fullmatch(tag) and len(self._silent) < _MAX_DEPTH:
            self._silent.append(tag)
        if self._silent:
            return
        if tag == "a":
            self.end_link()
            address = self.join(dict(attrs).get("href") or "")
            self._link = (address, len(self.parts)) if address else None
        elif _BREAKS.fullmatch(tag):
            self.parts.append("\n- " if tag == "li" else "\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title, self._titled = False, bool(self.title)
        elif tag in self._silent:
            while self._silent.pop() != tag:
                pass
        elif tag == "a":
            self.end_link()
        elif _BREAKS.fullmatch(tag) and not self._silent:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += [] if self._titled else [data]
        elif not self._silent:
            self.parts.append(data.replace("\n", " "))

    def end_link(self) -> None:
        """Write the link that is open, if its words are not empty."""
        if self._link is None:
            return
        address, place = self._link
        self._link = None
        words = " ".join("".join(self.parts[place:]).split()).replace("[", "(").replace("]", ")")
        if words:
            self.parts[place:] = [f" [{words}]({address})"]
