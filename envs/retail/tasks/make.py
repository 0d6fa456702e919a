"""Tasks made from a seed: drawn, checked by playing them, numbered; the same seed, the same bytes.

A drawn visit is kept only when its writes can be carried out, none of them is superfluous, its
preferences mean one final state (or the listed ones), and the scripted assistant solves it within
the turn limit while doing nothing does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import numpy as np

from ...digest import digest_of
from ..customer.scenario import Goal, Scenario, call_of
from ..shop.build import SPLITS, make_shop
from ..shop.desk import Desk
from ..shop.tables import Shop
from ..shop.toolset import MICRO, Toolset, toolset
from . import plan as plans
from .goals import Draft, refund_methods
from .payload import Call, RetailTask, after, task_json
from .preferences import fitting
from .prose import brief
from .proving import Proof

COUNTS = {
    "full": {"train": 3000, "dev": 200, "test": 300, "hard": 100},
    "micro": {"train": 6000, "dev": 100, "test": 200, "hard": 60},
}
_SHARES = {
    "full": {
        "train": (0.20, 0.25, 0.25, 0.20, 0.10),
        "dev": (0.20, 0.25, 0.25, 0.20, 0.10),
        "test": (0.10, 0.20, 0.30, 0.25, 0.15),
        "hard": (0.0, 0.0, 0.2, 0.4, 0.4),
    },
    "micro": {
        "train": (0.5, 0.5),
        "dev": (0.5, 0.5),
        "test": (0.5, 0.5),
        "hard": (0.3, 0.7),
    },
}
_REFUSED = {"full": 0.36, "micro": 0.5}
"""Share of tiers 1 and 2 that come as a refused visit and its feasible twin."""
_MOST_TRIES = 400
_MOST_WAYS = 16


@dataclass(frozen=True, slots=True)
class Made:
    """A task and its number within its pair (0, or 1 for the twin)."""

    task: RetailTask
    pair: int = -1


def make_tasks(size: str, world_seed: int, split: str) -> list[RetailTask]:
    """All tasks of a split, in order.

    Args:
        size: ``"full"`` or ``"micro"``.
        world_seed: Seed of the shops and tasks.
        split: ``"train"``, ``"dev"``, ``"test"`` or ``"hard"``.
    """
    return _Maker(size, world_seed, split).all()


def tasks_digest(tasks: list[RetailTask]) -> str:
    """Stable hash of tasks, equal in every process and on every machine."""
    return digest_of([json.dumps(task_json(task), sort_keys=True) for task in tasks])


def task_id(split: str, index: int) -> str:
    """The id of a generated task."""
    return f"{split}/{index}"


class _Maker:
    def __init__(self, size: str, world_seed: int, split: str) -> None:
        self.size, self.split = size, split
        self.micro = size == "micro"
        self.shop: Shop = make_shop(size, world_seed, split)
        self.tools: Toolset = toolset("strict", MICRO if self.micro else None)
        number = SPLITS.index(split)
        self.rng = np.random.default_rng((world_seed, number, len(size), 7))
        self.proof = Proof(size, world_seed, self.shop)
        self.users = [user_id for user_id, user in self.shop.users.items() if user["orders"]]
        self.briefs: set[str] = set()
        self.kinds = plans.MICRO_REFUSALS if self.micro else plans.REFUSALS
        self.refused = 0

    def all(self) -> list[RetailTask]:
        count = COUNTS[self.size][self.split]
        made: list[Made] = []
        for tier, share in enumerate(_SHARES[self.size][self.split], start=1):
            made += self.tier(tier, round(count * share))
        order = self.rng.permutation(len(made[:count])).tolist()
        place = {at: n for n, at in enumerate(order)}
        tasks = []
        for at in order:
            one = made[at]
            mate = at + (1 if one.pair == 0 else -1)
            twin = task_id(self.split, place[mate]) if one.pair >= 0 and mate in place else ""
            tasks.append(replace(one.task, twin=twin))
        return tasks

    def tier(self, tier: int, count: int) -> list[Made]:
        made: list[Made] = []
        refused = int(count * _REFUSED[self.size] / 2) if tier <= 2 else 0
        for _ in range(refused):
            made += self.draw(tier, refused=True)
        while len(made) < count:
            made += self.draw(tier, refused=False)
        return made[:count]

    def draw(self, tier: int, *, refused: bool) -> list[Made]:
        for _ in range(_MOST_TRIES):
            user_id = self.users[int(self.rng.integers(len(self.users)))]
            draft = Draft(Desk(self.shop), user_id, self.rng, micro=self.micro)
            if refused:
                plan = plans.refusal(draft, self.tools, self.kinds[self.refused % len(self.kinds)])
            else:
                plan = plans.TIERS[tier](draft, self.tools)
            if plan is None:
                continue
            found = list(self.visits(draft, plan, tier))
            briefs = {task.brief for task in found}
            if found and len(briefs) == (2 if refused else 1):
                self.briefs |= briefs
                self.refused += refused
                return [Made(task, n if refused else -1) for n, task in enumerate(found)]
        raise RuntimeError(f"no visit of tier {tier} in {_MOST_TRIES} tries ({self.split})")

    def visits(self, draft: Draft, plan: plans.Plan, tier: int) -> Iterator[RetailTask]:
        """The visit, and its twin where it has one; nothing where a check fails."""
        if tier == 2 and plan.twin is not None and not self.micro and draft.chance(0.5):
            plan.goals = [plans.lost_number(draft, plan.goals[0])]
            plan.twin = plans.lost_number(draft, plan.twin)
        who = plans.identity(draft, plan, tier)
        manner = plans.persona(draft, tier, held_out=self.split in ("test", "hard"))
        scenario = Scenario(
            identity=who, persona=manner, goals=tuple(plan.goals), opening=plan.given
        )
        both = [(plan.kind, scenario)]
        if plan.twin is not None:
            found = replace(who, valid=True, email=self.shop.users[who.user_id]["email"])
            found = replace(found, code=self.shop.users[who.user_id]["address"]["zip"])
            both.append(
                (f"{plan.kind}_twin", replace(scenario, identity=found, goals=(plan.twin,)))
            )
        for kind, one in both:
            task = self.checked(one, tier, kind)
            if task is None:
                return
            yield task

    def checked(self, scenario: Scenario, tier: int, kind: str) -> RetailTask | None:
        accepted = self.ways(scenario)
        if accepted is None or not self.minimal(accepted[0]) or not self.unique(scenario):
            return None
        text = brief(scenario)
        if text in self.briefs:
            return None
        task = RetailTask(
            shop=self.shop.name,
            tier=tier,
            kind=kind,
            scenario=scenario,
            brief=text,
            accepted=accepted,
        )
        turns = self.proof.turns(task)
        if turns is None:
            return None
        return replace(task, features=features(task, turns))

    def ways(self, scenario: Scenario) -> tuple[tuple[Call, ...], ...] | None:
        """The accepted sequences of writes; None where the first cannot be carried out."""
        if not scenario.identity.valid:
            return ((),)
        user_id = scenario.identity.user_id
        options: list[list[Call]] = []
        for first in scenario.goals:
            goal = first.last()
            over = goal.limit is not None and goal.value > goal.limit
            if goal.expect == "done" and goal.tool and not over:
                methods = self.methods(goal, user_id)
                options.append([call_of(goal, user_id, method) for method in methods])
        found = tuple(islice(product(*options), _MOST_WAYS))
        desk = Desk(self.shop)
        fine = all(after(desk, self.tools, way) is not None for way in found)
        return found if fine else None

    def methods(self, goal: Goal, user_id: str) -> list[str]:
        """Methods that a goal without preference accepts."""
        order = self.shop.orders.get(goal.order_id)
        if goal.method or order is None or goal.intent != "return":
            return [goal.method]
        return refund_methods(self.shop.users[user_id], order)

    def minimal(self, way: tuple[Call, ...]) -> bool:
        """Whether leaving any write out gives another state, or none."""
        desk = Desk(self.shop)
        end = after(desk, self.tools, way)
        assert end is not None
        wanted = end.changes()
        for at in range(len(way)):
            other = after(desk, self.tools, (*way[:at], *way[at + 1 :]))
            if other is not None and other.is_at(wanted):
                return False
        return True

    def unique(self, scenario: Scenario) -> bool:
        """Whether every preference means exactly the item that is expected."""
        stages = [goal for first in scenario.goals for goal in first.stages()]
        meant = [g for g in stages if g.expect == "done" and g.intent in ("exchange", "modify")]
        return all(self.means(want) for goal in meant for want in goal.wants)

    def means(self, want: Any) -> bool:
        product = self.shop.products[self.shop.product_of[want.item_id]]
        found = fitting(want, list(product["variants"].values()))
        return [v["item_id"] for v in found] == [want.new_id]


def features(task: RetailTask, turns: int) -> dict[str, float]:
    """Counts that describe a task's difficulty."""
    assert task.scenario is not None
    stages: list[Goal] = [g for first in task.scenario.goals for g in first.stages()]
    return {
        "writes": float(len(task.accepted[0])),
        "goals": float(len(task.scenario.goals)),
        "expert_turns": float(turns),
        "lost_numbers": float(sum(bool(g.order_words) for g in stages)),
        "refused": float(sum(g.expect != "done" for g in stages)),
        "fallbacks": float(sum(g.fallback is not None for g in stages)),
        "mind_changes": float(sum(g.switch == "mind" for g in stages)),
        "limits": float(sum(g.limit is not None for g in stages)),
        "questions": float(sum(bool(g.ask) for g in stages)),
        "noise": task.scenario.persona.noise,
    }
