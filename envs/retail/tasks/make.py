"""Make tasks from a seed: draw, check by playing, number them; the same seed, the same bytes.

A drawn visit becomes a task only when its writes can be carried out, none of them is superfluous,
its preferences mean one final state (or the listed ones), and the scripted assistant solves it
within the turn limit while doing nothing does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice, product

import numpy as np

from ...core.digest import digest_of
from ..customer.scenario import Goal, LineChange, Scenario, build_call
from ..customer.scenario_text import write_brief
from ..shop.generate import SPLITS, make_shop
from ..shop.overlay import Overlay
from ..shop.tables import Shop
from ..shop.toolset import MICRO, Toolset, get_toolset
from . import visit_plans as plans
from .feasible_goals import Draft, list_refund_methods
from .payload import Call, RetailTask, apply_calls, task_json
from .preferences import find_matching

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
_MAX_TRIES = 4000
_MAX_WAYS = 16


Proof = Callable[[RetailTask], int | None]
"""Returns the turns that the scripted assistant takes; None for a task that is not fair."""
BuildProof = Callable[[str, int, Shop], Proof]
"""Builds the proof for the tasks of a size, a seed and a shop."""


@dataclass(frozen=True, slots=True)
class DraftedTask:
    """A task and its number within its pair (0, or 1 for the twin)."""

    task: RetailTask
    pair: int = -1


def make_tasks(size: str, world_seed: int, split: str, proof: BuildProof) -> list[RetailTask]:
    """Make all tasks of a split, in order.

    Args:
        size: ``"full"`` or ``"micro"``.
        world_seed: Seed of the shops and tasks.
        split: ``"train"``, ``"dev"``, ``"test"`` or ``"hard"``.
        proof: Builds the check that tasks of the shop can be solved.
    """
    return _TaskMaker(size, world_seed, split, proof).make_all()


def digest_tasks(tasks: list[RetailTask]) -> str:
    """Return a stable hash of tasks, equal in every process and on every machine."""
    return digest_of([json.dumps(task_json(task), sort_keys=True) for task in tasks])


def make_task_id(split: str, index: int) -> str:
    """Return the id of a generated task."""
    return f"{split}/{index}"


class _TaskMaker:
    def __init__(self, size: str, world_seed: int, split: str, proof: BuildProof) -> None:
        self.size, self.split = size, split
        self.micro = size == "micro"
        self.shop: Shop = make_shop(size, world_seed, split)
        self.tools: Toolset = get_toolset("strict", MICRO if self.micro else None)
        number = SPLITS.index(split)
        self.root = (world_seed, number, len(size), 7)
        self.shared = np.random.default_rng(self.root)
        self.prove = proof(size, world_seed, self.shop)
        self.users = [user_id for user_id, user in self.shop.users.items() if user["orders"]]
        self.briefs: set[str] = set()
        self.refused = (
            cycle(plans.MICRO_REFUSALS)
            if self.micro
            else plans.draw_kinds(plans.REFUSALS, self.stream(0, 1))
        )
        self.mixed = plans.draw_kinds(plans.MIXED_REFUSALS, self.stream(0, 2))

    def stream(self, tier: int, place: int) -> np.random.Generator:
        """Return what a visit is drawn from; tier 0 holds what is drawn for the whole split.

        In the full shop each visit has a stream of its own: a change of some leaves all others as
        they are. The micro shop's are drawn from one, one after the other.
        """
        return self.shared if self.micro else np.random.default_rng((*self.root, tier, place))

    def make_all(self) -> list[RetailTask]:
        count = COUNTS[self.size][self.split]
        made: list[DraftedTask] = []
        for tier, share in enumerate(_SHARES[self.size][self.split], start=1):
            made += self.make_tier(tier, round(count * share))
        order = self.stream(0, 0).permutation(len(made[:count])).tolist()
        place = {at: n for n, at in enumerate(order)}
        tasks = []
        for at in order:
            one = made[at]
            mate = at + (1 if one.pair == 0 else -1)
            twin = make_task_id(self.split, place[mate]) if one.pair >= 0 and mate in place else ""
            tasks.append(replace(one.task, twin=twin))
        return tasks

    def make_tier(self, tier: int, count: int) -> list[DraftedTask]:
        """Make refused visits with their twins, then others; half of tier 4 has a refused goal."""
        made: list[DraftedTask] = []
        pairs = int(count * _REFUSED[self.size] / 2) if tier <= 2 else 0
        for _ in range(pairs):
            made += self.draw(tier, len(made), next(self.refused))
        while len(made) < count:
            kind = next(self.mixed) if tier == 4 and len(made) % 2 else ""
            made += self.draw(tier, len(made), kind)
        return made[:count]

    def draw(self, tier: int, place: int, kind: str) -> list[DraftedTask]:
        rng = self.stream(tier, place)
        for _ in range(_MAX_TRIES):
            user_id = self.users[int(rng.integers(len(self.users)))]
            draft = Draft(Overlay(self.shop), user_id, rng, micro=self.micro)
            plan = plans.plan_visit(draft, self.tools, tier, kind)
            if plan is None:
                continue
            paired = plan.twin is not None
            found = list(self.draw_visits(draft, plan, tier))
            briefs = {task.brief for task in found}
            if found and len(briefs) == 1 + paired:
                self.briefs |= briefs
                return [DraftedTask(task, n if paired else -1) for n, task in enumerate(found)]
        what = f"visit of tier {tier}{f' ({kind})' if kind else ''}"
        raise RuntimeError(f"found no {what} in {_MAX_TRIES} tries ({self.split})")

    def draw_visits(self, draft: Draft, plan: plans.VisitPlan, tier: int) -> Iterator[RetailTask]:
        """Yield the visit, and its twin where it has one; stop where a check fails."""
        if tier == 2 and plan.twin is not None and not self.micro and draft.chance(0.5):
            plan.goals = [plans.lose_number(draft, plan.goals[0])]
            plan.twin = plans.lose_number(draft, plan.twin)
        who = plans.draw_identity(draft, plan, tier)
        manner = plans.draw_persona(draft, tier, held_out=self.split in ("test", "hard"))
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
            task = self.check(one, tier, kind)
            if task is None:
                return
            yield task

    def check(self, scenario: Scenario, tier: int, kind: str) -> RetailTask | None:
        accepted = self.find_accepted(scenario)
        if accepted is None or not self.is_minimal(accepted[0]) or not self.is_unique(scenario):
            return None
        text = write_brief(scenario)
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
        turns = self.prove(task)
        if turns is None:
            return None
        return replace(task, features=count_features(task, turns))

    def find_accepted(self, scenario: Scenario) -> tuple[tuple[Call, ...], ...] | None:
        """Return the accepted sequences of writes; None where one cannot be carried out."""
        if not scenario.identity.valid:
            return ((),)
        user_id = scenario.identity.user_id
        options: list[list[Call]] = []
        for first in scenario.goals:
            goal = first.last()
            over = goal.limit is not None and goal.value > goal.limit
            if goal.expect == "done" and goal.tool and not over:
                methods = self.accepted_methods(goal, user_id)
                options.append([build_call(goal, user_id, method) for method in methods])
        found = tuple(islice(product(*options), _MAX_WAYS))
        overlay = Overlay(self.shop)
        fine = all(apply_calls(overlay, self.tools, way) is not None for way in found)
        return found if fine else None

    def accepted_methods(self, goal: Goal, user_id: str) -> list[str]:
        """Return the payment methods that a goal accepts."""
        order = self.shop.orders.get(goal.order_id)
        if goal.method or order is None or goal.intent != "return":
            return [goal.method]
        return list_refund_methods(self.shop.users[user_id], order)

    def is_minimal(self, way: tuple[Call, ...]) -> bool:
        """Tell whether leaving any write out gives another state, or none."""
        overlay = Overlay(self.shop)
        end = apply_calls(overlay, self.tools, way)
        assert end is not None
        wanted = end.changes()
        for at in range(len(way)):
            other = apply_calls(overlay, self.tools, (*way[:at], *way[at + 1 :]))
            if other is not None and other.is_at(wanted):
                return False
        return True

    def is_unique(self, scenario: Scenario) -> bool:
        """Tell whether every preference means exactly the item that is expected."""
        stages = [goal for first in scenario.goals for goal in first.stages()]
        meant = [g for g in stages if g.expect == "done" and g.intent in ("exchange", "modify")]
        return all(self.means_one(want) for goal in meant for want in goal.wants)

    def means_one(self, want: LineChange) -> bool:
        product = self.shop.products[self.shop.product_of[want.item_id]]
        found = find_matching(want, list(product["variants"].values()))
        return [v["item_id"] for v in found] == [want.new_id]


def count_features(task: RetailTask, turns: int) -> dict[str, float]:
    """Return counts that describe a task's difficulty."""
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
