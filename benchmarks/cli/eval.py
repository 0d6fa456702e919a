"""`turngym eval`: agents on the first n tasks of a split, side by side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ...agents.drrn.settings import read_manifest
from ...agents.scripted import scripted, scripted_names
from ...algos.evaluation.evaluate import (
    AGENT_ERROR,
    ENV_ERROR,
    EvalSet,
    Evaluation,
    Tick,
    evaluate_policy,
    mean_of_sets,
)
from ...algos.evaluation.result import SetScore
from ...algos.runs.progress import Bar, Reporter, reporter
from ...algos.training.config import EvalConfig
from ...envs.core.errors import BadValueError, TurngymError
from ..runtime.threads import prepare
from ..science_world.table import sources, task_sets, task_table
from .envs import env_config, file_sets
from .models import model_path
from .planned import check_planning, planning
from .planner_options import PLANNING
from .plugins import run_plugins
from .prompted import ASKING, ask_model, check_options
from .tables import metric_table, score_table, table_console
from .train_options import EvalCommand

if TYPE_CHECKING:
    from .prompted import Asked

ACTION_TOKENS = 64
DRRN = "drrn:"
"""Before the folder of a network that scores legal actions."""
TABLE_SETS = 4
"""Columns of a table of measures; more sets get more tables."""


def run(command: EvalCommand) -> None:
    """Score every agent on every set and print one table.

    Raises:
        TurngymError: Bad options, or an agent whose model's server failed in every episode.
    """
    run_plugins(command.plugin)
    env = env_config(command.env, command.world)
    whole = EvalConfig(name=command.split, env=env, split=command.split, n=command.n)
    configs = file_sets(env, command.eval_data, command.n) or (whole,)
    if command.per_task:
        if command.eval_data:
            raise BadValueError("--per-task: ScienceWorld has no question files; no --eval-data.")
        configs = task_sets(env, command.split, command.n)
    # Agents are looked up before the first of them plays for minutes.
    check_options(command.agent, command.asked)
    check_planning(command.agent, command.planner)
    sets = [
        EvalSet(name=made.name, env=made.env, split=made.split, n=made.n, seed=command.seed)
        for made in (config.make() for config in configs)
    ]
    agents = [(name, _known(name, sets)) for name in command.agent]
    report = reporter()
    asked = ask_model(command, report) if any(a in ASKING for _, a in agents) else None
    rows: list[tuple[str, SetScore]] = []
    whole_sets: list[tuple[str, SetScore]] = []
    failed: list[str] = []
    by_task: dict[str, list[Evaluation]] = {}
    for name, agent in agents:
        evaluations = _evaluate(agent, sets, command, report, asked)
        by_task[name] = evaluations
        for evaluation in evaluations:
            scores = evaluation.scores()
            whole_sets.append((name, scores[0]))
            rows += [(name, score) for score in scores]
            failed += _failures(name, evaluation, report)
        if len(evaluations) > 1:
            rows.append((name, mean_of_sets(evaluations)))
    console = table_console()
    if command.per_task:
        console.print(task_table(by_task, command.published))
        for line in sources(command.published):
            console.print(line, highlight=False, style="dim")
    else:
        _show(console, rows, whole_sets)
    if command.out is not None:
        found = [{**_row(name, asked), **score.model_dump(by_alias=True)} for name, score in rows]
        out = Path(command.out).expanduser()
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if failed:
        raise TurngymError(failed[0])


def _show(
    console: Console, rows: list[tuple[str, SetScore]], sets: list[tuple[str, SetScore]]
) -> None:
    console.print(score_table(rows))
    for at in range(0, len(sets), TABLE_SETS):
        console.print()
        console.print(metric_table(sets[at : at + TABLE_SETS]))


def _known(name: str, sets: Sequence[EvalSet]) -> str:
    scripted_ones = scripted_names(sets[0].world)
    if name in (*scripted_ones, *ASKING):
        return name
    if name.startswith(DRRN):
        # Looked at now: a folder without a network is refused before anything plays.
        read_manifest(Path(name.removeprefix(DRRN)).expanduser())
        return name
    return model_path(name, (*ASKING, *sets[0].world.baselines()))


def _row(name: str, asked: Asked | None) -> dict[str, Any]:
    if asked is None or name not in ASKING:
        return {"agent": name}
    return {"agent": name, "model": asked.label, "dialect": asked.dialect}


def _failures(name: str, evaluation: Evaluation, report: Reporter) -> list[str]:
    """Tell about episodes that broke or ran out of context; the error where the agent broke all."""
    count = len(evaluation.episodes)
    if lost := [e for e in evaluation.episodes if e.status == ENV_ERROR]:
        why = next((f"; one of them, {e.task_id}: {e.why}" for e in lost if e.why), "")
        report.note(
            f"{name} on {evaluation.name}: the environment broke in {len(lost)} of {count} "
            f"episodes, which are in no mean{why}"
        )
    if full := [e for e in evaluation.scored if e.context_full]:
        first = f"; the first, {full[0].task_id}: {full[0].why}" if full[0].why else ""
        report.note(
            f"{name} on {evaluation.name}: {len(full)} of {count} episodes ended with a full "
            f"context and count as failed{first}"
        )
    bad = [e for e in evaluation.episodes if e.status == AGENT_ERROR]
    if not bad:
        return []
    said = (
        f"{name} on {evaluation.name}: {len(bad)} of {count} episodes failed and are in no mean; "
        f"the first, {bad[0].task_id}: {bad[0].why}"
    )
    if len(bad) == count:
        return [said]
    report.note(said)
    return []


def _evaluate(
    agent: str,
    sets: list[EvalSet],
    command: EvalCommand,
    report: Reporter,
    asked: Asked | None,
) -> list[Evaluation]:
    world = sets[0].world
    if agent in scripted_names(world):
        return _on_each(
            agent,
            sets,
            report,
            lambda what, tick: evaluate_policy(what, lambda s: scripted(agent, s, world), tick),
        )
    if agent.startswith(DRRN):
        from ...agents.drrn.policy import DrrnPolicy, load_drrn

        prepare(small=True)
        network = load_drrn(agent.removeprefix(DRRN))
        made = partial(DrrnPolicy, network, command.temperature)
        return _on_each(agent, sets, report, lambda what, tick: evaluate_policy(what, made, tick))
    if asked is not None and agent in ASKING:
        plans = agent in PLANNING
        seat = planning(agent, command, asked, world) if plans else asked.seat(agent, command)

        async def scored(what: EvalSet, tick: Tick) -> Evaluation:
            try:
                return await seat.evaluate(what, tick)
            finally:
                await asked.model.close()

        return _on_each(agent, sets, report, lambda what, tick: asyncio.run(scored(what, tick)))
    from ...algos.evaluation.lm_agent import TokenAgent

    prepare(small=False)
    model = TokenAgent(
        agent,
        max_tokens=ACTION_TOKENS if command.max_tokens is None else command.max_tokens,
        temperature=command.temperature,
        engine=command.sampler,
    )
    return [model.evaluate(what, report) for what in sets]


def _on_each(
    agent: str,
    sets: Sequence[EvalSet],
    report: Reporter,
    evaluate: Callable[[EvalSet, Tick], Evaluation],
) -> list[Evaluation]:
    """Score an agent on every set, each with a bar of its own."""
    found = []
    for what in sets:
        count = len(what.tasks)
        with report.bar(f"{agent} on {what.name}") as bar:

            def tick(n: int, count: int = count, bar: Bar = bar) -> None:
                bar.update(n / count, f"{n} of {count}")

            found.append(evaluate(what, tick))
    return found
