"""Pair files: a better and a worse trajectory of one instruction, a JSON object per line.

The layout is that of ARMAP's released data: ``{id, conversations, output_1, output_2,
preference}`` where the outputs are alternating turns of ``gpt`` (the agent) and ``human`` (the
environment), which end with a request to judge and the beginning of a reply. The request stands
behind the last observation, and is left out again when a file is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...envs.core.errors import DataError
from .trajectory import Move, Trajectory

AGENT, ENVIRONMENT = "gpt", "human"
REQUEST = "\nWas the task completed?"
"""Asks for a judgement, behind the last observation."""
STUB = " Verdict:"
"""The reply's beginning; a reward is read off its last token."""
_PLACEHOLDER = "Understood."


class Pair(NamedTuple):
    """Two trajectories of one instruction.

    Attributes:
        id: Name of the pair.
        better: The preferred one.
        worse: The other one.
    """

    id: str
    better: Trajectory
    worse: Trajectory


def write_pairs(path: Path | str, pairs: Iterable[Pair]) -> int:
    """Write a file of pairs; the better one is ``output_1`` and ``output_2`` by turns.

    Returns:
        Number of pairs.
    """
    count = 0
    with Path(path).open("w", encoding="utf-8") as file:
        for count, pair in enumerate(pairs, start=1):
            file.write(json.dumps(record(pair, 1 + count % 2), ensure_ascii=False) + "\n")
    return count


def record(pair: Pair, preference: int = 1) -> dict[str, Any]:
    """Return a pair as a JSON object.

    Args:
        pair: What to write.
        preference: Place of the better trajectory, 1 or 2.
    """
    shown = {"from": ENVIRONMENT, "value": pair.better.instruction}
    first, second = (pair.better, pair.worse) if preference == 1 else (pair.worse, pair.better)
    return {
        "id": pair.id,
        "conversations": [shown, {"from": AGENT, "value": _PLACEHOLDER}],
        "output_1": _turns(first),
        "output_2": _turns(second),
        "preference": preference,
    }


def read_pairs(path: Path | str) -> list[Pair]:
    """Read a file of pairs: JSON lines, or one JSON list as in the released data.

    A picture that a record names is not looked at: these reward models read text.

    Raises:
        DataError: Not such a file; the message says where.
    """
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"{place}: cannot be read ({fault}); expected a file of pairs.") from fault
    if text.lstrip().startswith("["):
        rows = [(f"{place}, record {i}", row) for i, row in enumerate(_list(text, place), start=1)]
    else:
        lines = enumerate(text.split("\n"), start=1)
        rows = [
            (where, _parsed(line, where))
            for number, line in lines
            if line.strip()
            for where in (f"{place}, line {number}",)
        ]
    if not rows:
        raise DataError(f"{place}: no pair; expected JSON lines of ARMAP's pair records.")
    return [_pair(row, where) for where, row in rows]


def _turns(trajectory: Trajectory) -> list[dict[str, str]]:
    turns: list[dict[str, str]] = []
    for action, observation in trajectory.moves:
        turns += [{"from": AGENT, "value": action}, {"from": ENVIRONMENT, "value": observation}]
    turns[-1]["value"] += REQUEST
    return [*turns, {"from": AGENT, "value": STUB}]


def _list(text: str, place: Path) -> list[Any]:
    found = _parsed(text, str(place))
    return found if isinstance(found, list) else [found]


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{where}: not JSON ({fault}).") from fault


def _pair(row: Any, where: str) -> Pair:
    fields = ("conversations", "output_1", "output_2", "preference")
    if not isinstance(row, Mapping) or any(name not in row for name in fields):
        raise DataError(
            f"{where}: expected an object with id, {', '.join(fields)}; got {str(row)[:80]!r}."
        )
    values = _values(row["conversations"], f"{where}, conversations")
    if not values or values[0][0] != ENVIRONMENT:
        raise DataError(f"{where}: conversations must begin with the {ENVIRONMENT}'s instruction.")
    found = [_trajectory(values[0][1], row[name], f"{where}, {name}") for name in fields[1:3]]
    if row["preference"] not in (1, 2) or isinstance(row["preference"], bool):
        raise DataError(f"{where}: preference is {row['preference']!r}; expected 1 or 2.")
    if found[0] == found[1]:
        raise DataError(f"{where}: both outputs are the same; a pair must differ.")
    first = row["preference"] == 1
    return Pair(str(row.get("id", where)), found[not first], found[first])


def _trajectory(instruction: str, turns: Any, where: str) -> Trajectory:
    values = _values(turns, where)
    if values and len(values) % 2:  # the agent's stub
        values = values[:-1]
    wanted = [AGENT, ENVIRONMENT] * (len(values) // 2)
    if not values or [who for who, _ in values] != wanted:
        raise DataError(f"{where}: expected turns of {AGENT} and {ENVIRONMENT} by turns.")
    texts = [text for _, text in values]
    texts[-1] = texts[-1].removesuffix(REQUEST)
    return Trajectory(instruction, tuple(map(Move, texts[::2], texts[1::2])))


def _values(turns: Any, where: str) -> list[tuple[str, str]]:
    if not isinstance(turns, list):
        raise DataError(f"{where}: expected a list of turns; got {str(turns)[:80]!r}.")
    values: list[tuple[str, str]] = []
    for turn in turns:
        who, text = (
            (turn.get("from"), turn.get("value")) if isinstance(turn, Mapping) else (None, None)
        )
        if who not in (AGENT, ENVIRONMENT) or not isinstance(text, str):
            raise DataError(
                f"{where}: expected turns {{from: {ENVIRONMENT} or {AGENT}, value: text}}; got "
                f"{str(turn)[:80]!r}."
            )
        values.append((who, text))
    return values
