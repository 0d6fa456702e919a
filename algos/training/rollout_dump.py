"""The rollouts of a step for people to look at: as text, as trees, and with every number per token.

A file of tokens holds one header line and then one group per line: its trees as in
:mod:`turngym.algos.core.forest_io`, the text of every token, and per path what annotators and
credit
rule gave each action token.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from pathlib import Path as File
from typing import Any

import numpy as np

from ...agents.rendering.factory import Renderer
from ...agents.rendering.token_text import TokenText
from ...envs.core.errors import DataError
from ..core.forest import Forest, Group, Turn
from ..core.forest_io import group_from_json, group_to_json, save_forest
from ..core.protocols import Annotations, Credits, Floats, Scorer
from .config import TrainConfig
from .transcripts import write_group

FORMAT = 1
KIND = "turngym.rollouts"
SUFFIX = "-tokens.jsonl"
LONGEST_CHARACTER = 4
"""Bytes of the longest character, so at most so many tokens share one."""

Pieces = tuple[list[str], list[str]]
"""Text of each observation token and of each action token of a turn."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RolloutDump:
    """Groups of one training step with everything per token.

    Attributes:
        step: The training step.
        about: Names for a heading: ``recipe``, ``env`` and ``sampled`` (False for demonstrations,
            whose log-probabilities and entropies mean nothing).
        forest: The groups, rewards and verdicts as the credit rule saw them.
        streams: ``[n_act]`` arrays per path by name: ``advantages``; what annotators and credit
            rule gave beside them; ``new_logprobs`` under the policy after the step.
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
    """The first ``count`` groups with their streams; step, names and texts are still missing."""
    smaller = Forest.of(forest.groups[:count])
    n = len(smaller.paths)
    streams: dict[str, Sequence[Floats]] = {"advantages": credits.advantages[:n]}
    given = {**annotations, "value_targets": credits.value_targets, **credits.extra}
    for name, rows in given.items():
        if len(rows):
            lengths = [smaller.n_act(path) for path in smaller]
            streams[name] = [row[:m] for row, m in zip(rows[:n], lengths, strict=True)]
    return RolloutDump(step=0, about={}, forest=smaller, streams=streams)


def write_dump(path: File, kept: RolloutDump, scorer: Scorer, tokenizer: Any) -> None:
    """Write the groups, scored once more under the weights of now.

    Args:
        path: The file; an existing one is replaced.
        kept: Groups and streams.
        scorer: The learner, after the step.
        tokenizer: Of the policy.
    """
    streams = {**kept.streams, "new_logprobs": scorer.logprobs(kept.forest)}
    text = TokenText(tokenizer)
    head = {"format": FORMAT, "kind": KIND, "step": kept.step, **kept.about}
    with path.open("w", encoding="utf-8") as file:
        file.write(_line(head))
        for g, group in enumerate(kept.forest.groups):
            paths = [
                {
                    "tree": at.tree,
                    "turns": list(at.turns),
                    "streams": {name: _numbers(rows[i]) for name, rows in streams.items()},
                }
                for i, at in enumerate(kept.forest.paths)
                if at.group == g
            ]
            texts = [[turn_pieces(text, turn) for turn in tree.turns] for tree in group.trees]
            file.write(_line({**group_to_json(group), "paths": paths, "pieces": texts}))


def turn_pieces(text: TokenText, turn: Turn) -> Pieces:
    """Text of every token of a turn."""
    return token_pieces(text, turn.obs_ids.tolist()), token_pieces(text, turn.act_ids.tolist())


def token_pieces(text: TokenText, ids: Sequence[int]) -> list[str]:
    """Text of every token; joined they are the whole text.

    Where tokens share a character, the last of them has it and the others are empty.
    """
    pieces, waiting = [], []
    for token in ids:
        waiting.append(token)
        piece = text.decode(waiting)
        if piece.endswith("\ufffd") and len(waiting) < LONGEST_CHARACTER:
            pieces.append("")
        else:
            pieces.append(piece)
            waiting = []
    if waiting:
        pieces[-1] = text.decode(waiting)
    return pieces


def read_dump(path: File | str) -> RolloutDump:
    """Read what :func:`write_dump` wrote.

    Raises:
        DataError: A damaged line, or another version; the message names file and line.
        OSError: The file cannot be read.
    """
    lines = File(path).read_bytes().split(b"\n")
    try:
        head = json.loads(lines[0])
        found = (head["kind"], head["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}, line 1: no head of a file of rollouts ({error!r}); expected kind {KIND!r}."
        ) from error
    if found != (KIND, FORMAT):
        raise DataError(
            f"{path}, line 1: holds {found[0]!r} of format {found[1]!r}; this version reads "
            f"{KIND!r} of format {FORMAT}. Use the version of turngym that wrote it."
        )
    rows = [_read(path, number, line) for number, line in enumerate(lines[1:], start=2) if line]
    forest = Forest.of([group for group, _, _ in rows])
    streams = _joined(path, forest, [paths for _, paths, _ in rows])
    about = {k: v for k, v in head.items() if k not in ("format", "kind", "step")}
    pieces = [texts for _, _, texts in rows]
    return RolloutDump(
        step=int(head.get("step", 0)), about=about, forest=forest, streams=streams, pieces=pieces
    )


_Row = tuple[Group, list[dict[str, Any]], list[list[Pieces]]]


def _read(path: File | str, number: int, line: bytes) -> _Row:
    try:
        row = json.loads(line)
        group = group_from_json(row)
        pieces: list[list[Pieces]] = [
            [([str(p) for p in obs], [str(p) for p in act]) for obs, act in tree]
            for tree in row["pieces"]
        ]
        for tree, texts in zip(group.trees, pieces, strict=True):
            for turn, (obs, act) in zip(tree.turns, texts, strict=True):
                if (len(obs), len(act)) != (len(turn.obs_ids), len(turn.act_ids)):
                    raise ValueError("a turn has other numbers of tokens and of their texts")
        return group, list(row["paths"]), pieces
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"misses {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(
            f"{path}, line {number}: no group of a file of rollouts: {what}. Was writing it "
            "interrupted? Delete the line, or the file."
        ) from error


def _joined(
    path: File | str, forest: Forest, of_groups: Sequence[list[dict[str, Any]]]
) -> dict[str, list[Floats]]:
    rows = [row for paths in of_groups for row in paths]
    streams: dict[str, list[Floats]] = {}
    try:
        for at, row in zip(forest.paths, rows, strict=True):
            if (at.tree, list(at.turns)) != (row["tree"], row["turns"]):
                raise ValueError(f"tree {row['tree']}, turns {row['turns']} are no path")
            for name, values in row["streams"].items():
                array = np.array(values, dtype=np.float32)
                if array.shape != (forest.n_act(at),):
                    raise ValueError(f"{name} has {array.shape} values, {forest.n_act(at)} tokens")
                streams.setdefault(name, []).append(array)
        if any(len(given) != len(forest.paths) for given in streams.values()):
            raise ValueError("some paths lack a stream that others have")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: the paths do not fit the trees: {error!r}.") from error
    return streams


def _numbers(row: Floats) -> list[float | None]:
    """The numbers; null where there is none, as after an update that went wrong."""
    return [x if math.isfinite(x) else None for x in row.tolist()]


def _line(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def write_rollouts(  # noqa: PLR0913 - three of them only read numbers and ids
    folder: Path,
    config: TrainConfig,
    forest: Forest,
    kept: RolloutDump,
    scorer: Scorer,
    renderer: Renderer,
    tokenizer: Any,
) -> None:
    """Write one step's rollouts into ``folder``.

    Args:
        folder: The run's folder of trajectories.
        config: Of the run.
        forest: All that was played.
        kept: The groups with numbers per token, and the step; no file of them when there are none.
        scorer: The learner, after the step.
        renderer: How text became tokens.
        tokenizer: Of the policy.
    """
    stem = str(folder / f"step-{kept.step:06d}-train")
    write_group(Path(stem + ".txt"), forest, renderer)
    save_forest(Path(stem + ".jsonl"), forest)
    if kept.forest.groups:
        sampled = config.recipe.rollout.samples
        about = {"recipe": config.recipe.name, "env": config.env.id, "sampled": sampled}
        write_dump(Path(stem + SUFFIX), replace(kept, about=about), scorer, tokenizer)
