"""Settings of the laptop model's building, those of each environment, and its progress."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from ...envs.core.errors import BadValueError, UnknownNameError
from ...envs.core.registration import find_environment
from ..models.random_init import BlankSettings
from .demonstrations import EXPERT

S = TypeVar("S", bound="StarterSettings | BlankSettings")
StarterStage = Literal["words", "reading", "erring"]


class StarterProgress(NamedTuple):
    """How far the building is.

    Attributes:
        stage: ``words`` (the tokenizer), ``reading`` (clean) or ``erring`` (with mistakes).
        step: Steps taken in this stage.
        steps: Steps that this stage takes at most; reading usually stops earlier.
        greedy: Share of held-out dialogues reproduced greedily, when last measured.
        until: Such a share that ends the stage before its last step; None if none does.
        sampled: The same share at temperature 1.
        until_sampled: What it must reach as well for that; 0 for nothing.
    """

    stage: StarterStage
    step: int
    steps: int
    greedy: float
    until: float | None = None
    sampled: float = 0.0
    until_sampled: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StarterSettings:
    """How the laptop model is made.

    Defaults were found on micro SearchQA with two cores. An initialisation range of 0.06 and a
    learning rate of 1e-3 matter: with 0.02 and 2e-3 the copying circuit does not form in time.

    Attributes:
        hidden: Width of the model.
        layers: Decoder layers; two are too few to look something up.
        heads: Attention heads.
        inner: Width of the feed-forward part.
        init_range: Standard deviation of the initial weights.
        context: Most tokens that the model can see.
        vocab_size: Most tokens of the tokenizer.
        texts: Dialogues that the tokenizer is trained on.
        batch: Demonstrations per step.
        lr: Learning rate of the clean stage.
        warmup_steps: Of both stages.
        read_steps: Most clean steps.
        read_until: Share of held-out dialogues reproduced greedily that ends the clean stage.
        read_until_sampled: Share of them that must be reproduced at temperature 1 as well before
            the clean stage ends; 0 asks for none.
        read_least: Below this share after ``read_steps`` no starter is made.
        held_out: Demonstrations of the dev split that are watched.
        reader: Who demonstrates in the clean stage: ``"expert"``, or a baseline of the world whose
            actions can be told from what it is shown, where the expert's cannot.
        mistakes: Share of mistakes in the second stage, as ``env.expert`` understands it.
        habits: Further arguments of the expert of the second stage, such as ``{"haste": 0.8}`` of
            SearchQA's: a wrong strategy, where mistakes are slips.
        err_steps: Steps of the second stage; 0 leaves the clean player.
        err_lr: Learning rate of the second stage.
        seed: Of weights, tasks and mistakes.
    """

    hidden: int = 128
    layers: int = 3
    heads: int = 4
    inner: int = 256
    init_range: float = 0.06
    context: int = 8192
    vocab_size: int = 1024
    texts: int = 4000
    batch: int = 48
    lr: float = 1e-3
    warmup_steps: int = 50
    read_steps: int = 1200
    read_until: float = 0.95
    read_until_sampled: float = 0.0
    read_least: float = 0.6
    held_out: int = 192
    reader: str = EXPERT
    mistakes: float = 0.3
    habits: Mapping[str, Any] = field(default_factory=dict)
    err_steps: int = 80
    err_lr: float = 5e-4
    seed: int = 0

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            least = 0 if f.name in ("err_steps", "read_steps", "seed") else 1
            if f.type == "int" and value < least:
                raise BadValueError(f"starter: {f.name} is {value}; expected at least {least}.")
        for name in ("read_until", "read_until_sampled", "read_least", "mistakes"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadValueError(f"starter: {name} is {getattr(self, name)}; expected 0 to 1.")
        if self.hidden % (2 * self.heads):
            raise BadValueError(
                f"starter: hidden is {self.hidden}, heads {self.heads}; expected a multiple of "
                f"{2 * self.heads}, so that every head has an even width."
            )


def changed(settings: S, changes: Mapping[str, Any], where: str) -> S:
    """Return settings with some fields changed.

    Args:
        settings: A dataclass.
        changes: New values by field.
        where: The place that asks, for errors.

    Raises:
        UnknownNameError: No such field.
    """
    known = sorted(f.name for f in dataclasses.fields(settings))
    if unknown := sorted(changes.keys() - set(known)):
        raise UnknownNameError("setting", unknown[0], known, where)
    return dataclasses.replace(settings, **changes)


def starter_settings(env_id: str) -> StarterSettings:
    """Return how the starter of an environment is made: the defaults, and what its row changes.

    Raises:
        UnknownNameError: No such environment, or its row changes a setting that does not exist.
    """
    warm_start = find_environment(env_id).warm_start
    changes = {} if warm_start is None else warm_start.starter
    return changed(StarterSettings(), changes, f"warm start of {env_id}")
