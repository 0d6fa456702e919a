"""The family Stale, many updates on a batch, with more ratios and losses than the ladder has.

``ladder-stale`` has them at one learning rate each, ``ladder-stale-rates`` is their search, and
``ladder-stale-grid`` has all of them at five rates each. A change needs a new version.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..matrix.suite import Suite, SuiteEnv, SuiteRecipe
from .families import CONTROL, FAMILIES
from .suites import (
    AGAIN,
    BASELINE,
    LADDER,
    LADDER_RATES,
    RATE_SEARCH,
    ROWS,
    at_rate,
    column_of,
)

DELTA = 3e-3
"""Fall of a turn's log-probability from which masked rows drop it: that of ARL-Arena's scripts."""
STALE = FAMILIES["Stale"]
_OF_LADDER = (BASELINE, AGAIN, "no clip", "gspo")
STALE_ROWS = (
    *(row for row in ROWS if row.label in _OF_LADDER),
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
    SuiteRecipe(name="cispo", label="cispo at .002", settings={"rollout.n": 8, "optim.lr": 2e-3}),
    SuiteRecipe(name="cispo", label="cispo masked", settings={"rollout.n": 8, "loss.delta": DELTA}),
    SuiteRecipe(name="sapo", settings={"rollout.n": 8}),
    SuiteRecipe(name="sapo", label="sapo masked", settings={"rollout.n": 8, "loss.delta": DELTA}),
    SuiteRecipe(name="sampo", settings={"rollout.n": 8, "loss.of.kl.coef": 0.0}),
    SuiteRecipe(name="dppo", settings={"rollout.n": 8}),
)
"""The baseline, the ratios and losses that differ where many updates are taken on a batch."""
EQUAL_RATE = "cispo at .002"
"""CISPO at the rate of its masked form, so that the two differ in the mask alone."""
STALE_RATES: Mapping[str, float] = {"cispo": 0.004}
"""Learning rates of its own rows for which ``ladder-stale-rates`` found a clearly better one."""


def _stale_column(column: SuiteEnv) -> SuiteEnv:
    rates = {**STALE.rates, **STALE_RATES}
    labels = [row.label for row in STALE_ROWS]
    settings = {label: {"optim.lr": rates[label]} for label in labels if label in rates}
    return column.model_copy(update={"rows": labels, "row_settings": settings})


LADDER_STALE = Suite(
    name="ladder-stale",
    version=2,
    about="the family Stale with the ratios and losses of 2026: which hold many updates on a batch",
    recipes=STALE_ROWS,
    envs=tuple(_stale_column(column_of(STALE, size)) for size in (*STALE.quick, CONTROL)),
    seeds=LADDER.seeds,
    trials=LADDER.trials,
    max_batch=LADDER.max_batch,
    min_effect=LADDER.min_effect,
)
_TRIED = tuple(row for row in STALE_ROWS if row.label not in (*_OF_LADDER[1:], EQUAL_RATE))
LADDER_STALE_RATES = Suite(
    name="ladder-stale-rates",
    version=1,
    about="learning rates of the rows of ladder-stale that ladder-rates does not try, and GRPO's",
    recipes=_TRIED,
    envs=tuple(
        at_rate(STALE, scale, [row.label for row in _TRIED]) for scale in RATE_SEARCH.scales
    ),
    seeds=LADDER_RATES.seeds,
    trials=LADDER_RATES.trials,
    max_batch=LADDER_RATES.max_batch,
)

GRID_RATES = (3e-4, 6e-4, 1e-3, 2e-3, 4e-3)
_GRID_LOSSES = (
    *(row for row in STALE_ROWS if row.label not in (AGAIN, EQUAL_RATE)),
    *(row for row in ROWS if row.label in ("reinforcepp", "ppo")),
)


def grid_label(label: str, rate: float) -> str:
    """Return the name of a row of ``ladder-stale-grid``: a row of Stale at a rate."""
    at_own = label == BASELINE and rate == STALE.rates[BASELINE]
    return label if at_own else f"{label} at {rate:g}".replace(" 0.", " .")


_GRID = tuple(
    row.model_copy(
        update={
            "label": grid_label(row.label, rate),
            "settings": {**row.settings, "optim.lr": rate},
        }
    )
    for row in _GRID_LOSSES
    for rate in GRID_RATES
)
GRID_ROWS = (*_GRID, next(row for row in _GRID if row.label == BASELINE).again())
"""The rows that hold many updates on a batch, each at every rate of the grid, and the A/A row."""

LADDER_STALE_GRID = Suite(
    name="ladder-stale-grid",
    version=2,
    about="losses for many updates on a batch, each at five learning rates: what is the loss's, "
    "and what the rate's",
    recipes=GRID_ROWS,
    envs=tuple(
        column_of(STALE, size).model_copy(
            update={"rows": [row.label for row in GRID_ROWS], "row_settings": {}}
        )
        for size in (STALE.middle, CONTROL)
    ),
    seeds=tuple(range(20, 30)),
    trials=LADDER.trials,
    max_batch=LADDER.max_batch,
    min_effect=LADDER.min_effect,
)
"""Rates are to be chosen on its first five seeds and rows compared on the others."""
