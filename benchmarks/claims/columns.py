"""Worlds of the claims, cheap enough that a laptop decides something."""

from __future__ import annotations

from typing import Any

from ..matrix.suite import BlankStart, Limits, SuiteEnv, TaughtStart

LR = 2e-3
"""Learning rate of a blank model of 0.1 million parameters on the diagnostic worlds."""
READER = TaughtStart(settings={"read_least": 0.0})


def probe(env_id: str, calls: int, *, every: int = 0, **settings: Any) -> SuiteEnv:
    """A diagnostic world, where a blank model learns within seconds; an action is one token."""
    return SuiteEnv(
        id=env_id,
        settings={"size": "micro", **settings},
        start=BlankStart(),
        limits=Limits(tokens=2 * calls, calls=calls),
        max_tokens=3,
        eval_split="train",
        eval_tasks=60,
        eval_every=every,
        recipe_settings={"optim.lr": LR},
    )


def search(tokens: int, *, every: int = 0, tasks: int = 100, **settings: Any) -> SuiteEnv:
    """Micro SearchQA from the package's starter, which is a middling player of one hop."""
    return SuiteEnv(
        id="SearchQA-v0",
        settings={"size": "micro", "hops": 1, **settings},
        start=TaughtStart(env_settings={"size": "micro", "hops": (1, 2)}),
        limits=Limits(tokens=tokens, calls=tokens),
        max_tokens=64,
        eval_tasks=tasks,
        eval_every=every,
    )
