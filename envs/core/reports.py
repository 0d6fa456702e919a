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
from .tasks import Task

_PLAIN = (str, int, float, bool, type(None))
OF_EVERY_EPISODE = ("success", "return", "turns", "invalid_actions")
"""Metrics that every environment has, by what happened."""
_VERDICTS = (None, -1, 0, 1)
_STATUSES = ("running", "solved", "failed", "truncated")


def check_begun(begun: Any, name: str, task: Task[Any], env: str) -> None:
    """Check what ``begin`` returned, and the names of the task that it was given.

    Args:
        begun: What it returned.
        name: Name of the environment's class.
        task: The task.
        env: Name of the environment.

    Raises:
        TypeError: No pair of state and text, or a name of the task is no text.
        EnvFault: The observation is not UTF-8.
    """
    if not isinstance(begun, tuple) or len(begun) != 2:
        given = f"{len(begun)} values" if isinstance(begun, tuple) else f"a {type(begun).__name__}"
        raise TypeError(f"{name}.begin returned {given}; return the state and the observation.")
    if not isinstance(begun[1], str):
        raise TypeError(
            f"{name}.begin: the observation is a {type(begun[1]).__name__}; expected text (str)."
        )
    if not (isinstance(task.id, str) and task.id.isascii() and task.dataset == ""):
        _check_task(task, env)
    if not begun[1].isascii():
        check_observation(begun[1], lambda: f"{env}, task {task.id}")


def _check_task(task: Task[Any], env: str) -> None:
    for what, text in (("id", task.id), ("data set", task.dataset)):
        why = find_surrogate(text) if isinstance(text, str) else f"it is a {type(text).__name__}"
        if why:
            raise TypeError(
                f"{env}: the {what} of task {task.index} of split {task.split!r} is {text!r:.200}: "
                f"{why}; expected UTF-8 text."
            )


def describe_unreadable(action: str, max_chars: int) -> str:
    """Return why an action is outside the space of actions."""
    lone = find_surrogate(action) if len(action) <= max_chars else ""
    return lone or f"it has {len(action)} characters"


def find_surrogate(text: str) -> str:
    """Return where a text has a lone surrogate, which no file and no tokenizer takes, or nothing.

    JSON has them where an emoji was cut in half.
    """
    if text.isascii():  # a flag of the string, while encoding reads all of it
        return ""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        return f"character {error.start + 1} is a lone surrogate ({half}), which is not UTF-8"
    return ""


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


_NAMES: set[str] = set()
"""Names that were checked: those of an environment are the same in every step."""
_MOST_NAMES = 4096
Where = Callable[[], str]
"""The environment, its task and the like for a message; made only for one, which is seldom."""


def check_observation(observation: str, where: Where) -> None:
    """Check that an observation can be tokenized and written.

    Raises:
        EnvFault: It has a lone surrogate.
    """
    if why := find_surrogate(observation):
        raise EnvFault(
            f"{where()}: the observation cannot be read: {why}. Replace it: "
            'text.encode("utf-8", "replace").decode().'
        )


def finite_metrics(metrics: Mapping[str, Any], where: Where) -> dict[str, float]:
    """Return metrics as floats.

    Args:
        metrics: As the environment gave them.
        where: The environment and its task.

    Raises:
        TypeError: They have no names that can be written, or one that every environment has.
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
        TypeError: They have no names that can be written.
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
    if not given.keys() <= _NAMES:
        _check_names(given, what, where)
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


def _check_names(given: Mapping[str, Any], what: str, where: Where) -> None:
    for name in given:
        if not isinstance(name, str) or not name or find_surrogate(name):
            raise TypeError(
                f"{where()}: a {what} is called {name!r:.200}; expected a name of UTF-8 text, such "
                "as 'outcome'."
            )
    if len(_NAMES) > _MOST_NAMES:
        _NAMES.clear()
    _NAMES.update(given)


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
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError) as error:  # an error of encoding is one of values
        entry, value = _first_unwritable(found) or ("", info)
        raise EnvFault(
            f"{where()}: debug_info(){entry} is {value!r:.200}, a {type(value).__name__}; expected "
            "JSON data: dictionaries with texts as keys, lists, texts in UTF-8, finite numbers of "
            "Python's own (float(x) makes one of NumPy's), bools and None."
        ) from error
    return found


def _first_unwritable(value: Any) -> tuple[str, Any] | None:
    """Return where in some data the first value stands that JSON has no form for, and the value."""
    if isinstance(value, dict) and all(_is_plain(key) for key in value):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    else:
        finite = not isinstance(value, float) or math.isfinite(value)
        return None if _is_plain(value) and finite else ("", value)
    for key, part in parts:
        if (found := _first_unwritable(part)) is not None:
            return f"[{key!r}]{found[0]}", found[1]
    return None


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) and not (isinstance(value, str) and find_surrogate(value))
