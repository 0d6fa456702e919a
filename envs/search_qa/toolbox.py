"""Which tools an episode of SearchQA has: search alone, or search and Python (ARPO's pair)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BadValueError, UnknownNameError
from ..grammar import TagGrammar
from ..python_tool.tool import PythonTool
from ..settings import check_settings
from .text import BOTH_GRAMMAR, BOTH_INVALID, GRAMMAR, INVALID, PROMPTS

TOOLS = ("search", "python")
BOTH_PROMPT = "search-python"


@dataclass(frozen=True, kw_only=True)
class Toolbox:
    """The tools of an environment, and the words that go with them.

    Attributes:
        names: Names of the tools; each is the tag that calls it.
        python: Runs code; None without the tool.
        grammar: How actions are read.
        invalid: The reply to an action that cannot be read.
    """

    names: tuple[str, ...]
    python: PythonTool | None
    grammar: TagGrammar
    invalid: str

    def prompt(self, wanted: str | None, size: str | None) -> str:
        """Name of the prompt: ``wanted``, or the one that suits tools and size.

        Raises:
            UnknownNameError: There is no such prompt.
            BadValueError: It explains a tool that is not there.
        """
        if wanted is None:
            if size == "micro":
                return "none"
            return "search-r1" if self.python is None else BOTH_PROMPT
        if wanted not in PROMPTS:
            raise UnknownNameError("prompt", wanted, PROMPTS, "SearchQA")
        if wanted == BOTH_PROMPT and self.python is None:
            raise BadValueError(
                f"SearchQA: prompt={wanted!r} explains the python tool, but tools is "
                f"{self.names}; add tools=('search', 'python'), or take another prompt."
            )
        return wanted


def make_toolbox(
    tools: str | Sequence[str], python_tool: PythonTool | Mapping[str, Any] | None
) -> Toolbox:
    """The tools by name, with the python tool's settings.

    Raises:
        UnknownNameError: An unknown tool or setting.
        BadValueError: No search, settings of a tool that is not there, or a value out of range.
    """
    wanted = (tools,) if isinstance(tools, str) else tuple(tools)
    for name in wanted:
        if name not in TOOLS:
            raise UnknownNameError("tool", name, TOOLS, "SearchQA")
    if "search" not in wanted:
        raise BadValueError(
            f"SearchQA: tools is {tools!r}; expected 'search' among them, since the answers stand "
            "in the passages."
        )
    if "python" in wanted:
        return Toolbox(
            names=TOOLS,
            python=_python(python_tool),
            grammar=BOTH_GRAMMAR,
            invalid=BOTH_INVALID,
        )
    if python_tool is not None:
        raise BadValueError(
            f"SearchQA: python_tool was given, but tools is {tools!r}; add "
            "tools=('search', 'python'), or leave python_tool out."
        )
    return Toolbox(names=("search",), python=None, grammar=GRAMMAR, invalid=INVALID)


def _python(given: PythonTool | Mapping[str, Any] | None) -> PythonTool:
    if isinstance(given, PythonTool):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise BadValueError(
            f"SearchQA: python_tool is {given!r}; expected a PythonTool, or its settings: "
            "{'timeout_s': 5}."
        )
    settings = dict(given or {})
    check_settings(PythonTool, settings)
    return PythonTool(**settings)
