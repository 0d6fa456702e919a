"""Arguments of several commands: settings, files to write, addresses, what goes together."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import tyro

from ...envs.core.errors import BadValueError, DataError
from ...envs.core.plugins import loaded_plugins
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.disk_errors import check_writable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]
"""An option that may be given several times."""
RunDir = Annotated[str | None, tyro.conf.arg(aliases=("--out",))]
"""The folder of a run, which other commands call what they write to."""
MAY_BE_EMPTY = object()
"""Marks an option whose empty text has a meaning of its own, which its help tells."""
GROUPS = ("env", "recipe")
_MAX_WORKERS = 1024


def expand_dotted(words: Sequence[str]) -> list[str]:
    """Turn ``--env.hops 2`` and ``--env.hops=2`` into ``--env-arg hops=2``; ``--recipe.`` alike.

    Raises:
        BadValueError: A dotted option without a name or a value.
    """
    out: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        group, dot, key = word.removeprefix("--").partition(".")
        if not (word.startswith("--") and dot and group in GROUPS):
            out.append(word)
            continue
        if not key.partition("=")[0]:
            raise BadValueError(f"{word}: expected the name of a setting after the dot.")
        if "=" not in key:
            if not rest or rest[0].startswith("--"):
                raise BadValueError(f"{word}: expected a value after it, as in {word} 2.")
            key = f"{key}={rest.pop(0)}"
        out += [f"--{group}-arg", key]
    return out


def pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """Return ``["a=1", "b=x"]`` as a dictionary of texts.

    Raises:
        BadValueError: A word without ``=``, or a name given twice.
    """
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise BadValueError(f"{option} {word}: expected name=value.")
        if key in found:
            raise BadValueError(f"{option} {word}: {key} was given twice.")
        found[key] = value
    return found


def values(words: Sequence[str], option: str) -> dict[str, Any]:
    """Return the same with values read as JSON where they are JSON, else as text."""
    return {key: _value(text) for key, text in pairs(words, option).items()}


def output_file(name: str) -> Path:
    """Return the path of a file to write; its folder is made.

    Raises:
        BadValueError: It is a folder, its folder cannot be made, or it may not be written to.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        raise BadValueError(f"{path}: is a folder; expected a file to write.")
    make_folder(path.parent)
    check_writable(path)
    return path


def new_folder(name: str) -> Path:
    """Return the path of a folder to write, which must be new or empty.

    Raises:
        BadValueError: It holds something, cannot be made, or may not be written to.
    """
    path = Path(name).expanduser()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BadValueError(f"--out {path}: holds files; choose a new folder, or empty this one.")
    make_folder(path.parent)
    check_writable(path)
    return path


def home_there(path: Path) -> Path:
    """Return the folder of a leaderboard's server, which has been there before.

    Raises:
        DataError: There is no such folder.
    """
    if not path.is_dir():
        raise DataError(
            f"--home {path}: there is no such folder; expected that of a server, as `turngym "
            "leaderboard serve --home` has it."
        )
    return path


def given(options: object, *names: str) -> dict[str, Any]:
    """Return those of the named options that were given, which are not None."""
    return {n: value for n in names if (value := getattr(options, n)) is not None}


def refuse_others(command: DataclassInstance, mode: str, takes: Collection[str]) -> None:
    """Refuse options that a mode of a command would ignore.

    Args:
        command: The options.
        mode: The mode, as in ``bench --report``.
        takes: Names of the fields that the mode reads, those of nested options among them.

    Raises:
        BadValueError: Others differ from their defaults.
    """
    wrong = [option for name, option in _given_options(command) if name not in takes]
    if wrong:
        known = [option for name, option in _all_options(command) if name in takes]
        own = [option for option in known if option not in mode.split()]
        only = f", which takes {_and(own)}" if own else ", which takes no other option"
        raise BadValueError(
            f"{_and(wrong)} {'do' if len(wrong) > 1 else 'does'} not go with {mode}{only}."
        )


def refuse_without(command: DataclassInstance, needed: str, names: Collection[str]) -> None:
    """Refuse options that do nothing without another one.

    Args:
        command: The options.
        needed: The other option, as it is typed; it was not given.
        names: Names of the fields that need it, those of nested options among them.

    Raises:
        BadValueError: One of them differs from its default.
    """
    wrong = [option for name, option in _given_options(command) if name in names]
    if wrong:
        raise BadValueError(f"{_and(wrong)} {'need' if len(wrong) > 1 else 'needs'} {needed}.")


def refuse_empty(command: DataclassInstance) -> None:
    """Refuse options that were given an empty text, as a shell variable that is not set gives it.

    An empty path is the working folder, and an empty name one that nothing has. Options that are
    marked :data:`MAY_BE_EMPTY` are let pass.

    Raises:
        BadValueError: One is empty, or nothing but blanks.
    """
    hints = get_type_hints(type(command), include_extras=True)
    free = {n for n, hint in hints.items() if MAY_BE_EMPTY in getattr(hint, "__metadata__", ())}
    given = set(_given_options(command))
    needed = {f.name for f in fields(command) if f.default is f.default_factory is MISSING}
    given |= {at for at in _all_options(command) if at[0] in needed}
    for at, value in _leaves(command):
        if at not in given or at[0] in free:
            continue
        texts = value if isinstance(value, tuple) else (value,)
        if any(isinstance(text, str) and not text.strip() for text in texts):
            raise BadValueError(
                f"{at[1]}: was given an empty text; expected a value after it, or leave it out. Is "
                "a variable of the shell not set?"
            )


def check_workers(count: int) -> int:
    """Return a number of processes.

    Raises:
        BadValueError: Less than one, or more than a machine starts.
    """
    if not 1 <= count <= _MAX_WORKERS:
        least = "at least 1" if count < 1 else f"at most {_MAX_WORKERS:,}, a process each"
        raise BadValueError(f"--workers {count}: expected {least}.")
    return count


def _given_options(command: DataclassInstance) -> list[tuple[str, str]]:
    """Return the fields that differ from their defaults, each with its option."""
    usual = {}
    for field in fields(command):
        if field.default_factory is not MISSING:
            usual[field.name] = field.default_factory()
        else:  # what has no default has to be given, and goes with everything
            usual[field.name] = getattr(command, field.name)
            if field.default is not MISSING:
                usual[field.name] = field.default
    before = dict(_leaves(replace(command, **usual)))
    return [at for at, value in _leaves(command) if value != before[at]]


def _all_options(command: DataclassInstance) -> list[tuple[str, str]]:
    return [at for at, _ in _leaves(command)]


def _leaves(
    options: DataclassInstance, prefix: str = "--"
) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield name, option and value of every field; those of nested options in place of these."""
    hints = get_type_hints(type(options), include_extras=True)
    for field in fields(options):
        value, option = getattr(options, field.name), prefix + field.name.replace("_", "-")
        marks = getattr(hints[field.name], "__metadata__", ())
        if is_dataclass(value) and not isinstance(value, type):
            flat = any(getattr(mark, "name", None) == "" for mark in marks)
            yield from _leaves(value, prefix if flat else f"{option}.")
        else:
            place = tyro.conf.Positional in marks
            yield (field.name, field.name.upper() if place else option), value


def _and(options: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(options[:-1]), options[-1])))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"None": None, "True": True, "False": False}.get(text, text)


def plugin_words() -> str:
    """Return the ``--plugin`` options that another command needs to see the same; may be empty."""
    files = [Path(one.path) for one in loaded_plugins() if not one.module]
    here = Path.cwd()
    shown = [file.relative_to(here) if file.is_relative_to(here) else file for file in files]
    modules = [one.module for one in loaded_plugins() if one.module]
    return "".join(f" --plugin {quote(str(word))}" for word in (*modules, *shown))
