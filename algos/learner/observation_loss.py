"""The loss over observation tokens too, for the ablation of masking them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.forest import Edge, Forest, Group, Path, Tree, Turn
from ..core.protocols import Credits, Floats
from .batching.rows import NOT_SAMPLED


def with_observations(forest: Forest, credits: Credits) -> tuple[Forest, Credits]:
    """Make every observation that continues a context part of the action after it.

    Its tokens get the advantage of that action's first token. They were not sampled, which their
    recorded log-probability says; the learner computes the base of their ratio by itself. First
    observations (prompts, first ones of sessions) stay what they are.

    Args:
        forest: Of paths that share no turn, as chains do; a shared turn would be counted apart.
        credits: Advantages alone, no value targets and no further streams.

    Returns:
        A forest of one tree per path, and its advantages.
    """
    groups = [Group(group.uid, group.task_id) for group in forest.groups]
    paths: list[Path] = []
    advantages: list[Floats] = []
    for path, given in zip(forest, credits.advantages, strict=True):
        tree, widened = _widened(forest.turns(path), given)
        group = groups[path.group]
        group.trees.append(tree)
        paths.append(Path(path.group, len(group.trees) - 1, tuple(range(len(tree.turns)))))
        advantages.append(widened)
    return Forest(groups, tuple(paths)), Credits(advantages=advantages, metrics=credits.metrics)


def _widened(turns: Sequence[Turn], advantages: Floats) -> tuple[Tree, Floats]:
    tree, parts, at = Tree(), [], 0
    for index, turn in enumerate(turns):
        mine = advantages[at : at + len(turn.act_ids)]
        at += len(turn.act_ids)
        seen = len(turn.obs_ids) if index else 0
        tree.add(_joined(turn, index - 1, seen))
        parts += [np.full(seen, mine[0], np.float32), mine]
    return tree, np.concatenate(parts)


def _joined(turn: Turn, parent: int, seen: int) -> Turn:
    moved = replace(turn, parent=parent, edge=Edge.CONTINUE, previous=None)
    if not seen:
        return moved
    nothing, unknown = np.zeros(seen, np.float32), np.full(seen, NOT_SAMPLED, np.float32)
    return replace(
        moved,
        obs_ids=turn.obs_ids[:0],
        act_ids=np.concatenate([turn.obs_ids, turn.act_ids]),
        logprobs=np.concatenate([unknown, turn.logprobs]),
        entropies=np.concatenate([nothing, turn.entropies]),
        rewards=np.concatenate([nothing, turn.rewards]),
    )
