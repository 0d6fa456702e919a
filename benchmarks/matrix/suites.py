"""The suites of the package: frozen, each with a version. Change one, and raise its version.

``quick`` tells whether everything runs and how a report looks; what it scores is not learning but
its first moments, except on the diagnostic environments, where a blank model does learn.
``standard`` trains small models until they have learned. ``lm`` trains a real language model that
a processor can carry, from where imitation left it. ``full`` trains models of the papers' sizes
with the papers' settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...envs.core.registration import EnvironmentSpec, MatrixColumn, registered_environments
from .suite import (
    BlankStart,
    Limits,
    NamedStart,
    RateSearch,
    Suite,
    SuiteEnv,
    SuiteRecipe,
    TaughtStart,
)

_QUICK_CHAINS = {"rollout.n": 4}
_QUICK_RECIPES: Mapping[str, Mapping[str, Any]] = {
    "grpo": _QUICK_CHAINS,
    "drgrpo": _QUICK_CHAINS,
    "dapo": {**_QUICK_CHAINS, "filter.max_rounds": 2},
    "gspo": _QUICK_CHAINS,
    "rloo": _QUICK_CHAINS,
    "reinforcepp": {},
    "spo": {"tracker.pool": 256},
    "ppo": {},
    "treegrpo": {},
    "arpo": {"rollout.initial": 2, "rollout.budget": 4},
    "tarl": _QUICK_CHAINS,
    "tarlturns": _QUICK_CHAINS,
    "tarlppo": {},
    "pasa": {"optim.critic_only_steps": 0},
    "sft": {},
    "stepdpo": {},
    "cispo": _QUICK_CHAINS,
    "sapo": _QUICK_CHAINS,
    "sampo": {**_QUICK_CHAINS, "filter.max_rounds": 2},
    "dppo": _QUICK_CHAINS,
    "maxrl": _QUICK_CHAINS,
    "aepo": {"rollout.initial": 2, "rollout.budget": 4},
    "at2po": {"rollout.initial": 2, "rollout.nodes": 1},
    "spear": {**_QUICK_CHAINS, "tracker.paths": 16},
    "opd": {},
    "opsd": {},
    "opid": _QUICK_CHAINS,
    "empg": _QUICK_CHAINS,
    "gigpo": _QUICK_CHAINS,
    "hgpo": _QUICK_CHAINS,
    "g2po": _QUICK_CHAINS,
    "graphgpo": _QUICK_CHAINS,
    "tigpo": _QUICK_CHAINS,
    "igpo": _QUICK_CHAINS,
    "hcapo": _QUICK_CHAINS,
}
"""Small groups, so that some fit into a step; how many is the column's tokens per step."""
QUICK_STEPS, STANDARD_STEPS = 10, 80
"""Training steps of a cell, for all recipes: each has its share of the budget of tokens."""
_BRIEFLY_TAUGHT = TaughtStart(
    settings={
        "hidden": 64,
        "layers": 3,
        "heads": 2,
        "inner": 128,
        "vocab_size": 512,
        "texts": 400,
        "batch": 16,
        "lr": 2e-3,
        "warmup_steps": 10,
        "read_steps": 400,
        "read_until": 0.5,
        "read_least": 0.0,
        "held_out": 16,
        "err_steps": 0,
    }
)
"""Half taught, in seconds: it writes actions of the right form more often than good ones."""


BASELINE = "grpo"
"""The row that the A/A row of every suite of the package repeats."""
THRESHOLD = 0.5
"""Training success whose cost in tokens is reported."""


def _rows(settings: Mapping[str, Mapping[str, Any]]) -> tuple[SuiteRecipe, ...]:
    """Return a row per recipe, and the A/A row behind the baseline."""
    rows = []
    for name, changes in settings.items():
        row = SuiteRecipe(name=name, settings=dict(changes))
        rows += [row, row.again()] if name == BASELINE else [row]
    return tuple(rows)


def _columns(
    suite: str, column_of: Callable[[EnvironmentSpec, MatrixColumn], SuiteEnv]
) -> tuple[SuiteEnv, ...]:
    """Return the columns of the package's environments whose rows name the suite.

    Environments that others register are left out: a suite of the package is frozen.
    """
    rows = [row for row in registered_environments() if row.builtin and suite in row.matrix]
    return tuple(column_of(row, row.matrix[suite]) for row in rows)


def _limits(column: MatrixColumn, tokens: int, steps: int | None) -> Limits:
    return Limits(
        tokens=column.tokens or tokens,
        calls=column.calls,
        steps=steps if column.limit_steps else None,
    )


def _share(limits: Limits, steps: int) -> int:
    """Return the tokens of a step; an action has at least one, so calls may end a cell earlier."""
    return min(limits.tokens, limits.calls) // steps


def _quick(row: EnvironmentSpec, column: MatrixColumn) -> SuiteEnv:
    common: dict[str, Any] = {
        "id": row.id,
        "settings": {"size": "micro", **column.settings},
        "max_tokens": column.max_tokens or 16,
        "tokens_per_step": _share(_limits(column, 2500, None), QUICK_STEPS),
    }
    if row.warm_start is None:  # a model that knows nothing learns it within seconds
        return SuiteEnv(
            **common,
            start=BlankStart(),
            limits=_limits(column, 2500, None),
            eval_tasks=column.eval_tasks or 48,
            eval_every=20,
            threshold=THRESHOLD,
            recipe_settings={"optim.lr": 1e-3},
        )
    return SuiteEnv(
        **common,
        start=_BRIEFLY_TAUGHT,
        limits=_limits(column, 2500, 12),
        eval_tasks=column.eval_tasks or 12,
        eval_every=2,
        threshold=THRESHOLD,
    )


QUICK = Suite(
    name="quick",
    version=4,
    about="every recipe on every world at micro size: does it run, and how does the report look",
    recipes=_rows(_QUICK_RECIPES),
    envs=_columns("quick", _quick),
    seeds=(0,),
    trials=2,
)

_LEARNER = TaughtStart(settings={"read_least": 0.0})
"""The package's starter, however well it came to read: where it reads badly, so do all recipes."""


def _standard(row: EnvironmentSpec, column: MatrixColumn) -> SuiteEnv:
    settings = {"size": "micro", **column.settings}
    return SuiteEnv(
        id=row.id,
        settings=settings,
        start=_own_starter(row, settings) if column.own_starter else _LEARNER,
        limits=_limits(column, 200_000, 400),
        max_tokens=column.max_tokens or 64,
        eval_tasks=column.eval_tasks or 100,
        eval_every=10,
        tokens_per_step=_share(_limits(column, 200_000, None), STANDARD_STEPS),
        checkpoint_every=10,
        threshold=THRESHOLD,
    )


def _own_starter(row: EnvironmentSpec, settings: Mapping[str, Any]) -> TaughtStart:
    """Return the start that `turngym train` has, which may be taught with other settings."""
    own = dict(row.warm_start_settings)
    return TaughtStart(world=None if own == settings else own)


STANDARD = Suite(
    name="standard",
    version=5,
    about="small taught models that learn for real, seven seeds, on one workstation",
    recipes=_rows({name: {} for name in _QUICK_RECIPES}),
    envs=_columns("standard", _standard),
    seeds=tuple(range(7)),  # five or six carry no family of 340 comparisons
    lr_search=RateSearch(scales=(1.0, 0.3, 3.0), seeds=(100, 101), share=0.25),
    trials=4,
    device="auto",
    dtype="auto",
)

_SMALL_MODEL = NamedStart(name="smollm2-135m", warm_start=1068, warm_start_batch=4)
"""After half an hour to an hour of imitation on a core, in 267 steps: after 312 episodes in 26 it
plays neither Household (13 % against 62) nor Retail. What it does as it is stands beside it."""
_SHOP_MODEL = NamedStart(name="smollm2-135m", warm_start=400, warm_start_batch=2)
"""The same for Retail, whose episodes are six times as long: some two hours."""
_EASY_TASKS = ("4-1", "4-2", "4-3", "4-4", "7-1")
"""ScienceWorld's tasks of finding things, and of the longest-lived animal."""


_LM_RATES = {"optim.lr": 1e-5, "optim.critic_lr": 1e-4}
"""The recipes' small settings are for a few million weights (2e-4, and 1e-3 for a critic). A critic
of 135 million has ten times the policy's rate, as in the settings that PPO's recipe has otherwise;
imitation takes the same weights at 3e-4."""


def _lm(
    name: str,
    env_id: str,
    settings: Mapping[str, Any],
    step: int,
    steps: int,
    **changes: Any,
) -> SuiteEnv:
    """Return a column of the suite ``lm``.

    Args:
        name: Of the column.
        env_id: Registered id.
        settings: Of the environment.
        step: Sampled tokens of a training step: at least four groups of eight episodes. An expert's
            episode has 66 of SmolLM2's tokens on SearchQA's one hop, 102 on two hops (an action
            that counts a list of twelve 127), 373 on Retail's tier 1, 27 on ScienceWorld's easy
            tasks and 58 in Household; one that goes on to the last turn has 630 and 470 in the
            last two, of which a half is reckoned with.
        steps: Training steps.
        changes: To the column's other fields.
    """
    tokens = step * steps
    return SuiteEnv(
        id=env_id,
        name=name,
        settings={"size": "full", **settings},
        limits=Limits(tokens=tokens, calls=tokens),
        eval_tasks=100,
        eval_every=0,
        checkpoint_every=2,
        tokens_per_step=step,
        recipe_settings=dict(_LM_RATES),
        threshold=THRESHOLD,
        **{"start": _SMALL_MODEL, "max_tokens": 64, **changes},
    )


LM = Suite(
    name="lm",
    version=7,
    about="SmolLM2-135M on full environments after imitation: some 270 hours of two cores in all",
    recipes=_rows({name: {} for name in _QUICK_RECIPES}),
    envs=(
        _lm("SearchQA-1hop", "SearchQA-v0", {"hops": 1}, step=2_500, steps=30, max_tokens=160),
        _lm("SearchQA-2hop", "SearchQA-v0", {"hops": 2}, step=4_000, steps=20, max_tokens=160),
        _lm(
            "Retail-tier1",
            "Retail-v0",
            {"tiers": 1},
            step=13_000,
            steps=10,
            max_tokens=128,
            start=_SHOP_MODEL,
        ),
        _lm(
            "ScienceWorld-easy",
            "ScienceWorld-v0",
            {"tasks": list(_EASY_TASKS), "simplifications": "easy"},
            step=11_000,
            steps=10,
            max_tokens=48,
        ),
        _lm("Household-v0", "Household-v0", {}, step=8_500, steps=10, max_tokens=32),
    ),
    seeds=(0, 1, 2),
    trials=2,
    max_batch=64,
    device="auto",
    dtype="auto",
    min_effect=0.02,
)

_MODEL = NamedStart(name="Qwen/Qwen2.5-3B-Instruct")
"""The size that Search-R1's and Tree-GRPO's comparisons have in common."""


def _full(row: EnvironmentSpec, column: MatrixColumn) -> SuiteEnv:
    return SuiteEnv(
        id=row.id,
        settings={"size": "full", **column.settings},
        start=_MODEL,
        limits=_limits(column, 20_000_000, None),
        max_tokens=column.max_tokens or 512,
        max_context=8192,
        eval_tasks=column.eval_tasks or 500,
        eval_every=10,
        checkpoint_every=10,
        threshold=THRESHOLD,
    )


FULL = Suite(
    name="full",
    version=4,
    about="a model of the papers' size with the papers' settings, three seeds, on GPUs",
    recipes=_rows({name: {} for name in _QUICK_RECIPES}),
    envs=_columns("full", _full),
    seeds=(0, 1, 2),
    small=False,
    trials=4,
    max_batch=256,
    device="cuda",
    dtype="bfloat16",
    gpu_memory_gb=70.0,
)

SUITES: Mapping[str, Suite] = {suite.name: suite for suite in (QUICK, STANDARD, LM, FULL)}
