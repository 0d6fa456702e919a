"""Settings of a DRRN and of its training, and the file that keeps them."""

from __future__ import annotations

from dataclasses import dataclass

from ...envs.core.errors import BadValueError, UnknownNameError
from ...envs.core.settings import check_integer, check_number
from ..models.settings_file import SettingsFile

ENCODERS = ("bag", "gru")


@dataclass(frozen=True, kw_only=True)
class DrrnSettings:
    """Shape of the network.

    Attributes:
        encoder: ``bag`` (mean over words and pairs of neighbours, as He et al.'s bags of words) or
            ``gru`` (as the baselines of Jericho and ScienceWorld).
        buckets: Words are hashed into so many.
        embedding: Width of a word.
        hidden: Width of a text.
        history: Actions of the past that a state shows.
    """

    encoder: str = "bag"
    buckets: int = 16_384
    embedding: int = 64
    hidden: int = 128
    history: int = 4

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            raise UnknownNameError("encoder", self.encoder, ENCODERS, "DRRN")
        for name, low in (("buckets", 2), ("embedding", 1), ("hidden", 1), ("history", 0)):
            check_integer(name, getattr(self, name), "DRRN", min=low)


@dataclass(frozen=True, kw_only=True)
class DrrnTraining:
    """How a DRRN is trained.

    Attributes:
        steps: Actions taken in all environments together.
        envs: Environments that are played side by side; one update per action in each of them.
        gamma: Discount per action.
        lr: Learning rate of Adam.
        batch: Transitions per update.
        memory: Transitions that are remembered.
        priority: Share of a batch (and of the memory) that holds transitions with a reward above 0.
        temperature: Of the softmax over the values at the start; rewards have their own unit.
        final_temperature: The same at the end; in between it falls in equal ratios.
        max_norm: Gradients are clipped to it.
        seed: Of weights, episodes and draws.
    """

    steps: int = 20_000
    envs: int = 8
    gamma: float = 0.9
    lr: float = 1e-3
    batch: int = 64
    memory: int = 100_000
    priority: float = 0.5
    temperature: float = 0.3
    final_temperature: float = 0.03
    max_norm: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        where = "DRRN training"
        for name in ("steps", "envs", "batch"):
            check_integer(name, getattr(self, name), where, min=1)
        if self.memory < 2 * self.batch:
            raise BadValueError(
                f"{where}: memory is {self.memory}; expected at least two batches "
                f"({2 * self.batch})."
            )
        for name in ("lr", "temperature", "final_temperature", "max_norm"):
            check_number(name, getattr(self, name), where, above=0.0)
        for name in ("gamma", "priority"):
            check_number(name, getattr(self, name), where, min=0.0, max=1.0)
        check_integer("seed", self.seed, where, min=0)


DRRN_FILE = SettingsFile("drrn.json", "settings", DrrnSettings, "DRRN", "turngym drrn")
"""A network's shape, and how it was trained."""
