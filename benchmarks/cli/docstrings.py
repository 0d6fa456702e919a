"""Docstrings of Google's form as sections of Markdown."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_SECTION = re.compile(r"^([A-Z][A-Za-z ]+):[ \t]*\n(?=\s*\n?[ ]+\S)", re.MULTILINE)
_INLINE = re.compile(
    r"^(Degenerate cases|Control|Controls|Verdicts|Reset info): (.*?)(?=\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(~?)([^`]+)`")
_CODE = re.compile(r"``(.+?)``", re.DOTALL)
_ARGUMENT = re.compile(r"^(\w+):[ \t]*", re.MULTILINE)


@dataclass(frozen=True)
class Docstring:
    """A docstring in parts, each Markdown.

    Attributes:
        summary: Its first paragraph.
        body: What stands before the first section, the summary apart.
        sections: Text of each section by its title (``"Args"``, ``"Rewards"``).
        arguments: Description of each argument or attribute by name.
    """

    summary: str
    body: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)

    def section(self, *titles: str) -> str:
        """Return the text of the first of these sections that there is, else an empty text."""
        return next((self.sections[title] for title in titles if title in self.sections), "")


def read_docstring(described: object) -> Docstring:
    """Return the docstring of a class or function; every part is empty where there is none."""
    text = inspect.getdoc(described) or ""
    sections: dict[str, str] = {}
    for found in _INLINE.finditer(text):
        sections[found.group(1)] = to_markdown(found.group(2))
    text = _INLINE.sub("", text)
    starts = list(_SECTION.finditer(text))
    head = text[: starts[0].start()] if starts else text
    arguments: dict[str, str] = {}
    for start, end in zip(starts, _ends(starts, text), strict=True):
        inside, outside = _indented(text[start.end() : end])
        title = start.group(1)
        if title in ("Args", "Attributes"):
            arguments.update(_arguments(inside))
        sections[title] = to_markdown(inside)
        head += outside
    summary, _, body = re.sub(r"\n{3,}", "\n\n", head).strip().partition("\n\n")
    return Docstring(to_markdown(summary), to_markdown(body), sections, arguments)


def to_markdown(text: str) -> str:
    """Return text with Sphinx's roles and double backquotes as Markdown's code spans."""

    def named(found: re.Match[str]) -> str:
        name = found.group(2)
        return f"`{name.rpartition('.')[2] if found.group(1) else name}`"

    def code(found: re.Match[str]) -> str:
        return f"`{' '.join(found.group(1).split())}`"

    return _CODE.sub(code, _ROLE.sub(named, text)).strip()


def table_cell(text: object) -> str:
    """Return text that may stand in a cell of a Markdown table: one line, no bar."""
    return " ".join(str(text).split()).replace("|", r"\|")


def _indented(block: str) -> tuple[str, str]:
    """Split a block into its indented part, without the indent, and what follows it."""
    lines = block.splitlines()
    end = next((i for i, s in enumerate(lines) if s.strip() and not s.startswith(" ")), len(lines))
    return textwrap.dedent("\n".join(lines[:end])).strip(), "\n\n" + "\n".join(lines[end:])


def _arguments(text: str) -> dict[str, str]:
    starts = list(_ARGUMENT.finditer(text))
    return {
        start.group(1): to_markdown(" ".join(text[start.end() : end].split()))
        for start, end in zip(starts, _ends(starts, text), strict=True)
    }


def _ends(starts: Sequence[re.Match[str]], text: str) -> list[int]:
    """Return where each part ends: at the next one's start, the last at the end of the text."""
    return [*(start.start() for start in starts[1:]), *([len(text)] if starts else [])]
