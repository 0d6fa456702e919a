"""Settings of the laptop model's building, its presets by environment, and its progress."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...envs.core.errors import BadValueError
from .demonstrations import EXPERT

StarterStage = Literal["words", "reading", "erring"]


class StarterProgress(NamedTuple):
    """How far the building is.

    Attributes:
        stage: ``words`` (the tokenizer), ``reading`` (clean) or ``erring`` (with mistakes).
        step: Steps taken in this stage.
        steps: Steps that this stage takes at most; reading usually stops earlier.
        greedy: Share of held-out dialogues reproduced, when last measured.
    """

    stage: StarterStage
    step: int
    steps: int
    greedy: float


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
        read_least: Below this share after ``read_steps`` no starter is made.
        held_out: Demonstrations of the dev split that are watched.
        reader: Who demonstrates in the clean stage: ``"expert"``, or a baseline of the world whose
            actions can be told from what it is shown, where the expert's cannot.
        mistakes: Share of mistakes in the second stage, as ``env.expert`` understands it.
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
    read_least: float = 0.6
    held_out: int = 192
    reader: str = EXPERT
    mistakes: float = 0.3
    err_steps: int = 80
    err_lr: float = 5e-4
    seed: int = 0

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            least = 0 if f.name in ("err_steps", "read_steps", "seed") else 1
            if f.type == "int" and value < least:
                raise BadValueError(f"starter: {f.name} is {value}; expected at least {least}.")
        for name in ("read_until", "read_least", "mistakes"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadValueError(f"starter: {name} is {getattr(self, name)}; expected 0 to 1.")
        if self.hidden % (2 * self.heads):
            raise BadValueError(
                f"starter: hidden is {self.hidden}, heads {self.heads}; expected a multiple of "
                f"{2 * self.heads}, so that every head has an even width."
            )


STARTER_PRESETS: Mapping[str, StarterSettings] = {
    "Game24-v0": StarterSettings(
        context=512,
        vocab_size=300,
        texts=500,
        read_steps=150,
        read_until=0.9,
        read_least=0.05,
        held_out=32,
        err_steps=0,
    ),
    "ScienceWorld-v0": StarterSettings(
        vocab_size=512,
        texts=500,
        batch=16,
        read_steps=500,
        read_until=0.6,
        read_least=0.2,
        held_out=97,
        err_steps=0,
    ),
    "WebQA-v0": StarterSettings(read_steps=700, read_least=0.15, err_steps=0),
    "Retail-v0": StarterSettings(read_until=0.8, err_steps=0),
    "MixedTasks-v0": StarterSettings(
        read_until=0.6,
        read_least=0.4,
        mistakes=0.15,
        err_steps=24,
    ),
    "PaperCrawler-v0": StarterSettings(
        vocab_size=512,
        reader="heuristic",
        read_steps=1800,
        read_until=0.55,
        read_least=0.4,
        mistakes=0.1,
        err_steps=30,
    ),
}
"""How a starter learns where the defaults do not fit.

A page of WebQA states six facts, and finding the one that was asked for takes longer to form than
searching, opening and copying. Its starter has the answer before its eyes in 98 % of the episodes,
but copies another fact in most: 15 % are solved (200 dev questions, temperature 1), so it need not
be taught mistakes.

The micro house of ScienceWorld has 193 training variations, which are read through within 500 small
steps; the starter then solves 38 % of the dev variations (temperature 1), reading on does not help.

Serving a customer takes five to ten actions, and one bad action spoils the episode. A reader that
reproduces 80 % of the dialogues is a good player without being taught mistakes (80 % of 200 test
tasks at temperature 1). The starter of shop and maths stops earlier and learns some mistakes, so
that there is more to unlearn: 29 % of the shop's test tasks; with 16 steps of mistakes it would be
60, with 32 steps 9 %.

Which sections of a paper lead to answers cannot be told from what PaperCrawler shows, so imitating
the expert alone teaches how often to open a section, and not to compare its heading with the
request. Its starter reads from the heuristic, which compares, and then learns PaSa's imitation data
(arXiv 2501.10120, section 4.1: sections that cite an answer, others with probability 0.1).
"""
