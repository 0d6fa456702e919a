"""Options of `turngym selector`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """Where questions with their verdicts come from.

    Attributes:
        rows: File of supervised rows as PaSa's sft_selector; instead of all that follows.
        size: Size of the generated world, micro or full.
        data: PaSa's request files, with --papers instead of the generated world.
        papers: Folder of PaSa's paper database.
        env_arg: Any other setting of PaperCrawler-v0 as name=value, repeatable; short form:
            --env.NAME VALUE.
        n: Questions in all, half of them answers; left out: 20,000 to train on, 2,000 to score.
        seed: Of what is drawn.
    """

    rows: str | None = None
    size: str | None = None
    data: str | None = None
    papers: str | None = None
    env_arg: Repeated = ()
    n: int | None = None
    seed: int = 0


Asked = Annotated[PairOptions, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class SelectorTrain:
    """Train a selector; without --model a small one is made here.

    Attributes:
        out: Folder of the selector.
        pairs: What it learns from.
        model: Folder or hub name of the model to start from; left out: a small one with random
            weights, and settings for small models.
        split: Split of the requests.
        prompt: Style of the question; left out: short for micro and for the small model, else
            rules.
        chat: Ask through the model's chat template.
        epochs: Times that every row is seen; left out: 1 (PaSa), 3 for the small model.
        batch: Rows per step.
        lr: Learning rate; left out: 1e-5 (PaSa), 1e-3 for the small model.
        rationale: Learn the reasons too; left out: yes (PaSa), no for the small model.
        keep_rows: File to write the rows to, in PaSa's format.
        device: auto, cpu or cuda.
    """

    out: str
    pairs: Asked = field(default_factory=PairOptions)
    model: str | None = None
    split: str = "train"
    prompt: Literal["rules", "pasa", "short"] | None = None
    chat: bool = False
    epochs: int | None = None
    batch: int | None = None
    lr: float | None = None
    rationale: bool | None = None
    keep_rows: str | None = None
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class SelectorEval:
    """Score a selector on held-out questions: table, reliability, calibration plot.

    Attributes:
        folder: Of the selector.
        pairs: What it is asked. The selector of a generated world (simulated, or --env.selector) is
            scored beside it.
        split: Split of the requests.
        plot: Where the picture goes; left out: calibration.png in the folder (here,
            for a hub name).
        probability: vocabulary (PaSa) or renormalised over True and False; left out: the folder's.
        threshold: Probability above which a paper is selected; left out: the folder's.
        batch: Papers per forward pass.
        device: auto, cpu or cuda.
        dtype: Number format of the weights.
    """

    folder: Annotated[str, tyro.conf.Positional]
    pairs: Asked = field(default_factory=PairOptions)
    split: str = "dev"
    plot: str | None = None
    probability: Literal["vocabulary", "renormalised"] | None = None
    threshold: float | None = None
    batch: int = 32
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"


@dataclass(frozen=True, kw_only=True)
class SelectorCommand:
    """Train and score PaperCrawler's selector."""

    action: Annotated[
        Annotated[SelectorTrain, tyro.conf.subcommand("train")]
        | Annotated[SelectorEval, tyro.conf.subcommand("eval")],
        tyro.conf.arg(name=""),
    ] = field()
