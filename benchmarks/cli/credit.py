"""`turngym credit`: what the credit of recipes is worth, turn by turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.markup import escape

from ...agents.engines.factory import EngineSettings
from ...envs.core.errors import BadValueError, check_package
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.system import count_cores
from ..runtime.threads import prepare
from .arguments import (
    Repeated,
    check_workers,
    pairs,
    refuse_others,
    refuse_without,
)
from .env_options import Environment, EnvOptions, env_config
from .model_options import STARTER, Sampler, measured_start
from .tables import plain_table, say, table_console

if TYPE_CHECKING:
    from ...algos.core.recipe import Recipe
    from ...algos.runs.progress import Reporter
    from ...algos.training.config import TrainConfig
    from ..microscope.report import CreditReport, Row
    from ..microscope.study import StudySettings

OF_MATRIX = (
    "matrix",
    "only",
    "at",
    "batches",
    "compared",
    "reference",
    "workers",
    "out",
)
"""Options of --matrix; recipes, environments, models and seeds are those of the matrix."""


@dataclass(frozen=True, kw_only=True)
class TruthOptions:
    """How the true advantages are measured.

    Attributes:
        groups: Groups of the first recipe; recipes with smaller groups get more of them, so that
            all have about as many paths.
        continuations: Continuations per turn, K; a multiple of 4. 16 compares recipes, 64 judges
            signs and single turns.
        noise: Seed of the continuations; another one measures the same groups again.
        transitions: fixed (equal histories go on equally; refused where a step draws random
            numbers), random (every fork gets luck of its own), or auto, which finds out.
        resample: Times that the group around an anchor turn is sampled again, for bias and
            variance, 8 for instance, which takes more than twice as long as all the rest; 0
            leaves both out, and the report says so. Needs independent chains.
        anchors: Anchor turns per recipe.
        workers: Processes; left out: one per core.
    """

    groups: int = 40
    continuations: int = 16
    noise: int = 0
    transitions: Literal["auto", "fixed", "random"] = "auto"
    resample: int = 0
    anchors: int = 30
    workers: int | None = None


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """How the columns of a matrix are measured; each row gets the same sampled tokens.

    Attributes:
        batches: Training batches of each row whose turns are measured, with 8 continuations.
        compared: Training batches of each row that are compared with the column's reference.
        reference: Parts of the reference, of 8 batches' tokens each.
    """

    batches: int = 3
    compared: int = 24
    reference: int = 8


@dataclass(frozen=True, kw_only=True)
class Command:
    """Measure how well recipes' credit matches the true advantage of each turn.

    Groups are played by each recipe's rollout, every turn is forked and continued many times, and
    the recipe's credit is compared with what that shows. Recipes whose rollouts are equal are
    judged on the same groups.

    Attributes:
        recipe: The recipes; differences are taken to the first.
        recipe_arg: A setting of all recipes as name=value, repeatable; short: --recipe.NAME VALUE.
        env: Id of the environment; `turngym envs` lists them.
        env_options: Settings of the environment.
        model: The policy: one that `turngym models` lists, a model folder, GGUF file, hub name or
            run directory; left out, or starter: that of `turngym probe` (the ladder's start in
            environments of the ladder, else the small starter), with settings for small models.
        small: Settings of recipes for small models; left out: with the starter alone.
        split: Split of the tasks.
        seed: Of tasks, episodes and sampling.
        max_tokens: Maximum tokens of one action; left out: what a run was trained with, else 64.
        sampler: The engine.
        truth: How the true advantages are measured.
        columns: How the columns of --matrix are measured.
        view: Groups per recipe that are written for `turngym view`.
        out: Folder of the report; left out: runs/credit-ENV.
        matrix: Folder of a matrix, or its packed results: measure its columns, with the settings,
            starts and recipes that its cells had. Columns that have a report are kept.
        only: With --matrix: recipe=NAME, row=LABEL, env=ID or column=NAME, repeatable.
        at: With --matrix: at a column's start, half way through its budget, or both.
        against: Folder of a matrix, or its packed results: correlate the measures of --reports
            with the areas there; --out gets against.json and against.md.
        reports: Reports for --against: credit.json, their folders, or the --out of --matrix.
    """

    recipe: tuple[str, ...] = ("grpo",)
    recipe_arg: Repeated = ()
    env: str = "SearchQA-v0"
    env_options: Environment = field(default_factory=EnvOptions)
    model: str | None = None
    small: bool | None = None
    split: str = "train"
    seed: int = 0
    max_tokens: int | None = None
    sampler: Sampler = field(default_factory=partial(EngineSettings, max_batch=256))
    truth: Annotated[TruthOptions, tyro.conf.arg(name="")] = field(default_factory=TruthOptions)
    view: int = 4
    out: str | None = None
    matrix: str | None = None
    only: Repeated = ()
    at: tuple[Literal["start", "halfway"], ...] = ("start", "halfway")
    columns: Annotated[ColumnOptions, tyro.conf.arg(name="")] = field(default_factory=ColumnOptions)
    against: str | None = None
    reports: tuple[str, ...] = ()


def run(command: Command) -> None:
    """Measure and report, or compare earlier reports with a matrix.

    Raises:
        TurngymError: Options that do not fit, or a recipe whose credit cannot be judged.
        RunLockedError: Another process measures into the folder.
        MissingExtraError: What writes the report is not installed.
    """
    if (command.against is None) != (not command.reports):
        raise BadValueError("credit: --against RESULTS and --reports FILES go together.")
    if command.against is None:
        check_package("the report", "jinja2", "train")  # now, not after hours
    if command.matrix is not None:
        refuse_others(command, "credit --matrix", OF_MATRIX)
        measure_matrix(command, command.matrix)
        return
    if command.against is not None:
        refuse_others(command, "credit --against", ("against", "reports", "out"))
        compare(command.against, command.reports, command.out)
        return
    refuse_without(command, "--matrix", ("only", "at", "batches", "compared", "reference"))
    if not command.truth.resample:
        refuse_without(command, "--resample", ("anchors",))
    from ..matrix.run import lock_folder

    # what can be refused is refused before a model is made and anything is played
    recipes, settings, processes = find_recipes(command), study_settings(command), workers(command)
    out = report_folder(command)
    with lock_folder(out / "lock"):  # a report of another process would be written over
        measure(command, recipes, settings, processes, out)


def measure(
    command: Command, recipes: dict[str, Recipe], settings: StudySettings, processes: int, out: Path
) -> None:
    """Measure recipes and write their report into a folder.

    Raises:
        OwnPartError: A part of a recipe raised; after the report of the others, where all was
            measured.
    """
    from ...algos.runs.progress import reporter
    from ..microscope.crew import Bench, hire
    from ..microscope.giving import OwnPartError
    from ..microscope.report import write_report
    from ..microscope.study import Study

    prepare(small=_own(command))
    report = reporter()
    config = make_config(command, recipes, report)
    bench = Bench(config)
    study = Study(bench, recipes, settings, report)
    with hire(bench, processes) as crew:
        found = study.run(crew)
    try:
        written = write_report(found, out, study.write_dumps(out))
    finally:  # what took hours to measure is shown, also where the disk is full
        show(found)
    say("")
    for path in written:
        say(str(path))
    if study.failed:
        raise OwnPartError(
            f"{' '.join(study.failed.values())} The report in {out} has what else was measured; "
            "measure that recipe alone, with another --out, once it is mended."
        )


def report_folder(command: Command) -> Path:
    """Return the folder of the report, made now.

    Raises:
        BadValueError: It holds a report already, or cannot be made.
    """
    from ..microscope.report import FILE

    named = Path("runs") / f"credit-{command.env.removesuffix('-v0')}".lower()
    out = Path(command.out or named).expanduser()
    if (out / FILE).exists():
        raise BadValueError(
            f"{out}: holds the report of an earlier measurement ({FILE}), which is not "
            "overwritten; give another --out, or delete it."
        )
    return make_folder(out)


def _own(command: Command) -> bool:
    """Return whether the policy is the starter."""
    return command.model is None or command.model == STARTER


def find_recipes(command: Command) -> dict[str, Recipe]:
    """Return the recipes by name.

    Raises:
        BadValueError: None, or one of them twice.
        UnknownNameError: No such recipe or setting.
    """
    from ...algos.recipes import make_recipe

    if not command.recipe or len(set(command.recipe)) != len(command.recipe):
        raise BadValueError(
            f"--recipe {' '.join(command.recipe)}: expected at least one recipe, none twice."
        )
    small = _own(command) if command.small is None else command.small
    changes = pairs(command.recipe_arg, "--recipe-arg")
    return {name: make_recipe(name, changes, small=small) for name in command.recipe}


def make_config(command: Command, recipes: dict[str, Recipe], report: Reporter) -> TrainConfig:
    """Return environment, model and engine as a configuration."""
    from ...algos.training.config import Budget, TrainConfig

    given = env_config(command.env, command.env_options)
    env, model, limit = measured_start(given, command.model, command.max_tokens, report)
    return TrainConfig(
        env=env,
        model=model,
        recipe=max(recipes.values(), key=lambda recipe: recipe.hints is not None),
        budget=Budget(steps=1),
        split=command.split,
        seed=command.seed,
        max_tokens=limit,
        **vars(command.sampler),
    )


def study_settings(command: Command) -> StudySettings:
    """Return the settings of the study.

    Raises:
        BadValueError: A number out of range.
    """
    from ..microscope.study import StudySettings
    from ..microscope.truth import TruthSettings

    truth = command.truth
    return StudySettings(
        groups=truth.groups,
        truth=TruthSettings(
            continuations=truth.continuations, noise=truth.noise, transitions=truth.transitions
        ),
        resample=truth.resample,
        anchors=truth.anchors,
        keep=command.view,
    )


def workers(command: Command) -> int:
    """Return the number of processes.

    Raises:
        BadValueError: Less than one.
    """
    return check_workers(count_cores() if command.truth.workers is None else command.truth.workers)


def show(report: CreditReport) -> None:
    """Print the tables; intervals and differences are in the pages."""
    from ..microscope.report import GRADIENTS, TURNS, say_doubts, say_left_out, shown_columns

    console = table_console()
    for title, columns in (("turns", TURNS), ("gradients", GRADIENTS)):
        shown = shown_columns(report, columns)
        table = plain_table(title, right=[column.title for column in shown])
        for row in report.rows:
            cells = []
            for column in shown:
                text = _number(row, column.key, column.percent)
                most = _number(row, column.ceiling, column.percent)
                cells.append(f"{text} [dim]of {most}[/]" if text and most else text)
            table.add_row(f"[bold]{escape(row.name)}[/]", *cells)
        console.print(table)
        console.print()
    for line in say_doubts(report):
        say(line)
    if left_out := say_left_out(report):
        say(left_out)
    work = report.work
    say(
        f"{work['continuations']:,.0f} continuations of {work['turns']:,.0f} turns in "
        f"{work['seconds']:.1f} s ({work['continuations'] / work['seconds']:,.0f}/s, "
        f"{work['actions']:,.0f} actions sampled, transitions {report.transitions})"
    )


def _number(row: Row, name: str, percent: bool) -> str:
    """Return a measure without its interval; empty where there is none."""
    found = row.measures.get(name)
    return "" if found is None else f"{found.value:z.0%}" if percent else f"{found.value:z.2f}"


def measure_matrix(command: Command, results: str) -> None:
    """Measure the columns of a matrix that have no report yet.

    Raises:
        BadValueError: Columns that could not be measured, or a folder that cannot be made.
        RunLockedError: Another process measures into the folder.
    """
    from ..matrix.matrix_files import read_parts
    from ..matrix.run import lock_folder
    from ..microscope.columns import ColumnSettings, plan_columns
    from ..microscope.sweep import run_sweep

    prepare(small=True)
    given_name = Path(results)
    out = Path(
        command.out or given_name.with_name(given_name.name.split(".")[0] + "-credit")
    ).expanduser()
    settings = ColumnSettings(**vars(command.columns))
    ats = tuple(dict.fromkeys(command.at))
    if not ats:
        raise BadValueError("--at: names no policy; expected start, halfway or both.")
    jobs = plan_columns(read_parts([Path(results)]), command.only, ats, out, settings)
    make_folder(out)  # refused now where it is a file, not after a column was measured
    say(f"{len(jobs)} columns and policies in {out}")
    with lock_folder(out / "lock"):
        sweep = run_sweep(jobs, workers(command), say)
    say(f"{len(sweep.measured)} measured, {len(sweep.kept)} were there before")
    for report in (*sweep.kept, *sweep.measured):
        place = report.place
        if place is None:
            continue
        for row, why in place.refused.items():
            say(f"not measured: {row} on {place.column}: {why}")
    places = f"--against {quote(results)} --reports {quote(str(out))}"
    say(f"turngym credit {places}")
    if sweep.failed:
        raise BadValueError(
            f"credit: {len(sweep.failed)} columns could not be measured: {sweep.failed}. The same "
            "call tries them again."
        )


def compare(results: str, reports: Sequence[str], out: str | None = None) -> None:
    """Print how the measures order the recipes, against their areas; write it where asked."""
    from ..microscope.against import compare_reports, order_line, write_comparison

    found = compare_reports(results, reports)
    console = table_console()
    table = plain_table(
        "environment", "policy", "recipe", right=["batch", "reference", "area", "seeds"]
    )
    for cell in found.cells:
        cosines = [cell.measures.get(name) for name in ("cosine_batch", "cosine_reference")]
        table.add_row(
            escape(cell.column),
            cell.at,
            escape(cell.recipe),
            *("" if value is None else f"{value:.3f}" for value in cosines),
            f"{cell.area:.3f}",
            str(cell.seeds),
        )
    console.print(table)
    for order in found.orders:
        say(order_line(order))
    for doubt in found.doubts:
        say(f"careful: {doubt}")
    if out is not None:
        for path in write_comparison(found, Path(out)):
            say(str(path))
