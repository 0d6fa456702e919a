"""Read and write forests as JSON lines, one group per line; every float32 survives bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional, get_type_hints

import numpy as np
from pydantic import (
    AfterValidator,
    AliasChoices,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    create_model,
)

from ...envs.core.errors import BadValueError, DataError
from ...envs.utils.disk_errors import whole_file
from .forest import Floats, Forest, Group, Ids, Tree, Turn

_Ids = Annotated[list[StrictInt], AfterValidator(lambda ids: np.array(ids, np.int64))]
_Floats = Annotated[list[StrictFloat], AfterValidator(lambda row: np.array(row, np.float32))]
_JSON_TYPES: dict[Any, Any] = {
    int: StrictInt,
    bool: StrictBool,
    str: StrictStr,
    Ids: _Ids,
    Floats: _Floats,
    tuple[Ids, ...]: tuple[_Ids, ...],
    int | None: Optional[StrictInt],  # noqa: UP045 - StrictInt is Annotated
}
_FIELDS: dict[str, Any] = {
    name: (_JSON_TYPES.get(kind, kind), ...) for name, kind in get_type_hints(Turn).items()
}
# files leave these out where they are empty; older ones call the first "account"
_DEBUG_INFO = Field(default_factory=dict, validation_alias=AliasChoices("debug_info", "account"))
_LATER: dict[str, Any] = {
    "debug_info": (dict[str, Any], _DEBUG_INFO),
    **dict.fromkeys(("state", "end_state"), (StrictStr, "")),
    "gold_opener": (_Ids, Field(default_factory=lambda: np.zeros(0, np.int64))),
    "gold": (tuple[_Ids, ...], ()),
    "hinted_prompt": (_Ids, Field(default_factory=lambda: np.zeros(0, np.int64))),
}
_ROW: dict[str, Any] = {**_FIELDS, **_LATER}
_TURN: Any = create_model("Turn", **_ROW)
_COUNTS = ("faults", "pruned_tokens", "pruned_turns")
_GROUP_ROW: dict[str, Any] = {
    **dict.fromkeys(("uid", "task_id"), (StrictStr, ...)),
    **dict.fromkeys(_COUNTS, (StrictInt, ...)),
    "trees": (list[list[_TURN]], ...),
}
_GROUP: Any = create_model("Group", **_GROUP_ROW)


def save_forest(path: Path | str, forest: Forest) -> None:
    """Write a forest's groups, one JSON object per line; an existing file is replaced."""
    with whole_file(Path(path)) as file:
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
        if line:
            with name_damage(f"{path}, line {number}: no group of a forest"):
                groups.append(group_from_json(json.loads(line)))
    return Forest.of(groups)


@contextmanager
def name_damage(where: str) -> Iterator[None]:
    """Turn the errors of decoding a file into a :class:`DataError` that begins with ``where``."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"misses {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(
            f"{where}: {what}. Was writing it interrupted? Delete the line, or the file."
        ) from error


def group_to_json(group: Group) -> dict[str, Any]:
    """Return a group as JSON data."""
    trees = [[_turn_to_json(turn) for turn in tree.turns] for tree in group.trees]
    return {name: getattr(group, name) for name in ("uid", "task_id", *_COUNTS)} | {"trees": trees}


def _turn_to_json(turn: Turn) -> dict[str, Any]:
    row = {name: _to_json(getattr(turn, name)) for name in _FIELDS}
    return {name: value for name, value in row.items() if value or name not in _LATER}


def _to_json(value: Any) -> Any:
    """Return plain data; float32 -> float64 -> shortest decimal -> float64 -> float32 is exact."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    return dict(value) if isinstance(value, Mapping) else value


def group_from_json(row: Any) -> Group:
    """Return the group that :func:`group_to_json` encoded.

    Raises:
        BadValueError: A field is missing or of the wrong kind, or a tree breaks an invariant.
    """
    try:
        found = _GROUP.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BadValueError(f"{name}: {first['msg']}, got {first['input']!r:.200}") from error
    group = Group(found.uid, found.task_id, **{name: getattr(found, name) for name in _COUNTS})
    for turns in found.trees:
        tree = Tree()
        for turn in turns:
            tree.add(Turn(**dict(turn)))
        group.trees.append(tree)
    return group
