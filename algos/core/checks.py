"""Range and choice checks of the settings of algorithm parts."""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Any

from ...envs.core.errors import BadValueError
from ...envs.core.settings import check_choices

__all__ = [
    "check_above_zero",
    "check_choices",
    "check_minimum",
    "check_numbers",
    "check_seed",
    "check_shares",
    "check_weights",
    "is_number",
]


def is_number(value: Any, *, whole: bool = False) -> bool:
    """Whether ``value`` is a real number, or an integer if ``whole``, of Python or NumPy."""
    kind = numbers.Integral if whole else numbers.Real
    return isinstance(value, kind) and not isinstance(value, bool)


def check_minimum(rule: Any, **bounds: float) -> None:
    """Refuse settings that are no numbers, not finite or below their lower bound.

    Raises:
        BadValueError: One is.
    """
    for name, low in bounds.items():
        if not low <= _number(rule, name) < math.inf:
            raise BadValueError(f"{_setting(rule, name)}; expected at least {low}.")


def check_seed(rule: Any, name: str = "seed") -> None:
    """Refuse a seed that is no integer, below 0, or more than 63 bits hold.

    Raises:
        BadValueError: It is.
    """
    if not 0 <= _number(rule, name) < 2**63:
        raise BadValueError(f"{_setting(rule, name)}; expected a number from 0 to 2**63 - 1.")


def check_shares(rule: Any, *names: str) -> None:
    """Refuse settings that are no numbers in [0, 1].

    Raises:
        BadValueError: One is.
    """
    for name in names:
        if not 0.0 <= _number(rule, name) <= 1.0:
            raise BadValueError(f"{_setting(rule, name)}; expected a value in [0, 1].")


def check_weights(rule: Any, *names: str) -> None:
    """Refuse settings that are no numbers, not finite or below 0.

    Raises:
        BadValueError: One is.
    """
    for name in names:
        if not 0.0 <= _number(rule, name) < math.inf:
            raise BadValueError(f"{_setting(rule, name)}; expected 0 or more.")


def check_above_zero(rule: Any, *names: str) -> None:
    """Refuse settings that are no numbers, not finite, 0 or below.

    Raises:
        BadValueError: One is.
    """
    for name in names:
        if not 0.0 < _number(rule, name) < math.inf:
            raise BadValueError(f"{_setting(rule, name)}; expected a value above 0.")


def check_numbers(rule: Any) -> None:
    """Refuse fields of a dataclass that are declared as numbers, and are none.

    Raises:
        BadValueError: One is.
    """
    for field in dataclasses.fields(rule):
        kind, _, none = str(field.type).partition(" | ")
        if kind in ("int", "float") and not (none and getattr(rule, field.name) is None):
            _number(rule, field.name)


def _number(rule: Any, name: str) -> float:
    """Return a setting that is a number, and an integer where its dataclass declares one."""
    value = getattr(rule, name)
    declared = getattr(rule, "__dataclass_fields__", {}).get(name)
    whole = declared is not None and declared.type in ("int", "int | None")
    if not is_number(value, whole=whole):
        wanted = "an integer" if whole else "a number"
        raise BadValueError(f"{_setting(rule, name)}; expected {wanted}.")
    return value


def _setting(rule: Any, name: str) -> str:
    return f"{type(rule).__name__}.{name} is {getattr(rule, name)!r}"
