"""What an environment answers and reports of an episode, checked where it is taken.

Rewards are trained on, metrics are averaged and debug info is written as JSON, much later and for
many episodes at once: a value that cannot be would end a run there, and nobody could say which
episode it came from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from .episode import Outcome
from .errors import EnvFault

_PLAIN = (str, int, float, bool, type(None))
OF_EVERY_EPISODE = ("success", "return", "turns", "invalid_actions")
"""Metrics that every environment has, by what happened."""
_VERDICTS = (None, -1, 0, 1)
_STATUSES = ("running", "solved", "failed", "truncated")


def check_begun(begun: Any, name: str) -> None:
    """Check what ``begin`` returned.

    Raises:
        TypeError: No pair of state and text; ``name`` is that of the environment's class.
    """
    if not isinstance(begun, tuple) or len(begun) != 2:
        given = f"{len(begun)} values" if isinstance(begun, tuple) else f"a {type(begun).__name__}"
        raise TypeError(f"{name}.begin returned {given}; return the state and the observation.")
    if not isinstance(begun[1], str):
        raise TypeError(
            f"{name}.begin: the observation is a {type(begun[1]).__name__}; expected text (str)."
        )


def describe_unreadable(action: str, max_chars: int) -> str:
    """Return why an action is outside the space of actions."""
    if len(action) <= max_chars:
        try:
            action.encode("utf-8")
        except UnicodeEncodeError as error:
            half = f"U+{ord(action[error.start]):04X}"
            return f"character {error.start + 1} is a lone surrogate ({half}), which is not UTF-8"
    return f"it has {len(action)} characters"


def check_outcome(played: Any, name: str) -> None:
    """Check what ``play`` returned.

    Raises:
        TypeError: No outcome, or one of other parts; ``name`` is that of the environment's class.
    """
    if not isinstance(played, Outcome):
        raise TypeError(
            f"{name}.play returned a {type(played).__name__}; return an Outcome or a generator of "
            "Call objects that returns one."
        )
    if not isinstance(played.observation, str):
        raise TypeError(
            f"{name}.play: the observation is a {type(played.observation).__name__}; expected text "
            "(str)."
        )
    if played.status not in _STATUSES:
        raise TypeError(
            f"{name}.play: the status is {played.status!r}; expected one of "
            f"{', '.join(_STATUSES)} (Outcome.move, Outcome.solved, … set it)."
        )
    if played.verdict not in _VERDICTS:
        raise TypeError(
            f"{name}.play: the verdict is {played.verdict!r:.200}; expected 1, 0, -1 or None."
        )


Where = Callable[[], str]
"""The environment, its task and the like for a message; made only for one, which is seldom."""


def finite_metrics(metrics: Mapping[str, Any], where: Where) -> dict[str, float]:
    """Return metrics as floats.

    Args:
        metrics: As the environment gave them.
        where: The environment and its task.

    Raises:
        TypeError: They have no names, or one that every environment has.
        EnvFault: One is no finite number.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(
            f"{where()}: metrics() is {metrics!r:.200}; expected numbers by name, such as "
            "{'em': 1.0}."
        )
    for name in OF_EVERY_EPISODE:
        if name in metrics:
            raise TypeError(
                f"{where()}: metrics() has {name!r}, which every environment has by its episodes' "
                "ends and rewards; expected another name."
            )
    return _read_finite(metrics, "metrics()[{!r}]", "metric", where)


def finite_terms(terms: Mapping[str, Any], where: Where) -> dict[str, float]:
    """Return the terms of a reward as floats.

    Args:
        terms: As the environment gave them.
        where: The environment, its task and the turn.

    Raises:
        TypeError: They have no names.
        EnvFault: One is no finite number.
    """
    if not isinstance(terms, Mapping):
        raise TypeError(
            f"{where()}: the reward is {terms!r:.200}; expected its parts by name, such as "
            "{'outcome': 1.0}."
        )
    return _read_finite(terms, "reward term {!r}", "term", where)


def sum_terms(terms: Mapping[str, float], where: Where) -> float:
    """Return the reward of finite terms.

    Raises:
        EnvFault: It is too large for a float.
    """
    try:
        return math.fsum(terms.values())
    except OverflowError as error:
        raise EnvFault(
            f"{where()}: reward terms {dict(terms)} come to more than a float can hold; expected "
            "finite numbers with a finite sum."
        ) from error


def _read_finite(given: Mapping[str, Any], form: str, what: str, where: Where) -> dict[str, float]:
    if all(type(value) is float and math.isfinite(value) for value in given.values()):
        return dict(given)  # as almost always
    found = {name: _as_float(value) for name, value in given.items()}
    for name, number in found.items():
        if not math.isfinite(number):
            raise EnvFault(
                f"{where()}: {form.format(name)} is {given[name]!r:.200}; expected a finite "
                f"number. Leave a {what} out where it does not apply."
            )
    return found


def _as_float(value: Any) -> float:
    """Return a number as a float; nan for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def json_debug_info(info: Mapping[str, Any], where: Where) -> dict[str, Any]:
    """Return debug info as a dictionary that can be written as JSON.

    Args:
        info: As the environment gave it.
        where: The environment and its task.

    Raises:
        TypeError: It has no names.
        EnvFault: Something in it cannot be written.
    """
    if not isinstance(info, Mapping):
        raise TypeError(
            f"{where()}: debug_info() is {info!r:.200}; expected data by name, such as "
            "{'room': 3}."
        )
    if not info:
        return {}
    found = dict(info)
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError) as error:
        entry, value = _first_unwritable(found) or ("", info)
        raise EnvFault(
            f"{where()}: debug_info(){entry} is {value!r:.200}, a {type(value).__name__}; expected "
            "JSON data: dictionaries with texts as keys, lists, texts, finite numbers of Python's "
            "own (float(x) makes one of NumPy's), bools and None."
        ) from error
    return found


def _first_unwritable(value: Any) -> tuple[str, Any] | None:
    """Return where in some data the first value stands that JSON has no form for, and the value."""
    if isinstance(value, dict) and all(isinstance(key, _PLAIN) for key in value):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    else:
        finite = not isinstance(value, float) or math.isfinite(value)
        return None if isinstance(value, _PLAIN) and finite else ("", value)
    for key, part in parts:
        if (found := _first_unwritable(part)) is not None:
            return f"[{key!r}]{found[0]}", found[1]
    return None
