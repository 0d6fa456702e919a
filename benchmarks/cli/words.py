"""What the command line says about options: help, short and whole, and errors in plain words."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_args, get_type_hints

import tyro

from .docstrings import read_docstring

WIDTH = 96
_BOX = re.compile(r"│(.*)│")
_EMPTY_DEFAULT = re.compile(r" ?\(default: (?:None|'')?\)")
"""What the parser says of an option that has no value of its own."""
_NONE = re.compile(r" *- <class 'NoneType'>: .*")
_VALUES = {
    "{None}|": "",
    "{None,": "{",
    "STR": "text",
    "INT": "integer",
    "FLOAT": "number",
    "PATH": "path",
}
"""What the parser calls a value, and what a reader does."""
_REWORDED = (
    (
        re.compile(r"no type matching (\S+) could be instantiated"),
        r"expected \1, which is not read",
    ),
    (
        re.compile(r"<class 'int'>: invalid literal for int\(\) with base 10: (.*)"),
        r"expected a whole number, got \1",
    ),
    (
        re.compile(r"<class 'float'>: could not convert string to float: (.*)"),
        r"expected a number, got \1",
    ),
    (re.compile(r"invalid literal for int\(\) with base 10: (.*)"), r"\1 is no whole number"),
    (re.compile(r"could not convert string to float: (.*)"), r"\1 is no number"),
    (re.compile(r"\{None\}\|(\S+)"), r"\1"),
    (re.compile(r"\{None,(\S*)\}"), r"{\1}"),
    (re.compile(r"<class '(\w+)'>"), r"\1"),
)
"""Words of Python in the parser's errors, and what a reader understands."""


def short_help(name: str, command: type) -> str:
    """Return the options of a command on about one screen: its own, then groups by name alone."""
    doc = read_docstring(command)
    own, groups = [], []
    for field, value in _options(command):
        text = doc.arguments.get(field, "")
        if is_dataclass(value):
            groups.append((_cut(_first_sentence(text)), list(_names(value))))
        else:
            own.append((_typed(command, field), _first_sentence(text)))
    wide = max((len(option) for option, _ in own), default=0) + 2
    lines = [f"turngym {name}: {doc.summary}", ""]
    lines += [_cut(f"  {option:{wide}}{text}") for option, text in own]
    for title, names in groups:
        lines += ["", title, *_wrapped(names)]
    lines += ["", f"turngym {name} --help tells all about each of them, with the defaults."]
    return "\n".join(lines)


def subcommands(command: Any) -> dict[str, type]:
    """Return the classes of options of a command's subcommands by name; none of a plain command."""
    found: dict[str, type] = {}
    for part in get_args(command):
        kind, *marks = get_args(part)
        found |= {mark.name: kind for mark in marks if getattr(mark, "name", None)}
    return found


def subcommand_list(name: str, command: Any, summary: str) -> str:
    """Return the help of a command with subcommands: a line on each of these."""
    kinds = subcommands(command)
    wide = max(map(len, kinds)) + 2
    lines = [f"turngym {name}: {summary}", ""]
    lines += [f"  {sub:{wide}}{read_docstring(kind).summary}" for sub, kind in kinds.items()]
    lines += ["", f"turngym {name} SUBCOMMAND -h shows its options, --help all about them."]
    return "\n".join(lines)


@dataclass(frozen=True)
class OptionGroup:
    """Options that belong together.

    Attributes:
        title: What they are; empty for the command's own.
        actions: The options as the parser has them (argparse's form).
    """

    title: str
    actions: tuple[Any, ...]


def make_parser(name: str, command: Any, start: Any = None) -> Any:
    """Return the parser of a command in argparse's form, which tyro keeps for such tools."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        given = {} if start is None else {"default": start}
        return tyro.extras.get_parser(command, prog=f"turngym {name}", **given)


def option_groups(parser: Any, command: Any) -> list[OptionGroup]:
    """Return the options of a parser in groups: the command's own first.

    Args:
        parser: As :func:`make_parser` makes it; of a subcommand, too.
        command: The class of options; a union of subcommands has the parser's own groups.
    """
    texts = read_docstring(command).arguments if isinstance(command, type) else {}
    found: dict[str, list[Any]] = {"": []}
    for group in parser._action_groups:
        own = group.title in ("options", "positional arguments")
        named = f"{group.title}: {_first_sentence(group.description or '')}".rstrip(": ")
        for action in group._group_actions:
            if action.dest == "help" or isinstance(action.choices, Mapping):
                continue
            field, dot, _ = action.dest.replace("-", "_").partition(".")
            inner = dot and not field.startswith("__")  # the parser's own, around a subcommand
            title = _first_sentence(texts.get(field, field)) if inner else ""
            found.setdefault(title if own else named, []).append(action)
    return [OptionGroup(title, tuple(some)) for title, some in found.items() if some]


def option_names(action: Any) -> list[str]:
    """Return how an option is typed; the opposite of one that begins with no- is its default."""
    return [name for name in action.option_strings if not name.startswith("--no-no-")]


def value_of(action: Any) -> str:
    """Return what an option takes, in a reader's words."""
    value = str(action.metavar or "")
    for word, plain in _VALUES.items():
        value = value.replace(word, plain)
    return value


def whole_help(name: str, command: type, start: Any = None, about: str = "") -> str:
    """Return all about the options of a command, in their groups."""
    doc = read_docstring(command)
    lines = [f"turngym {name}: {doc.summary}"]
    for text in (doc.body, about):
        lines += ["", _filled(text, "")] if text else []
    for group in option_groups(make_parser(name, command, start), command):
        lines += ["", group.title or "Options"]
        for action in group.actions:
            value = value_of(action)
            names = ", ".join(option_names(action))
            lines.append(f"  {names} {value}".rstrip() if names else f"  {value}")
            lines.append(_filled(action.help or "", " " * 8))
    return "\n".join(lines)


def _filled(text: str, margin: str) -> str:
    """Return a text in lines of the width; empty lines part paragraphs."""
    plain = _EMPTY_DEFAULT.sub("", text.replace("%%", "%"))
    return "\n\n".join(
        textwrap.fill(
            part, WIDTH, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
        )
        for part in plain.split("\n\n")
    )


def hide_empty_defaults(text: str) -> str:
    """Return the parser's own help without defaults of nothing; its boxes keep their width."""
    return _EMPTY_DEFAULT.sub(lambda found: " " * len(found[0]), text)


def in_plain_words(error: str) -> str:
    """Return what the parser says about a wrong option, without the words of Python."""
    return "\n".join(_reworded(line) for line in error.split("\n") if not _is_noise(line))


def _typed(command: type, field: str) -> str:
    """Return how an option is typed: by its name, or by its place."""
    marks = getattr(get_type_hints(command, include_extras=True)[field], "__metadata__", ())
    place = tyro.conf.Positional in marks
    return field.upper() if place else f"--{field.replace('_', '-')}"


def _names(kind: Any) -> Iterator[str]:
    """Yield the options of a group; those of a group in it, which has no prefix of its own, too."""
    hints = get_type_hints(kind, include_extras=True)
    for field, value in _options(kind):
        marks = getattr(hints[field], "__metadata__", ())
        if is_dataclass(value) and any(getattr(mark, "name", None) == "" for mark in marks):
            yield from _names(value)
        else:
            yield f"--{field.replace('_', '-')}"


def _options(kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and type of the fields of options."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        yield field.name, hints[field.name]


def _is_noise(line: str) -> bool:
    inside = _BOX.fullmatch(line.strip())
    return bool(_NONE.fullmatch((inside[1] if inside else line).rstrip()))


def _reworded(line: str) -> str:
    inside = _BOX.fullmatch(line)
    text = inside[1] if inside else line
    for pattern, words in _REWORDED:
        text = pattern.sub(words, text.rstrip())
    return f"│{text.ljust(len(inside[1]))}│" if inside else text


def _first_sentence(text: str) -> str:
    """Return a text up to its first full stop or semicolon.

    Those in brackets do not count, nor do semicolons behind a colon: they are those of a list.
    """
    plain, open_brackets = " ".join(text.replace("`", "").split()), 0
    for at, sign in enumerate(plain):
        open_brackets += (sign in "([") - (sign in ")]")
        marks = "." if ":" in plain[:at] else ".;"
        ends = sign in marks and plain[at + 1 : at + 2] == " " and _ends_word(plain[:at])
        if ends and open_brackets <= 0:
            return plain[:at]
    return plain.rstrip(".")


def _ends_word(text: str) -> bool:
    """Return whether a text ends as a sentence does, not in an abbreviation such as e.g."""
    return bool(re.search(r"[\w)\]\"']$", text)) and not re.search(r"\b\w\.\w$", text)


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 1].rsplit(" ", 1)[0] + " …"


def _wrapped(names: list[str]) -> Iterator[str]:
    line = " "
    for name in names:
        if len(line) + len(name) >= WIDTH:
            yield line
            line = " "
        line += f" {name}"
    yield line
