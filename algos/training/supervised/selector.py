"""Supervised training of a selector: the verdict, and the rationale after it if wanted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....agents.models.built_folder import whole_or_nothing
from ....agents.models.licences import keep_licences_of
from ....agents.models.loading import check_match, context_limit
from ....agents.models.progress_bars import without_progress_bars
from ....agents.models.random_init import BlankSettings, blank_decoder
from ....agents.models.tokenizer import train_tokenizer
from ....agents.models.usual_torch import seeded_draws, usual_torch
from ....agents.paper_selector.decision import Decision, decision_of
from ....agents.paper_selector.examples import SelectorRow
from ....agents.paper_selector.model import Questions
from ....agents.paper_selector.settings import SELECTOR_FILE, SelectorSettings
from ....agents.warm_start.demonstrations import Demonstration
from ....agents.warm_start.imitation import ImitationTrainer
from ....envs.core.errors import BadValueError
from ...core.checks import check_numbers
from .epochs import BatchMetrics, OnProgress, count_steps, ignore_progress, run_epochs


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a selector is trained. Defaults are PaSa's (table 12): 8 devices with 4 rows each.

    Differs from the paper: the learning rate is constant after its warm-up, and the optimiser is
    that of :class:`~turngym.agents.warm_start.imitation.ImitationTrainer`.

    Attributes:
        epochs: Times that every row is seen.
        batch: Rows per step.
        lr: Learning rate after the warm-up.
        warmup: Share of the steps over which the learning rate rises.
        rationale: Learn the reason after the verdict too, where a row has one. All tokens weigh
            the same, so that the verdict is a small part of the loss.
        seed: Of the rows' order, and of the model's dropout where it has some.
    """

    epochs: int = 1
    batch: int = 32
    lr: float = 1e-5
    warmup: float = 0.01
    rationale: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in ("epochs", "batch"):
            if getattr(self, name) < 1:
                raise BadValueError(
                    f"selector training: {name} is {getattr(self, name)}; expected 1 or more."
                )
        if not 0 < self.lr < math.inf:
            raise BadValueError(
                f"selector training: lr is {self.lr}; expected a positive learning rate."
            )
        if not 0 <= self.warmup <= 1:
            raise BadValueError(
                f"selector training: warmup is {self.warmup}; expected a share of the steps."
            )


MICRO = TrainingSettings(epochs=3, lr=1e-3, warmup=0.05, rationale=False)
"""For small untrained models. In the micro environment such a model remembers what it was
shown: it judges new requests on topics of the training split about as well as the simulated
selector (F1 0.85), but those of the dev split's other topics poorly (F1 0.48, accuracy 0.61), and
it is too sure of them (calibration error 0.31)."""


MICRO_SHAPE = BlankSettings(
    hidden=128, layers=3, heads=4, inner=256, init_range=0.06, context=1024, vocab_size=1024
)
"""Sizes of the small model."""


def small_model(rows: Sequence[SelectorRow], shape: BlankSettings = MICRO_SHAPE) -> tuple[Any, Any]:
    """Build a model with random weights and a tokenizer with the words of ``rows``.

    Raises:
        BadValueError: No rows, or too few words for a vocabulary.
    """
    texts = [f"{row.prompt} {row.label}" for row in rows]
    texts += [f"Decision: {label}" for label in (True, False) for _ in range(2 + len(rows))]
    texts += [row.reason for row in rows if row.reason]
    tokenizer = train_tokenizer(texts, vocab_size=shape.vocab_size, max_length=shape.context)
    return blank_decoder(tokenizer, shape), tokenizer


@usual_torch()
def train_selector(
    model: Any,
    tokenizer: Any,
    rows: Sequence[SelectorRow],
    settings: tuple[SelectorSettings, TrainingSettings],
    on_progress: OnProgress = ignore_progress,
) -> dict[str, float]:
    """Train ``model`` in place.

    Args:
        model: A causal language model with float32 weights.
        tokenizer: The one that belongs to it.
        rows: What it learns.
        settings: How it is asked, and how it is trained.
        on_progress: Called after every step.

    Returns:
        ``steps``, and ``loss``: the mean over the last tenth of them.

    Raises:
        BadValueError: No rows, a tokenizer that does not fit, or an answer that leaves no room for
            its question.
    """
    if not rows:
        raise BadValueError("selector training: got no rows; expected at least one.")
    asked, how = settings
    check_match(model, tokenizer)
    decision = decision_of(tokenizer, chat=asked.chat, blank=asked.blank)
    questions = Questions(tokenizer, asked, context_limit(model))
    _, warmup = count_steps(len(rows), how.epochs, how.batch, how.warmup)
    trainer = ImitationTrainer(model, lr=how.lr, warmup_steps=warmup, pad_id=questions.pad_id)
    shown = [_demonstration(row, questions, decision, how.rationale) for row in rows]
    with seeded_draws(how.seed, next(model.parameters()).device):  # of dropout
        report = run_epochs(
            shown,
            how.epochs,
            how.batch,
            np.random.default_rng([how.seed, 2]),
            lambda part: BatchMetrics(trainer.step(part)),
            on_progress,
        )
    model.eval()
    return report


def save_selector(
    folder: Path | str,
    model: Any,
    tokenizer: Any,
    settings: tuple[SelectorSettings, TrainingSettings],
    report: dict[str, float],
) -> None:
    """Write a folder for :func:`~turngym.agents.paper_selector.model.open_selector`.

    Raises:
        DataError: The disk is full or cannot be written; the folder is as it was.
    """
    with whole_or_nothing(Path(folder)) as path:
        with without_progress_bars():
            model.save_pretrained(path)
        tokenizer.save_pretrained(path)
        keep_licences_of(model, path)
        asked, how = settings
        SELECTOR_FILE.write(path, asked, {**dataclasses.asdict(how), **report})


def _demonstration(
    row: SelectorRow, questions: Questions, decision: Decision, rationale: bool
) -> Demonstration:
    """Return question and verdict, with the rationale and end of text where there is one."""
    said = [decision.true if row.label else decision.false]
    if rationale and row.reason:
        said += [*questions.write(row.answer.removeprefix(str(row.label))), questions.eos_id]
    asked = questions.ids(row.prompt, len(said))
    return Demonstration(asked + said, [False] * len(asked) + [True] * len(said))
