"""The start of a column: the starting model of its recipes, how it plays, and scripted players."""

from __future__ import annotations

import time
from typing import Any

from ...agents.engines.factory import EngineSettings, build_engine
from ...agents.models.loading import load_tokenizer
from ...agents.models.random_init import BlankSettings
from ...agents.models.registry.fetch import is_registry_model, model_folder
from ...agents.rendering.factory import make_renderer
from ...agents.scripted import text_env
from ...agents.warm_start.cache import MANIFEST, ensure_starter
from ...agents.warm_start.settings import changed, starter_settings
from ...algos.runs.progress import Silent
from ...algos.runs.run_dir import read_json
from ...algos.training.config import EnvConfig, model_digest
from ...algos.training.settings import WarmStartSettings
from ...algos.training.supervised.warm_start import warm_start
from ..runtime.observation_budget import fitted
from .cell import ColumnResult
from .machine_info import this_machine
from .suite import NamedStart, Suite, SuiteEnv, TaughtStart
from .trials import Played, evaluation_set, play_references, play_trials


def prepare_column(suite: Suite, name: str) -> ColumnResult:
    """Make the starting model of a column, and play it and the reference players.

    Raises:
        TurngymError: The suite is invalid.
    """
    began = time.monotonic()
    column = suite.column(name)
    start, about = make_start_model(column, suite.device)
    env = EnvConfig(id=column.id, settings=column.settings)
    taught = not isinstance(column.start, NamedStart)
    env = fitted(env, start, column.max_tokens, taught, Silent())
    what = evaluation_set(column, env).make()
    played = play_start(suite, column, env, start)
    base = about.get("base")
    before = None if base is None else play_start(suite, column, env, find_model(base))
    return ColumnResult(
        suite_digest=suite.digest,
        digest=suite.column_digest(name),
        column=name,
        state="finished",
        start=start,
        start_digest=model_digest(start),
        tasks_digest=what.tasks_digest() or "",
        settings=dict(env.settings),
        about=about,
        reference=play_references(what, column.measure),
        tries=played.sampled,
        greedy_tries=played.greedy,
        zero_shot_tries=None if before is None else before.sampled,
        zero_shot_greedy_tries=None if before is None else before.greedy,
        seconds=time.monotonic() - began,
        machine=this_machine(suite.device),
    )


def play_start(suite: Suite, column: SuiteEnv, env: EnvConfig, start: str) -> Played:
    """Play the evaluation tasks with the starting model, as a trained one plays them."""
    tokenizer = load_tokenizer(start)
    settings = EngineSettings(
        engine_dtype=suite.dtype,
        max_batch=suite.max_batch,
        max_context=column.max_context,
        device=suite.device,
    )
    engine = build_engine(start, tokenizer, settings)
    what = evaluation_set(column, env).make()
    renderer = make_renderer(tokenizer, tools=text_env(what.env).tools)
    return play_trials(suite, column, what, engine, renderer)


def find_model(name: str) -> str:
    """Return the folder of a model that `turngym models` lists, fetched where it is not there.

    Other names stay as they are.

    Raises:
        BadValueError: It cannot be fetched.
    """
    return str(model_folder(name)) if is_registry_model(name) else name


def make_start_model(column: SuiteEnv, device: str = "auto") -> tuple[str, dict[str, Any]]:
    """Make the starting model; return its folder or name, and how it was made.

    Args:
        column: The column.
        device: Where a named model imitates.

    Raises:
        UnknownNameError: A setting that does not exist.
        BadValueError: An environment without an expert; a model that cannot be fetched.
    """
    start = column.start
    if isinstance(start, NamedStart):
        model = find_model(start.name)
        if not start.warm_start:
            return model, {"name": start.name}
        env = EnvConfig(id=column.id, settings=column.settings)
        env = fitted(env, model, column.max_tokens, False, Silent())
        imitation = WarmStartSettings(episodes=start.warm_start, batch=start.warm_start_batch)
        warm = warm_start(model, env, imitation, device=device)
        return str(warm.folder), {
            "name": f"{start.name} after {start.warm_start} episodes of the expert",
            "base": start.name,
            "action_tokens": warm.record.action_tokens,
        }
    taught = isinstance(start, TaughtStart)
    settings = changed(
        starter_settings(column.id) if taught else BlankSettings(),
        start.settings,
        f"start {start.kind!r} of {column.id}",
    )
    taught_in = getattr(start, "world", None)
    made_in = column.settings if taught_in is None else taught_in
    folder = ensure_starter(column.id, settings=settings, env_kwargs=made_in)
    manifest = read_json(folder / MANIFEST)
    return str(folder), {
        key: manifest[key] for key in ("parameters", "vocabulary", "reading") if key in manifest
    }
