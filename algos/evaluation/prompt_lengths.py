"""Prompts that do not fit the model are found before the first step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from ...agents.scripted import text_env
from ...envs.core.errors import BadValueError
from ...envs.core.fork import fork
from ...envs.core.tasks import split_size

if TYPE_CHECKING:
    from .evaluate import EvalSet

MOST = 2000
"""Tasks that are looked at: all of an ordinary data file."""
ENDLESS = 64
"""Tasks that are looked at in a generated world, whose prompts are alike."""


def check_all_prompts(
    env: gym.Env[Any, Any], split: str, sets: Sequence[EvalSet], renderer: Any, room: int
) -> None:
    """Check the prompts of a run's training split and evaluation sets."""
    check_prompts(env, split, renderer, room)
    for what in sets:
        check_prompts(what.env, what.split, renderer, room, len(what.tasks))


def check_prompts(
    env: gym.Env[Any, Any], split: str, renderer: Any, room: int, n: int | None = None
) -> None:
    """Render first prompts and refuse those that leave no room for an action.

    Args:
        env: The environment.
        split: Split of the tasks.
        renderer: Text to ids.
        room: Most tokens that a prompt may have.
        n: Only the first ``n`` tasks matter; None for all.

    Raises:
        BadValueError: A prompt is too long; says which, and which settings there are.
    """
    world = text_env(env)
    size = split_size(world.source, split, world.name)
    count = min(n or MOST, ENDLESS if size is None else size)
    twin = fork(env)
    instructions = world.instructions
    for index in range(count):
        observation, info = twin.reset(seed=0, options={"split": split, "task": index})
        length = len(renderer.open(instructions, observation))
        if length > room:
            raise BadValueError(
                f"{world.name}, task {info['task_id']}: the first prompt has {length} tokens, but "
                f"only {max(room, 0)} fit beside an action. Use a model with a longer context, "
                "allow shorter actions (max_tokens), or shorten the environment's instructions "
                "(SearchQA: prompt='none')."
            )
