"""A goal's slots in words."""

from __future__ import annotations

from collections.abc import Mapping

from .scenario import Goal, Want

_WHAT = {
    "cancel": "cancel an order",
    "return": "return something",
    "exchange": "exchange something",
    "modify": "change an item in an order",
    "payment": "change how an order is paid",
    "ship_to": "change where an order goes",
    "move": "change my default address",
}
_WORTH = {"exchange": "price difference", "modify": "price difference"}


def joined(parts: list[str]) -> str:
    """``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def what(goal: Goal) -> str:
    """The goal as "to ...", without ids."""
    return _WHAT.get(goal.intent) or goal.ask or goal.about


def question(goal: Goal) -> str:
    """What is asked in a goal that is a question."""
    return goal.ask or goal.about


def worth(goal: Goal) -> str:
    """What a limit is about."""
    return _WORTH.get(goal.intent, "total")


def order(goal: Goal) -> str:
    """How the customer calls the order."""
    return goal.order_words or goal.order_id


def items(goal: Goal) -> str:
    """The lines by product."""
    return joined([want.name.lower() for want in goal.wants]) if goal.wants else "whole order"


def _wanted(want: Want, ids: bool) -> str:
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


def wants(goal: Goal) -> str:
    """What the lines are to become."""
    if len(goal.wants) == 1:
        return _wanted(goal.wants[0], goal.ids)
    return joined([f"for the {w.name.lower()}: {_wanted(w, goal.ids)}" for w in goal.wants])


def address(goal: Goal) -> str:
    """The new address in one line."""
    a = goal.address
    second = f", {a['address2']}" if a.get("address2") else ""
    return f"{a['address1']}{second}, {a['city']}, {a['state']}, {a['country']}, {a['zip']}"


def method(goal: Goal) -> str:
    """How the customer calls the payment method."""
    return goal.method if goal.ids or not goal.method_words else goal.method_words


def slots(goal: Goal) -> Mapping[str, str]:
    """Everything that a template may ask for."""
    filled = {
        "what": what(goal),
        "ask": question(goal),
        "about": goal.about,
        "worth": worth(goal),
        "order": order(goal),
        "items": items(goal),
        "method": method(goal),
        "reason": goal.reason,
    }
    if goal.limit is not None:
        filled["limit"] = f"${goal.limit:.2f}"
    if goal.wants and goal.intent in ("exchange", "modify"):
        filled["wants"] = wants(goal)
    if goal.address:
        filled["address"] = address(goal)
    return filled
