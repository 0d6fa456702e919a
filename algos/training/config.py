"""The configuration of a training run; its JSON form is ``config.json``."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from ...agents.engines.http.settings import HttpSettings
from ...agents.models.lora import LoraSettings
from ...envs.core.digest import digest_of
from ...envs.core.errors import BadValueError
from ...envs.core.registration import find_environment
from ...envs.core.settings import check_integers, check_parts
from ..core.annotators import OldLogprobs
from ..core.recipe import Recipe
from ..evaluation.defaults import TASKS
from ..evaluation.evaluate import EvalSet
from ..learner.importance_weights import check_importance, why_no_importance
from ..learner.settings import LearnerSettings
from ..rollouts.partial import check_partial
from ..rollouts.step_limits import StepLimits
from ..runs.run_dir import BUDGET, SERVERS
from .settings import TrainSettings, WarmStart


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """An environment by name.

    Attributes:
        id: Registered id.
        settings: Arguments of its constructor.
    """

    id: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> gym.Env[str, str]:
        """Create the environment.

        Raises:
            UnknownNameError: No such environment or setting; the nearest is named.
        """
        find_environment(self.id)
        return gym.make(self.id, **self.settings)

    @cached_property
    def prototype(self) -> gym.Env[str, str]:
        """The environment, created once; episodes are played in forks of it.

        Raises:
            UnknownNameError: No such environment or setting; the nearest is named.
        """
        return self.make()

    def fitted(self, made: Mapping[str, Any]) -> EnvConfig:
        """Return the environment as a model knows it, where its settings do not say otherwise.

        Settings that were given stay, and files of the user's own are no world with a size.

        Args:
            made: The settings that the model was made on.
        """
        added = dict(made)
        if self.settings:
            wanted = {"size"} - self.settings.keys() if "data" not in self.settings else set()
            added = {name: value for name, value in made.items() if name in wanted}
        return EnvConfig(id=self.id, settings={**added, **self.settings}) if added else self

    def __getstate__(self) -> dict[str, Any]:
        """Return id and settings: another process creates its own environment."""
        return {"id": self.id, "settings": self.settings}


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """An evaluation set by name; see :class:`EvalSet`.

    Attributes:
        name: Short name, unique within a run.
        env: The environment.
        split: Split; empty for the last non-empty one.
        n: Number of tasks.
    """

    name: str = "dev"
    env: EnvConfig
    split: str = "dev"
    n: int = TASKS

    def __post_init__(self) -> None:
        check_parts(self)
        check_integers(self)

    def make(self) -> EvalSet:
        """Make the environment and check that the split exists."""
        return EvalSet(name=self.name, env=self.env.prototype, split=self.split, n=self.n)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a run: the first one reached ends it. May differ when a run is resumed.

    Attributes:
        steps: Training steps; None for no limit.
        tokens: Sampled tokens.
        calls: Environment steps.
        minutes: Wall time without pauses between resumed parts.
    """

    steps: int | None = None
    tokens: int | None = None
    calls: int | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        check_integers(self)
        given = [v for v in (self.steps, self.tokens, self.calls, self.minutes) if v is not None]
        if not given or not all(0 <= v < math.inf for v in given):
            raise BadValueError(
                f"budget: steps {self.steps}, tokens {self.tokens}, calls {self.calls}, minutes "
                f"{self.minutes}; expected at least one limit, none below 0, all finite."
            )

    def left(self, tokens: int, calls: int) -> StepLimits:
        """Return what may still be sampled after so many tokens and environment steps."""
        return StepLimits(
            None if self.tokens is None else self.tokens - tokens,
            None if self.calls is None else self.calls - calls,
        )

    def spent(self, steps: int, tokens: int, calls: int, seconds: float) -> float:
        """Return the used share, 1 or more when training is over."""
        used = [
            1.0 if limit == 0 else value / limit
            for value, limit in (
                (steps, self.steps),
                (tokens, self.tokens),
                (calls, self.calls),
                (seconds / 60.0, self.minutes),
            )
            if limit is not None
        ]
        return max(used)


@dataclass(frozen=True, kw_only=True)
class TrainConfig(TrainSettings):
    """The configuration of a training run.

    Attributes:
        env: Environment of the training tasks.
        model: Folder or hub name of the starting model.
        recipe: The algorithm.
        budget: Limits of the run.
        evals: Evaluation sets, evaluated before, during and after training.
        learner: How the learner computes.
        lora: Train adapters instead of the weights; None trains all weights.
        warm_start: What ``model`` imitated before, where it is the result of a
            :func:`~turngym.algos.training.supervised.warm_start.warm_start`; None where it is not.
    """

    env: EnvConfig
    model: str
    recipe: Recipe
    budget: Budget
    evals: tuple[EvalConfig, ...] = ()
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    lora: LoraSettings | None = None
    warm_start: WarmStart | None = None

    def __post_init__(self) -> None:
        check_parts(self)
        super().__post_init__()
        self.row()  # the engine exists: plugins have run by now
        self._check_lag()
        check_importance(self.recipe, self.importance_cap, self.reject_above)
        if self.learner.critic != LearnerSettings.critic and not self.recipe.critic:
            raise BadValueError(
                f"recipe {self.recipe.name!r}: learner.critic is {self.learner.critic!r}, but "
                "there is no critic. Leave it out, or say own (--critic own)."
            )
        if self.partial_rollouts is not None:
            self._check_partial(self.partial_rollouts)
        if self.max_lag and self.recipe.tracker is not None:
            raise BadValueError(
                f"recipe {self.recipe.name!r}: max_lag is {self.max_lag}, but "
                f"{type(self.recipe.tracker).__name__} chooses tasks by statistics "
                "of the last update. Leave max_lag out."
            )
        names = [e.name for e in self.evals]
        if len(set(names)) != len(names):
            raise BadValueError(f"training: names of evaluation sets are not unique: {names}.")

    def _check_lag(self) -> None:
        lag, cap = self.max_lag, self.importance_cap
        if lag is not None and lag < 0:
            raise BadValueError(f"training: max_lag is {lag}; expected 0 or more, or none.")
        if lag and self.vllm.sleep:
            raise BadValueError(
                f"training: max_lag is {lag}, so the engine plays while the learner trains, but "
                "vllm.sleep frees its memory meanwhile. Switch one of them off."
            )
        if lag is not None and self.learner.offload:
            raise BadValueError(
                f"training: max_lag is {lag}, so the engine plays beside the learner, but "
                "learner.offload lets them take turns on the GPU's memory. Leave one of them out "
                "(--max-lag, --offload)."
            )
        if cap and not cap >= 1:
            raise BadValueError(
                f"training: importance_cap is {cap}; expected at least 1, or 0 for no weights."
            )
        if self.reject_above is not None and not self.reject_above >= 0:
            raise BadValueError(
                f"training: reject_above is {self.reject_above}; expected nats above 0, or 0 for "
                "no rejection."
            )

    def _check_partial(self, share: float) -> None:
        """Refuse partial rollouts where they would make no sense."""
        why = why_no_importance(self.recipe)
        if OldLogprobs(source="sampled") in self.recipe.used_annotators:
            why = None  # the ratio itself corrects
        check_partial(self.recipe, share, why)
        for name, value, reason in (
            ("max_lag", self.max_lag, "plays whole steps ahead"),
            ("budget.tokens", self.budget.tokens, "counts groups, which are complete only later"),
            ("budget.calls", self.budget.calls, "counts groups, which are complete only later"),
        ):
            if value is not None:
                raise BadValueError(
                    f"training: partial_rollouts is {share}, but {name} ({value}) {reason}. Leave "
                    "one of them out."
                )
        if self.importance_cap == 0:
            raise BadValueError(
                f"training: partial_rollouts is {share}, so tokens are older than the weights that "
                "are trained, but importance_cap is 0. Leave it out, or give a cap such as 2."
            )

    def resolved(self, model_digest: str) -> dict[str, Any]:
        """Return all settings as JSON data, with the digest of the starting model."""
        found = plain_data(self)
        for name in ("warm_start", "reject_above", "partial_rollouts"):
            if getattr(self, name) is None:  # as in runs from before there was such a thing
                del found[name]
        for name in ("offload", "offload_activations"):
            if not getattr(self.learner, name):  # likewise
                del found["learner"][name]
        if self.vllm.tensor_parallel == 1:  # likewise
            del found["vllm"]["tensor_parallel"]
        if self.http == HttpSettings():  # likewise
            del found["http"]
        if self.cache_gib is None:  # likewise
            del found["cache_gib"]
        if self.cuda_graphs:  # likewise
            del found["cuda_graphs"]
        return {**found, "model_digest": model_digest}


def config_digest(resolved: Mapping[str, Any]) -> str:
    """Return a stable hash of a configuration without what may change when a run is resumed."""
    return digest_of({k: v for k, v in resolved.items() if k not in (BUDGET, SERVERS)})


def model_digest(name_or_path: str) -> str:
    """Return a hash of a model folder's weight files; for a hub name, of the name."""
    folder = Path(name_or_path)
    if not folder.is_dir():
        return "name:" + name_or_path
    total = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*.bin")):
        total.update(path.name.encode())
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return "sha256:" + total.hexdigest()


def plain_data(value: Any, place: str = "training") -> Any:
    """Return dataclasses as dictionaries with a key for their type, for JSON.

    Args:
        value: Dataclasses, mappings and lists of texts and numbers; NumPy's become Python's own.
        place: What it is, for the message.

    Raises:
        BadValueError: Something in it has no JSON form; the message says where.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **plain_data(given, place)}
    if isinstance(value, Mapping):
        return {str(key): plain_data(item, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(item, f"{place}[{at}]") for at, item in enumerate(value)]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain_data(value.tolist(), place)
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Path):
        return str(value)
    raise BadValueError(
        f"{place} is {value!r:.100}, a {type(value).__name__}; expected what a run's config.json "
        "can hold: texts, numbers, bools, None, and lists, mappings and dataclasses of these."
    )
