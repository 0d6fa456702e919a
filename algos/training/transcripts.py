"""Transcripts of sample episodes as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..core.forest import Forest, Tree
from ..evaluation.evaluate import Evaluation

_RULE = "=" * 78


def write_evaluation(path: Path, evaluation: Evaluation, renderer: Any, count: int) -> None:
    """Write the first ``count`` episodes of an evaluation."""
    blocks = [
        _block(f"{e.task_id}: {e.status}, return {e.return_:g}", e.tree, renderer)
        for e in evaluation.episodes[:count]
        if e.tree is not None
    ]
    _write(path, blocks)


def write_group(path: Path, forest: Forest, renderer: Any) -> None:
    """Write all trees of the first group of a forest."""
    group = forest.groups[0]
    blocks = []
    for i, tree in enumerate(group.trees):
        total = sum(t.reward for t in tree.turns)
        head = f"{group.task_id}, tree {i}: {tree.turns[-1].status}, return {total:g}"
        blocks.append(_block(head, tree, renderer))
    _write(path, blocks)


def _block(head: str, tree: Tree, renderer: Any) -> str:
    return "\n".join([_RULE, head, _RULE, *_lines(tree, renderer)])


def _lines(tree: Tree, renderer: Any) -> Iterable[str]:
    for i, turn in enumerate(tree.turns):
        terms = ", ".join(f"{name} {value + 0.0:g}" for name, value in turn.reward_terms)
        notes = [
            f"after turn {turn.parent}",
            f"{len(turn.obs_ids)} tokens seen, {len(turn.act_ids)} written, ended by {turn.stop}",
            *([terms] if terms else []),
            *([] if turn.valid else ["not readable"]),
            *(["context full"] if turn.overflow else []),
            turn.status,
        ]
        yield f"[turn {i}: {'; '.join(notes[1:] if turn.parent == i - 1 else notes)}]"
        yield renderer.text(turn.obs_ids).strip("\n")
        yield f">>> {turn.action}"


def _write(path: Path, blocks: Sequence[str]) -> None:
    path.write_text("\n".join(blocks) + "\n", encoding="utf-8")
