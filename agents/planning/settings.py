"""Settings of reward models; those they read with are kept in their folder beside the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...envs.core.errors import BadValueError, UnknownNameError
from ...envs.core.settings import check_integer, check_number
from ..models.lora import LoraSettings
from ..models.settings_file import SettingsFile
from .records import REQUEST, STUB

PADDINGS = ("left", "right")


@dataclass(frozen=True, kw_only=True)
class ReadingSettings:
    """How a reward model is shown a trajectory.

    Attributes:
        request: Stands behind the last observation.
        stub: Begins the reply; the reward is read off its last token.
        max_tokens: Longest trajectory; of a longer one the middle is cut.
        padding: Side on which shorter rows of a batch are filled. Rewards do not depend on it.
        closing: Whether the observation that answers the last action is read. Some environments
            tell the verdict there; without it the actions have to be judged.
    """

    request: str = REQUEST
    stub: str = STUB
    max_tokens: int = 4096
    padding: Literal["left", "right"] = "left"
    closing: bool = True

    def __post_init__(self) -> None:
        if self.padding not in PADDINGS:
            raise UnknownNameError("padding", self.padding, PADDINGS, "reward model")
        if not self.stub.strip():
            raise BadValueError("reward model: stub is blank; expected the beginning of a reply.")
        check_integer("max_tokens", self.max_tokens, "reward model", min=16)


ARMAP_LORA = LoraSettings(
    rank=64,
    alpha=16.0,
    targets=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
)
"""ARMAP's low-rank training; of models that name their layers otherwise, every linear one."""


@dataclass(frozen=True, kw_only=True)
class RewardTraining:
    """How a reward model is trained. Defaults suit small models.

    Attributes:
        lr: Learning rate after the warm-up, then constant.
        epochs: Times that every pair is seen.
        batch: Pairs per step.
        warmup: Share of the steps over which the learning rate rises.
        max_norm: Gradients are clipped to it.
        weight_decay: Of AdamW.
        centring: Weight of ``|mean(r+ + r-)|``, which keeps scores around 0.
        seed: Of the head's weights, the pairs' order and dropout.
        lora: Low-rank training; None trains all weights.
        lora_dropout: Before the low-rank updates.
    """

    lr: float = 3e-4
    epochs: int = 3
    batch: int = 16
    warmup: float = 0.1
    max_norm: float = 0.3
    weight_decay: float = 0.0
    centring: float = 1e-3
    seed: int = 42
    lora: LoraSettings | None = None
    lora_dropout: float = 0.0

    def __post_init__(self) -> None:
        where = "reward training"
        for name in ("epochs", "batch"):
            check_integer(name, getattr(self, name), where, min=1)
        for name in ("lr", "max_norm"):
            check_number(name, getattr(self, name), where, above=0.0)
        for name in ("weight_decay", "centring"):
            check_number(name, getattr(self, name), where, min=0.0)
        check_number("warmup", self.warmup, where, min=0.0, max=1.0)
        if not 0 <= self.lora_dropout < 1:
            raise BadValueError(
                f"{where}: lora_dropout is {self.lora_dropout}; expected a share below 1."
            )


PRESETS: Mapping[str, tuple[RewardTraining, int]] = {
    "small": (RewardTraining(), 1024),
    "webshop": (RewardTraining(lr=2e-5, epochs=3, batch=4, lora=ARMAP_LORA), 8192),
    "scienceworld": (RewardTraining(lr=1e-5, epochs=10, batch=128, lora=ARMAP_LORA), 4096),
    "game24": (RewardTraining(lr=1e-5, epochs=10, batch=64, lora=ARMAP_LORA), 4000),
    "alfworld": (RewardTraining(lr=1e-5, epochs=10, batch=8, lora=ARMAP_LORA), 4096),
}
"""Training and longest trajectory by name: ours for small models, and ARMAP's four tasks.

``batch`` is the released accumulation times number of devices, at one pair per device and pass.
Differs from the release: AdamW is the ordinary one, not paged; ScienceWorld's served checkpoint was
that of step 120."""


REWARD_FILE = SettingsFile(
    "reward.json", "reading", ReadingSettings, "reward model", "turngym armap train"
)
"""How a reward model reads, and how it was trained."""
