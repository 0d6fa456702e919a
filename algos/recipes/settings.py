"""Change single settings of a recipe by name, as a command line does."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from ...envs.core.errors import BadValueError, UnknownNameError
from ...envs.core.settings import field_types
from ..core.recipe import Recipe

FIXED = frozenset({"name", "paper"})
LISTS = frozenset({"annotators", "shapers"})
"""Fields that hold several parts, each found by its class name (``shapers.overlong.limit``)."""
HOOKS = frozenset({"filter", "tracker"})
"""Fields that hold a part or none; where there is none, it has no settings."""


class Setting(NamedTuple):
    """One setting of a recipe: its dotted name, what it holds, and its declared type."""

    path: str
    value: Any
    kind: Any


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """Return every setting by its dotted name, exchangeable parts by their short names.

    For example ``{"rollout.n": 5, "loss.aggregate": "token-mean", "optim.lr": 1e-06, ...}``: plain
    values, and what :func:`with_settings` takes.
    """
    return {s.path: getattr(s.value, "name", s.value) for s in _settings(_parts(recipe))}


def with_settings(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    """Return a copy of ``recipe`` with some settings changed.

    They are put in one after the other, so that a part can be exchanged and then set, and checked
    together at the end: limits that depend on each other may come in any order.

    Args:
        recipe: What to start from.
        settings: Values by dotted name (``"optim.lr"``), or by its end where only one setting
            ends so (``"lr"``). A value is what the setting holds, or its text as typed on a
            command line (``"none"``, ``"true"``, ``"0.28"``, ``"token-mean"``).

    Raises:
        UnknownNameError: No such setting or choice; the nearest is named.
        BadValueError: A name that fits several settings, a value that cannot be read, or a
            combination that a part or the recipe refuses.
    """
    parts = _parts(recipe)
    for name, value in settings.items():
        found = _find(recipe.name, name, list(_settings(parts)))
        first, *rest = found.path.split(".")
        parts[first] = _put(parts[first], rest, _read(value, found))
    return Recipe(**{name: _checked(part) for name, part in parts.items()})


def _checked(part: Any) -> Any:
    """Rebuild the value: every part checks its settings when it is constructed."""
    if isinstance(part, tuple):
        return tuple(_checked(p) for p in part)
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    inner = {f.name: _checked(getattr(part, f.name)) for f in dataclasses.fields(part) if f.init}
    return dataclasses.replace(part, **inner)


def _parts(recipe: Recipe) -> dict[str, Any]:
    return {f.name: getattr(recipe, f.name) for f in dataclasses.fields(recipe)}


def _settings(parts: Mapping[str, Any]) -> Iterator[Setting]:
    hints = field_types(Recipe)
    for name, value in parts.items():
        if name in LISTS:
            for part in value:
                if dataclasses.is_dataclass(part):
                    yield from _inside(Setting(f"{name}.{_word(part)}", part, type(part)))
        elif name not in FIXED and not (name in HOOKS and value is None):
            yield from _inside(Setting(name, value, hints[name]))


def setting_word(kind: str) -> str:
    """Return a part's class name as its settings name it: ``multi_tool_bonus``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()


def _word(part: Any) -> str:
    return setting_word(type(part).__name__)


def _inside(setting: Setting) -> Iterator[Setting]:
    """Yield the setting itself when it can be set, and all settings inside it."""
    path, value, kind = setting
    if not dataclasses.is_dataclass(value):
        yield setting
        return
    if _choices(kind):
        yield setting
    hints = field_types(type(value))
    for f in dataclasses.fields(value):
        yield from _inside(Setting(f"{path}.{f.name}", getattr(value, f.name), hints[f.name]))


def _find(recipe: str, name: str, known: list[Setting]) -> Setting:
    exact = [s for s in known if s.path == name]
    ends = [s for s in known if s.path.endswith(f".{name}")]
    within = [s for s in known if f".{name}." in f".{s.path}" and s not in ends]
    hits = exact or ends + within
    if not hits:
        raise UnknownNameError("setting", name, [s.path for s in known], f"recipe {recipe!r}")
    if len(hits) > 1 or hits[0] in within:
        raise BadValueError(
            f"recipe {recipe!r}: setting {name!r} could be {' or '.join(s.path for s in hits)}; "
            "say which."
        )
    return hits[0]


def _put(part: Any, rest: list[str], value: Any) -> Any:
    if not rest:
        return value
    if isinstance(part, tuple):
        return tuple(_put(p, rest[1:], value) if _word(p) == rest[0] else p for p in part)
    draft = copy.copy(part)
    object.__setattr__(draft, rest[0], _put(getattr(part, rest[0]), rest[1:], value))
    return draft


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _choices(kind: Any) -> dict[str, Any]:
    """Return the parts that are allowed here, by short name."""
    parts: list[Any] = [o for o in _options(kind) if dataclasses.is_dataclass(o)]
    return {part.name: part for part in parts if hasattr(part, "name")}


def _read(value: Any, setting: Setting) -> Any:
    """Return ``value`` as the setting's type."""
    choices = _choices(setting.kind)
    if choices:
        if isinstance(value, tuple(choices.values())):
            return value
        if value not in choices:
            raise UnknownNameError("choice", value, choices, setting.path)
        return choices[value]()
    for option in _options(setting.kind):
        if get_origin(option) is Literal and value not in get_args(option):
            raise UnknownNameError("choice", value, get_args(option), setting.path)
        try:
            return _as(value, option)
        except (ValueError, TypeError, OverflowError):  # the last of infinity as a whole number
            continue
    wanted = " or ".join(_name_of(o) for o in _options(setting.kind))
    raise BadValueError(f"{setting.path}: got {value!r:.100}; expected {wanted}.")


def _as(value: Any, kind: Any) -> Any:
    """Convert without guessing: ValueError or TypeError when ``value`` is something else."""
    if get_origin(kind) is Literal:
        return value
    if get_origin(kind) is tuple:
        return _as_tuple(value, get_args(kind))
    if kind is types.NoneType:
        if value is None or str(value).lower() == "none":
            return None
        raise ValueError
    if kind is bool:
        words = {"true": True, "false": False, "yes": True, "no": False}
        if str(value).lower() not in words:
            raise ValueError
        return words[str(value).lower()]
    if isinstance(value, bool) or value is None:
        raise TypeError
    made = kind(value)
    if kind is int and not isinstance(value, str) and made != value:
        raise ValueError
    return made


def _as_tuple(value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert a fixed number of items, or any number of one type (``tuple[str, ...]``)."""
    items = value.strip("() ").rstrip(",").split(",") if isinstance(value, str) else list(value)
    items = [i.strip(" '\"") if isinstance(i, str) else i for i in items]
    if kinds[1:] == (...,):
        kinds = tuple(itertools.repeat(kinds[0], len(items)))
    return tuple(_as(i, k) for i, k in zip(items, kinds, strict=True))


def _name_of(kind: Any) -> str:
    if kind is types.NoneType:
        return "none"
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, str(kind))
