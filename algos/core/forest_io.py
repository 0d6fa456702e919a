"""Forests as JSON lines: one group per line, every float32 comes back bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ...agents.engines.base import StopReason
from ...envs.core.env import Status
from ...envs.core.errors import BadValueError, DataError
from .forest import Edge, Forest, Group, Tree, Turn

_ARRAYS = {
    "obs_ids": np.int64,
    "act_ids": np.int64,
    "logprobs": np.float32,
    "entropies": np.float32,
    "rewards": np.float32,
}
_PAIRS = ("reward_terms", "metrics")
_PLAIN: dict[str, type] = {
    "parent": int,
    "edge": str,
    "verdict": int,
    "status": str,
    "version": int,
    "action": str,
    "valid": bool,
    "stop": str,
    "overflow": bool,
    "partial": bool,
}
_COUNTS = ("faults", "pruned_tokens", "pruned_turns")
_WORDS = {"status": get_args(Status), "stop": get_args(StopReason), "edge": tuple(Edge)}


def save_forest(path: Path | str, forest: Forest) -> None:
    """Write a forest's groups, one JSON object per line; an existing file is replaced."""
    with Path(path).open("w", encoding="utf-8") as file:
        for group in forest.groups:
            file.write(json.dumps(group_to_json(group), ensure_ascii=False, allow_nan=False))
            file.write("\n")


def load_forest(path: Path | str) -> Forest:
    """Read what :func:`save_forest` wrote.

    Raises:
        DataError: A damaged line (cut off, a field missing or of the wrong kind, a tree that
            breaks an invariant); the message names file and line.
        OSError: The file cannot be read.
    """
    groups: list[Group] = []
    for number, line in enumerate(Path(path).read_bytes().split(b"\n"), start=1):
        if not line:
            continue
        try:
            groups.append(group_from_json(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"misses {error}" if isinstance(error, KeyError) else str(error)
            raise DataError(
                f"{path}, line {number}: no group of a forest: {what}. Expected a line that "
                "save_forest wrote; was writing it interrupted?"
            ) from error
    return Forest.of(groups)


def group_to_json(group: Group) -> dict[str, Any]:
    """A group as JSON data."""
    trees = [[_turn_to_json(turn) for turn in tree.turns] for tree in group.trees]
    return {name: getattr(group, name) for name in ("uid", "task_id", *_COUNTS)} | {"trees": trees}


def _turn_to_json(turn: Turn) -> dict[str, Any]:
    # float32 -> float64 -> shortest decimal -> float64 -> float32 loses nothing
    row = {name: getattr(turn, name) for name in (*_PLAIN, *_PAIRS, "previous")}
    row["edge"] = turn.edge.value
    row["spawned"] = [ids.tolist() for ids in turn.spawned]
    if turn.account:  # few worlds have one
        row["account"] = dict(turn.account)
    return row | {name: getattr(turn, name).tolist() for name in _ARRAYS}


def group_from_json(row: Any) -> Group:
    """What :func:`group_to_json` made.

    Raises:
        BadValueError: It is something else; KeyError where a field is missing.
    """
    if not isinstance(row, dict):
        raise BadValueError(f"got a {type(row).__name__}")
    counts = {name: _of(row, name, int) for name in _COUNTS}
    group = Group(_of(row, "uid", str), _of(row, "task_id", str), **counts)
    for turns in _of(row, "trees", list):
        tree = Tree()
        for turn in turns:
            tree.add(_turn_from_json(turn))
        group.trees.append(tree)
    return group


def _turn_from_json(row: dict[str, Any]) -> Turn:
    values: dict[str, Any] = {name: _of(row, name, kind) for name, kind in _PLAIN.items()}
    for name, words in _WORDS.items():
        if values[name] not in words:
            raise BadValueError(f"{name} is {values[name]!r}; expected one of {', '.join(words)}")
    values["edge"] = Edge(values["edge"])
    for name, kind in _ARRAYS.items():
        values[name] = _array(name, row[name], kind)
    values["previous"] = None if row["previous"] is None else _of(row, "previous", int)
    values["spawned"] = tuple(_array("spawned", ids, np.int64) for ids in _of(row, "spawned", list))
    values["account"] = _of({"account": {}, **row}, "account", dict)
    for name in _PAIRS:
        values[name] = tuple((str(key), float(value)) for key, value in row[name])
    return Turn(**values)


def _array(name: str, numbers: Any, kind: type[np.generic]) -> Any:
    whole = kind is np.int64
    wanted = int if whole else (int, float)
    if not isinstance(numbers, list) or not all(
        isinstance(n, wanted) and not isinstance(n, bool) for n in numbers
    ):
        raise BadValueError(f"{name} is no list of {'whole ' if whole else ''}numbers")
    return np.array(numbers, dtype=kind)


def _of(row: dict[str, Any], name: str, kind: type) -> Any:
    value = row[name]
    if type(value) is not kind:
        raise BadValueError(f"{name} is {value!r}; expected {kind.__name__}")
    return value
