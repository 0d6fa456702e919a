"""The ladder's definition as data: a family per difficulty, its sizes, its control and its budget.

A family asks one thing of an algorithm, as a number that grows (its sizes), and has a control in
which that thing is absent and equality is the right answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from ...envs.core.errors import UnknownNameError
from ...envs.utils.seed_tests import Edges
from ...leaderboard.schema.base import Form
from ..matrix.starts import KNOWS_PLACES, LOOKS, READS_LABELS

Size = int | float
CONTROL = "control"
"""Name of a family's control in place of a size."""
WARMUP = 5
"""Optimiser steps over which the learning rate of every row rises."""
SOLVED = 0.8
"""Share of the expert's measure from which a run has solved a size."""
ROWS = ("grpo", "rloo", "treegrpo", "arpo", "reinforcepp", "ppo", "spo")
"""Rows that are distinct where a batch has one update, and nobody judges or has sessions."""
UPDATED_ONCE: Mapping[str, str] = {"drgrpo": "rloo", "dapo": "grpo", "gspo": "grpo", "pasa": "ppo"}
WHY_SAME = (
    "one update a batch, so no ratio is clipped; DAPO's filter drops groups whose advantages are 0 "
    "anyway; without sessions PaSa is PPO but for the weight of its critic's loss; GSPO averages "
    "by path and Dr.GRPO by a fixed length, which is the same where episodes are equally long"
)


class Family(Form):
    """A diagnostic family of the ladder; what is left out is as in most of them.

    Attributes:
        name: Short name; columns are ``NAME-SIZE`` and ``NAME-control``.
        env_id: Registered environment.
        asks: What the family asks of an algorithm.
        mechanism: Which mechanism should show here, and why.
        setting: The environment's setting that the size is; empty where the size is the number of
            updates per batch (:attr:`updates`).
        sizes: All sizes, rising in difficulty.
        quick: The three sizes of the quick suite.
        middle: The size whose area is compared.
        fixed: Other settings of the environment, the same at every size.
        control: Settings that replace the middle size's in the control.
        measure: ``success``, or the metric of the environment that is compared.
        tokens: Sampled tokens of a run.
        tokens_per_step: Sampled tokens of a training step.
        long_steps: Sampled tokens of a step at sizes where a step would else be hardly more than
            one group.
        lr: Learning rate of the policy.
        rates: Learning rates of rows for which the search found a better one than ``lr``.
        updates: Optimiser steps per batch at each size, where the size is that.
        rows: Labels of the rows that are distinct here, the baseline first.
        same: Rows with the gradient of another one here, by label; they are not run.
        same_because: Why these are one gradient. Rows that are in neither are left out: TARL where
            verdicts would tell what the family hides, others where it does not concern them.
        guess: Measure of random letters: what a policy scores that has learned nothing.
        guesses: The same where it depends on the size, by size or ``control``.
        ceilings: Best measure that can be reached, by size or ``control``, where it is not 1.
        letters: Number of letters that can be written.
        start: Changes to the settings of the starting model, which else makes all letters
            equally likely.
    """

    name: str
    env_id: str
    asks: str
    mechanism: str
    setting: str = ""
    sizes: tuple[Size, ...] = Field(min_length=3)
    quick: tuple[Size, ...] = Field(min_length=3, max_length=3)
    middle: Size
    fixed: Mapping[str, Any] = Field(default_factory=dict)
    control: Mapping[str, Any] = Field(default_factory=dict)
    measure: str = "success"
    tokens: int = Field(default=12_000, ge=1)
    tokens_per_step: int = Field(default=256, ge=1)
    long_steps: Mapping[str, int] = Field(default_factory=dict)
    lr: float = Field(gt=0)
    rates: Mapping[str, float] = Field(default_factory=dict)
    updates: bool = False
    rows: tuple[str, ...] = ROWS
    same: Mapping[str, str] = UPDATED_ONCE
    same_because: str = WHY_SAME
    guess: float = 1 / 3
    guesses: Mapping[str, float] = Field(default_factory=dict)
    ceilings: Mapping[str, float] = Field(default_factory=dict)
    letters: int = 3
    start: Mapping[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Family:
        if list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError(f"sizes {self.sizes}: expected rising ones")
        if not set(self.quick) <= set(self.sizes) or self.middle not in self.quick:
            raise ValueError(f"quick {self.quick}, middle {self.middle}: expected sizes among all")
        if self.updates == bool(self.setting):
            raise ValueError("expected either a setting or updates")
        if unknown := set(self.same.values()) - set(self.rows):
            raise ValueError(f"same: {sorted(unknown)} are no rows here")
        return self

    def column(self, size: Size | str) -> str:
        """Return the name of the column of a size, or of the control."""
        return f"{self.name}-{size}"

    def columns(self, quick: bool) -> list[str]:
        """Return the names of all columns: the sizes, then the control."""
        return [self.column(size) for size in (*(self.quick if quick else self.sizes), CONTROL)]

    def settings(self, size: Size | str) -> dict[str, Any]:
        """Return the environment's settings at a size, or in the control."""
        chosen = {**self.fixed}
        if self.setting:
            chosen[self.setting] = self.middle if size == CONTROL else size
        return {**chosen, **self.control} if size == CONTROL else chosen

    def ceiling(self, size: Size | str) -> float:
        """Return the best measure that can be reached at a size, or in the control."""
        return self.ceilings.get(str(size), 1.0)

    def edges(self, size: Size | str) -> Edges:
        """Return the floor (a guess's measure) and the ceiling at a size, or in the control."""
        return Edges(self.guesses.get(str(size), self.guess), self.ceiling(size))

    def step_tokens(self, size: Size | str) -> int:
        """Return the sampled tokens of a training step at a size, or in the control."""
        return self.long_steps.get(str(size), self.tokens_per_step)

    def updates_at(self, size: Size | str) -> int:
        """Return the optimiser steps per batch at a size; 1 in the control and elsewhere."""
        return int(size) if self.updates and not isinstance(size, str) else 1

    def optimiser(self, size: Size | str) -> dict[str, Any]:
        """Return the recipes' optimiser settings at a size: mini batches, then epochs."""
        updates = self.updates_at(size)
        minibatches = min(updates, 16)
        return {
            "optim.lr": self.lr,
            "optim.warmup_steps": WARMUP,
            "optim.minibatches": minibatches,
            "optim.epochs": max(1, updates // minibatches),
        }


_GUESSED_KEYS = {"2": 0.372, "3": 0.242, "4": 0.16, "5": 0.108, "6": 0.072, "8": 0.034} | {
    CONTROL: 0.012
}
"""Of 400,000 episodes of random letters in the oracle's tables, here and below."""
_GUESSED_ALIASES = {"3": 0.341, "4": 0.245, "5": 0.178, "6": 0.129, "9": 0.052, CONTROL: 0.245}

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="Lottery",
            env_id="Lottery-v0",
            asks="Free letters decide a lottery that nobody can learn; doors share the rest.",
            mechanism="Branching behind the free letters compares paths with the same lottery.",
            setting="luck",
            sizes=(0.3, 0.5, 0.7, 0.8, 0.9, 0.95),
            quick=(0.5, 0.8, 0.9),
            middle=0.8,
            fixed={"free": 3, "doors": 3},
            control={"luck": 0.0},
            measure="right",
            tokens_per_step=312,
            lr=2e-3,
            start=KNOWS_PLACES,
        ),
        Family(
            name="Corridor",
            env_id="Corridor-v0",
            asks="The first letter decides, and many letters without effect follow.",
            mechanism="Credit must reach far back; forks behind the choice compare nothing.",
            setting="delay",
            sizes=(2, 4, 8, 16, 32, 64),
            quick=(2, 8, 16),
            middle=8,
            control={"delay": 0},
            long_steps={"16": 512, "32": 1024, "64": 2048},
            lr=2e-3,
        ),
        Family(
            name="Keys",
            env_id="Keys-v0",
            asks="Rooms in a row with ways back and dead ends, so that states come again.",
            mechanism="A critic, or a comparison of equal states, tells good doors from bad ones.",
            guesses=_GUESSED_KEYS,
            setting="rooms",
            sizes=(2, 3, 4, 5, 6, 8),
            quick=(3, 4, 6),
            middle=4,
            control={"revisits": False},
            lr=2e-3,
        ),
        Family(
            name="Aliases",
            env_id="Aliases-v0",
            asks="Neighbouring rooms look the same and need different letters.",
            mechanism="Whoever takes equal observations for equal states is misled.",
            guesses=_GUESSED_ALIASES,
            setting="rooms",
            sizes=(3, 4, 5, 6, 9),
            quick=(3, 4, 6),
            middle=4,
            fixed={"aliases": 3},
            control={"aliases": 1},
            lr=2e-3,
            rates={"arpo": 0.0006},
        ),
        Family(
            name="Noise",
            env_id="Noise-v0",
            asks="Normal noise on the reward of a sequence of doors.",
            mechanism="Baselines over more paths are estimated better; nothing else should help.",
            setting="noise",
            sizes=(0.25, 0.5, 1.0, 2.0, 4.0),
            quick=(1.0, 2.0, 4.0),
            middle=2.0,
            fixed={"doors": 3},
            control={"noise": 0.0},
            measure="right",
            lr=1e-3,
            rates={"treegrpo": 0.002, "reinforcepp": 0.002, "ppo": 0.002},
            start=KNOWS_PLACES,
        ),
        Family(
            name="Fog",
            env_id="Fog-v0",
            asks="A look at the hidden letter lies now and then, and costs a little.",
            mechanism="Entropy after an uncertain answer says where to branch (ARPO).",
            setting="fog",
            sizes=(0.1, 0.2, 0.3, 0.4, 0.5),
            quick=(0.1, 0.3, 0.5),
            middle=0.3,
            fixed={"looks": 3},
            control={"fog": 0.0},
            tokens_per_step=512,
            lr=5e-4,
            ceilings={"0.1": 0.9765, "0.2": 0.912, "0.3": 0.8155, "0.4": 0.696, "0.5": 0.5625},
            letters=4,
            start=LOOKS,
        ),
        Family(
            name="Judge",
            env_id="Judge-v0",
            asks="All doors right or nothing, with a verdict on each door.",
            mechanism="Verdicts tell what the outcome hides; turn by turn they tell it exactly.",
            guesses={str(n): 3.0**-n for n in (3, 4, 5, 6, 8)} | {CONTROL: 3.0**-6},
            setting="doors",
            sizes=(3, 4, 5, 6, 8),
            quick=(4, 6, 8),
            middle=6,
            control={"judged": False},
            lr=1e-3,
            rates={"tarl": 0.002, "tarlturns": 0.002, "treegrpo": 0.002},
            rows=("grpo", "rloo", "tarl", "tarlturns", "treegrpo", "ppo"),
            start=KNOWS_PLACES,
        ),
        Family(
            name="Spawn",
            env_id="Spawn-v0",
            asks="What a session earns is decided by the session that asked for it.",
            mechanism="Values of the sessions asked for carry credit across them (PaSa).",
            guess=0.0,  # who has unlearned to ask has none; random letters ask for sessions
            setting="boxes",
            sizes=(3, 4, 5),
            quick=(3, 4, 5),
            middle=4,
            control={"forced": True, "deep": True},
            measure="coins",
            lr=1e-3,
            rates={"rloo": 0.002, "ppo": 0.0003},
            rows=("grpo", "rloo", "pasa", "ppo", "tarl", "tarlturns", "reinforcepp"),
            same={"drgrpo": "rloo", "dapo": "grpo", "gspo": "grpo"},
            same_because="one update a batch, so no ratio is clipped; the filter drops what has no "
            "advantage anyway; GSPO averages by path",
            letters=5,
            start=READS_LABELS,
        ),
        Family(
            name="Stale",
            env_id="Noise-v0",
            asks="Many updates on a batch: the policy moves away from the one that played.",
            mechanism="Clips hold the policy near its data (PPO's by token, GSPO's by path).",
            sizes=(2, 4, 8, 16, 32),
            quick=(4, 16, 32),
            middle=16,
            updates=True,
            fixed={"noise": 0.5, "doors": 3},
            measure="right",
            tokens=8_192,
            tokens_per_step=1024,
            lr=2e-3,
            rates={
                "grpo": 0.0006,
                "rloo": 0.0006,
                "no clip": 0.004,
                "dapo": 0.0006,
                "treegrpo": 0.0006,
            },
            rows=("grpo", "rloo", "no clip", "dapo", "gspo", "treegrpo", "reinforcepp", "ppo"),
            same={"drgrpo": "rloo", "pasa": "ppo"},
            same_because="there are no sessions",
            start=KNOWS_PLACES,
        ),
        Family(
            name="Rare",
            env_id="Rare-v0",
            asks="All doors right or nothing: success at the start is 3 to the power of -doors.",
            mechanism="More different endings per token find the first success earlier.",
            guesses={str(n): 3.0**-n for n in (2, 3, 4, 5, 6)},
            setting="doors",
            sizes=(2, 3, 4, 5, 6),
            quick=(3, 4, 5),
            middle=4,
            control={"doors": 1},
            lr=2e-3,
            rates={"grpo": 0.004, "dapo": 0.004},
            rows=("grpo", "rloo", "dapo", "treegrpo", "arpo", "spo", "reinforcepp", "ppo"),
            same={
                "drgrpo": "rloo",
                "gspo": "grpo",
                "tarl": "grpo",
                "tarlturns": "grpo",
                "pasa": "ppo",
            },
            same_because="one update a batch; nobody judges and there are no sessions",
        ),
    )
}

AT_LOW_END: Mapping[str, tuple[str, ...]] = {
    "Keys": ("treegrpo", "arpo", "spo"),
    "Aliases": ("grpo", "treegrpo", "arpo", "spo"),
    "Spawn": ("ppo",),
    "Stale": ("grpo", "rloo", "dapo", "treegrpo", "reinforcepp", "ppo"),
}
"""Rows by family whose largest mean area in ``ladder-rates`` is at its lowest rate."""
AT_HIGH_END: Mapping[str, tuple[str, ...]] = {
    "Lottery": ("arpo", "spo"),
    "Corridor": ("grpo", "rloo", "treegrpo", "arpo", "spo"),
    "Aliases": ("reinforcepp", "ppo"),
    "Noise": ("rloo", "treegrpo", "arpo", "reinforcepp", "ppo", "spo"),
    "Fog": ("grpo", "rloo", "treegrpo", "arpo", "reinforcepp", "ppo", "spo"),
    "Judge": ("tarl", "tarlturns", "treegrpo"),
    "Spawn": ("grpo", "rloo", "pasa", "tarl", "tarlturns", "reinforcepp"),
    "Stale": ("no clip", "gspo"),
    "Rare": ("grpo", "rloo", "dapo", "spo", "reinforcepp", "ppo"),
}
"""The same at its highest rate."""
WIDE_RATES: Mapping[str, Mapping[str, float]] = {
    "Corridor": {"spo": 0.008},
    "Keys": {"treegrpo": 0.0002},
    "Judge": {"tarl": 0.004},
    "Spawn": {"ppo": 0.0001},
    "Stale": {"no clip": 0.002, "gspo": 0.004, "reinforcepp": 0.0006, "ppo": 0.0006},
    "Rare": {"rloo": 0.004, "dapo": 0.008, "spo": 0.004, "reinforcepp": 0.004, "ppo": 0.008},
}
"""Rates of such rows on the wider grid of ``ladder-edge-rates`` that are not the ladder's: in
Judge, Stale and Rare those of the largest mean area, elsewhere the ones that lead clearly."""


def column_edges() -> dict[str, Edges]:
    """Return floor and ceiling of the measure of every column of the ladder."""
    return {
        family.column(size): family.edges(size)
        for family in FAMILIES.values()
        for size in (*family.sizes, CONTROL)
    }


def find_family(name: str) -> Family:
    """Return a family by its name.

    Raises:
        UnknownNameError: There is none.
    """
    if name not in FAMILIES:
        raise UnknownNameError("family", name, FAMILIES, "ladder")
    return FAMILIES[name]
