"""What an expert would do from here on, for the eyes of a teacher alone."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from ...agents.scripted import text_env
from ...envs.core.batched_calls import call_env
from ...envs.core.fork import fork
from ..core.privileged import ContextLogprobs

OPENING, CLOSING = "<demonstration>\n", "\n</demonstration>\n"


async def demonstrate(env: gym.Env[Any, Any], hints: ContextLogprobs, seed: int) -> str:
    """Return how the environment's expert goes on from where a copy of ``env`` stands.

    Its actions, one per line, as long as the session lasts. Where the environment draws, the copy
    draws by itself: what an action will bring is no part of a demonstration.

    Args:
        env: Left as it is.
        hints: How many actions, and how often the expert errs.
        seed: Of its mistakes, and of what is drawn.
    """
    copy = fork(env)
    own = text_env(copy)
    if own.chance:
        own.redraw(seed)
    policy = own.expert(mistakes=hints.mistakes, seed=seed % 2**32)
    info: Any = own.episode.info({}, {})
    observation, session = own.episode.observation, info["session"]
    actions: list[str] = []
    while len(actions) < hints.actions:
        action = policy(copy, observation, info)
        actions.append(action.strip("\n"))
        observation, _, over, cut, info = await call_env(copy, lambda a=action: copy.step(a))
        if over or cut or info["session"] != session:
            break
    return hints.intro + OPENING + "\n".join(actions) + CLOSING
