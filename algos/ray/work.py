"""Messages between the learner and its rollout actors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...agents.engines.base import EngineStats
from ...envs.core.errors import BadValueError, EngineFault
from ..core.forest import ROOT, Group, Turn
from ..core.protocols import Rollout, Start

Packed = Mapping[str, npt.NDArray[np.uint8]]
"""Weights by name, each as its bytes: number formats that numpy lacks travel too."""


@dataclass(frozen=True, slots=True)
class Work:
    """A request to play one group.

    Attributes:
        scene: Name of the evaluation set; empty for the training environment.
        rollout: How its trees grow.
        start: The task; with the weights' version it says everything.
        version: Of the weights that must play it.
    """

    scene: str
    rollout: Rollout
    start: Start
    version: int


@dataclass(frozen=True, slots=True)
class PlayedGroup:
    """The reply: a group with its statistics.

    Attributes:
        group: The group.
        fault: The last error message of a failed environment.
        stats: What the actor's engine counted since its last answer.
    """

    group: Group
    fault: str
    stats: EngineStats


def pack_weights(model: Any, *, keep: bool = True) -> Packed:
    """Copy the trainable weights into main memory; all others never change.

    Args:
        model: The policy, or a view of one that is gathered as it is read.
        keep: Off, the weights are read and nothing is kept: so a process takes part in gathering.
    """
    return {
        name: p.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        for name, p in model.named_parameters()
        if p.requires_grad and keep
    }


@torch.no_grad()
def unpack_weights(packed: Packed, model: Any) -> None:
    """Put :func:`pack_weights` of another copy of the model into this one.

    Weights that a learner of several processes holds in float32 are rounded to the format here.

    Raises:
        BadValueError: They are of another model; nothing is changed.
    """
    targets = dict(model.named_parameters())
    for name, data in packed.items():
        p = targets.get(name)
        here = None if p is None else p.numel() * p.element_size()
        if p is None or len(data) not in (here, 4 * p.numel()):
            raise BadValueError(
                f"rollout actor: weight {name!r} came with {len(data):,} bytes, where the model "
                f"here has {'no such weight' if here is None else f'{here:,}'}. Does the model's "
                "name mean the same on every node?"
            )
    for name, data in packed.items():
        p = targets[name]
        kind = torch.float32 if len(data) == 4 * p.numel() else p.dtype
        p.copy_(torch.from_numpy(np.array(data)).view(kind).reshape(p.shape))


def check_answer(work: Work, answer: Any) -> PlayedGroup:
    """Return what an actor answered.

    Raises:
        EngineFault: It is no answer to ``work``.
    """
    try:
        problem = _find_problem(work, answer)
    except (AttributeError, TypeError, ValueError) as fault:
        problem = f"parts of other types ({fault})"
    if problem:
        raise EngineFault(
            f"Ray: a rollout actor answered group {work.start.uid!r} with {problem}. Have all "
            "nodes the same version of turngym, and does the model's name mean the same on each?"
        )
    return answer


def _find_problem(work: Work, answer: Any) -> str:
    if not isinstance(answer, PlayedGroup):
        return f"a {type(answer).__name__}"
    group, fault, stats = (getattr(answer, name, None) for name in ("group", "fault", "stats"))
    if not (isinstance(group, Group) and isinstance(fault, str) and isinstance(stats, EngineStats)):
        return "parts of other types"
    if group.uid != work.start.uid:
        return f"group {str(group.uid)[:60]!r}"
    counts = (stats.prompt_tokens, stats.cached_tokens, stats.sampled_tokens)
    counts = (*counts, group.faults, group.pruned_tokens, group.pruned_turns)
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        return f"counts {str(counts)[:100]}"
    turns = ((at, turn) for tree in group.trees for at, turn in enumerate(tree.turns))
    return next(
        (f"a turn with {why}" for at, turn in turns if (why := _find_fault(work, at, turn))), ""
    )


def _find_fault(work: Work, at: int, turn: Turn) -> str:
    if turn.version != work.version:
        return f"version {turn.version!r} of the weights, not {work.version}"
    if not ROOT <= turn.parent < at:
        return f"the parent {turn.parent!r} at place {at}"
    for name in ("logprobs", "entropies", "rewards"):
        numbers = getattr(turn, name)
        if numbers.shape != turn.act_ids.shape or not bool(np.isfinite(numbers).all()):
            return f"{name} of shape {numbers.shape} for {len(turn.act_ids)} tokens, or not finite"
    return ""
