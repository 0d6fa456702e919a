"""Range and choice checks of the settings of algorithm parts."""

from __future__ import annotations

import math
from typing import Any

from ...envs.core.errors import BadValueError
from ...envs.core.settings import check_choices

__all__ = [
    "check_above_zero",
    "check_choices",
    "check_minimum",
    "check_seed",
    "check_shares",
    "check_weights",
]


def check_minimum(rule: Any, **bounds: float) -> None:
    """Refuse settings that are not finite or below their lower bound.

    Raises:
        BadValueError: One is.
    """
    for name, low in bounds.items():
        if not low <= getattr(rule, name) < math.inf:
            raise BadValueError(f"{_setting(rule, name)}; expected at least {low}.")


def check_seed(rule: Any, name: str = "seed") -> None:
    """Refuse a seed that is below 0, or more than 63 bits hold.

    Raises:
        BadValueError: It is.
    """
    if not 0 <= getattr(rule, name) < 2**63:
        raise BadValueError(f"{_setting(rule, name)}; expected a number from 0 to 2**63 - 1.")


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


def _setting(rule: Any, name: str) -> str:
    return f"{type(rule).__name__}.{name} is {getattr(rule, name)!r}"
