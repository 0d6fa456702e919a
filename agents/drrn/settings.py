"""Settings of a DRRN and of its training, and the file that keeps them."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...envs.core.errors import BadValueError, DataError, UnknownNameError

MANIFEST = "drrn.json"
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
        for name, least in (("buckets", 2), ("embedding", 1), ("hidden", 1), ("history", 0)):
            if getattr(self, name) < least:
                raise BadValueError(
                    f"DRRN: {name} is {getattr(self, name)}; expected at least {least}."
                )


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
        for name in ("steps", "envs", "batch"):
            if getattr(self, name) < 1:
                self._refuse(name, "at least 1")
        if self.memory < 2 * self.batch:
            self._refuse("memory", f"at least two batches ({2 * self.batch})")
        for name in ("lr", "temperature", "final_temperature", "max_norm"):
            if not 0 < getattr(self, name) < math.inf:
                self._refuse(name, "more than 0")
        for name in ("gamma", "priority"):
            if not 0 <= getattr(self, name) <= 1:
                self._refuse(name, "0 to 1")
        if self.seed < 0:
            self._refuse("seed", "0 or more")

    def _refuse(self, name: str, expected: str) -> None:
        raise BadValueError(f"DRRN training: {name} is {getattr(self, name)}; expected {expected}.")


def write_manifest(folder: Path, settings: DrrnSettings, training: Mapping[str, Any]) -> None:
    """Write a network's shape and how it was trained."""
    kept = {"settings": dataclasses.asdict(settings), "training": dict(training)}
    (folder / MANIFEST).write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> DrrnSettings:
    """The shape of a folder's network.

    Raises:
        BadValueError: The folder holds no DRRN.
        DataError: The file is there, but holds no settings.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise BadValueError(
            f"{folder}: no DRRN: {MANIFEST} is missing. Train one with `turngym drrn`."
        )
    try:
        return DrrnSettings(**json.loads(path.read_text(encoding="utf-8"))["settings"])
    except (ValueError, KeyError, TypeError) as fault:
        raise DataError(
            f"{path}: not a DRRN's settings ({fault}); expected what training writes."
        ) from fault
