"""A language model imitates an environment's expert before reinforcement learning, once."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ....agents.models.built_folder import build_once, read_manifest
from ....agents.models.out_of_memory import MemoryFullError, NoRoomError
from ....agents.models.usual_torch import usual_torch
from ....agents.rendering.factory import keep_style
from ....agents.scripted import text_env
from ....agents.warm_start.demonstrations import EXPERT, Demonstrator, Exchange, refuse_oracle
from ....envs.core.digest import digest_of
from ....envs.core.env import TextEnv
from ....envs.core.errors import BadValueError
from ....envs.core.fork import fork
from ....envs.core.registration import find_environment
from ....envs.core.tasks import get_split_size
from ....envs.utils.disk_cache import cache_dir
from ....envs.utils.garbage_collection import settled_heap
from ...core.recipe import Optim, Recipe
from ...credit import Imitation
from ...learner.settings import LearnerSettings
from ...losses import ImitationLoss, TokenMean
from ...rollouts import SpokenDemonstrations
from ...runs.progress import Bar, Reporter, Silent
from ...runs.run_dir import read_json, read_metrics, write_json
from ..config import Budget, EnvConfig, TrainConfig, config_digest, model_digest
from ..policy_files import save_policy
from ..settings import WarmStart, WarmStartSettings
from ..trainer import Trainer
from .imitated_content import look_at_content

VERSION = 2
"""Part of every folder's name: raise it when the same settings would make another model."""
MANIFEST = "warm_start.json"
_LOOKED_AT = 64
"""Dialogues that tell one expert or environment from another, and how long its actions are."""
_RISE_STEPS = 10
"""Most steps over which the learning rate rises."""


class WarmModel(NamedTuple):
    """A model that has imitated.

    Attributes:
        folder: Its folder.
        record: What it imitated, for the configuration of a run that starts from it.
        longest_action: Tokens of the longest action of some of the episodes that it imitated.
    """

    folder: Path
    record: WarmStart
    longest_action: int


@usual_torch()
def warm_start(
    model: str,
    env: EnvConfig,
    settings: WarmStartSettings,
    report: Reporter | None = None,
    *,
    device: str = "auto",
    gradient_checkpointing: bool = False,
) -> WarmModel:
    """Return a model after it imitated the environment's expert, from the cache where it is there.

    The demonstrations are episodes of the split, in the model's own chat format, each seen once;
    the loss is the negative log-likelihood of the expert's action tokens (the recipe ``sft``). An
    interrupted imitation goes on where it stopped. The cache's key covers the model's weights,
    configuration, tokenizer and chat template, the environment with its settings and files of
    questions, what its expert does, and the settings, but not how memory is saved by computing
    again.

    Args:
        model: Folder or hub name of the model.
        env: The environment.
        settings: How it is done.
        report: Shows the progress.
        device: Where the model learns.
        gradient_checkpointing: As of :class:`LearnerSettings`; the model is the same up to
            rounding, so it is no part of the key.

    Raises:
        BadValueError: The environment has no expert to imitate, or one that acts on what nobody is
            shown; no tasks in the split; several processes run; the imitation does not fit into
            the device's memory; layers that cannot be computed again.
        MemoryFullError: The memory was full on the way; names the setting that needs less.
        KeyboardInterrupt: After the state was saved.
    """
    base_env = text_env(env.prototype)
    rollout = SpokenDemonstrations(player=_player(env.id))
    _check(base_env, rollout, settings)
    config = _configure(model, env, settings, rollout, device)
    weights = model_digest(model)
    plain = config.resolved(weights)
    kept = {key: value for key, value in plain.items() if key not in ("model", "device")}
    talks = _play(env, settings, rollout.player)
    content, longest = look_at_content(model, settings.render, base_env, env.settings, talks)
    key = digest_of((VERSION, config_digest(kept), settings.steps, content))[:16]
    root = cache_dir() / "warm_starts"
    folder = root / f"{env.id}-{key}"

    def build(draft: Path) -> Mapping[str, Any]:
        _refuse_several_processes()
        refuse_oracle(talks, 0.0, env.id)
        work = root / f".running-{env.id}-{key}"
        learner = replace(config.learner, gradient_checkpointing=gradient_checkpointing)
        how = replace(config, learner=learner)
        if (work / "config.json").exists():  # interrupted, maybe on another device
            write_json(work / "config.json", read_json(work / "config.json") | {"device": device})
        tokens = _imitate(how, work, draft, report or Silent())
        work.rename(draft.with_name("work"))  # deleted with what lies beside the draft
        about = {"version": VERSION, "base": model, "base_digest": weights, "env_id": env.id}
        return {**about, "settings": how.resolved(weights), **tokens}

    build_once(folder, MANIFEST, build, "a warm start")
    gc.collect()  # optimiser and engine of the imitation: the run that follows needs their memory
    about = read_manifest(folder, MANIFEST)
    record = WarmStart(
        base=model,
        base_digest=weights,
        env_id=env.id,
        env_settings=env.settings,
        settings=settings,
        action_tokens=int(about["action_tokens"]),
        context_tokens=int(about["context_tokens"]),
    )
    return WarmModel(folder, record, longest)


def _player(env_id: str) -> str:
    """Return who demonstrates: the expert, or whom the registry's row has the starter read."""
    row = find_environment(env_id).warm_start
    return EXPERT if row is None else row.starter.get("reader", EXPERT)


def _check(
    env: TextEnv[Any, Any], rollout: SpokenDemonstrations, settings: WarmStartSettings
) -> None:
    try:
        rollout.check(env)
    except BadValueError as fault:
        raise BadValueError(
            f"warm start: {env.name} has no scripted expert, so there is nothing to imitate. Leave "
            "--warm-start out."
        ) from fault
    size = get_split_size(env.source, settings.split, env.name)
    if size == 0:
        raise BadValueError(
            f"warm start: split {settings.split!r} of {env.name} holds no task to show. Leave "
            "--warm-start out, or give tasks to train on."
        )


def _configure(
    model: str,
    env: EnvConfig,
    settings: WarmStartSettings,
    rollout: SpokenDemonstrations,
    device: str,
) -> TrainConfig:
    """Return the imitation as a training run: what the recipe ``sft`` does, at these settings."""
    recipe = Recipe(
        name="sft",
        paper="supervised fine-tuning before reinforcement learning",
        rollout=rollout,
        credit=Imitation(),
        loss=ImitationLoss(aggregate=TokenMean()),
        optim=Optim(lr=settings.lr, warmup_steps=min(_RISE_STEPS, 2 * settings.steps // 5)),
        groups_per_step=settings.per_step,
    )
    return TrainConfig(
        env=env,
        model=model,
        recipe=recipe,
        budget=Budget(steps=settings.steps),
        learner=LearnerSettings(micro_batch_tokens=settings.micro_batch_tokens),
        split=settings.split,
        seed=settings.seed,
        render=settings.render,
        device=device,
        records="metrics",
        keep_rollouts=0,
    )


def _imitate(config: TrainConfig, work: Path, folder: Path, report: Reporter) -> dict[str, float]:
    """Run the imitation in ``work``, write the model into ``folder``, and count the tokens."""
    with _own_names(config), Trainer(config, work, _Named(report)) as trainer:
        with settled_heap():
            result = trainer.run()
        policy = trainer.learner.whole_policy()
        policy.to(_stored_dtype(config.model))
        save_policy(policy, folder)
        keep_style(trainer.tokenizer, config.render)
        trainer.tokenizer.save_pretrained(folder)
        rows = read_metrics(trainer.writer.dir.metrics_path)
    steps = [row for row in rows if "rollout/paths" in row]
    read = sum(row["rollout/context_tokens_mean"] * row["rollout/paths"] for row in steps)
    return {
        "steps": result.steps,
        "episodes": sum(int(row["rollout/groups"] - row["rollout/env_errors"]) for row in steps),
        "action_tokens": result.sampled_tokens,
        "context_tokens": round(read),
        "seconds": round(result.seconds, 1),
        "loss_first": round(steps[0]["loss/nll"], 4),
        "loss_last": round(steps[-1]["loss/nll"], 4),
    }


@contextmanager
def _own_names(config: TrainConfig) -> Iterator[None]:
    """Within, a lack of memory names the setting of the imitation, not the training's."""
    try:
        yield
    except (MemoryFullError, NoRoomError) as fault:
        now = config.learner.micro_batch_tokens
        again = (
            ""
            if config.learner.gradient_checkpointing
            else (
                ", or train with gradient_checkpointing (--gradient-checkpointing), as it then does"
            )
        )
        what = (
            "warm start: the imitation of the expert does not fit into the memory; lower "
            f"micro_batch_tokens of the warm start (--warm-start-micro-batch-tokens "
            f"{max(1, now // 2)}, was {now}){again}. What did not fit: {fault.what}"
        )
        raise type(fault)(what) from fault


def _stored_dtype(model: str) -> Any:
    """Return the number format that a model's weights are stored in, float32 where unknown."""
    import torch

    try:
        config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return torch.float32
    return getattr(torch, str(config.get("dtype") or config.get("torch_dtype") or "float32"))


def _play(env: EnvConfig, settings: WarmStartSettings, player: str) -> list[list[Exchange]]:
    """Return what environment and expert say in the first dialogues."""
    played = text_env(fork(env.prototype))
    return Demonstrator(played, settings.split, settings.seed, policy=player).take(_LOOKED_AT)


def _refuse_several_processes() -> None:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise BadValueError(
            "warm start: this model has not imitated yet, and imitation is done by one process. "
            "Run the same command once without the launcher (with --steps 0), then with it: the "
            "model is then in the cache."
        )


class _Named:
    """A reporter whose training bar says that it is the warm start's."""

    def __init__(self, report: Reporter) -> None:
        self._report = report

    def note(self, text: str) -> None:
        """Print one permanent line."""
        self._report.note(text)

    def bar(self, label: str) -> AbstractContextManager[Bar]:
        """Show the progress of a task."""
        named = "warm start: imitating the expert" if label == "training" else label
        return self._report.bar(named)
