"""What a task of the shop holds, as a value and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ...digest import digest_of
from ..customer.scenario import Scenario, read_scenario, scenario_json
from ..shop.desk import Desk
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
        """Stable hash of the task; taken once."""
        if not self._digest:
            parts = (getattr(self, f.name) for f in fields(self) if f.name != "_digest")
            self._digest.append(digest_of(tuple(parts)))
        return self._digest[0]


def task_json(task: RetailTask) -> dict[str, Any]:
    """A generated task as plain data."""
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
    """Inverse of :func:`task_json`."""
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


def after(desk: Desk, tools: Toolset, calls: tuple[Call, ...]) -> Desk | None:
    """A copy of the desk after some writes; None where one of them is refused."""
    twin = desk.fork()
    try:
        for name, given in calls:
            tools.done(twin, name, given)
    except Refused:
        return None
    return twin


def replayed(desk: Desk, tools: Toolset, calls: tuple[Call, ...]) -> Desk:
    """A copy of the desk after published actions, of which refused ones change nothing."""
    twin = desk.fork()
    for name, given in calls:
        if name in tools.tools:
            tools.call(twin, name, given)
    return twin
