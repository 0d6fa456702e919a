"""The laptop model: a small decoder that learns an environment from its expert, then learns to err.

Reading comes first and clean (demonstrations whose answers must be looked up and copied), until
held-out dialogues are reproduced; only then demonstrations with mistakes make a mid-level policy of
it, one that reinforcement learning can improve. The other way round the copying never forms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym

from ...envs.core.digest import digest_of
from ...envs.core.env import TextEnv
from ...envs.core.errors import BadValueError, MissingExtraError
from ...envs.core.registration import find_environment
from ...envs.utils.disk_cache import cache_dir as default_cache_dir
from ..models.built_folder import build_once
from ..models.random_init import BlankSettings, blank_model, env_texts
from .demonstrations import EXPERT, NO_HABITS, Demonstrator
from .settings import StarterProgress, StarterSettings, starter_settings

VERSION = 2
"""Part of every cache key: raise it when this file or one that it builds with
would make another model."""
MANIFEST = "starter.json"
_SAMPLE = 64


def ensure_starter(
    env_id: str = "SearchQA-v0",
    *,
    settings: StarterSettings | BlankSettings | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    cache_dir: Path | str | None = None,
    on_progress: Callable[[StarterProgress], None] | None = None,
) -> Path:
    """Return the folder of the laptop model for an environment, built when it is not cached.

    The same settings give the same weights on the same machine. The key of the cache covers the
    settings, the environment's texts and what its expert does; a folder whose files do not match
    their checksums is built anew. Two processes at once build once.

    Args:
        env_id: A registered environment; imitation needs its scripted expert.
        settings: How it is made. The default is what the environment's row in the registry says
            (``EnvironmentSpec.warm_start``); a row that says nothing means a blank model (see
            :func:`~turngym.agents.models.random_init.blank_model`).
        env_kwargs: Settings of the environment; the default is what its row says, or its smallest
            size.
        cache_dir: Default ``$TURNGYM_CACHE``, or ``~/.cache/turngym``.
        on_progress: Called as the building goes on; never when the folder is cached.

    Returns:
        A folder for ``AutoModelForCausalLM`` and ``AutoTokenizer``, with ``starter.json`` beside.

    Raises:
        UnknownNameError: No such environment, or no such setting of it.
        BadValueError: The environment has no expert, or the model did not learn to read.
        MissingExtraError: torch or transformers is not installed.
    """
    if settings is None:
        blank = find_environment(env_id).warm_start is None
        settings = BlankSettings() if blank else starter_settings(env_id)
    env, made_with = _make_env(env_id, env_kwargs)
    key = digest_of((VERSION, env_id, made_with, settings, _fingerprint(env, settings)))
    root = Path(cache_dir) if cache_dir is not None else default_cache_dir()
    folder = root / "starters" / f"{env_id}-{key[:16]}"

    def make(draft: Path) -> Mapping[str, Any]:
        report = _build(draft, env, settings, on_progress or (lambda _: None))
        return {
            "version": VERSION,
            "env_id": env_id,
            "env_kwargs": dict(made_with),
            "settings": dataclasses.asdict(settings),
            **report,
        }

    return build_once(folder, MANIFEST, make, "the laptop model")


def _build(
    folder: Path,
    env: TextEnv[Any, Any],
    settings: StarterSettings | BlankSettings,
    on_progress: Callable[[StarterProgress], None],
) -> Mapping[str, Any]:
    if isinstance(settings, BlankSettings):
        return blank_model(env, folder, settings)
    try:
        from .build import build
    except ImportError as fault:
        raise MissingExtraError("the laptop model", "transformers", "train", fault) from fault
    return build(folder, env, settings, on_progress)


def _make_env(
    env_id: str, env_kwargs: Mapping[str, Any] | None
) -> tuple[TextEnv[Any, Any], Mapping[str, Any]]:
    row = find_environment(env_id)
    made_with = row.warm_start_settings if env_kwargs is None else env_kwargs
    env = gym.make(env_id, **made_with).unwrapped
    if not isinstance(env, TextEnv):
        raise BadValueError(f"starter: {env_id} is no turngym environment.")
    return env, made_with


def _fingerprint(env: TextEnv[Any, Any], settings: StarterSettings | BlankSettings) -> str:
    """Return a digest of what the environment says and its experts do, on a sample of its tasks."""
    if isinstance(settings, BlankSettings) and env.find_expert() is None:
        return digest_of(env_texts(env, _SAMPLE, settings.seed))
    reader, seed = getattr(settings, "reader", EXPERT), settings.seed
    clean = Demonstrator(env, "train", seed, policy=reader)
    habits = getattr(settings, "habits", NO_HABITS)
    errs = Demonstrator(env, "train", seed, mistakes=1.0, habits=habits)
    return digest_of((clean.texts(_SAMPLE), errs.texts(_SAMPLE)))
