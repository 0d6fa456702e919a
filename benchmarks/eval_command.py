"""`turngym eval`: agents on the first n tasks of a split, side by side."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from ..agents.scripted import scripted, scripted_names
from ..algos.config import EvalConfig
from ..algos.evaluate import EvalSet, Evaluation, evaluate_policy
from ..algos.progress import Reporter, reporter
from ..algos.result import SetScore
from .machine import prepare
from .models import model_path
from .options import EvalCommand
from .tables import metric_table, score_table
from .worlds import env_config, file_sets


def run(command: EvalCommand) -> None:
    """Score every agent on every set and print one table."""
    env = env_config(command.env, command.world)
    whole = EvalConfig(name=command.split, env=env, split=command.split, n=command.n)
    configs = file_sets(env, command.eval_data, command.n) or (whole,)
    # Agents are looked up before the first of them plays for minutes.
    agents = [
        (name, name if name in scripted_names() else model_path(name)) for name in command.agent
    ]
    sets = [
        EvalSet(name=made.name, env=made.env, split=made.split, n=made.n, seed=command.seed)
        for made in (config.make() for config in configs)
    ]
    report = reporter()
    rows: list[tuple[str, SetScore]] = []
    whole_sets: list[tuple[str, SetScore]] = []
    for name, agent in agents:
        for evaluation in _evaluate(agent, sets, command, report):
            whole_sets.append((name, evaluation.score()))
            rows += [whole_sets[-1], *((name, part.score()) for part in evaluation.parts())]
    console = Console()
    console.print(score_table(rows))
    console.print()
    console.print(metric_table(whole_sets))
    if command.out is not None:
        found = [{"agent": name, **score.model_dump(by_alias=True)} for name, score in rows]
        Path(command.out).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _evaluate(
    agent: str, sets: list[EvalSet], command: EvalCommand, report: Reporter
) -> list[Evaluation]:
    if agent not in scripted_names():
        from ..algos.token_agent import TokenAgent

        prepare(small=False)
        model = TokenAgent(
            agent,
            max_tokens=command.max_tokens,
            temperature=command.temperature,
            max_batch=command.max_batch,
            device=command.device,
        )
        return [model.evaluate(what, report) for what in sets]
    done = []
    for what in sets:
        count = len(what.tasks)
        with report.bar(f"{agent} on {what.name}") as bar:
            done.append(
                evaluate_policy(
                    what,
                    lambda seed: scripted(agent, seed),
                    lambda n, bar=bar, count=count: bar.update(n / count, f"{n} of {count}"),
                )
            )
    return done
