"""`turngym curves`: the learning curves of several runs in one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from ...algos.runs.plots import BUDGETS, MEASURES, draw_runs
from ...algos.runs.run_dir import list_settings, read_json, read_metrics
from ...envs.core.errors import BadValueError, DataError
from .arguments import output_file
from .tables import say

SEED = "seed"
RECIPE = "recipe."
WATCHING = (
    "checkpoint_every",
    "eval_every",
    "eval_temperature",
    "evals",
    "greedy_every",
    "keep",
    "keep_rollouts",
    "records",
    "transcripts",
)
"""Settings of what is evaluated and kept of a run, which train nothing."""
OF_A_MODEL = (
    "model_digest",
    "warm_start.action_tokens",
    "warm_start.base_digest",
    "warm_start.context_tokens",
)
"""What differs with the model, which is named."""
OF_A_PART = {"warm_start": "warm_start.settings.episodes", "lora": "lora.rank"}
"""Parts that not every run has, and the setting that says which ones do."""
Settings = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Command:
    """Draw the learning curves of several runs in one picture.

    It shows the training rollouts, by sampled tokens and by optimiser steps. Runs that differ in
    nothing but their seed have one colour, a thin line each and a thick one for their mean.

    Attributes:
        runs: Run directories.
        out: The picture; its suffix says the format (png, svg, pdf).
        measure: Share of solved episodes, or return.
        title: What is compared.
    """

    runs: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN_DIR [RUN_DIR ...]")
    ]
    out: str = "curves.png"
    measure: Literal["success", "return"] = "success"
    title: str = ""


def run(command: Command) -> None:
    """Draw the picture and say where it is.

    Raises:
        DataError: A folder that does not exist, is no run directory, or a damaged one.
        BadValueError: No runs, one without a step, or a picture that cannot be written.
    """
    if not command.runs:
        raise BadValueError("curves: no runs; name at least one run directory.")
    configs, curves = [], []
    folders: dict[Path, str] = {}
    for name in command.runs:  # a run that is named twice is one run
        folders.setdefault(Path(name).expanduser().resolve(), name)
    for folder, name in folders.items():
        if not folder.exists():
            raise DataError(f"curves: {name} does not exist; expected a run directory.")
        if not (folder / "config.json").is_file():
            raise DataError(f"curves: {name} is not a run directory: it holds no config.json.")
        configs.append(read_json(folder / "config.json"))
        curves.append(read_metrics(folder / "metrics.jsonl"))
        steps = [row for row in curves[-1] if "rollout/return_mean" in row]
        if not steps:
            raise BadValueError(f"curves: the run in {name} has no training step yet.")
        drawn = (MEASURES[command.measure], *(at for at, _ in BUDGETS))
        if lacking := [key for key in drawn if not all(key in row for row in steps)]:
            raise DataError(
                f"curves: {name}/metrics.jsonl: training steps without {', '.join(lacking)}; "
                "expected the metrics of turngym train."
            )
    groups: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
    for label, rows in zip(label_runs(configs), curves, strict=True):
        groups.setdefault(label, []).append(rows)
    out = output_file(command.out)
    out = out if out.suffix else out.with_name(f"{out.name}.png")
    try:
        draw_runs(groups, out, command.measure, command.title)
    except (OSError, ValueError) as error:  # a suffix that matplotlib does not write
        raise BadValueError(f"curves: {command.out} cannot be written: {error}.") from error
    shown = ", ".join(f"{label} ({len(runs)})" for label, runs in groups.items())
    say(f"{out}: {shown}")


def label_runs(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a label for each run: its recipe, and in what it differs from the others.

    Runs that differ in their seed alone, or in what is evaluated and kept of them, have the same
    one. Settings of recipes count where two runs have a recipe of the same name.

    Args:
        configs: Configurations of the runs as JSON data.
    """
    settings = [list_settings(config) for config in configs]
    around = _differing(settings, within="")
    around = [key for key in around if _named_by(key) not in around]
    around = [key for key in around if not _said_by_part(key, settings)]
    labels = []
    for mine in settings:
        alike = [other for other in settings if _name(other) == _name(mine)]
        named = [*around, *_differing(alike, within=RECIPE)]
        said = [f"{_shorten(key)} {_say(mine.get(key))}" for key in named]
        labels.append(", ".join([_name(mine), *said]))
    return labels


def _differing(settings: Sequence[Settings], within: str) -> list[str]:
    """Return the settings that are not the same in all runs, of recipes or around them."""
    keys = dict.fromkeys(key for one in settings for key in one)
    return [
        key
        for key in keys
        if key != SEED
        and key.split(".")[0] not in WATCHING
        and key.startswith(RECIPE) == bool(within)
        and len({repr(one.get(key)) for one in settings}) > 1
    ]


def _named_by(key: str) -> str:
    """Return the setting whose difference says a setting's too; empty for none."""
    if key.startswith("warm_start.env_"):
        return "env." + key.removeprefix("warm_start.env_")
    return "model" if key in OF_A_MODEL else ""


def _said_by_part(key: str, settings: Sequence[Settings]) -> bool:
    """Return whether a setting differs only in that some runs lack the whole part it is of."""
    first = OF_A_PART.get(key.split(".")[0], key)
    having = [one for one in settings if one.get(first) is not None]
    return key != first and len({repr(one.get(key)) for one in having}) < 2


def _name(settings: Settings) -> str:
    return str(settings.get(f"{RECIPE}name", "run"))


def _shorten(key: str) -> str:
    return key.removeprefix(RECIPE).removeprefix("env.settings.").removesuffix(".id")


def _say(value: Any) -> str:
    """Return a value for a label: of a folder its name."""
    return Path(value).name if isinstance(value, str) and "/" in value else str(value)
