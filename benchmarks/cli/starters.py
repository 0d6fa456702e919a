"""`turngym starters`: the small starting models sampled, greedy, and the headroom above them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from rich.markup import escape
from rich.table import Table

from ...agents.engines.base import Sampling
from ...agents.engines.factory import EngineSettings
from ...agents.scripted import scripted, text_env
from ...algos.evaluation.defaults import MAX_TOKENS, TASKS, TEMPERATURE
from ...algos.evaluation.evaluate import EvalSet, evaluate_policy
from ...algos.evaluation.result import Score, SetScore
from ...algos.runs.progress import Reporter, reporter
from ...algos.training.config import EnvConfig
from ...envs.core.errors import BadValueError
from ...envs.core.registration import all_ids, find_environment
from ...envs.utils.disk_errors import write_whole
from ...envs.utils.statistics import Estimate
from ..runtime.threads import prepare
from .arguments import output_file
from .demo import ENV as DEMO_ENV
from .demo import HOPS as DEMO_HOPS
from .demo import START as DEMO_START
from .model_options import Sampler, starter
from .tables import plain_table, shown, table_console

DEMO = "demo"
"""Stands for the starting model of `turngym demo`."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Score the small starting models: what they do by sampling, greedily, and what is left.

    Attributes:
        env: Environments, or "demo" for the starting model of `turngym demo`; left out: all whose
            starting model has been taught, and the demo's. One that is not cached is made first,
            which takes one to ten minutes.
        split: Split of the tasks; left out: dev, or the last one that has tasks.
        n: Number of tasks.
        measure: What is compared: the share of solved tasks, or the return.
        seed: Seed of episodes and sampling.
        temperature: Temperature of the sampled score.
        max_tokens: Maximum tokens of an action.
        sampler: What samples the actions.
        out: File for the scores as JSON; where the call is stopped, those that there are, unless
            an older file is there.
    """

    env: tuple[str, ...] = ()
    split: str = ""
    n: int = TASKS
    measure: Literal["success", "return"] = "success"
    seed: int = 0
    temperature: float = TEMPERATURE
    max_tokens: int = MAX_TOKENS
    sampler: Sampler = field(default_factory=EngineSettings)
    out: str | None = None


class StarterScore(NamedTuple):
    """A starting model and its expert on the same tasks.

    Attributes:
        name: Environment, or ``demo``.
        settings: Settings of the environment.
        score: The model's, sampled and greedy.
        expert: The scripted expert's, which reads what is hidden; None where there is none.
    """

    name: str
    settings: Mapping[str, Any]
    score: SetScore
    expert: Score | None


def run(command: Command) -> None:
    """Score the starting models and print one table.

    Raises:
        UnknownNameError: No such environment.
        BadValueError: At temperature 0 there is no sampled score; no tokens of an action. Both
            are refused before a model is made.
    """
    if command.temperature <= 0:
        raise BadValueError(
            f"--temperature is {command.temperature:g}; expected above 0: the greedy score stands "
            "beside the sampled one anyway."
        )
    Sampling(max_tokens=command.max_tokens, temperature=command.temperature)
    names = command.env or (*taught_environments(), DEMO)
    for name in names:
        find_environment(DEMO_ENV if name == DEMO else name)
    out = None if command.out is None else output_file(command.out)
    report = reporter()
    prepare(small=True)
    found: list[StarterScore] = []
    try:
        for name in names:
            found.append(score_starter(name, command, report))
    finally:  # what took minutes to play is kept where a later one is stopped
        if found:
            table_console().print(starter_table(found, command.measure))
            if out is not None and (len(found) == len(names) or not out.exists()):
                rows = [_json_row(each) for each in found]
                write_whole(out, json.dumps(rows, indent=2) + "\n")


def taught_environments() -> list[str]:
    """Return the environments whose starting model imitates an expert."""
    return [name for name in all_ids() if find_environment(name).warm_start is not None]


def score_starter(name: str, command: Command, report: Reporter) -> StarterScore:
    """Make a starting model if need be, and play its environment with it and with the expert."""
    from ...algos.evaluation.lm_agent import TokenAgent

    if name == DEMO:
        env_id, changes = DEMO_ENV, DEMO_START
        settings: Mapping[str, Any] = {"size": "micro", "hops": DEMO_HOPS}
    else:
        env_id, changes = name, None
        settings = find_environment(name).warm_start_settings
    env = EnvConfig(id=env_id, settings=settings).prototype
    source = text_env(env).source
    split = command.split or ("dev" if source.sizes().get("dev", 0) != 0 else "")
    what = EvalSet(name=name, env=env, split=split, n=command.n, seed=command.seed)
    agent = TokenAgent(
        starter(env_id, report, changes),
        max_tokens=command.max_tokens,
        temperature=command.temperature,
        engine=command.sampler,
    )
    score = agent.evaluate(what, report).score()
    if text_env(env).find_expert() is None:
        return StarterScore(name, settings, score, None)
    expert = evaluate_policy(what, lambda seed: scripted("expert", seed, text_env(env))).score()
    return StarterScore(name, settings, score, expert)


def starter_table(rows: list[StarterScore], measure: str) -> Table:
    """Return a row per starting model; headroom is the expert's score less the model's."""
    percent = measure == "success"
    table = plain_table("starting model", "settings", right=("n", "sampled", "greedy", "expert"))
    table.add_column("headroom: sampled, greedy", justify="right")
    for column in table.columns[3:5]:
        column.no_wrap = True
    for row in rows:
        greedy, expert = row.score.greedy, row.expert
        parts = [_part(row.score, measure), None if greedy is None else _part(greedy, measure)]
        top = None if expert is None else _part(expert, measure)
        table.add_row(
            f"[bold]{escape(row.name)}[/]",
            escape(", ".join(f"{key} {value}" for key, value in row.settings.items())),
            str(row.score.n),
            *("" if part is None else shown(part, percent) for part in parts),
            "" if top is None else _write(top.mean, percent),
            ", ".join(
                _write(top.mean - part.mean, percent)
                for part in parts
                if top is not None and part is not None
            ),
        )
    return table


def _write(value: float, percent: bool) -> str:
    return f"{100 * value:.1f}" if percent else f"{value:.3f}"


def _part(score: Score, measure: str) -> Estimate:
    return score.success if measure == "success" else score.return_


def _json_row(row: StarterScore) -> dict[str, Any]:
    return {
        "starter": row.name,
        "settings": dict(row.settings),
        "score": row.score.model_dump(by_alias=True),
        "expert": None if row.expert is None else row.expert.model_dump(by_alias=True),
    }
