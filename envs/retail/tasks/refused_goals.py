"""Goals that must be denied or handed over, each with a nearly equal one that can be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..customer.scenario import Goal, LineChange
from ..shop.payments import find_original_method
from ..shop.tables import Record
from ..shop.write_tools import CANCEL_REASONS
from .feasible_goals import Draft
from .questions import draw_question

Pair = tuple[Goal, Goal]
"""What is refused, and its feasible twin."""
_EXCUSES = ("I found it cheaper elsewhere", "it takes too long to arrive", "I dislike the color")
_NEVER = ("processed", "delivered", "cancelled")


def _pair_goals(bad: Goal | None, good: Goal | None) -> Pair | None:
    return None if bad is None or good is None else (bad, good)


def _deny(goal: Goal, record: str = "", **changes: Any) -> Goal:
    """Return a goal that must be denied, after its order or another record was read."""
    goal = replace(goal, **changes)
    return replace(goal, expect="denied", record=record or goal.order_id)


def _find_first_order(draft: Draft, *statuses: str) -> Record | None:
    found = draft.draw_orders(*statuses)
    return found[0] if found else None


def cancel_status(draft: Draft) -> Pair | None:
    """Draw a cancellation of an order that is on its way, arrived or cancelled."""
    order = _find_first_order(draft, *_NEVER)
    if order is None:
        return None
    bad = Goal(intent="cancel", order_id=order["order_id"], reason=draft.pick(CANCEL_REASONS))
    return _pair_goals(_deny(bad), draft.draw_goal("cancel"))


def cancel_reason(draft: Draft) -> Pair | None:
    """Draw a cancellation for a reason that does not count."""
    good = draft.draw_goal("cancel")
    if good is None:
        return None
    return _deny(good, reason=draft.pick(_EXCUSES)), good


def return_status(draft: Draft) -> Pair | None:
    """Draw a return of something that has not arrived."""
    return _find_undelivered(draft, "return")


def exchange_status(draft: Draft) -> Pair | None:
    """Draw an exchange of something that has not arrived."""
    return _find_undelivered(draft, "exchange")


def _find_undelivered(draft: Draft, intent: str) -> Pair | None:
    good = draft.draw_goal(intent)
    early = ("processed",) if intent == "exchange" else ("pending", "processed")
    order = _find_first_order(draft, *early)
    if good is None or order is None or not (lines := draft.single_lines(order)):
        return None
    line = draft.pick(lines)
    want = draft.draw_want(line) if intent == "exchange" else None
    if intent == "exchange" and want is None:
        return None
    wants = (want or LineChange(item_id=line["item_id"], name=line["name"]),)
    others = draft.others(order, wants)
    return _deny(good, order_id=order["order_id"], wants=wants, others=others), good


def refund_third(draft: Draft) -> Pair | None:
    """Draw a refund to a method that is neither the original one nor a gift card."""
    good = draft.draw_goal("return")
    if good is None:
        return None
    order = draft.overlay.order(good.order_id)
    assert order is not None
    third = [
        i
        for i, m in draft.user["payment_methods"].items()
        if m["source"] != "gift_card" and i != find_original_method(order)
    ]
    if not third:
        return None
    return _deny(draft.add_method(good, draft.pick(third))), good


def other_type(draft: Draft) -> Pair | None:
    """Draw an exchange for another kind of product."""
    good = draft.draw_goal("exchange")
    if good is None:
        return None
    want = good.wants[0]
    names = [p["name"] for p in draft.overlay.shop.products.values() if p["name"] != want.name]
    other = LineChange(
        item_id=want.item_id,
        name=want.name,
        options=want.options,
        set={"product": draft.pick(names).lower()},
    )
    return _deny(good, wants=(other,)), good


def unavailable(draft: Draft) -> Pair | None:
    """Draw an exchange for a variant that is out of stock."""
    good = draft.draw_goal("exchange")
    return None if good is None else _pair_goals(want_sold_out(draft, good), good)


def want_sold_out(draft: Draft, good: Goal) -> Goal | None:
    """Return the goal with a first line that wants a variant which is not available."""
    want = good.wants[0]
    product = draft.overlay.shop.product_of[want.item_id]
    gone = [
        v
        for v in draft.overlay.shop.products[product]["variants"].values()
        if not v["available"] and v["item_id"] != want.item_id and v["options"] != want.options
    ]
    if not gone:
        return None
    target = draft.pick(gone)["options"]
    wish = LineChange(
        item_id=want.item_id,
        name=want.name,
        options=want.options,
        set=dict(target),
        new_options=dict(target),
    )
    return _deny(good, product, wants=(wish,), value=0.0)


def gift_low(draft: Draft) -> Pair | None:
    """Draw a payment by a gift card that does not hold enough."""
    for order in draft.draw_orders("pending"):
        good = draft.draw_payment(order)
        amount = order["payment_history"][0]["amount"]
        poor = [
            i
            for i, m in draft.user["payment_methods"].items()
            if m["source"] == "gift_card"
            and m["balance"] < amount
            and i != find_original_method(order)
        ]
        if good is not None and poor:
            return _deny(draft.add_method(good, poor[0]), draft.user_id), good
    return None


def split_payment(draft: Draft) -> Pair | None:
    """Draw a payment by two methods."""
    good = draft.draw_goal("payment")
    if good is None:
        return None
    words = "one half with my first card and the other half with another method"
    keys = ("half", "split")
    return _deny(good, method="both", method_words=words, method_keys=keys), good


def partial_cancel(draft: Draft) -> Pair | None:
    """Draw a cancellation of one item of an order."""
    for order in draft.draw_orders("pending"):
        lines = draft.single_lines(order)
        if len(lines) > 1:
            good = Goal(
                intent="cancel", order_id=order["order_id"], reason=draft.pick(CANCEL_REASONS)
            )
            wants = (LineChange(item_id=lines[0]["item_id"], name=lines[0]["name"]),)
            return _deny(good, wants=wants, others=draft.others(order, wants)), good
    return None


def other_user(draft: Draft) -> Pair | None:
    """Draw a cancellation of somebody else's order."""
    good = draft.draw_goal("cancel")
    foreign = [
        o["order_id"]
        for o in draft.overlay.shop.orders.values()
        if o["status"] == "pending" and o["user_id"] != draft.user_id
    ]
    if good is None or not foreign:
        return None
    order_id = draft.pick(foreign)
    return _deny(good, f"{order_id}|{draft.user_id}", order_id=order_id), good


def advice(draft: Draft) -> Pair | None:
    """Draw a request for an opinion."""
    product = draft.pick(list(draft.overlay.shop.products.values()))
    bad = Goal(
        intent="advice",
        about=f"which {product['name'].lower()} do you personally find the nicest?",
        expect="denied",
    )
    return _pair_goals(bad, draw_question(draft, None))


def _need_human(about: str, record: str = "") -> Goal:
    """Return a goal that only a human can fulfil."""
    return Goal(intent="other", about=about, expect="transferred", record=record)


def undo_cancel(draft: Draft) -> Pair | None:
    """Draw the wish to undo a cancellation."""
    order = _find_first_order(draft, "cancelled")
    if order is None:
        return None
    order_id = order["order_id"]
    bad = _need_human(f"order {order_id} was cancelled and I want that undone.", order_id)
    return _pair_goals(bad, draft.draw_goal("cancel"))


def lost_parcel(draft: Draft) -> Pair | None:
    """Draw a complaint about a parcel that never came."""
    order = _find_first_order(draft, "delivered", "processed")
    if order is None:
        return None
    order_id = order["order_id"]
    bad = _need_human(f"my parcel of order {order_id} got lost on the way.", order_id)
    if draft.micro:
        return _pair_goals(bad, draft.draw_goal("return"))
    return _pair_goals(bad, draw_question(draft, None))


def foreign_refund(draft: Draft) -> Pair | None:
    """Draw a refund to a card that is not the customer's."""
    good = draft.draw_goal("return")
    if good is None:
        return None
    about = f"please refund order {good.order_id} to my sister's bank card, which you do not know."
    return _need_human(about, good.order_id), good


def new_email(draft: Draft) -> Pair | None:
    """Draw the wish for another email address."""
    bad = _need_human("I want a new email address on my account.", "")
    return _pair_goals(bad, draft.draw_goal("move"))


def price_drop(draft: Draft) -> Pair | None:
    """Draw the wish for money back because the price fell."""
    order = _find_first_order(draft, "delivered", "pending")
    if order is None:
        return None
    order_id = order["order_id"]
    bad = _need_human(
        f"the price fell after I placed order {order_id} and I want the rest.", order_id
    )
    return _pair_goals(bad, draw_question(draft, None))


def wants_human(draft: Draft) -> Pair | None:
    """Draw a rightly denied wish after which the customer asks for a person."""
    pair = cancel_status(draft)
    if pair is None:
        return None
    bad, good = pair
    human = _need_human("I want to speak to a human agent.", bad.record)
    return replace(bad, fallback=human, switch="denied"), good


DENIALS: dict[str, Callable[[Draft], Pair | None]] = {
    f.__name__: f
    for f in (
        cancel_status,
        cancel_reason,
        return_status,
        exchange_status,
        refund_third,
        other_type,
        unavailable,
        gift_low,
        split_payment,
        partial_cancel,
        other_user,
        advice,
    )
}
"""By name: what the policy denies."""
TRANSFERS: dict[str, Callable[[Draft], Pair | None]] = {
    f.__name__: f
    for f in (undo_cancel, lost_parcel, foreign_refund, new_email, price_drop, wants_human)
}
"""By name: what only a human can do."""
