"""The start of a column: the starting model of its recipes, and the reference players."""

from __future__ import annotations

import time
from typing import Any

from ...agents.models.random_init import BlankSettings
from ...agents.scripted import scripted, text_env
from ...agents.warm_start.cache import MANIFEST, ensure_starter
from ...agents.warm_start.settings import changed, starter_settings
from ...algos.evaluation.evaluate import UNSCORED, EvalSet, Evaluation, evaluate_policy
from ...algos.runs.progress import Silent
from ...algos.runs.run_dir import read_json
from ...algos.training.config import EnvConfig, EvalConfig, model_digest
from ..runtime.observation_budget import fitted
from .cell import EnvResult, Tries
from .machine_info import this_machine
from .suite import NamedStart, Suite, SuiteEnv, TaughtStart

REFERENCES = ("expert", "random", "null")


def prepare_column(suite: Suite, env_id: str) -> EnvResult:
    """Make the starting model of an environment and play the reference players.

    Raises:
        TurngymError: The suite is invalid.
    """
    began = time.monotonic()
    column = suite.env(env_id)
    start, about = make_start_model(column)
    env = EnvConfig(id=column.id, settings=column.settings)
    taught = not isinstance(column.start, NamedStart)
    env = fitted(env, start, column.max_tokens, taught, Silent())
    what = evaluation_set(column, env).make()
    return EnvResult(
        suite_digest=suite.digest,
        env_id=env_id,
        state="finished",
        start=start,
        start_digest=model_digest(start),
        settings=dict(env.settings),
        about=about,
        reference=play_references(what),
        seconds=time.monotonic() - began,
        machine=this_machine(suite.device),
    )


def make_start_model(column: SuiteEnv) -> tuple[str, dict[str, Any]]:
    """Make the starting model; return its folder or name, and how it was made.

    Raises:
        UnknownNameError: A setting that does not exist.
        BadValueError: An environment without an expert.
    """
    start = column.start
    if isinstance(start, NamedStart):
        return start.name, {"name": start.name}
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


def evaluation_set(column: SuiteEnv, env: EnvConfig) -> EvalConfig:
    """Return the evaluation tasks of a column."""
    split = column.eval_split
    return EvalConfig(name=split, env=env, split=split, n=column.eval_tasks)


def play_references(what: EvalSet) -> dict[str, Tries]:
    """Play every task once with each scripted player that the environment has."""
    env = text_env(what.env)
    found = {}
    for name in REFERENCES:
        if name == "expert":
            try:
                env.expert()
            except NotImplementedError:
                continue
        played = evaluate_policy(what, lambda seed, name=name: scripted(name, seed, env))
        found[name] = collect_tries(what, [played])
    return found


def collect_tries(what: EvalSet, played: list[Evaluation]) -> Tries:
    """Collect every trial of every task; None where the environment failed."""
    scored = [[e.status not in UNSCORED for e in one.episodes] for one in played]
    return Tries(
        tasks=[f"{what.split}/{task}" for task in what.tasks],
        solved=[
            [
                e.status == "solved" if good else None
                for e, good in zip(one.episodes, row, strict=True)
            ]
            for one, row in zip(played, scored, strict=True)
        ],
        returns=[
            [e.return_ if good else None for e, good in zip(one.episodes, row, strict=True)]
            for one, row in zip(played, scored, strict=True)
        ],
    )
