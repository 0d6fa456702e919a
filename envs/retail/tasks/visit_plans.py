"""Plans of visits in five tiers: which goals a visit has, and who comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..customer.scenario import Goal, Identity, Persona, build_call
from ..shop.payments import find_original_method
from ..shop.toolset import Toolset
from .feasible_goals import Draft
from .questions import draw_question
from .refused_goals import DENIALS, TRANSFERS, Pair, want_sold_out

INTENTS = ("cancel", "return", "exchange", "modify", "payment", "ship_to", "move")
_PATIENCE = {1: (3, 5), 2: (2, 5), 3: (2, 4), 4: (1, 3), 5: (1, 1)}
_TONES = ("curious", "busy", "cheerful", "blunt", "anxious", "careful", "dreamy", "formal")


@dataclass(slots=True)
class VisitPlan:
    """The goals of a visit.

    Attributes:
        kind: What it is about.
        goals: In order.
        twin: The feasible goal that comes in the place of the refused one; None where none is.
        unknown: Whether the customer cannot be found.
        given: Whether ids are given at once.
    """

    kind: str
    goals: list[Goal] = field(default_factory=list)
    twin: Goal | None = None
    unknown: bool = False
    given: bool = False


def apply_goal(draft: Draft, tools: Toolset, goal: Goal) -> bool:
    """Carry a goal's write out on the draft's overlay; return False where it is refused."""
    last = goal.last()
    if last.expect != "done" or not last.tool:
        return True
    if last.limit is not None and last.value > last.limit:
        return True
    order = draft.overlay.order(last.order_id)
    method = "" if order is None else find_original_method(order)
    name, given = build_call(last, draft.user_id, method)
    if tools.call(draft.overlay, name, given).refused:
        return False
    draft.used.add(last.order_id or last.intent)
    return True


def draw_applied(
    draft: Draft, tools: Toolset, intents: tuple[str, ...], lines: int = 1
) -> Goal | None:
    """Draw a goal of one of the intents and carry it out."""
    for at in draft.rng.permutation(len(intents)).tolist():
        goal = draft.draw_goal(intents[at], lines=lines)
        if goal is not None and apply_goal(draft, tools, goal):
            return goal
    return None


def lose_number(draft: Draft, goal: Goal) -> Goal:
    """Return the goal of somebody who forgot the order's number, where words can tell it."""
    order = draft.overlay.shop.orders.get(goal.order_id)
    if order is None or order["user_id"] != draft.user_id:
        return goal
    words = draft.order_words(order)
    after = goal.fallback
    if after is not None and after.order_id == goal.order_id:
        after = replace(after, order_words=words)
    return replace(goal, order_words=words, fallback=after)


def add_refused_wish(draft: Draft, goal: Goal) -> Goal:
    """Put a wish that must be denied before the goal, where the shop has something sold out."""
    if goal.intent not in ("exchange", "modify") or len(goal.wants) != 1:
        return goal
    bad = want_sold_out(draft, goal)
    if bad is None:
        return goal
    return replace(bad, deny="unavailable", fallback=goal, switch="denied")


def add_limit(draft: Draft, goal: Goal) -> Goal:
    """Return the goal of somebody who pays at most so much; half of the limits hold."""
    if goal.intent not in ("exchange", "modify") or goal.fallback is not None:
        return goal
    above = draft.chance(0.5)
    step = 5.0 + float(draft.rng.integers(20))
    return replace(goal, limit=round(goal.value + (-step if above else step), 2))


def plan_tier1(draft: Draft, tools: Toolset) -> VisitPlan | None:
    """Plan one write whose ids are given."""
    goal = draw_applied(draft, tools, ("cancel", "return") if draft.micro else INTENTS)
    if goal is None:
        return None
    return VisitPlan(goal.intent, [replace(goal, ids=True)], given=True)


def plan_tier2(draft: Draft, tools: Toolset) -> VisitPlan | None:
    """Plan one write whose ids must be looked up, or whose options are told in part."""
    goal = draw_applied(draft, tools, ("cancel", "return") if draft.micro else INTENTS, 2)
    if goal is None:
        return None
    if not draft.micro and draft.chance(0.6):
        goal = lose_number(draft, goal)
    return VisitPlan(goal.intent, [goal])


def plan_tier3(draft: Draft, tools: Toolset) -> VisitPlan | None:
    """Plan two or three writes, or one and a question; one may have a fallback."""
    first = draw_applied(draft, tools, ("exchange", "modify", "return", "payment"), 2)
    if first is None:
        return None
    goals = [first]
    if draft.chance(0.5):
        goals.append(draw_question(draft, first) or first)
    elif (second := draw_applied(draft, tools, INTENTS)) is not None:
        goals.append(second)
    if len(goals) < 2 or goals[-1] is first:
        return None
    if draft.chance(0.3) and (third := draw_applied(draft, tools, INTENTS)) is not None:
        goals.append(third)
    goals[0] = add_refused_wish(draft, goals[0])
    if goals[1].tool and draft.chance(0.3):
        goals[1] = replace(goals[1], together=True)
    return VisitPlan("several", goals)


def plan_tier4(draft: Draft, tools: Toolset, kind: str) -> VisitPlan | None:
    """Plan three or four goals: an order to be found, a limit, something refused.

    Args:
        draft: The visit.
        tools: The tools.
        kind: Why a goal is refused, one of :data:`MIXED_REFUSALS`; empty where none is. What only
            a human can do is asked for last, since the hand-over ends the visit.
    """
    goals: list[Goal] = []
    first = draw_applied(draft, tools, ("exchange", "modify", "return"))
    if first is None:
        return None
    goals.append(lose_number(draft, first))
    last = kind in TRANSFERS
    if kind and not last:
        if (refused := draw_refused(draft, kind)) is None:
            return None
        goals.append(refused[0])
    changed = draft.draw_goal("exchange") or draft.draw_goal("modify")
    changed = None if changed is None else add_limit(draft, changed)
    if changed is not None and apply_goal(draft, tools, changed):
        draft.used.add(changed.order_id)
        goals.append(changed)
    while len(goals) + last < 3:
        more = draw_applied(draft, tools, INTENTS)
        if more is None:
            return None
        goals.append(more)
    if draft.chance(0.5) and (asked := draw_question(draft, None)) is not None:
        goals.append(asked)
    if last:
        if (refused := draw_refused(draft, kind)) is None:
            return None
        goals.append(refused[0])
    return VisitPlan("mixed", goals)


def plan_tier5(draft: Draft, tools: Toolset) -> VisitPlan | None:
    """Plan five or more writes, a change of mind, something that can be done only once."""
    goals: list[Goal] = []
    if (cancelled := draw_applied(draft, tools, ("cancel",))) is not None:
        goals.append(cancelled)
    pending = draft.draw_orders("pending")
    if pending:
        goals += _change_all(draft, tools, pending[0]["order_id"])
    for _ in range(6 - len(goals)):
        more = draw_applied(draft, tools, ("exchange", "return", "move", "ship_to", "payment"), 2)
        if more is not None:
            goals.append(more)
    if len(goals) < 5:
        return None
    at = next((i for i, g in enumerate(goals) if g.intent in ("ship_to", "move")), None)
    if at is not None:
        wrong = replace(goals[at], address=draft.draw_address(), fallback=goals[at], switch="mind")
        goals[at] = wrong
    trap = next((g for g in goals if g.intent in ("exchange", "modify")), None)
    if trap is not None and draft.chance(0.9):
        goals.append(repeat_change(trap))
    return VisitPlan("long", goals)


def _change_all(draft: Draft, tools: Toolset, order_id: str) -> list[Goal]:
    """Change address, payment and items of one pending order, in the order that works."""
    order = draft.overlay.order(order_id)
    assert order is not None
    goals = [Goal(intent="ship_to", order_id=order_id, address=draft.draw_address())]
    if (paid := draft.draw_payment(order)) is not None:
        goals.append(paid)
    kept = [goal for goal in goals if apply_goal(draft, tools, goal)]
    order = draft.overlay.order(order_id)
    assert order is not None
    changed = draft.draw_change("modify", order, 2)
    if changed is not None and apply_goal(draft, tools, changed):
        kept.append(changed)
    return kept


def repeat_change(trap: Goal) -> Goal:
    """Return a second change of an order that takes only one."""
    last = trap.last()
    if last.intent == "modify":
        return Goal(
            intent="cancel",
            order_id=last.order_id,
            reason="no longer needed",
            expect="denied",
            deny="after_modify",
            record=last.order_id,
        )
    return replace(
        last,
        intent="return",
        expect="denied",
        deny="second",
        record=last.order_id,
        fallback=None,
        limit=None,
        switch="",
        order_words="",
    )


def draw_refused(draft: Draft, kind: str) -> Pair | None:
    """Draw a goal that must be denied or handed over, with its feasible twin."""
    pair = (DENIALS | TRANSFERS)[kind](draft)
    if pair is None:
        return None
    bad, good = pair
    if bad.expect == "denied":
        bad = replace(bad, deny=kind, insist=int(draft.rng.integers(3)))
    return bad, good


REFUSALS = (("no_identity", *DENIALS), tuple(TRANSFERS))
"""Kinds of visits of one goal that are refused, in the full shop: denied, and handed over."""
MIXED_REFUSALS = (tuple(DENIALS), tuple(TRANSFERS))
"""Kinds of goals that are refused among others (tier 4)."""
MICRO_REFUSALS = ("cancel_status", "return_status", "lost_parcel")


def draw_kinds(groups: Sequence[Sequence[str]], rng: np.random.Generator) -> Iterator[str]:
    """Yield kinds without end, in a drawn order of which every part keeps the shares.

    Each round holds each kind once. The kinds of a group lie at even distances in it, so that of
    the first ones, however many, each group has its share to less than one.
    """
    while True:
        places = [
            ((place + rng.random()) / len(group), str(kind))
            for group in groups
            for place, kind in enumerate(rng.permutation(np.array(group)))
        ]
        yield from (kind for _, kind in sorted(places))


def plan_refusal(draft: Draft, tools: Toolset, kind: str) -> VisitPlan | None:
    """Plan one goal that must be denied or handed over, and the twin that can be reached.

    Args:
        draft: The visit.
        tools: The tools.
        kind: Why it is refused, one of :data:`REFUSALS` or :data:`MICRO_REFUSALS`.
    """
    if kind == "no_identity":
        good = draw_applied(draft, tools, INTENTS)
        if good is None:
            return None
        bad = replace(good, expect="denied", deny=kind, fallback=None)
        return VisitPlan(kind, [bad], good, unknown=True)
    found = draw_refused(draft, kind)
    if found is None or not apply_goal(draft, tools, found[1]):
        return None
    given = draft.micro and draft.chance(0.5)
    return VisitPlan(kind, [found[0]], found[1], given=given)


_TIERS = {1: plan_tier1, 2: plan_tier2, 3: plan_tier3, 5: plan_tier5}


def plan_visit(draft: Draft, tools: Toolset, tier: int, kind: str) -> VisitPlan | None:
    """Plan a visit of a tier; None where this customer has no such visit.

    Args:
        draft: The visit.
        tools: The tools.
        tier: Its difficulty.
        kind: Why it, or one of its goals in tier 4, is refused; empty where nothing is.
    """
    if tier == 4:
        return plan_tier4(draft, tools, kind)
    return plan_refusal(draft, tools, kind) if kind else _TIERS[tier](draft, tools)


def draw_identity(draft: Draft, plan: VisitPlan, tier: int) -> Identity:
    """Draw what the customer remembers of themselves."""
    user = draft.overlay.shop.users[draft.user_id]
    who = Identity(
        user_id=draft.user_id,
        first=user["name"]["first_name"],
        last=user["name"]["last_name"],
        code=user["address"]["zip"],
        email=user["email"],
    )
    if draft.micro:
        return replace(who, volunteers=plan.given, knows_name=False)
    if plan.unknown:
        return replace(who, valid=False, email=f"x.{who.email}", code="00000")
    forgets = draft.chance(0.15 + 0.1 * tier)
    return replace(
        who,
        knows_email=not forgets,
        knows_name=forgets or draft.chance(0.7),
        volunteers=not forgets and draft.chance(0.15),
    )


def draw_persona(draft: Draft, tier: int, *, held_out: bool) -> Persona:
    """Draw what the customer is like; harder tiers bring people of fewer and of worse words."""
    tone = draft.pick(_TONES)
    if draft.micro:
        return Persona(verbosity="terse", patience=2, tone=(tone,))
    least = _PATIENCE[tier][0]
    shares = {1: "plain", 2: "plain", 3: "chatty", 4: "terse", 5: "chatty"}
    verbosity = shares[tier] if draft.chance(0.6) else draft.pick(("terse", "plain", "chatty"))
    return Persona(
        verbosity=verbosity,
        polite=draft.chance(0.7),
        patience=least + int(draft.rng.integers(_PATIENCE[tier][1] - least + 1)),
        tone=(tone, draft.pick(_TONES)),
        noise=0.0 if tier < 4 else 0.05,
        held_out=held_out,
    )
