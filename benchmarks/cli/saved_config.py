"""``turngym train --config FILE``: the options of a run, from the ``config.json`` in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...agents.models.registry.fetch import name_of_folder
from ...algos.learner.settings import LearnerSettings
from ...algos.runs.run_dir import read_json
from ...algos.training.config import plain_data
from ...algos.training.settings import TrainSettings
from ...envs.core.errors import BadValueError, DataError
from .env_options import EnvOptions
from .model_options import WarmStartOptions

CONFIG = "config.json"


def read_options(file: str) -> dict[str, Any]:
    """Return the fields of ``train``'s options that a configuration says, some of them nested.

    Args:
        file: A ``config.json``, or the folder of a run.

    Raises:
        DataError: There is no such file, or it is no configuration of a run.
        BadValueError: It is one that the command line cannot say.
    """
    path = Path(file).expanduser()
    path = path / CONFIG if path.is_dir() else path
    if not path.is_file():
        raise DataError(f"--config: {path} is not a file.")
    found = read_json(path)
    try:
        return _options(found, str(path))
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise DataError(f"--config: {path} is no configuration of a run: {error!r}.") from error


def _options(found: Mapping[str, Any], where: str) -> dict[str, Any]:
    warm, lora = found.get("warm_start"), found["lora"]
    recipe, changes = _recipe(found["recipe"], where)
    split, n, files = _evaluations(found, where)
    return {
        "recipe": recipe,
        "recipe_arg": changes,
        "small": False,  # the changes say everything
        "env": found["env"]["id"],
        "env_options": EnvOptions(
            env_arg=tuple(f"{k}={json.dumps(v)}" for k, v in found["env"]["settings"].items())
        ),
        "model": _found_here(found["model"] if warm is None else warm["base"]),
        "warm": WarmStartOptions() if warm is None else _warm_start(warm["settings"]),
        **{name: found["budget"][name] for name in ("steps", "tokens", "calls", "minutes")},
        "eval_split": split,
        "eval_n": n,
        "eval_data": files,
        "settings": _read(TrainSettings, found),
        "learner": _read(LearnerSettings, found["learner"]),
        "lora": None if lora is None else (lora["rank"], lora["alpha"], tuple(lora["targets"])),
    }


def _found_here(model: str) -> str:
    """Return a model as it is named here: one of the catalogue may be in another cache."""
    return model if Path(model).is_dir() else name_of_folder(model) or model


def _read(kind: type, found: Mapping[str, Any]) -> Any:
    """Return settings of a class, of which the data may hold more fields."""
    names = {f.name for f in fields(kind)}
    own = {name: _without_types(value) for name, value in found.items() if name in names}
    return TypeAdapter(kind).validate_python(own)


def _without_types(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_types(inner) for key, inner in value.items() if key != "type"}
    return value


def _recipe(found: Mapping[str, Any], where: str) -> tuple[str, tuple[str, ...]]:
    """Return a recipe's name, and what was changed in it as ``name=value``.

    Raises:
        BadValueError: No changes to the registered recipe give it.
    """
    from ...algos.recipes import make_recipe

    name = found["name"]
    usual = dict(_leaves(plain_data(make_recipe(name))))
    now = dict(_leaves(found))
    changes = {k: v for k, v in now.items() if usual.get(k) != v and not k.endswith("type")}
    made = dict(_leaves(plain_data(make_recipe(name, changes)))) if changes else usual
    wrong = sorted(k for k in made.keys() | now.keys() if made.get(k) != now.get(k))
    if wrong:
        raise BadValueError(
            f"--config {where}: its recipe {name!r} is not the one that is registered now with "
            f"other settings: {', '.join(wrong[:5])} differ. Was it made in Python?"
        )
    return name, tuple(f"{key}={json.dumps(value)}" for key, value in changes.items())


def _leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted names and values; lists are values."""
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _leaves(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner


def _warm_start(found: Mapping[str, Any]) -> WarmStartOptions:
    return WarmStartOptions(
        warm_start=found["episodes"],
        warm_start_batch=found["batch"],
        warm_start_lr=found["lr"],
        warm_start_micro_batch_tokens=found["micro_batch_tokens"],
    )


def _evaluations(found: Mapping[str, Any], where: str) -> tuple[str, int, tuple[str, ...]]:
    """Return the evaluated split, the number of tasks, and files as ``name=file``.

    Raises:
        BadValueError: The evaluations are not those of the command line.
    """
    sets = found["evals"]
    counts = {one["n"] for one in sets}
    if not sets:
        return "", 1, ()
    if len(sets) == 1 and sets[0]["env"] == found["env"] and sets[0]["split"]:
        return sets[0]["split"], sets[0]["n"], ()
    if len(counts) == 1 and all("data" in one["env"]["settings"] for one in sets):
        files = tuple(f"{one['name']}={one['env']['settings']['data']}" for one in sets)
        return "dev", counts.pop(), files
    raise BadValueError(f"--config {where}: its evaluations can be said in Python alone.")
