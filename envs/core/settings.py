"""Checks of settings."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from .errors import BadValueError, UnknownNameError


def check_settings(cls: type, settings: Iterable[str]) -> None:
    """Reject names that the constructor of ``cls`` does not take.

    Raises:
        UnknownNameError: An unknown name; the message suggests the nearest.
    """
    known = inspect.signature(cls.__init__).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
        return
    names = [name for name in known if name != "self"]
    for name in settings:
        if name not in names:
            raise UnknownNameError("setting", name, names, cls.__name__)


def check_kinds(cls: type, settings: Mapping[str, Any]) -> None:
    """Reject settings that ``cls`` does not take, and values that it does not declare.

    Raises:
        UnknownNameError: Names a setting that the constructor does not take, and the nearest.
        BadValueError: One is of another kind.
    """
    check_settings(cls, settings)
    check_declared(cls.__init__, cls.__name__, settings)


def check_declared(function: Callable[..., Any], where: str, given: Mapping[str, Any]) -> None:
    """Reject arguments of another kind than the function declares.

    Texts, bools, paths, mappings and lists of these are compared; numbers and objects are left to
    the function, which knows their bounds and methods.

    Raises:
        BadValueError: Names the argument.
    """
    known = inspect.signature(function).parameters
    for name, value in given.items():
        if name not in known or value is known[name].default:  # of **settings: not ours to say
            continue
        kind = _read_kind(function, name)
        if not _is_of(value, kind):
            raise BadValueError(f"{where}: {name} is {value!r:.100}; expected {_describe(kind)}.")


def _read_kind(function: Any, name: str) -> Any:
    """Return what a function declares for an argument."""
    declared = SimpleNamespace(__annotations__={name: function.__annotations__.get(name, Any)})
    with suppress(NameError):  # a name that is imported for type checkers alone
        return get_type_hints(declared, function.__globals__)[name]
    return Any


def _is_of(value: Any, kind: Any) -> bool:
    """Return whether a value is of a declared kind; True where it is not for us to say."""
    if kind in (NoneType, str):
        return isinstance(value, kind)
    if kind is bool:
        return isinstance(value, (bool, np.bool_))
    outer, inner = get_origin(kind), get_args(kind)
    if outer in (Union, UnionType):
        return any(_is_of(value, one) for one in inner)
    if Path in (kind, outer) or os.PathLike in (kind, outer):
        return isinstance(value, os.PathLike)
    if not isinstance(outer, type) or not issubclass(outer, Iterable):
        return True
    if issubclass(outer, Mapping):
        return isinstance(value, Mapping)
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
        return False
    # an iterator is used up by looking
    return not isinstance(value, Collection) or all(_is_of(one, inner[0]) for one in value)


def _describe(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_describe, get_args(kind))))
    words = {NoneType: "None", str: "a text", bool: "True or False"}
    if kind in words:
        return words[kind]
    outer = get_origin(kind) or kind
    if outer in (Path, os.PathLike):
        return "a path"
    if issubclass(outer, Mapping):
        return "a mapping"
    return "a list of texts" if get_args(kind)[:1] == (str,) else "a list"


@cache
def field_types(kind: type) -> Mapping[str, Any]:
    """Return the declared types of a class's fields; reading them out of texts takes long."""
    return get_type_hints(kind)


def check_choices(settings: Any) -> None:
    """Refuse fields of a dataclass that are none of their declared choices (``Literal``).

    Raises:
        BadValueError: One is.
    """
    for name, kind in field_types(type(settings)).items():
        if get_origin(kind) is Literal and getattr(settings, name) not in get_args(kind):
            known = " or ".join(repr(choice) for choice in get_args(kind))
            raise BadValueError(f"{_field(settings, name)}; expected {known}.")


def check_integers(settings: Any) -> None:
    """Refuse fields of a dataclass that are declared as integers, and are none.

    Raises:
        BadValueError: One is.
    """
    for name, kind in field_types(type(settings)).items():
        kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        if int not in kinds or float in kinds:
            continue
        value, optional = getattr(settings, name), type(None) in kinds
        if not isinstance(value, int) or isinstance(value, bool):
            if value is None and optional:
                continue
            wanted = "an integer, or None" if optional else "an integer"
            raise BadValueError(f"{_field(settings, name)}; expected {wanted}.")


def check_parts(settings: Any) -> None:
    """Refuse fields of a dataclass that are declared as other ones, or tuples of them, and are not.

    Raises:
        BadValueError: One is.
    """
    for name, kind in field_types(type(settings)).items():
        value, several = getattr(settings, name), get_origin(kind) is tuple
        optional = get_origin(kind) in (Union, UnionType)
        kinds = get_args(kind) if several or optional else (kind,)
        parts = tuple(k for k in kinds if isinstance(k, type) and is_dataclass(k))
        if not parts or (optional and value is None):
            continue
        part = parts[0].__name__
        if several and not (
            isinstance(value, (tuple, list)) and all(isinstance(one, parts) for one in value)
        ):
            raise BadValueError(f"{_field(settings, name)}; expected a tuple of {part}(...).")
        if not several and not isinstance(value, parts):
            wanted = f"{part}(...)" + (", or None" if optional else "")
            raise BadValueError(f"{_field(settings, name)}; expected {wanted}.")


def _field(settings: Any, name: str) -> str:
    return f"{type(settings).__name__}.{name} is {getattr(settings, name)!r}"


def check_integer(name: str, value: Any, where: str, *, min: int, max: int | None = None) -> int:
    """Return ``value`` if it is an integer (not a bool) within its bounds.

    Args:
        name: Name of the setting.
        value: Its value.
        where: Owner of the setting, for the message.
        min: Smallest allowed value.
        max: Largest allowed value; None for no limit.

    Raises:
        BadValueError: It is not an integer, or out of bounds.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and min <= value and (max is None or value <= max):
        return value
    wanted = f"of at least {min}" if max is None else f"from {min} to {max:,}"
    raise BadValueError(f"{where}: {name} is {value!r}; expected an integer {wanted}.")


def check_bool(name: str, value: Any, where: str) -> bool:
    """Return ``value`` if it is true or false, of Python or NumPy, and no word such as "no".

    Args:
        name: Name of the setting.
        value: Its value.
        where: Owner of the setting, for the message.

    Raises:
        BadValueError: It is something else.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise BadValueError(f"{where}: {name} is {value!r}; expected True or False.")


def check_number(
    name: str,
    value: Any,
    where: str,
    *,
    min: float = -math.inf,
    max: float = math.inf,
    above: float = -math.inf,
) -> float:
    """Return ``value`` as a float if it is a finite number (not a bool) within its bounds.

    Args:
        name: Name of the setting.
        value: Its value.
        where: Owner of the setting, for the message.
        min: Smallest allowed value.
        max: Largest allowed value.
        above: Exclusive lower bound.

    Raises:
        BadValueError: It is not a number, or out of bounds.
    """
    real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if real and min <= value <= max and above < value and math.isfinite(value):
        return float(value)
    if above > -math.inf:
        wanted = f" above {above:g}"
    elif max < math.inf:
        wanted = f" from {min:g} to {max:g}"
    else:
        wanted = f" of at least {min:g}" if min > -math.inf else ""
    raise BadValueError(f"{where}: {name} is {value!r}; expected a number{wanted}.")
