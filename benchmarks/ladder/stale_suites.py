"""The family Stale, many updates on a batch, with more ratios and losses than the ladder has.

``ladder-stale-grid`` has each of them at five learning rates, because what one rate says of a loss
is mostly the rate's. A change needs a new version.
"""

from __future__ import annotations

from ..matrix.suite import Suite, SuiteRecipe
from .families import CONTROL, FAMILIES
from .suites import BASELINE, LADDER, ROWS, column_of

STALE = FAMILIES["Stale"]
DELTA = 3e-3
"""Fall of a turn's log-probability from which masked rows drop it: that of ARL-Arena's scripts."""
STALE_LOSSES = (
    *(row for row in ROWS if row.label in (BASELINE, "no clip", "gspo", "reinforcepp", "ppo")),
    SuiteRecipe(
        name="gspo",
        label="gspo turn",
        settings={
            "rollout.n": 8,
            "loss.ratio": "turn",
            "loss.clip.low": 3e-3,
            "loss.clip.high": 4e-3,
        },
    ),
    SuiteRecipe(name="cispo", settings={"rollout.n": 8}),
    SuiteRecipe(name="cispo", label="cispo masked", settings={"rollout.n": 8, "loss.delta": DELTA}),
    SuiteRecipe(name="sapo", settings={"rollout.n": 8}),
    SuiteRecipe(name="sapo", label="sapo masked", settings={"rollout.n": 8, "loss.delta": DELTA}),
    SuiteRecipe(name="sampo", settings={"rollout.n": 8, "loss.of.kl.coef": 0.0}),
    SuiteRecipe(name="dppo", settings={"rollout.n": 8}),
)
"""The baseline, and what differs from it where many updates are taken on a batch."""
GRID_RATES = (3e-4, 6e-4, 1e-3, 2e-3, 4e-3)
CHOOSING, COMPARING = (20, 21, 22, 23, 24), (25, 26, 27, 28, 29)
"""Seeds on which a loss's rate is chosen, and those on which the losses are then compared."""


def grid_label(label: str, rate: float) -> str:
    """Return the name of a row of ``ladder-stale-grid``: a loss at a rate."""
    at_own = label == BASELINE and rate == STALE.rates[BASELINE]
    return label if at_own else f"{label} at {rate:g}".replace(" 0.", " .")


_GRID = tuple(
    row.model_copy(
        update={
            "label": grid_label(row.label, rate),
            "settings": {**row.settings, "optim.lr": rate},
        }
    )
    for row in STALE_LOSSES
    for rate in GRID_RATES
)
GRID_ROWS = (*_GRID, next(row for row in _GRID if row.label == BASELINE).again())
"""Every loss at every rate of the grid, and the A/A row."""

LADDER_STALE_GRID = Suite(
    name="ladder-stale-grid",
    version=3,
    about="losses for many updates on a batch, each at five learning rates: what is the loss's, "
    "and what the rate's",
    recipes=GRID_ROWS,
    envs=tuple(
        column_of(STALE, size).model_copy(
            update={"rows": [row.label for row in GRID_ROWS], "row_settings": {}}
        )
        for size in (STALE.middle, CONTROL)
    ),
    seeds=(*CHOOSING, *COMPARING),
    trials=LADDER.trials,
    max_batch=LADDER.max_batch,
    min_effect=LADDER.min_effect,
)
