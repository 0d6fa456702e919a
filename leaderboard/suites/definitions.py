"""What the suites hold, before their digests are computed and frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...envs.errors import UnknownNameError
from ..suite import Cell, Suite

WORLDS = (
    "Game24-v0",
    "MathWord-v0",
    "PaperCrawler-v0",
    "Retail-v0",
    "ScienceWorld-v0",
    "SearchQA-v0",
    "WebQA-v0",
    "WebShop-v0",
)
METRICS = {"PaperCrawler-v0": "recall"}
"""The score where it is not ``success``: finding papers is a matter of degree."""
UNKNOWN = "0" * 32


def _cell(env_id: str, tasks: range, trials: int, settings: Mapping[str, Any]) -> Cell:
    return Cell(
        key=env_id,
        env_id=env_id,
        settings=dict(settings),
        tasks=tuple(tasks),
        trials=trials,
        metric=METRICS.get(env_id, "success"),
        max_turns=1,
        digests=(UNKNOWN,) * len(tasks),
    )


def _micro() -> Suite:
    cells = (_cell(env_id, range(20), 2, {"size": "micro"}) for env_id in WORLDS)
    return Suite(
        name="micro",
        version=1,
        description="Every world at micro size, 20 test tasks, two trials each.",
        cells=tuple(cells),
    )


def _standard() -> Suite:
    cells = (_cell(env_id, range(50), 4, {"size": "full"}) for env_id in WORLDS)
    return Suite(
        name="standard",
        version=1,
        description="Every world at its full size, 50 test tasks, four trials each.",
        cells=tuple(cells),
    )


DRAFTS: Mapping[str, Callable[[], Suite]] = {"micro-v1": _micro, "standard-v1": _standard}


def draft(suite_id: str) -> Suite:
    """The definition of a suite; its digests and turn limits are still to be computed.

    Raises:
        UnknownNameError: No such suite.
    """
    if suite_id not in DRAFTS:
        raise UnknownNameError("suite", suite_id, DRAFTS)
    return DRAFTS[suite_id]()
