"""Options of `turngym armap`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from ...agents.engines.factory import EngineSettings
from .model_options import Sampler

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]
Players = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ArmapPairs:
    """Make pairs of a better and a worse trajectory, without people.

    Attributes:
        out: File to write, one pair a line.
        player: Who plays each task, one or more: expert, random, null, a baseline of the
            environment, starter, a run directory or a model folder. Higher score against lower;
            ties are dropped.
        env: Id of the environment; `turngym envs` lists them.
        env_arg: A setting of it as name=value, repeatable; short form: --env.NAME VALUE.
        split: Split of the tasks.
        n: Number of tasks.
        tries: Attempts of each player per task.
        contrasts: Most pairs per task of two attempts with different scores.
        edits: Actions changed per task in its best attempt; what scores lower when it is played
            again is kept.
        mistakes: Share of mistakes of the player "expert".
        hindsight: Model folder or hub name that writes each pair's instruction in hindsight; left
            out: the environment's own first prompt.
        temperature: Of models that play.
        max_tokens: Most tokens of a model's action.
        seed: Of everything.
        sampler: What samples the actions of models.
    """

    out: str
    player: Players = ("starter",)
    env: str = "SearchQA-v0"
    env_arg: Repeated = ()
    split: str = "train"
    n: int = 1000
    tries: int = 4
    contrasts: int = 2
    edits: int = 2
    mistakes: float = 0.0
    hindsight: str | None = None
    temperature: float = 1.0
    max_tokens: int = 64
    seed: int = 0
    sampler: Sampler = field(default_factory=EngineSettings)


@dataclass(frozen=True, kw_only=True)
class ArmapTrain:
    """Train a reward model on pairs, and score it on held-out ones.

    Attributes:
        pairs: File of pairs.
        out: Folder of the reward model; must be new or empty.
        model: Folder or hub name of the causal model that it begins from, a run directory, or
            "starter".
        env: Environment of the starter.
        held_out: File of pairs to score on; left out: a tenth of the pairs is kept back.
        preset: Settings: small, or ARMAP's for webshop, scienceworld, game24, alfworld (LoRA).
        lr: Learning rate; left out: the preset's.
        epochs: Times that every pair is seen; left out: the preset's.
        batch: Pairs per step; left out: the preset's.
        max_length: Most tokens of a trajectory; left out: the preset's.
        closing: Read the observation that answers the last action; --no-closing judges the actions
            alone where a world tells its verdict there.
        lora_rank: Low-rank training with this rank, 0 trains all weights; left out: the preset's.
        seed: Of the head's weights and the pairs' order.
        device: auto, cpu or cuda.
        dtype: Number format of a LoRA backbone's weights.
    """

    pairs: str
    out: str
    model: str = "starter"
    env: str = "SearchQA-v0"
    held_out: str | None = None
    preset: Literal["small", "webshop", "scienceworld", "game24", "alfworld"] = "small"
    lr: float | None = None
    epochs: int | None = None
    batch: int | None = None
    max_length: int | None = None
    closing: bool = True
    lora_rank: int | None = None
    seed: int = 42
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "float32"


@dataclass(frozen=True, kw_only=True)
class ArmapCommand:
    """Make trajectory pairs and train the reward model that planners follow (ARMAP)."""

    action: Annotated[
        Annotated[ArmapPairs, tyro.conf.subcommand("pairs")]
        | Annotated[ArmapTrain, tyro.conf.subcommand("train")],
        tyro.conf.arg(name=""),
    ] = field()
