"""A proposal against a goal: right, wrong in one slot, or lacking one."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Literal, NamedTuple

from . import lexicon as lex
from .parser import ParsedMessage
from .scenario import SLOTS_OF, Goal, LineChange

Strictness = Literal["lenient", "standard", "strict"]
STRICTNESS = ("lenient", "standard", "strict")


class ProposalFit(NamedTuple):
    """How a proposal fits.

    Attributes:
        fit: ``"right"``, ``"wrong"``, ``"missing"`` or ``"other"`` (not this goal at all).
        slot: The slot that is wrong or missing.
    """

    fit: str
    slot: str = ""


RIGHT = ProposalFit("right")


def compare_proposal(
    goal: Goal, message: ParsedMessage, known: frozenset[str], strictness: Strictness
) -> ProposalFit:
    """Compare a proposal with what the customer wants.

    Args:
        goal: The present goal.
        message: The message that proposes.
        known: Orders that any open goal is about; items and products of those that are named.
        strictness: How much a yes asks for.
    """
    if goal.intent not in lex.VERBS or not lex.VERBS[goal.intent].search(message.text):
        return ProposalFit("other")
    checks = [_check_order(goal, message, known)]
    if strictness != "lenient":
        checks += [
            _check_items(goal, message, known),
            _check_wants(goal, message, known),
            _check_reason(goal, message),
        ]
        checks += [_check_method(goal, message), _check_address(goal, message)]
    if goal.limit is not None or (strictness == "strict" and goal.intent in ("exchange", "modify")):
        checks.append(_check_value(goal, message, directed=strictness == "strict"))
    for fit in ("wrong", "missing"):
        for check in checks:
            if check.fit == fit:
                return check
    return RIGHT


def states_amount(message: ParsedMessage, value: float) -> bool:
    """Tell whether a message states this amount."""
    return _holds_amount(message.numbers, value)


def _holds_amount(numbers: Collection[str], value: float) -> bool:
    return any(abs(float(number) - abs(value)) < 0.005 for number in numbers)


def _check_order(goal: Goal, message: ParsedMessage, known: frozenset[str]) -> ProposalFit:
    if not goal.order_id:
        return RIGHT
    wanted = goal.order_id.lower()
    if message.orders - known - {wanted}:
        return ProposalFit("wrong", "order")
    if wanted in message.orders:
        return RIGHT
    return ProposalFit("wrong" if message.orders else "missing", "order")


def _check_items(goal: Goal, message: ParsedMessage, known: frozenset[str]) -> ProposalFit:
    if not goal.wants:
        return RIGHT
    fine = {w.item_id for w in goal.wants} | {w.new_id for w in goal.wants}
    length = len(goal.wants[0].item_id)
    if any(len(item) == length for item in message.items - fine - known):
        swaps = "wants" in SLOTS_OF.get(goal.intent, ())
        return ProposalFit("wrong", "wants" if swaps else "items")
    names = _list_names(goal, known)
    others = {name.lower() for name in goal.others} - known
    named = any(_find_name(name, names, message.text) is not None for name in others)
    if named and not lex.EXCEPT.search(message.text):
        return ProposalFit("wrong", "items")
    for want in goal.wants:
        if want.item_id in message.items:
            continue
        if _find_name(want.name, names, message.text) is None:
            return ProposalFit("missing", "items")
    return RIGHT


def _list_names(goal: Goal, known: frozenset[str]) -> frozenset[str]:
    """Return in lower case what a message may name: products of the order, and ``known`` ones."""
    return known.union(name.lower() for name in (*goal.others, *(w.name for w in goal.wants)))


def _find_name(name: str, names: frozenset[str], text: str, start: int = 0) -> int | None:
    """Return where a product is named from a place on, as whole words, singular or plural.

    Args:
        name: The product.
        names: All that may be named, in lower case: where a desk fan is named, a desk is not.
        text: A message in lower case.
        start: The first place.
    """
    name = name.lower()
    longer = sorted((n for n in names if name in n and n != name), key=lambda n: (-len(n), n))
    found = (match.start(1) for match in _compile_name(name, tuple(longer)).finditer(text))
    return next((at for at in found if at >= start), None)


@lru_cache(maxsize=1024)
def _compile_name(name: str, longer: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds the longer names first, and in its group this one."""
    words = "|".join((*map(re.escape, longer), f"({re.escape(name)})"))
    return re.compile(rf"(?<!\w)(?:{words})(?:e?s)?(?!\w)")


def _check_wants(goal: Goal, message: ParsedMessage, known: frozenset[str]) -> ProposalFit:
    if goal.intent not in ("exchange", "modify"):
        return RIGHT
    for want in goal.wants:
        if want.new_id and want.new_id in message.items:
            continue
        part = _find_text_about(want, goal, message.text, known)
        if not all(value.lower() in part for value in _list_changed_options(want).values()):
            return ProposalFit("missing", "wants")
    return RIGHT


def _list_changed_options(want: LineChange) -> dict[str, str]:
    """Return the options that the new item has and the old one has not."""
    new = want.new_options or want.set
    return {key: value for key, value in new.items() if want.options.get(key) != value}


def _find_text_about(want: LineChange, goal: Goal, text: str, known: frozenset[str]) -> str:
    """Return what is said after a line's product, up to the next one's."""
    names = _list_names(goal, known)
    if len(goal.wants) == 1 or (start := _find_name(want.name, names, text)) is None:
        return text
    ends = [
        after
        for other in goal.wants
        if other is not want
        and (after := _find_name(other.name, names, text, start + 1)) is not None
    ]
    return text[start : min(ends)] if ends else text[start:]


def _check_reason(goal: Goal, message: ParsedMessage) -> ProposalFit:
    if goal.intent != "cancel":
        return RIGHT
    named = [reason for reason, pattern in lex.REASONS.items() if pattern.search(message.text)]
    if named == [goal.reason]:
        return RIGHT
    return ProposalFit("wrong" if named else "missing", "reason")


def _check_method(goal: Goal, message: ParsedMessage) -> ProposalFit:
    if goal.intent not in ("return", "exchange", "modify", "payment"):
        return RIGHT
    text = message.text
    if not goal.method:
        general = "gift card" in text or "paypal" in text or "card" in text or "payment" in text
        return RIGHT if message.methods or general else ProposalFit("missing", "method")
    if any(key in text for key in goal.method_keys) or goal.method in message.methods:
        return RIGHT
    return ProposalFit("wrong" if message.methods else "missing", "method")


def _check_address(goal: Goal, message: ParsedMessage) -> ProposalFit:
    if not goal.address:
        return RIGHT
    street = goal.address["address1"].lower() in message.text
    if street and goal.address["zip"] in message.text:
        return RIGHT
    return ProposalFit("missing" if not street else "wrong", "address")


def _check_value(goal: Goal, message: ParsedMessage, *, directed: bool) -> ProposalFit:
    if not states_amount(message, goal.value):
        return ProposalFit("wrong" if message.numbers else "missing", "value")
    if directed and goal.value and _reverses_amount(message.text, goal.value):
        return ProposalFit("wrong", "value")
    return RIGHT


def _reverses_amount(text: str, value: float) -> bool:
    """Tell whether a clause with this amount says only the opposite of who pays it.

    Args:
        text: A message in lower case.
        value: What the customer pays; negative for what they get back.
    """
    for clause in lex.CLAUSE.split(text):
        if not _holds_amount(lex.NUMBERS.findall(clause), value):
            continue
        pays, back = lex.PAYS.search(clause), lex.GETS_BACK.search(clause)
        if (pays is None) != (back is None) and (back if value > 0 else pays):
            return True
    return False
