"""What every credit rule refuses: settings out of range, and annotations of the wrong length."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ...envs.errors import BadValueError
from ..contracts import Floats


def check_choices(rule: Any) -> None:
    """Refuse settings that are none of their declared choices.

    Raises:
        BadValueError: One is.
    """
    for name, kind in get_type_hints(type(rule)).items():
        if get_origin(kind) is Literal and getattr(rule, name) not in get_args(kind):
            known = " or ".join(repr(choice) for choice in get_args(kind))
            raise BadValueError(f"{_setting(rule, name)}; expected {known}.")


def check_shares(rule: Any, *names: str) -> None:
    """Refuse settings outside of [0, 1].

    Raises:
        BadValueError: One is.
    """
    for name in names:
        if not 0.0 <= getattr(rule, name) <= 1.0:
            raise BadValueError(f"{_setting(rule, name)}; expected a value in [0, 1].")


def check_weights(rule: Any, *names: str) -> None:
    """Refuse settings that are not finite or below 0.

    Raises:
        BadValueError: One is.
    """
    for name in names:
        if not 0.0 <= getattr(rule, name) < math.inf:
            raise BadValueError(f"{_setting(rule, name)}; expected 0 or more.")


def check_above_zero(rule: Any, *names: str) -> None:
    """Refuse settings that are not finite, 0 or below.

    Raises:
        BadValueError: One is.
    """
    for name in names:
        if not 0.0 < getattr(rule, name) < math.inf:
            raise BadValueError(f"{_setting(rule, name)}; expected a value above 0.")


def check_values(rule: Any, values: Floats, n_act: int) -> None:
    """Refuse critic values that do not fit a path of ``n_act`` action tokens.

    Raises:
        BadValueError: The shape is another one.
    """
    if values.shape != (n_act + 1,):
        raise BadValueError(
            f"{type(rule).__name__}: values have shape {values.shape}; expected ({n_act + 1},), "
            "one before each action token and one after the last."
        )


def _setting(rule: Any, name: str) -> str:
    return f"{type(rule).__name__}.{name} is {getattr(rule, name)!r}"
