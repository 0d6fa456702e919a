"""Long observations and short contexts: a budget per observation, found before training."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, NamedTuple

from ...agents.models.loading import load_tokenizer
from ...agents.rendering.factory import Style, keep_style, make_renderer
from ...agents.scripted import RandomPolicy, text_env
from ...algos.runs.progress import Reporter
from ...algos.training.config import EnvConfig
from ...envs.core.errors import BadValueError
from ...envs.core.fork import fork
from ...envs.core.tasks import get_split_size

SETTING = "max_observation_chars"
EPISODES = 16
MIN_CHARS = 160
"""Fewer characters show no passage worth reading."""
MARGIN = 1.15
"""Other observations than the measured ones may take more tokens per character."""


class _Measured(NamedTuple):
    prompt: int  # tokens of the longest first prompt
    longest: int  # characters of the longest later observation
    per_char: float  # tokens per character of later observations


def fitted(
    env: EnvConfig,
    model: str,
    max_tokens: int,
    small: bool,
    report: Reporter,
    style: Style = "auto",
) -> EnvConfig:
    """Return the environment with an observation budget that lets episodes fit the context.

    Settings that were given stay. A few episodes of random actions show how long observations are.

    Args:
        env: The environment.
        model: Folder of the model.
        max_tokens: Maximum tokens of an action.
        small: The model is the small starter, which knows no instructions.
        report: Receives a note on each change.
        style: How text becomes tokens.

    Raises:
        BadValueError: No budget is small enough; the message names the settings.
    """
    tokenizer = load_tokenizer(model)
    keep_style(tokenizer, style)
    settings = dict(env.settings)
    inner = text_env(env.prototype)
    known = inspect.signature(type(inner).__init__).parameters
    if small and "prompt" in known and "data" in settings and "prompt" not in settings:
        settings["prompt"] = "none"
        report.note("prompt='none': the small starter was trained without instructions")
    if settings != env.settings:
        env = EnvConfig(id=env.id, settings=settings)
    limit = None if SETTING not in known or SETTING in settings else _context(model)
    if limit is None:
        return env
    measured = _measure(env, tokenizer)
    later = inner.max_turns - 1
    room = limit - measured.prompt - max_tokens * inner.max_turns
    if later == 0 or measured.longest * measured.per_char * later <= room:
        return env
    budget = int(room / later / (measured.per_char * MARGIN))
    if budget < MIN_CHARS:
        raise BadValueError(
            f"{env.id}: {inner.max_turns} turns do not fit the model's context of {limit} tokens "
            f"(first prompt {measured.prompt}, actions {max_tokens} each, which leaves "
            f"{max(budget, 0)} characters per observation). Use a model with a longer context, or "
            "lower --max-tokens, --env.max_turns, --env.top_k, or set --env.prompt none."
        )
    report.note(
        f"{SETTING}={budget}: {inner.max_turns} turns fit the model's context of {limit} tokens"
    )
    return EnvConfig(id=env.id, settings={**settings, SETTING: budget})


def _measure(env: EnvConfig, tokenizer: Any) -> _Measured:
    """Play a few episodes of random actions."""
    made = fork(env.prototype)
    inner = text_env(made)
    renderer: Any = make_renderer(tokenizer, tools=inner.tools)
    split = next(iter(inner.source.sizes()))
    size = get_split_size(inner.source, split, inner.name)
    prompt, longest, tokens, chars = 0, 0, 0, 0
    for task in range(min(EPISODES, size or EPISODES)):
        policy = RandomPolicy(task)
        observation, info = made.reset(seed=task, options={"split": split, "task": task})
        prompt = max(prompt, len(renderer.open(inner.instructions, observation)))
        while True:
            observation, _, _, _, info = made.step(policy(made, observation, info))
            if info["status"] != "running":
                break
            longest = max(longest, len(observation))
            tokens += len(renderer.observe(observation))
            chars += len(observation)
    return _Measured(prompt, longest, tokens / chars if chars else 0.0)


def _context(model: str) -> int | None:
    """Return the model's context limit; None where its configuration does not say."""
    from ...agents.models.loading import context_limit
    from ...agents.models.qwen3 import read_own_config

    class _Only(NamedTuple):
        config: Any

    config: Any = read_own_config(Path(model))
    if config is None:
        from transformers import AutoConfig

        try:
            config = AutoConfig.from_pretrained(model)
        except (OSError, ValueError):
            return None  # loading the model will say what is wrong with it
    return context_limit(_Only(config))
