"""`turngym probe`: what in an environment matters for the choice of an algorithm."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import tyro

from ...agents.engines.factory import EngineSettings
from ...algos.evaluation.defaults import MAX_TOKENS, TEMPERATURE
from ...envs.core.errors import BadValueError
from ..runtime.threads import prepare
from .env_options import Environment, EnvOptions, env_config
from .model_options import STARTER, Sampler, measured_start
from .tables import plain_table, say, table_console

if TYPE_CHECKING:
    from ...envs.utils.statistics import Estimate
    from ..ladder.probe import Probe

NOTABLE = 0.2
"""Share of the variance from which a prefix is worth branching behind."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Measure what in an environment matters for the choice of an algorithm.

    Trees are grown with the starting policy: how much of the return the first turns decide, how
    often states come again, how uncertain the policy is after an answer, and what it scores.

    Attributes:
        env: Id of the environment; `turngym envs --hidden` lists them all.
        env_options: Settings of the environment.
        model: starter (made on first use: the ladder's in environments of the ladder, else the
            environment's, a blank model where it has none; `turngym credit` takes the same), a run
            directory, a model that `turngym models` lists, a model folder, GGUF file or hub name.
        prompts: Tasks on which trees are grown; more give narrower intervals.
        trees: Trees per task.
        split: Split whose tasks success is measured on.
        n: Number of such tasks.
        temperature: Temperature of sampling, above 0.
        max_tokens: Maximum tokens of an action; left out: what a run was trained with, else 64.
        sampler: What samples actions.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    env_options: Environment = field(default_factory=EnvOptions)
    model: str = STARTER
    prompts: int = 40
    trees: int = 4
    split: str = "dev"
    n: int = 40
    temperature: float = TEMPERATURE
    max_tokens: int | None = None
    sampler: Sampler = field(default_factory=EngineSettings)


def run(command: Command) -> None:
    """Measure, and print a table; what cannot be measured is refused before a model is made.

    Raises:
        BadValueError: Greedy sampling, or too few prompts or trees.
    """
    if not command.temperature > 0:
        raise BadValueError(
            f"--temperature {command.temperature:g}: expected above 0, greedy paths are all equal."
        )
    from ...agents.engines.base import Sampling
    from ...agents.engines.factory import build_engine
    from ...agents.models.loading import load_tokenizer
    from ...agents.rendering.factory import make_renderer
    from ...agents.scripted import text_env
    from ...algos.runs.progress import reporter
    from ...algos.training.config import EvalConfig
    from ..ladder.probe import check_numbers, probe

    check_numbers(command.prompts, command.trees)
    asked = MAX_TOKENS if command.max_tokens is None else command.max_tokens
    sampling = Sampling(max_tokens=asked, temperature=command.temperature)
    prepare(small=command.model == STARTER)
    given = env_config(command.env, command.env_options)
    env, folder, limit = measured_start(given, command.model, command.max_tokens, reporter())
    sampling = replace(sampling, max_tokens=limit)
    what = EvalConfig(name=command.split, env=env, split=command.split, n=command.n).make()
    tokenizer = load_tokenizer(folder)
    engine = build_engine(folder, tokenizer, command.sampler)
    renderer = make_renderer(tokenizer, tools=text_env(what.env).tools)
    measured = probe(
        what, engine, renderer, prompts=command.prompts, trees=command.trees, sampling=sampling
    )
    show(command, measured)


def show(command: Command, measured: Probe) -> None:
    """Print what was measured, and what it says."""
    table = plain_table(f"{command.env}, {command.model}", right=["", "95 % interval"])
    for part in measured.siblings:
        word = "turn" if part.depth == 1 else "turns"
        low, high = part.share.low95, part.share.high95
        table.add_row(
            f"sibling correlation after {part.depth} {word}",
            f"[bold]{part.share.mean:.2f}[/]",
            f"{low:.2f} to {high:.2f}",
        )
    table.add_row("variance of the return within a prompt", f"{measured.variance:.4f}", "")
    table.add_row(
        "turns in a state seen before in the episode", f"{measured.revisited_frac:.1%}", ""
    )
    table.add_row("turns in a state that another tree was in", f"{measured.shared_frac:.1%}", "")
    table.add_row(
        "entropy of the first token, at the start", f"{measured.first_entropy:.3f}", "nats"
    )
    if measured.later_entropy is not None:
        rise = measured.later_entropy - measured.first_entropy
        table.add_row(
            "the same, after answers", f"{measured.later_entropy:.3f}", f"nats ({rise:+.3f})"
        )
    table.add_row("turns of an episode", f"{measured.turns:.1f}", "")
    for name, value in (
        ("success at the start, sampled", measured.sampled),
        ("success at the start, greedy", measured.greedy),
        ("ceiling: the expert's success", measured.ceiling),
    ):
        table.add_row(name, *_percent(value))
    table_console().print(table)
    say(f"{measured.paths} paths of {measured.prompts} prompts in {measured.seconds:.1f} s")
    for line in advise(measured):
        say(f"- {line}")


def advise(measured: Probe) -> list[str]:
    """Return what the numbers say of algorithms, a line each."""
    from ..ladder.probe import NO_VARIANCE

    lines = []
    notable = [part for part in measured.siblings if part.share.low95 > NOTABLE]
    if measured.variance <= NO_VARIANCE:
        lines.append("returns do not vary within a prompt here: no group has anything to compare")
    elif measured.turns <= 1:
        lines.append("episodes have one turn: there is nothing behind which trees could fork")
    elif not measured.siblings:
        lines.append(
            "too few episodes go on behind a fork and differ there to tell what the first turns "
            "decide: --prompts 200 sees more"
        )
    elif notable:
        depth = notable[0].depth
        turns = "turn" if depth == 1 else f"{depth} turns"
        lines.append(
            f"what happens in the first {turns} decides much of the return: trees that fork behind "
            "it compare fairly"
        )
    elif all(part.share.high95 < NOTABLE for part in measured.siblings):
        lines.append("no prefix decides the return: trees have nothing to compare")
    if measured.revisited_frac > NOTABLE and measured.variance > NO_VARIANCE:
        lines.append("states come again: credit by state has anchors")
    if measured.sampled is not None and measured.sampled.mean == 0:
        lines.append(
            "no sampled episode succeeded, so success is rarer than "
            f"{100 * measured.sampled.high95:.2g} % (95 %): where it alone is rewarded, groups "
            "often have equal returns"
        )
    return lines


def _percent(value: Estimate | None) -> tuple[str, str]:
    if value is None:
        return "–", ""
    return f"{value.mean:.1%}", f"{100 * value.low95:.1f} to {100 * value.high95:.1f}"
