"""The ladder as suites of the matrix, and the separating settings on real environments.

``ladder`` is the quick form: three sizes and the control of every family, five seeds, rows that
are distinct. ``ladder-full`` has all sizes and ten seeds. ``ladder-rates`` tries learning rates on
seeds that do not count, ``ladder-edge-rates`` others beyond that grid, and ``ladder-wide-rates``
has what these change. ``ladder-state`` has other rows in the same columns: those that compare
what was done in equal states. ``separating`` has settings on real environments in which
recipes can be told apart; ``household`` has the rows by state in Household's micro rooms, and
``household-critics`` and ``science-turns`` repeat on other seeds what led in two columns of
``separating``, ``retail-scale`` tries why TARL is behind in a third; ``turns`` is a setting whose
start has no success. A change needs a new version.

The family Stale with more losses is in :mod:`.stale_suites`; all by name in :mod:`.catalogue`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..matrix.starts import letters_start
from ..matrix.suite import (
    Limits,
    RateSearch,
    Suite,
    SuiteEnv,
    SuiteRecipe,
    TaughtStart,
)
from .families import AT_HIGH_END, AT_LOW_END, CONTROL, FAMILIES, SOLVED, WIDE_RATES, Family, Size

BASELINE = "grpo"
CHAINS = {"rollout.n": 8, "loss.kl.coef": 0.0}
"""No recipe has a KL penalty here, so that nothing acts beside the family's question."""
ROWS = (
    SuiteRecipe(name="grpo", settings=CHAINS),
    SuiteRecipe(name="grpo", settings=CHAINS).again(),
    SuiteRecipe(name="rloo", settings={"rollout.n": 8, "credit.kl_coef": 0.0}),
    SuiteRecipe(name="treegrpo", settings={"loss.kl.coef": 0.0}),
    SuiteRecipe(name="arpo", settings={"rollout.initial": 4, "rollout.budget": 8}),
    SuiteRecipe(name="dapo", settings={"rollout.n": 8}),
    SuiteRecipe(
        name="grpo",
        label="no clip",
        settings={**CHAINS, "loss.clip.low": 0.999, "loss.clip.high": 1e6},
    ),
    SuiteRecipe(name="gspo", settings={"rollout.n": 8}),
    SuiteRecipe(name="reinforcepp", settings={"credit.kl_coef": 0.0}),
    SuiteRecipe(name="ppo", settings={"credit.kl_coef": 0.0}),
    SuiteRecipe(name="spo", settings={"tracker.pool": 128}),
    SuiteRecipe(name="tarl", settings=CHAINS),
    SuiteRecipe(name="tarlturns", settings=CHAINS),
    SuiteRecipe(name="pasa", settings={"credit.kl_coef": 0.0, "optim.critic_only_steps": 0}),
)
"""All rows; a family's columns have those that are distinct there, and the A/A row."""
AGAIN = ROWS[1].label


def family_start(env_id: str) -> str | None:
    """Return the folder of the start of the first family of an environment; None without one."""
    from ..matrix.references import make_start_model

    for family in FAMILIES.values():
        if family.env_id == env_id:
            return make_start_model(column_of(family, family.middle))[0]
    return None


def column_of(family: Family, size: Size | str) -> SuiteEnv:
    """Return the column of a family at a size, or of its control."""
    return SuiteEnv(
        id=family.env_id,
        name=family.column(size),
        settings={"size": "micro", **family.settings(size)},
        start=letters_start(
            family.letters, family.settings(family.middle), **{"lr": 2e-3, **family.start}
        ),
        limits=Limits(tokens=family.tokens, calls=10 * family.tokens),
        max_tokens=1,
        eval_split="train",  # its tasks differ in signs that mean nothing
        eval_tasks=16,
        eval_every=0,
        measure=family.measure,
        threshold=SOLVED * family.ceiling(size),
        tokens_per_step=family.step_tokens(size),
        recipe_settings=family.optimiser(size),
        rows=[*family.rows, AGAIN],
        row_settings={label: {"optim.lr": rate} for label, rate in family.rates.items()},
    )


def _columns(quick: bool) -> tuple[SuiteEnv, ...]:
    return tuple(
        column_of(family, size)
        for family in FAMILIES.values()
        for size in (*(family.quick if quick else family.sizes), CONTROL)
    )


LADDER = Suite(
    name="ladder",
    version=3,
    about="diagnostic families, three sizes and a control each: which mechanism shows where",
    recipes=ROWS,
    envs=_columns(quick=True),
    seeds=(0, 1, 2, 3, 4),
    trials=4,
    max_batch=512,
    min_effect=0.02,
)
LADDER_FULL = Suite(
    name="ladder-full",
    version=3,
    about="the ladder with all sizes and ten seeds",
    recipes=ROWS,
    envs=_columns(quick=False),
    seeds=tuple(range(10)),
    trials=4,
    max_batch=512,
    min_effect=0.02,
)
_BY_STATE = {**CHAINS, "credit.invalid_penalty": 0.0}
STATE_ROWS = (
    *ROWS[:2],
    *(SuiteRecipe(name=name, settings=_BY_STATE) for name in ("gigpo", "hgpo", "g2po", "graphgpo")),
    SuiteRecipe(
        name="gigpo",
        label="gigpo history",
        settings={**_BY_STATE, "credit.identity": "history"},
    ),
)
"""The baseline, the recipes that compare by state, and one that knows a state by its past alone:
it has nothing to gain from states that come again."""
STATE_FAMILIES = ("Corridor", "Keys", "Aliases")


def _state_column(column: SuiteEnv) -> SuiteEnv:
    """Return a column of the ladder with the rows by state; the baseline's cells are the same."""
    rows = [row.label for row in STATE_ROWS]
    return column.model_copy(update={"rows": rows, "row_settings": {}})


LADDER_STATE = Suite(
    name="ladder-state",
    version=1,
    about="credit by state where states come again, where they look alike, and where none does",
    recipes=STATE_ROWS,
    envs=tuple(
        _state_column(column)
        for column in LADDER.envs
        if column.name.partition("-")[0] in STATE_FAMILIES
    ),
    seeds=tuple(range(10)),
    trials=LADDER.trials,
    max_batch=LADDER.max_batch,
    min_effect=LADDER.min_effect,
)
RATE_SEARCH = RateSearch(scales=(1.0, 0.3, 2.0), seeds=(100, 101), share=0.5)
"""How the rates of both forms are chosen, once: at each family's middle size, from its own rate."""


def search_of(suite: Suite) -> RateSearch:
    """Return the search that a suite's learning rates come from: its own, or the ladder's."""
    return suite.lr_search or RATE_SEARCH


def rate_column(family: Family, scale: float) -> str:
    """Return the name of the column of the search that tries a scale of a family's rate."""
    return f"{family.name}-rate-{scale:g}"


def at_rate(family: Family, scale: float, rows: Sequence[str] = ()) -> SuiteEnv:
    """Return the middle size of a family with another learning rate and a part of the budget.

    Its rows are the family's, or those that are given.
    """
    column = column_of(family, family.middle)
    return column.model_copy(
        update={
            "name": rate_column(family, scale),
            "limits": column.limits.part(RATE_SEARCH.share),
            "recipe_settings": {**column.recipe_settings, "optim.lr": scale * family.lr},
            "rows": list(rows or family.rows),
            "row_settings": {},
            "eval_tasks": 1,
        }
    )


LADDER_RATES = Suite(
    name="ladder-rates",
    version=1,
    about="learning rates of the ladder's rows: middle sizes, half of the budget, other seeds",
    recipes=ROWS,
    envs=tuple(at_rate(f, scale) for f in FAMILIES.values() for scale in RATE_SEARCH.scales),
    seeds=RATE_SEARCH.seeds,
    trials=1,
    max_batch=512,
)
LOWER, HIGHER = (0.1, 0.03), (4.0, 8.0)
"""Multiples of a family's rate beyond the ends of the search's grid."""


def _beyond_the_ends() -> tuple[SuiteEnv, ...]:
    """Return the search's columns for rows at an end of its grid, and two more beyond that end."""
    columns = []
    for family in FAMILIES.values():
        low, high = AT_LOW_END.get(family.name, ()), AT_HIGH_END.get(family.name, ())
        for scales, rows in ((RATE_SEARCH.scales, (*low, *high)), (LOWER, low), (HIGHER, high)):
            columns += [at_rate(family, scale, rows) for scale in scales if rows]
    return tuple(columns)


LADDER_EDGE_RATES = LADDER_RATES.model_copy(
    update={
        "name": "ladder-edge-rates",
        "about": "rates beyond the grid of ladder-rates, for rows whose best one is at its end",
        "envs": _beyond_the_ends(),
    }
)


def _equal_column(family: str, rate: float, rows: list[str]) -> SuiteEnv:
    """Return a family's middle size with all rows at one learning rate."""
    column = column_of(FAMILIES[family], FAMILIES[family].middle)
    settings = {**column.recipe_settings, "optim.lr": rate}
    return column.model_copy(update={"rows": rows, "row_settings": {}, "recipe_settings": settings})


LADDER_EQUAL_RATES = Suite(
    name="ladder-equal-rates",
    version=1,
    about="rows of the ladder that differ from GRPO by about what its search for rates lets pass, "
    "at one rate for all, on seeds of their own",
    recipes=tuple(
        row for row in ROWS if row.label in (BASELINE, AGAIN, "rloo", "ppo", "reinforcepp")
    ),
    envs=(
        _equal_column("Spawn", 2e-3, [BASELINE, AGAIN, "rloo"]),
        _equal_column("Stale", 6e-4, [BASELINE, AGAIN, "ppo", "reinforcepp"]),
    ),
    seeds=(10, 11, 12, 13, 14),
    trials=LADDER.trials,
    max_batch=LADDER.max_batch,
    min_effect=LADDER.min_effect,
)
"""The search keeps a family's rate unless another one leads by 5 points, so that in Stale PPO kept
.002 beside GRPO's .0006, and in Spawn GRPO .001 beside RLOO's .002."""


def _wide_column(family: Family, size: Size | str) -> SuiteEnv:
    """Return a column with the baseline and the rows that have another rate on a wider grid."""
    rows = (BASELINE, *WIDE_RATES[family.name])
    found = {**family.rates, **WIDE_RATES[family.name]}
    rates = {label: found[label] for label in rows if label in found}
    return column_of(family.model_copy(update={"rows": rows, "rates": rates}), size)


LADDER_WIDE_RATES = LADDER.model_copy(
    update={
        "name": "ladder-wide-rates",
        "version": 2,
        "about": "rows that had their best rate at an end of the search's grid and have another "
        "one on a wider grid, there",
        "envs": tuple(
            _wide_column(FAMILIES[name], size)
            for name in WIDE_RATES
            for size in (FAMILIES[name].middle, CONTROL)
        ),
        "seeds": tuple(range(30, 40)),
    }
)

_OFF_POLICY = {"optim.minibatches": 8, "optim.epochs": 2}
_ALL = [row.label for row in ROWS if row.label not in ("no clip", "pasa")]


def _search_qa(name: str, tokens: int, steps: int, **changes: Any) -> SuiteEnv:
    common: dict[str, Any] = {
        "id": "SearchQA-v0",
        "name": name,
        "settings": {"size": "micro", "hops": 2},
        "start": TaughtStart(),
        "limits": Limits(tokens=tokens, calls=tokens),
        "max_tokens": 64,
        "eval_tasks": 100,
        "eval_every": 0,
        "tokens_per_step": round(tokens / steps),
    }
    return SuiteEnv(**common | changes)


def _micro(env_id: str, tokens: int, steps: int, max_tokens: int, **changes: Any) -> SuiteEnv:
    """Return the column of a micro world, from the starter of `turngym train`."""
    common: dict[str, Any] = {
        "id": env_id,
        "settings": {"size": "micro"},
        "start": TaughtStart(world={"size": "micro"}),
        "limits": Limits(tokens=tokens, calls=tokens),
        "max_tokens": max_tokens,
        "eval_tasks": 60,
        "eval_every": 0,
        "tokens_per_step": round(tokens / steps),
        "rows": _ALL,
    }
    return SuiteEnv(**common | changes)


def _household(tokens: int, steps: int, **changes: Any) -> SuiteEnv:
    """Return micro rooms with 15 commands."""
    settings = {"size": "micro", "max_steps": 15}
    return _micro("Household-v0", tokens, steps, max_tokens=16, settings=settings, **changes)


def _science(**changes: Any) -> SuiteEnv:
    """Return the micro house with 10 actions; its start names things it was not shown."""
    settings = {"size": "micro", "max_turns": 10}
    return _micro(
        "ScienceWorld-v0", 48_000, 16, max_tokens=32, settings=settings, eval_tasks=97, **changes
    )


RETAIL_START = TaughtStart(
    settings={"mistakes": 0.0, "habits": {"haste": 0.9}, "err_steps": 40}, world={"size": "micro"}
)
"""Serves customers, and mostly makes a change without asking for the yes that the rules want."""


def _retail(**changes: Any) -> SuiteEnv:
    """Return the micro shop with 12 turns, from that start."""
    common: dict[str, Any] = {
        "settings": {"size": "micro", "max_turns": 12},
        "start": RETAIL_START,
        "eval_tasks": 100,
    }
    return _micro("Retail-v0", 80_000, 10, max_tokens=64, **common | changes)


SEPARATING = Suite(
    name="separating",
    version=5,
    about="settings on real environments in which recipes can be told apart, five seeds",
    recipes=ROWS,
    envs=(
        _search_qa("SearchQA-2hop", 10_000, 17, rows=_ALL),
        _search_qa(
            "SearchQA-2hop-offpolicy",
            12_000,
            3,
            recipe_settings=_OFF_POLICY,
            rows=[BASELINE, AGAIN, "no clip", "dapo", "gspo", "reinforcepp", "ppo"],
        ),
        _retail(),
        _science(),
        _household(60_000, 15),
    ),
    seeds=(0, 1, 2, 3, 4),
    trials=2,
    min_effect=0.02,
)

HOUSEHOLD = Suite(
    name="household",
    version=1,
    about="Household's micro rooms by credit of states: the field's separator, small",
    recipes=STATE_ROWS[:5],
    envs=(_household(90_000, 18, rows=[]),),
    seeds=(0, 1, 2, 3, 4),
    trials=2,
    min_effect=0.02,
)

_GRPO_RATES = tuple(
    SuiteRecipe(name="grpo", label=f"grpo at {rate:g}", settings={**CHAINS, "optim.lr": rate})
    for rate in (1e-4, 4e-4)
)
HOUSEHOLD_CRITICS = Suite(
    name="household-critics",
    version=1,
    about="Household's micro rooms, the rows that led GRPO in separating, on seeds of their own, "
    "and GRPO at half and double the rate",
    recipes=(
        *ROWS[:2],
        *_GRPO_RATES,
        *(row for row in ROWS if row.label in ("reinforcepp", "ppo", "spo")),
    ),
    envs=(_household(60_000, 15, rows=[]),),
    seeds=(5, 6, 7, 8, 9),
    trials=2,
    min_effect=0.02,
)

SCIENCE_TURNS = Suite(
    name="science-turns",
    version=1,
    about="ScienceWorld's micro house, the rows that led GRPO in separating, on seeds of their "
    "own, and GRPO at half and double the rate",
    recipes=(
        *ROWS[:2],
        *_GRPO_RATES,
        *(row for row in ROWS if row.label in ("reinforcepp", "ppo", "tarlturns")),
    ),
    envs=(_science(rows=[]),),
    seeds=(5, 6, 7, 8, 9, 10, 11, 12),
    trials=2,
    min_effect=0.02,
)

_UNSCALED = {**CHAINS, "credit.scale": "none"}
RETAIL_SCALE = Suite(
    name="retail-scale",
    version=1,
    about="Retail's micro shop, GRPO and TARL with and without the division by the group's "
    "deviation, on seeds of their own",
    recipes=(
        *ROWS[:2],
        SuiteRecipe(name="grpo", label="grpo unscaled", settings=_UNSCALED),
        *(row for row in ROWS if row.label == "tarl"),
        SuiteRecipe(name="tarl", label="tarl unscaled", settings=_UNSCALED),
    ),
    envs=(_retail(rows=[]),),
    seeds=(5, 6, 7, 8, 9, 10, 11, 12),
    trials=2,
    min_effect=0.02,
)
"""The microscope's explanation of TARL's place in Retail's shop, tried: groups without a success
have judged turns alone to compare, and the division makes these count as much as a success."""

TURN_ROWS = (
    *ROWS[:2],
    SuiteRecipe(name="igpo", settings=CHAINS),
    SuiteRecipe(name="igpo", label="igpo joint", settings={**CHAINS, "credit.normalise": "joint"}),
)
"""The baseline, and what a turn did to the accepted answer, normalised in both ways."""
TURNS = Suite(
    name="turns",
    version=1,
    about="two-hop questions from a start whose answers fail: what a turn found out as credit",
    recipes=TURN_ROWS,
    envs=(
        _search_qa(
            "SearchQA-2hop-failing",
            60_000,
            80,
            start=TaughtStart(settings={"mistakes": 0.9, "err_steps": 120, "read_until": 0.98}),
        ),
    ),
    seeds=(0, 1, 2, 3, 4),
    trials=2,
    min_effect=0.02,
)


def is_ladder(suite: Suite) -> bool:
    """Return whether a suite is made of the ladder's families, whatever its rows and seeds."""
    known = {name for family in FAMILIES.values() for name in family.columns(quick=False)}
    return all(column.name in known for column in suite.envs)


def families_of(suite: Suite) -> list[Family]:
    """Return the families that a suite has columns of, in their order."""
    names = {column.name for column in suite.envs}
    return [family for family in FAMILIES.values() if names & set(family.columns(quick=False))]


def sizes_of(suite: Suite, family: Family) -> list[Size]:
    """Return the sizes of a family that a suite has columns of."""
    names = {column.name for column in suite.envs}
    return [size for size in family.sizes if family.column(size) in names]
