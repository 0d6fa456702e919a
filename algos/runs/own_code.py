"""Tell whether parts of a user's own are still the code that a run began with."""

from __future__ import annotations

import dataclasses
import functools
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from ...envs.core.digest import digest_of

_OURS = {"turngym", *sys.stdlib_module_names}


def own_classes(things: Iterable[Any]) -> dict[str, str]:
    """Return a hash of the code of every class that is the user's own, by its full name.

    What counts is what the interpreter runs, not comments or layout; functions that a class calls
    beside its own methods are not looked at. The hashes are comparable within a version of Python.

    Args:
        things: Parts of an algorithm, with whatever they hold in their fields, and environments.
    """
    found: dict[str, str] = {}
    for thing in things:
        for one in _held(thing):
            for base in type(one).__mro__:
                if base.__module__.partition(".")[0] not in _OURS:
                    found[f"{base.__module__}.{base.__qualname__}"] = _digest(base)
    return dict(sorted(found.items()))


def changed_code(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return which classes and plugins differ between two entries of ``versions.json``.

    Args:
        before: The earlier entry.
        now: The later one.
    """
    kinds = ["plugins"]
    if before.get("python") == platform.python_version():
        kinds.append("own_classes")
    pairs = [(before.get(kind, {}), now.get(kind, {})) for kind in kinds]
    return [name for a, b in pairs for name in a.keys() & b.keys() if a[name] != b[name]]


def _held(thing: Any) -> Iterator[Any]:
    if isinstance(thing, tuple | list):
        for one in thing:
            yield from _held(one)
        return
    yield thing
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            yield from _held(getattr(thing, field.name))


def _digest(kind: type) -> str:
    said = []
    for name, value in sorted(vars(kind).items()):
        for function in _functions(value):
            defaults = function.__defaults__, function.__kwdefaults__
            said.append([name, _words(function.__code__), _plain(defaults)])
        if isinstance(value, str | int | float | tuple) and not name.startswith("__"):
            said.append([name, _plain(value)])
    return digest_of(said)


def _functions(value: Any) -> list[FunctionType]:
    if isinstance(value, property):
        value = [value.fget, value.fset, value.fdel]
    elif isinstance(value, staticmethod | classmethod):
        value = [value.__func__]
    elif isinstance(value, functools.cached_property):
        value = [value.func]
    else:
        value = [value]
    return [one for one in value if isinstance(one, FunctionType)]


def _words(code: CodeType) -> list[Any]:
    constants = [_words(c) if isinstance(c, CodeType) else _plain(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), list(code.co_varnames), constants]


def _plain(value: Any) -> Any:
    """Return what is the same in every process: of an object without such a form its kind."""
    if isinstance(value, tuple | frozenset):
        return type(value)(map(_plain, value))
    known = value is None or isinstance(value, str | bytes | int | float)
    return value if known else type(value).__qualname__
