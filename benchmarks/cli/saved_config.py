"""``turngym train --config FILE``: the options of a run, from the ``config.json`` in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...agents.models.registry.fetch import name_of_folder
from ...algos.learner.settings import LearnerSettings
from ...algos.runs.run_dir import read_json
from ...algos.training.config import Budget, EvalConfig, plain_data
from ...algos.training.settings import TrainSettings
from ...envs.core.errors import BadValueError, DataError
from .env_options import EnvOptions, env_config, file_sets
from .model_options import LoraOptions, WarmStartOptions, lora, warm_start_settings

CONFIG = "config.json"
_APART = ("recipe", "model", "model_digest")
"""Settings with checks of their own, or that may differ here."""
_LIMITS = tuple(field.name for field in fields(Budget))
_OUTCOMES = tuple(
    f"warm_start.{name}" for name in ("base", "base_digest", "action_tokens", "context_tokens")
)
"""What a warm start gave; the same settings give it again."""


def read_options(file: str, given: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Return the fields of ``train``'s options that a configuration says, some of them nested.

    Args:
        file: A ``config.json``, or the folder of a run.
        given: Options beside it with their values; what they replace need not be said.

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
        options = _options(found, str(path))
        _check_said(found, options, given, str(path))
        return options
    except KeyError as error:
        raise DataError(
            f"--config: {path} is no configuration of a run: it has no {error.args[0]!r}; expected "
            f"the {CONFIG} that `turngym train` wrote."
        ) from error
    except (TypeError, AttributeError, ValidationError) as error:
        raise DataError(f"--config: {path} is no configuration of a run: {error!r}.") from error


def _options(found: Mapping[str, Any], where: str) -> dict[str, Any]:
    warm, adapters = found.get("warm_start"), found["lora"]
    recipe, changes = _recipe(found["recipe"], where)
    split, n, files = _evaluations(found["evals"])
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
        **{name: found["budget"][name] for name in _LIMITS},
        "eval_split": split,
        "eval_n": n,
        "eval_data": files,
        "settings": _read(TrainSettings, found),
        "learner": _read(LearnerSettings, found["learner"]),
        "lora": LoraOptions() if adapters is None else _lora(adapters),
    }


def _check_said(
    found: Mapping[str, Any], options: Mapping[str, Any], given: Mapping[str, str], where: str
) -> None:
    """Refuse a configuration that the options would make another one of.

    Raises:
        BadValueError: The command line cannot say one of its settings.
    """
    env = env_config(options["env"], options["env_options"])
    split, n = options["eval_split"], options["eval_n"]
    sets = () if _replaced("evals", given) else file_sets(env, options["eval_data"], n)
    if split and not sets:
        sets = (EvalConfig(name=split, env=env, split=split, n=n),)
    settings, warm = options["settings"], options["warm"]
    imitation = {
        "env_id": env.id,
        "env_settings": env.settings,
        "settings": warm_start_settings(warm, settings.render) if warm.warm_start else None,
    }
    said = {
        **vars(settings),
        "env": env,
        "evals": sets,
        "learner": options["learner"],
        "lora": lora(options["lora"]),
        "warm_start": imitation,
        "budget": Budget(**{name: options[name] for name in _LIMITS}),
    }
    now = dict(_leaves(plain_data(said)))
    for name, value in _leaves({key: one for key, one in found.items() if key not in _APART}):
        unsaid = now.get(name) != value and name.rpartition(".")[2] != "type"
        if unsaid and name not in _OUTCOMES and not _replaced(name, given):
            raise BadValueError(
                f"--config {where}: the command line cannot say {name} as it is there: "
                f"{_shown(value)}; it would be {_shown(now.get(name))}. {_hint(name)}"
            )


def _shown(value: Any) -> str:
    plain = [_without_types(one) for one in value] if isinstance(value, list) else value
    return "nothing" if value is None else json.dumps(plain)


def _replaced(name: str, given: Mapping[str, str]) -> bool:
    """Return whether an option takes the place of a setting that there is no option for."""
    if name == "evals":
        return not given.keys().isdisjoint(("--eval-split", "--eval-data"))
    return name.startswith("warm_start.") and given.get("--warm-start") == "0"


def _hint(name: str) -> str:
    """Return what to do about a setting that the command line cannot say."""
    beside = "Train with it in Python"
    if name == "evals":
        return f"{beside}, or evaluate something else: --eval-split or --eval-data beside it."
    if name.startswith("warm_start."):
        model = "--warm-start 0 --model with the model that it gave"
        return f"{beside}, or begin with its outcome: {model}."
    return f"{beside}, or take the setting out of a copy of the file."


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
    from ...algos.recipes.settings import LISTS, setting_word

    def leaves(recipe: Mapping[str, Any]) -> dict[str, Any]:
        """Return its settings as the command line names them, and the parts of its lists."""
        parts = {key: {setting_word(part["type"]): part for part in recipe[key]} for key in LISTS}
        kinds = {f"{key}.type": list(inner) for key, inner in parts.items()}
        return dict(_leaves({**recipe, **parts})) | kinds

    name = found["name"]
    usual, now = leaves(plain_data(make_recipe(name))), leaves(found)
    changes = {k: v for k, v in now.items() if usual.get(k) != v and not k.endswith("type")}
    made = leaves(plain_data(make_recipe(name, changes))) if changes else usual
    wrong = sorted(k for k in made.keys() | now.keys() if made.get(k) != now.get(k))
    if wrong:
        raise BadValueError(
            f"--config {where}: its recipe {name!r} is not the one that is registered now with "
            f"other settings: {', '.join(wrong[:5])} differ. Was it made in Python?"
        )
    return name, tuple(f"{key}={json.dumps(value)}" for key, value in changes.items())


def _leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted names and values; lists are values, and the settings that a start knew."""
    for key, inner in value.items():
        if isinstance(inner, Mapping) and key != "env_settings":
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


def _lora(found: Mapping[str, Any]) -> LoraOptions:
    return LoraOptions(
        lora_rank=found["rank"],
        lora_alpha=found["alpha"],
        lora_target=tuple(found["targets"]),
        lora_rslora=found.get("rslora", False),
    )


def _evaluations(sets: Sequence[Mapping[str, Any]]) -> tuple[str, int, tuple[str, ...]]:
    """Return what says evaluation sets: split, number of tasks, and files as ``name=file``."""
    if not sets:
        return "", 1, ()
    if all("data" in one["env"]["settings"] and not one["split"] for one in sets):
        files = tuple(f"{one['name']}={one['env']['settings']['data']}" for one in sets)
        return "dev", sets[0]["n"], files
    return sets[0]["split"], sets[0]["n"], ()
