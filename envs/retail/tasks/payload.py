"""What a task of the shop holds, as a value and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ...core.digest import digest_of
from ..customer.scenario import Scenario, read_scenario, scenario_json
from ..shop.overlay import Overlay
from ..shop.refusals import Refused
from ..shop.toolset import Toolset

Call = tuple[str, Mapping[str, Any]]
"""A tool's name and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetailTask:
    """One customer's visit.

    Attributes:
        shop: The shop that it happens in, a key of the source's shops.
        tier: Difficulty, 1 to 5; 0 where nobody says.
        kind: What it is about: a tier's plan, a denial or a transfer.
        scenario: What the customer wants; None where only prose says it.
        brief: The scenario in prose.
        accepted: Sequences of writes; a final state that one of them gives is right.
        outputs: Texts that must be told, for published tasks.
        gold: The published actions, reads included.
        features: Counts that describe the difficulty.
        twin: Id of the task that is nearly alike and ends the other way.
        judged: Assertions that only a language model could judge.
    """

    shop: str
    tier: int = 0
    kind: str = ""
    scenario: Scenario | None = None
    brief: str = ""
    accepted: tuple[tuple[Call, ...], ...] = ((),)
    outputs: tuple[str, ...] = ()
    gold: tuple[Call, ...] = ()
    features: Mapping[str, float] = field(default_factory=dict)
    twin: str = ""
    judged: tuple[str, ...] = ()
    _digest: list[str] = field(default_factory=list, repr=False, compare=False)

    def digest(self) -> str:
        """Return a stable hash of the task, which is computed once."""
        if not self._digest:
            parts = (getattr(self, f.name) for f in fields(self) if f.name != "_digest")
            self._digest.append(digest_of(tuple(parts)))
        return self._digest[0]


def task_json(task: RetailTask) -> dict[str, Any]:
    """Return a generated task as plain data."""
    return {
        "shop": task.shop,
        "tier": task.tier,
        "kind": task.kind,
        "scenario": None if task.scenario is None else scenario_json(task.scenario),
        "brief": task.brief,
        "accepted": [[[name, dict(given)] for name, given in way] for way in task.accepted],
        "features": dict(task.features),
        "twin": task.twin,
    }


def read_task(data: Mapping[str, Any]) -> RetailTask:
    """Return the task that :func:`task_json` wrote."""
    scenario = data["scenario"]
    return RetailTask(
        shop=data["shop"],
        tier=data["tier"],
        kind=data["kind"],
        scenario=None if scenario is None else read_scenario(scenario),
        brief=data["brief"],
        accepted=tuple(tuple((name, given) for name, given in way) for way in data["accepted"]),
        features=data["features"],
        twin=data["twin"],
    )


def apply_calls(overlay: Overlay, tools: Toolset, calls: tuple[Call, ...]) -> Overlay | None:
    """Return a copy of the overlay after some writes; None where one of them is refused."""
    twin = overlay.fork()
    try:
        for name, given in calls:
            tools.execute(twin, name, given)
    except Refused:
        return None
    return twin


def replay_gold(overlay: Overlay, tools: Toolset, calls: tuple[Call, ...]) -> Overlay:
    """Return a copy of the overlay after published calls, of which refused ones do nothing."""
    twin = overlay.fork()
    for name, given in calls:
        if name in tools.tools:
            tools.call(twin, name, given)
    return twin
