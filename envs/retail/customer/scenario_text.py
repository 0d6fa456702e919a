"""A scenario in words: the slots of a goal, and the brief of a customer that a model plays."""

from __future__ import annotations

from .scenario import Goal, LineChange, Scenario

_AIMS = {
    "cancel": "cancel an order",
    "return": "return something",
    "exchange": "exchange something",
    "modify": "change an item in an order",
    "payment": "change how an order is paid",
    "ship_to": "change where an order goes",
    "move": "change my default address",
}
_BRIEFS = {
    "cancel": "because {reason}",
    "return": "items: {items}; refund to {method}",
    "exchange": "items: {items}; you want {wants}; difference by {method}",
    "modify": "items: {items}; you want {wants}; difference by {method}",
    "payment": "to be paid by {method}",
    "ship_to": "to {address}",
    "move": "to {address}",
}


def join_words(parts: list[str]) -> str:
    """Return ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _describe_want(want: LineChange, ids: bool) -> str:
    if ids and want.new_id:
        return f"item {want.new_id}"
    parts = []
    if want.pick:
        pick = "most expensive" if want.pick == "dearest" else want.pick
        parts.append(f"the {pick} one you have")
    parts += [f"{key} {value}" for key, value in want.set.items()]
    parts += [f"not {key} {value}" for key, value in want.avoid.items()]
    text = " with ".join(parts[:2]) if want.pick and len(parts) > 1 else ", ".join(parts)
    if want.pick and len(parts) > 2:
        text += ", " + ", ".join(parts[2:])
    return f"{text}, otherwise the same" if want.same else text


def _describe_wants(goal: Goal) -> str:
    """Return what the lines are to become."""
    if len(goal.wants) == 1:
        return _describe_want(goal.wants[0], goal.ids)
    return join_words(
        [f"for the {w.name.lower()}: {_describe_want(w, goal.ids)}" for w in goal.wants]
    )


def describe_address(goal: Goal) -> str:
    """Return the new address in one line."""
    a = goal.address
    second = f", {a['address2']}" if a.get("address2") else ""
    return f"{a['address1']}{second}, {a['city']}, {a['state']}, {a['country']}, {a['zip']}"


def fill_slots(goal: Goal) -> dict[str, str]:
    """Return all that a template may ask for, by name."""
    question = goal.ask or goal.about
    swaps = goal.intent in ("exchange", "modify")
    products = [want.name.lower() for want in goal.wants]
    filled = {
        "what": _AIMS.get(goal.intent) or question,
        "ask": question,
        "about": goal.about,
        "worth": "price difference" if swaps else "total",
        "order": goal.order_words or goal.order_id,
        "items": join_words(products) if products else "whole order",
        "method": goal.method if goal.ids else goal.method_words or goal.method,
        "reason": goal.reason,
    }
    if goal.limit is not None:
        filled["limit"] = f"${abs(goal.limit):.2f}"
    if goal.wants and swaps:
        filled["wants"] = _describe_wants(goal)
    if goal.address:
        filled["address"] = describe_address(goal)
    return filled


def _describe_goal(goal: Goal) -> str:
    """Return a goal with its fallbacks in words."""
    slots = fill_slots(goal)
    if goal.intent not in _BRIEFS:
        text = f"You say or ask: {slots['ask']}"
    else:
        slots["method"] = slots["method"] or "whatever method is easiest"
        order = f" ({slots['order']})" if goal.order_id else ""
        text = f"You want to {slots['what']}{order}, {_BRIEFS[goal.intent].format_map(slots)}."
        if goal.order_words:
            text += " You do not know the order number."
    if goal.limit is not None:
        paid, back = f"the {slots['worth']} is at most", "you get back at least"
        text += f" Only if {back if goal.limit < 0 else paid} {slots['limit']}."
    if goal.insist:
        text += f" If it is denied, you insist {goal.insist} more times, then accept."
    if goal.fallback is not None:
        when = {
            "denied": "If that is not possible",
            "mind": "When the agent asks you to confirm it, you change your mind",
        }.get(goal.switch, "Otherwise")
        text += f" {when}: {_describe_goal(goal.fallback)}"
    return text


def write_brief(scenario: Scenario) -> str:
    """Write identity, manner and goals as the brief of a customer that a model plays."""
    who, persona = scenario.identity, scenario.persona
    known = []
    if who.knows_email:
        known.append(f"your email is {who.email}")
    if who.knows_name:
        known.append(f"your zip code is {who.code}")
    unknown = "" if who.knows_email else " You do not remember your email address."
    if not who.knows_name:
        unknown += " You do not give your name and zip code."
    facts = f" and {' and '.join(known)}" if known else ""
    goals = " ".join(_describe_goal(goal) for goal in scenario.goals)
    tone = " and ".join(persona.tone) or "plain"
    return (
        f"You are {who.first} {who.last}{facts}.{unknown} You are {tone}, your style is "
        f"{persona.verbosity}. {goals}"
    )
