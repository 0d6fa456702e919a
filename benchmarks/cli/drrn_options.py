"""Options of `turngym drrn`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import tyro

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class DrrnCommand:
    """Train a small network that scores legal actions (DRRN), and compare it with random play.

    Attributes:
        out: Folder of the network; afterwards `turngym eval --agent drrn:FOLDER` plays it.
        env: Id of an environment that lists legal actions.
        size: World size, e.g. micro or full.
        env_arg: Any other setting of it as name=value, repeatable; short form: --env.NAME VALUE.
        split: Split of the training tasks.
        steps: Actions taken in training.
        envs: Environments that are played side by side; one update per action in each of them.
        encoder: bag (words and pairs of words) or gru.
        hidden: Width of the network.
        gamma: Discount per action.
        lr: Learning rate.
        eval_split: Split of the comparison.
        eval_n: Tasks of the comparison; 0 for none.
        seed: Of everything.
    """

    out: str
    env: str = "ScienceWorld-v0"
    size: str | None = None
    env_arg: Repeated = ()
    split: str = "train"
    steps: int = 20_000
    envs: int = 8
    encoder: Literal["bag", "gru"] = "bag"
    hidden: int = 128
    gamma: float = 0.9
    lr: float = 1e-3
    eval_split: str = "dev"
    eval_n: int = 100
    seed: int = 0
