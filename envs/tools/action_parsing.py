"""Parse actions out of text, with errors that say what was expected."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import BadValueError

if TYPE_CHECKING:
    from .schema import Tool

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*")
_ANY_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_\-]*)>")
_SHOWN = 60
_COMPARED = 50
"""Unknown tags of one action that are compared with the declared ones."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A parsed action: the tag and its content, without surrounding blanks."""

    tag: str
    content: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A parsed and checked call: the tool's name and its arguments, by name."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An unreadable action; ``message`` says what was wrong and what was expected."""

    message: str


class TagGrammar:
    """Actions of the form ``<tag> content </tag>``.

    The first complete block of a declared tag counts, wherever it stands; its content runs to the
    first closing tag of the same name and may span lines. Everything else is free text.

    Args:
        tags: What to write inside each tag, by tag: ``{"search": "query", "answer": "answer"}``.

    Raises:
        BadValueError: No tag, or a tag that is not a plain name.
    """

    def __init__(self, tags: Mapping[str, str]) -> None:
        if not tags:
            raise BadValueError("TagGrammar: no tag was declared; expected at least one.")
        for tag in tags:
            if not _NAME.fullmatch(tag):
                raise BadValueError(
                    f"TagGrammar: {tag!r} is not a tag name; expected a letter followed by "
                    "letters, digits, '_' or '-'."
                )
        self.tags = dict(tags)
        names = "|".join(re.escape(tag) for tag in self.tags)
        self._open = re.compile(rf"<({names})>")
        self._closings = {tag: f"</{tag}>" for tag in self.tags}

    @property
    def stop(self) -> tuple[str, ...]:
        """The closing tags: strings that end an action."""
        return tuple(self._closings.values())

    @property
    def expected(self) -> str:
        """The forms of an action in one line, for prompts and errors."""
        return " or ".join(f"<{tag}> {inside} </{tag}>" for tag, inside in self.tags.items())

    def parse(self, text: str) -> Tagged | Unreadable:
        """Read the action that ``text`` holds."""
        unclosed: list[str] = []  # no later block of these is closed either
        for found in self._open.finditer(text):
            tag, start = found[1], found.end()
            if tag in unclosed:
                continue
            if (end := text.find(self._closings[tag], start)) >= 0:
                return Tagged(tag, text[start:end].strip())
            unclosed.append(tag)
        return Unreadable(f"{self._describe_fault(text)} Write {self.expected}.")

    def write(self, tag: str, content: str) -> str:
        """Return the action that :meth:`parse` reads as ``tag`` and ``content``."""
        return f"<{tag}> {content} </{tag}>"

    def _describe_fault(self, text: str) -> str:
        opened = [m[2] for m in _ANY_TAG.finditer(text) if not m[1]]
        closed = [m[2] for m in _ANY_TAG.finditer(text) if m[1]]
        for tag in opened:
            if tag in self.tags:
                if closed:
                    return f"<{tag}> is closed by </{closed[-1]}> instead of </{tag}>."
                return f"<{tag}> is not closed by </{tag}>."
        for tag in closed:
            if tag in self.tags:
                return f"</{tag}> closes a <{tag}> that was never opened."
        for tag in list(dict.fromkeys(opened))[:_COMPARED]:
            if near := _find_nearest(tag, self.tags):
                return f"<{tag}> is not a tag here; did you mean <{near}>?"
        if not text.strip():
            return "The action is empty."
        return "The action holds no " + " and no ".join(f"<{tag}>" for tag in self.tags) + " block."


class ToolGrammar:
    """Actions of the form ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``.

    The first block counts. The arguments are checked against the tool's own types first, so
    an environment only gets calls that it can execute.

    Args:
        tools: The tools that may be called.
        tag: Name of the surrounding tag.

    Raises:
        BadValueError: No tool, or two of one name.
    """

    def __init__(self, tools: Iterable[Tool], tag: str = "tool_call") -> None:
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise BadValueError(f"ToolGrammar: two tools are called {tool.name!r}.")
            self.tools[tool.name] = tool
        if not self.tools:
            raise BadValueError("ToolGrammar: no tool was given; expected at least one.")
        self._blocks = TagGrammar({tag: '{"name": "tool name", "arguments": {}}'})

    @property
    def stop(self) -> tuple[str, ...]:
        """The closing tag: the string that ends an action."""
        return self._blocks.stop

    def parse(self, text: str) -> ToolCall | Unreadable:
        """Read and check the first call in ``text``."""
        block = self._blocks.parse(text)
        if isinstance(block, Unreadable):
            return block
        try:
            call = json.loads(block.content)
        except json.JSONDecodeError as error:
            near = block.content[max(0, error.pos - _SHOWN // 2) : error.pos + _SHOWN // 2]
            return Unreadable(
                f"The tool call is not valid JSON: {error.msg} at character {error.pos}, near "
                f"{near!r}. Write {self._blocks.expected}."
            )
        except (RecursionError, ValueError):  # nested too deeply, or a number of 5,000 digits
            return Unreadable("The tool call holds a value that cannot be read. Use plain values.")
        return self._check_call(call)

    def write(self, name: str, **arguments: Any) -> str:
        """Return the action that :meth:`parse` reads as this call."""
        return write_call(name, arguments, next(iter(self._blocks.tags)))

    def _check_call(self, call: Any) -> ToolCall | Unreadable:
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return Unreadable(
                'The tool call needs a "name" that is a string. '
                f"Write {self._blocks.expected}. Tools: {', '.join(self.tools)}."
            )
        if extra := sorted(set(call) - {"name", "arguments"}):
            return Unreadable(
                f'The tool call has the unknown key {extra[0]!r}; put values inside "arguments".'
            )
        name = call["name"]
        if name not in self.tools:
            near = _find_nearest(name, self.tools)
            hint = f" Did you mean {near!r}?" if near else ""
            return Unreadable(f"There is no tool {name!r}.{hint} Tools: {', '.join(self.tools)}.")
        arguments = call.get("arguments", {})
        if not isinstance(arguments, dict):
            return Unreadable(
                f'"arguments" of {name} is {_json_type(arguments)}; expected an object: '
                f"{self.tools[name].usage}."
            )
        try:
            return ToolCall(name, self.tools[name].check(arguments))
        except BadValueError as error:
            return Unreadable(str(error))


def write_call(name: Any, arguments: Any, tag: str = "tool_call") -> str:
    """Return a call in its tags.

    A closing tag in one of its values would end it, so that its slash is written as an escape.
    """
    return f"<{tag}>{dump_call({'name': name, 'arguments': arguments}, tag)}</{tag}>"


def dump_call(call: Mapping[str, Any], tag: str = "tool_call") -> str:
    """Return a call as JSON that spells no closing tag, which ends an action wherever it stands."""
    return json.dumps(call, ensure_ascii=False).replace(f"</{tag}>", f"<\\/{tag}>")


def find_blocks(text: str, opening: str, closing: str) -> list[str]:
    """Return the contents of all complete blocks, in time linear in the text.

    They are those of the regular expression ``opening(.*?)closing``, which takes quadratic time
    where many blocks are opened and none is closed.
    """
    blocks: list[str] = []
    at = text.find(opening)
    while at >= 0 and (end := text.find(closing, at + len(opening))) >= 0:
        blocks.append(text[at + len(opening) : end])
        at = text.find(opening, end + len(closing))
    return blocks


def replace_blocks(text: str, opening: str, closing: str, instead: str) -> str:
    """Return the text with every complete block replaced, in time linear in the text."""
    kept: list[str] = []
    done, at = 0, text.find(opening)
    while at >= 0 and (end := text.find(closing, at + len(opening))) >= 0:
        kept += [text[done:at], instead]
        done = end + len(closing)
        at = text.find(opening, done)
    return "".join((*kept, text[done:]))


def _find_nearest(name: str, known: Iterable[str]) -> str | None:
    lowered = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[near[0]] if near else None


def _json_type(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
