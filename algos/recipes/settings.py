"""Change single settings of a recipe by name, as a command line does."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from ...envs.errors import BadValueError, UnknownNameError
from ..recipe import Recipe

FIXED = frozenset({"name", "paper", "annotators", "shapers"})


class Setting(NamedTuple):
    """One setting of a recipe: its dotted name, what it holds, and its declared type."""

    path: str
    value: Any
    kind: Any


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """Every setting by its dotted name, exchangeable parts by their short names.

    For example ``{"rollout.n": 5, "loss.aggregate": "token-mean", "optim.lr": 1e-06, ...}``: plain
    values, and what :func:`with_settings` takes.
    """
    return {s.path: getattr(s.value, "name", s.value) for s in _settings(_parts(recipe))}


def with_settings(recipe: Recipe, settings: Mapping[str, Any]) -> Recipe:
    """A copy of ``recipe`` with some settings changed, in the given order.

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
    return Recipe(**parts)


def _parts(recipe: Recipe) -> dict[str, Any]:
    return {f.name: getattr(recipe, f.name) for f in dataclasses.fields(recipe)}


def _settings(parts: Mapping[str, Any]) -> Iterator[Setting]:
    hints = get_type_hints(Recipe)
    for name, value in parts.items():
        if name not in FIXED:
            yield from _inside(Setting(name, value, hints[name]))


def _inside(setting: Setting) -> Iterator[Setting]:
    """The setting itself when it can be set, and all that it holds."""
    path, value, kind = setting
    if not dataclasses.is_dataclass(value):
        yield setting
        return
    if _choices(kind):
        yield setting
    hints = get_type_hints(type(value))
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
    inner = _put(getattr(part, rest[0]), rest[1:], value)
    return dataclasses.replace(part, **{rest[0]: inner})


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _choices(kind: Any) -> dict[str, Any]:
    """Parts that may stand here, by short name."""
    parts: list[Any] = [o for o in _options(kind) if dataclasses.is_dataclass(o)]
    return {part.name: part for part in parts if hasattr(part, "name")}


def _read(value: Any, setting: Setting) -> Any:
    """``value`` as the setting's type."""
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
        except (ValueError, TypeError):
            continue
    wanted = " or ".join(_name_of(o) for o in _options(setting.kind))
    raise BadValueError(f"{setting.path}: got {value!r}; expected {wanted}.")


def _as(value: Any, kind: Any) -> Any:
    """Convert without guessing: ValueError or TypeError when ``value`` is something else."""
    if get_origin(kind) is Literal:
        return value
    if get_origin(kind) is tuple:
        items = value.strip("() ").split(",") if isinstance(value, str) else list(value)
        pairs = zip(items, get_args(kind), strict=True)
        return tuple(_as(i.strip() if isinstance(i, str) else i, k) for i, k in pairs)
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


def _name_of(kind: Any) -> str:
    if kind is types.NoneType:
        return "none"
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, str(kind))
