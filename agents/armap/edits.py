"""Contrastive negatives: change one action of a good trajectory, and play the rest again.

The environment records what it really answers, so that a negative is consistent; it is kept only
where the outcome is worse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from ..scripted import RandomPolicy, closed, text_env
from .position import Position
from .trajectory import Attempt

Change = Callable[[Position, str, np.random.Generator], str | None]
"""Another action for a position instead of the given one; None where none is found."""


def other_action(position: Position, action: str, rng: np.random.Generator) -> str | None:
    """Another legal action where they can be listed, else a plausible wrong one.

    The wrong one is that of the world's scripted expert at its worst; of a world without an expert,
    words of the observation.
    """
    world = text_env(position.env)
    legal = world.legal_actions()
    if legal is not None:
        others = sorted({closed(text, world.stop) for text in legal} - {action})
        return others[int(rng.integers(len(others)))] if others else None
    seed = int(rng.integers(2**31))
    try:
        policy: Any = world.expert(1.0, seed)
    except NotImplementedError:
        policy = RandomPolicy(seed)
    other = closed(policy(position.env, position.observation, position.info), world.stop)
    return None if other == action else other


async def edited(
    start: Position,
    attempt: Attempt,
    rng: np.random.Generator,
    change: Change = other_action,
) -> Attempt | None:
    """``attempt`` with one action changed, played again from ``start``.

    Args:
        start: Where the attempt began; it is only forked.
        attempt: What is changed, at a move drawn by ``rng``. The actions after it stay as they
            were, until the episode ends or they run out.
        rng: Draws.
        change: Finds the other action.

    Returns:
        None where there is no other action, or where nothing else comes of it.

    Raises:
        EnvFault: The environment broke.
    """
    actions = attempt.trajectory.actions
    if not actions:
        return None
    at = int(rng.integers(len(actions)))
    here = start.fork()
    for place, action in enumerate(actions):
        if here.over:
            break
        if place == at:
            other = change(here, action, rng)
            if other is None:
                return None
            action = other
        here = await here.step(action)
    found = here.attempt
    return None if found.trajectory == attempt.trajectory else found


def start_of(env: gym.Env[Any, Any]) -> Position:
    """The start of the episode that ``env`` has just begun, in a copy."""
    return Position.of(env).fork()
