"""Check before the first step that prompts fit the model's context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from ...agents.scripted import text_env
from ...envs.core.errors import BadValueError
from ...envs.core.fork import fork
from ...envs.core.tasks import get_split_size

if TYPE_CHECKING:
    from .evaluate import EvalSet

MAX_TASKS = 2000
"""Maximum number of tasks that are checked: all of an ordinary data file."""
GENERATED_TASKS = 64
"""Number of tasks that are checked in a generated split, whose prompts are alike."""


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
        renderer: Converts text to token ids.
        room: Maximum tokens of a prompt.
        n: Only the first ``n`` tasks matter; None for all.

    Raises:
        BadValueError: A prompt is too long; the message names the task and the settings.
    """
    base_env = text_env(env)
    size = get_split_size(base_env.source, split, base_env.name)
    count = min(n or MAX_TASKS, GENERATED_TASKS if size is None else size)
    twin = fork(env)
    instructions = base_env.instructions
    for index in range(count):
        observation, info = twin.reset(seed=0, options={"split": split, "task": index})
        length = len(renderer.open(instructions, observation))
        if length > room:
            raise BadValueError(
                f"{base_env.name}, task {info['task_id']}: the first prompt has {length} tokens, "
                f"but only {max(room, 0)} fit beside an action. Use a model with a longer context, "
                "allow shorter actions (max_tokens), or shorten the environment's instructions "
                "(SearchQA: prompt='none')."
            )
