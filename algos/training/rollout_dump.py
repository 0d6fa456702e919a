"""Rollouts of a training step with every number per token, as a file that a viewer reads.

It holds one header line and then one group per line: its trees as in
:mod:`turngym.algos.core.forest_io`, the text of every token, and per path what the annotators and
the credit rule computed for each action token.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...agents.rendering.token_text import TokenText
from ...envs.core.errors import DataError
from ...envs.utils.disk_errors import whole_file
from ..core.forest import Forest, Group, Turn
from ..core.forest_io import group_from_json, group_to_json, name_damage
from ..core.protocols import Annotations, Credits, Floats, Scorer

FORMAT = 1
KIND = "turngym.rollouts"
SUFFIX = "-tokens.jsonl"
MAX_CHARACTER_BYTES = 4
"""Length of the longest UTF-8 character: at most so many tokens share one."""

NOT_BY_TOKEN = frozenset({"earlier_returns"})
"""Annotations of whole tasks, which may be as long as a path by chance."""
Pieces = tuple[list[str], list[str]]
"""Text of each observation token and of each action token of a turn."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RolloutDump:
    """Groups of one training step with everything per token.

    Attributes:
        step: The training step.
        about: Names for a heading: ``recipe``, ``env`` and ``sampled`` (False for demonstrations,
            whose log-probabilities and entropies mean nothing).
        forest: The groups, with rewards and verdicts as passed to the credit rule.
        streams: ``[n_act]`` arrays per path by name: ``advantages``, the other outputs of the
            annotators and the credit rule, and ``new_logprobs`` under the updated policy.
        pieces: Text of the tokens per turn, tree and group.
    """

    step: int
    about: Mapping[str, Any]
    forest: Forest
    streams: Mapping[str, Sequence[Floats]] = field(default_factory=dict)
    pieces: Sequence[Sequence[Sequence[Pieces]]] = ()


def first_groups(
    forest: Forest, annotations: Annotations, credits: Credits, count: int
) -> RolloutDump:
    """Return the first ``count`` groups with their streams, still without step, names and texts.

    Annotations that have no number for each token are left out.
    """
    smaller = Forest.of(forest.groups[:count])
    lengths = [smaller.n_act(path) for path in smaller]
    n = len(lengths)
    streams: dict[str, Sequence[Floats]] = {"advantages": credits.advantages[:n]}
    given = {**annotations, "value_targets": credits.value_targets, **credits.extra}
    for name, rows in given.items():
        if not len(rows) or name in NOT_BY_TOKEN:
            continue
        of_path = list(zip(rows[:n], lengths, strict=True))
        if all(len(row) in (m, m + 1) for row, m in of_path):
            streams[name] = [row[:m] for row, m in of_path]
    return RolloutDump(step=0, about={}, forest=smaller, streams=streams)


def write_dump(path: Path, dump: RolloutDump, scorer: Scorer, tokenizer: Any) -> None:
    """Write the groups, scored again under the current weights.

    Args:
        path: The file; an existing one is replaced.
        dump: The groups and their streams.
        scorer: The learner, after the update.
        tokenizer: The policy's tokenizer.
    """
    streams = {**dump.streams, "new_logprobs": scorer.logprobs(dump.forest)}
    text = TokenText(tokenizer)
    head = {"format": FORMAT, "kind": KIND, "step": dump.step, **dump.about}
    with whole_file(path) as file:
        file.write(_line(head))
        for g, group in enumerate(dump.forest.groups):
            paths = [
                {
                    "tree": at.tree,
                    "turns": list(at.turns),
                    "streams": {name: _numbers(rows[i]) for name, rows in streams.items()},
                }
                for i, at in enumerate(dump.forest.paths)
                if at.group == g
            ]
            texts = [[turn_pieces(text, turn) for turn in tree.turns] for tree in group.trees]
            file.write(_line({**group_to_json(group), "paths": paths, "pieces": texts}))


def turn_pieces(text: TokenText, turn: Turn) -> Pieces:
    """Return the text of every token of a turn."""
    return token_pieces(text, turn.obs_ids.tolist()), token_pieces(text, turn.act_ids.tolist())


def token_pieces(text: TokenText, ids: Sequence[int]) -> list[str]:
    """Return the text of every token; joined they are the whole text.

    Where tokens share a character, the last of them holds it and the others are empty.
    """
    pieces, waiting = [], []
    for token in ids:
        waiting.append(token)
        piece = text.decode(waiting)
        if piece.endswith("\ufffd") and len(waiting) < MAX_CHARACTER_BYTES:
            pieces.append("")
        else:
            pieces.append(piece)
            waiting = []
    if waiting:
        pieces[-1] = text.decode(waiting)
    return pieces


def read_dump(path: Path | str) -> RolloutDump:
    """Read what :func:`write_dump` wrote.

    Raises:
        DataError: A damaged line, or another version; the message names file and line.
        OSError: The file cannot be read.
    """
    lines = Path(path).read_bytes().split(b"\n")
    with name_damage(f"{path}, line 1: no head of a file of rollouts, expected kind {KIND!r}"):
        head = json.loads(lines[0])
        found = (head.pop("kind"), head.pop("format"))
        step = int(head.pop("step", 0))
    if found != (KIND, FORMAT):
        raise DataError(
            f"{path}, line 1: holds {found[0]!r} of format {found[1]!r}; this version reads "
            f"{KIND!r} of format {FORMAT}. Use the version of turngym that wrote it."
        )
    groups, rows, pieces = [], [], []
    for number, line in enumerate(lines[1:], start=2):
        if line:
            with name_damage(f"{path}, line {number}: no group of a file of rollouts"):
                row = json.loads(line)
                groups.append(group_from_json(row))
                rows += row["paths"]
                pieces.append(_read_pieces(groups[-1], row["pieces"]))
    forest = Forest.of(groups)
    with name_damage(f"{path}: the paths do not fit the trees"):
        streams = _read_streams(forest, rows)
    return RolloutDump(step=step, about=head, forest=forest, streams=streams, pieces=pieces)


def _read_pieces(group: Group, rows: Sequence[Any]) -> list[list[Pieces]]:
    """Return the text of every token, checked against the turns' numbers of tokens."""
    pieces: list[list[Pieces]] = [
        [([str(p) for p in obs], [str(p) for p in act]) for obs, act in tree] for tree in rows
    ]
    for tree, texts in zip(group.trees, pieces, strict=True):
        for turn, (obs, act) in zip(tree.turns, texts, strict=True):
            if (len(obs), len(act)) != (len(turn.obs_ids), len(turn.act_ids)):
                raise ValueError("a turn has other numbers of tokens and of their texts")
    return pieces


def _read_streams(forest: Forest, rows: Sequence[Any]) -> dict[str, list[Floats]]:
    """Return the arrays ``[n_act]`` per path by name, checked against the forest."""
    streams: dict[str, list[Floats]] = {}
    for at, row in zip(forest.paths, rows, strict=True):
        if (at.tree, list(at.turns)) != (row["tree"], row["turns"]):
            raise ValueError(f"tree {row['tree']}, turns {row['turns']} are no path")
        for name, values in row["streams"].items():
            array = np.array(values, dtype=np.float32)
            if array.shape != (forest.n_act(at),):
                raise ValueError(f"{name} has {array.shape} values, {forest.n_act(at)} tokens")
            streams.setdefault(name, []).append(array)
    if any(len(found) != len(forest.paths) for found in streams.values()):
        raise ValueError("some paths lack a stream that others have")
    return streams


def _numbers(row: Floats) -> list[float | None]:
    """Return the numbers, null for those that are not finite, as after a diverged update."""
    return [x if math.isfinite(x) else None for x in row.tolist()]


def _line(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
