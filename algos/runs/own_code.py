"""Tell whether parts of a user's own are still the code that a run began with."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from ...envs.core.digest import digest_of
from ...envs.core.plugins import plugin_versions

_OURS = {"turngym", *sys.stdlib_module_names}
_INSTALLED = tuple({sysconfig.get_path(kind) + os.sep for kind in ("purelib", "platlib")})


def own_classes(things: Iterable[Any]) -> dict[str, str]:
    """Return a hash of the code of every class that is the user's own, by its full name.

    What counts is what the interpreter runs, not comments or layout; functions that a class calls
    beside its own methods are not looked at. The hashes are comparable within a version of Python.

    Args:
        things: Parts of an algorithm, with whatever they hold in their fields, and environments.
    """
    found: dict[str, str] = {}
    for thing in things:
        for one in _held(thing, set()):
            for base in type(one).__mro__:
                if _is_own(base):
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


def _held(thing: Any, seen: set[int]) -> Iterator[Any]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    yield thing
    inner: Iterable[Any] = ()
    if isinstance(thing, tuple | list):
        inner = thing
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        inner = [getattr(thing, field.name, None) for field in dataclasses.fields(thing)]
    for one in inner:
        yield from _held(one, seen)


def _is_own(kind: type) -> bool:
    """Return whether a class is neither turngym's, nor Python's, nor an installed package's."""
    name = kind.__module__
    root = name.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return root not in _OURS and (not file.startswith(_INSTALLED) or root in plugin_versions())


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
    wrapped = [inspect.unwrap(one) for one in value if callable(one)]
    return [*dict.fromkeys(one for one in (*value, *wrapped) if isinstance(one, FunctionType))]


def _words(code: CodeType) -> list[Any]:
    constants = [_words(c) if isinstance(c, CodeType) else _plain(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), list(code.co_varnames), constants]


def _plain(value: Any) -> Any:
    """Return what is the same in every process: of an object without such a form its kind."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, frozenset):
        return frozenset(map(_plain, value))
    known = value is None or isinstance(value, str | bytes | int | float)
    return value if known else type(value).__qualname__
