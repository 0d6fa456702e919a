"""A proposal against a goal: right, wrong in one slot, or lacking one."""

from __future__ import annotations

from typing import Literal, NamedTuple

from . import lexicon as lex
from .parser import Heard
from .scenario import Goal, Want

Strictness = Literal["lenient", "standard", "strict"]
STRICTNESS = ("lenient", "standard", "strict")


class Compared(NamedTuple):
    """How a proposal fits.

    Attributes:
        fit: ``"right"``, ``"wrong"``, ``"missing"`` or ``"other"`` (not this goal at all).
        slot: The slot that is wrong or missing.
    """

    fit: str
    slot: str = ""


RIGHT = Compared("right")


def compared(goal: Goal, heard: Heard, known: frozenset[str], strictness: Strictness) -> Compared:
    """Compare a proposal with what the customer wants.

    Args:
        goal: The present goal.
        heard: The message that proposes.
        known: Orders that any open goal is about.
        strictness: How much a yes asks for.
    """
    if goal.intent not in lex.VERBS or not lex.VERBS[goal.intent].search(heard.text):
        return Compared("other")
    checks = [_order(goal, heard, known)]
    if strictness != "lenient":
        checks += [_items(goal, heard), _wants(goal, heard), _reason(goal, heard)]
        checks += [_method(goal, heard), _address(goal, heard)]
    if goal.limit is not None or (strictness == "strict" and goal.intent in ("exchange", "modify")):
        checks.append(_value(goal, heard))
    for fit in ("wrong", "missing"):
        for check in checks:
            if check.fit == fit:
                return check
    return RIGHT


def told_amount(heard: Heard, value: float) -> bool:
    """Whether a message holds this amount."""
    return any(abs(float(number) - abs(value)) < 0.005 for number in heard.numbers)


def _order(goal: Goal, heard: Heard, known: frozenset[str]) -> Compared:
    if not goal.order_id:
        return RIGHT
    wanted = goal.order_id.lower()
    if heard.orders - known - {wanted}:
        return Compared("wrong", "order")
    if wanted in heard.orders:
        return RIGHT
    return Compared("wrong" if heard.orders else "missing", "order")


def _items(goal: Goal, heard: Heard) -> Compared:
    if not goal.wants:
        return RIGHT
    fine = {w.item_id for w in goal.wants} | {w.new_id for w in goal.wants}
    length = len(goal.wants[0].item_id)
    if any(len(item) == length for item in heard.items - fine):
        return Compared("wrong", "items" if goal.intent == "return" else "wants")
    if any(name.lower() in heard.text for name in goal.others) and not lex.EXCEPT.search(
        heard.text
    ):
        return Compared("wrong", "items")
    for want in goal.wants:
        if want.item_id not in heard.items and want.name.lower() not in heard.text:
            return Compared("missing", "items")
    return RIGHT


def _wants(goal: Goal, heard: Heard) -> Compared:
    if goal.intent not in ("exchange", "modify"):
        return RIGHT
    for want in goal.wants:
        if want.new_id and want.new_id in heard.items:
            continue
        part = _part(want, goal, heard.text)
        if not all(value.lower() in part for value in _changed(want).values()):
            return Compared("missing", "wants")
    return RIGHT


def _changed(want: Want) -> dict[str, str]:
    """Options that the new item has and the old one has not."""
    new = want.new_options or want.set
    return {key: value for key, value in new.items() if want.options.get(key) != value}


def _part(want: Want, goal: Goal, text: str) -> str:
    """What is said after a line's product, up to the next one's."""
    if len(goal.wants) == 1 or (start := text.find(want.name.lower())) < 0:
        return text
    ends = [
        at
        for other in goal.wants
        if other is not want and (at := text.find(other.name.lower(), start + 1)) > 0
    ]
    return text[start : min(ends)] if ends else text[start:]


def _reason(goal: Goal, heard: Heard) -> Compared:
    if goal.intent != "cancel":
        return RIGHT
    named = [reason for reason, pattern in lex.REASONS.items() if pattern.search(heard.text)]
    if named == [goal.reason]:
        return RIGHT
    return Compared("wrong" if named else "missing", "reason")


def _method(goal: Goal, heard: Heard) -> Compared:
    if goal.intent not in ("return", "exchange", "modify", "payment"):
        return RIGHT
    text = heard.text
    if not goal.method:
        general = "gift card" in text or "paypal" in text or "card" in text or "payment" in text
        return RIGHT if heard.methods or general else Compared("missing", "method")
    if any(key in text for key in goal.method_keys) or goal.method in heard.methods:
        return RIGHT
    return Compared("wrong" if heard.methods else "missing", "method")


def _address(goal: Goal, heard: Heard) -> Compared:
    if not goal.address:
        return RIGHT
    street = goal.address["address1"].lower() in heard.text
    if street and goal.address["zip"] in heard.text:
        return RIGHT
    return Compared("missing" if not street else "wrong", "address")


def _value(goal: Goal, heard: Heard) -> Compared:
    if told_amount(heard, goal.value):
        return RIGHT
    return Compared("wrong" if heard.numbers else "missing", "value")
