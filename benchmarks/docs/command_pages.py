"""The reference of the command line, from the parsers that read it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from ..cli.docstrings import table_cell, to_markdown
from ..cli.main import COMMANDS
from ..cli.main import OF_EVERY_COMMAND as OF_ALL
from ..cli.words import make_parser, option_groups, option_names, value_of
from .links import join_pages

INDEX = "commands/index.md"
_NO_DEFAULT = ("(required)", "(repeatable)")


def command_pages() -> dict[str, str]:
    """Return path and Markdown of the page on each command, and of their list."""
    pages: dict[str, str] = {}
    lines = [
        "# Command line",
        "",
        "`turngym COMMAND --help` shows the same. Settings of an environment and of a recipe have "
        "short forms: `--env.NAME VALUE`, `--recipe.NAME VALUE`.",
        "",
        "Every command takes:",
        "",
        "| option | |",
        "|---|---|",
        *(f"| `{option.replace('|', ' or ')}` | {table_cell(text)} |" for option, text in OF_ALL),
    ]
    for group, commands in COMMANDS.items():
        lines += ["", f"## {group.capitalize()}", "", "| command | |", "|---|---|"]
        for name, summary in commands.items():
            path = command_path(name)
            file = path.removeprefix("commands/")
            lines.append(f"| [`turngym {name}`]({file}) | {table_cell(summary)} |")
            pages = join_pages(pages, {path: command_page(name, summary)})
    return join_pages(pages, {INDEX: "\n".join(lines) + "\n"})


def command_path(name: str) -> str:
    """Return the path of the page on a command: the list of all of them is the folder's index."""
    return f"commands/{name}-command.md" if name == "index" else f"commands/{name}.md"


def command_page(name: str, summary: str) -> str:
    """Return the page on one command: what it does, and its options in their groups."""
    module = import_module(f"..cli.{name}", __package__)
    parser = make_parser(name, module.Command)
    about = inspect.getdoc(module.Command) if isinstance(module.Command, type) else None
    head = (about or summary).split("Attributes:")[0]
    lines = [f"# turngym {name}", "", to_markdown(head)]
    return "\n".join([*lines, *_sections(parser, module.Command)]) + "\n"


def _sections(parser: Any, command: Any, level: int = 2) -> Iterator[str]:
    """Yield the lines on a parser of argparse's kind (tyro has its own copy of that module)."""
    for group in option_groups(parser, command):
        yield from ("", f"{'#' * level} {group.title or 'Options'}", "")
        yield from ("| option | | value | default |", "|---|---|---|---|")
        yield from map(_row, group.actions)
    for group in parser._action_groups:
        for row in group._group_actions:
            if isinstance(row.choices, Mapping):
                for inner in row.choices.values():
                    yield from ("", f"{'#' * level} {inner.prog}", "")
                    if inner.description:
                        yield to_markdown(inner.description)
                    yield from _sections(inner, None, level + 1)


def _value(metavar: str) -> str:
    """Return what an option takes; choices one by one, so that a narrow column can break them."""
    if metavar.startswith("{") and metavar.endswith("}"):
        return ", ".join(f"`{word}`" for word in metavar[1:-1].split(","))
    return f"`{table_cell(metavar)}`" if metavar else ""


def _row(action: Any) -> str:
    text, _, default = (action.help or "").rpartition(" (default: ")
    if not text:
        text, default = action.help or "", ""
    default = default.rstrip(")").replace("None", "")
    for mark in _NO_DEFAULT:
        if text.endswith(mark):
            text, default = text.removesuffix(mark), mark.strip("()")
    names = ", ".join(f"`{name}`" for name in option_names(action)) or f"`{action.metavar}`"
    value = _value(value_of(action)) if action.option_strings else ""
    shown = f"`{table_cell(default)}`" if default not in ("", "required", "repeatable") else default
    return f"| {names} | {table_cell(to_markdown(text))} | {value} | {shown} |"
