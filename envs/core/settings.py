"""Checks of the settings that environments and tools are made with."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .errors import BadValueError, UnknownNameError


def check_settings(cls: type, settings: Iterable[str]) -> None:
    """Refuse names that the constructor of ``cls`` does not take.

    Raises:
        UnknownNameError: Such a name; with the nearest that it takes.
    """
    known = inspect.signature(cls.__init__).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
        return
    names = [name for name in known if name != "self"]
    for name in settings:
        if name not in names:
            raise UnknownNameError("setting", name, names, cls.__name__)


def check_integer(name: str, value: Any, where: str, *, min: int, max: int | None = None) -> int:
    """Return ``value`` if it is an integer (True and False are none) within its bounds.

    Args:
        name: Name of the setting.
        value: What it was set to.
        where: What has the setting, for the message.
        min: Smallest value that is allowed.
        max: Largest value that is allowed, None when there is none.

    Raises:
        BadValueError: It is no integer, or out of bounds.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and min <= value and (max is None or value <= max):
        return value
    wanted = f"of at least {min}" if max is None else f"from {min} to {max:,}"
    raise BadValueError(f"{where}: {name} is {value!r}; expected an integer {wanted}.")


def check_number(
    name: str,
    value: Any,
    where: str,
    *,
    min: float = -math.inf,
    max: float = math.inf,
    above: float = -math.inf,
) -> float:
    """Return ``value`` as a float if it is a finite number (no bool) within its bounds.

    Args:
        name: Name of the setting.
        value: What it was set to.
        where: What has the setting, for the message.
        min: Smallest value that is allowed.
        max: Largest value that is allowed.
        above: A bound below, itself not allowed.

    Raises:
        BadValueError: It is no number, or out of bounds.
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
