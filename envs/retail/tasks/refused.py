"""Goals that must be denied or handed over, each with a nearly equal one that can be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..customer.scenario import Goal, Want
from ..shop.money import original_method
from ..shop.tables import Record
from .goals import REASONS, Draft
from .questions import question

Pair = tuple[Goal, Goal]
"""What is refused, and its feasible twin."""
_EXCUSES = ("I found it cheaper elsewhere", "it takes too long to arrive", "I dislike the color")
_NEVER = ("processed", "delivered", "cancelled")


def _pair(bad: Goal, good: Goal | None) -> Pair | None:
    return None if good is None else (bad, good)


def _order(draft: Draft, *statuses: str) -> Record | None:
    found = draft.orders(*statuses)
    return found[0] if found else None


def cancel_status(draft: Draft) -> Pair | None:
    """Cancelling an order that is on its way, arrived or cancelled."""
    order = _order(draft, *_NEVER)
    if order is None:
        return None
    bad = Goal(
        intent="cancel",
        order_id=order["order_id"],
        reason=draft.pick(REASONS),
        expect="denied",
        record=order["order_id"],
    )
    return _pair(bad, draft.goal("cancel"))


def cancel_reason(draft: Draft) -> Pair | None:
    """Cancelling for a reason that does not count, and insisting on it."""
    good = draft.goal("cancel")
    if good is None:
        return None
    bad = replace(good, reason=draft.pick(_EXCUSES), expect="denied", record=good.order_id)
    return bad, good


def return_status(draft: Draft) -> Pair | None:
    """Returning something that has not arrived."""
    return _undelivered(draft, "return")


def exchange_status(draft: Draft) -> Pair | None:
    """Exchanging something that has not arrived."""
    return _undelivered(draft, "exchange")


def _undelivered(draft: Draft, intent: str) -> Pair | None:
    good = draft.goal(intent)
    order = (
        _order(draft, "processed")
        if intent == "exchange"
        else _order(draft, "pending", "processed")
    )
    if good is None or order is None or not (lines := draft.single_lines(order)):
        return None
    line = draft.pick(lines)
    want = draft.want(line) if intent == "exchange" else None
    if intent == "exchange" and want is None:
        return None
    wants = (want or Want(item_id=line["item_id"], name=line["name"]),)
    bad = replace(
        good,
        order_id=order["order_id"],
        wants=wants,
        others=draft.others(order, wants),
        expect="denied",
        record=order["order_id"],
    )
    return bad, good


def refund_third(draft: Draft) -> Pair | None:
    """A refund to a method that is neither the original one nor a gift card."""
    good = draft.goal("return")
    if good is None:
        return None
    order = draft.desk.order(good.order_id)
    assert order is not None
    third = [
        i
        for i, m in draft.user["payment_methods"].items()
        if m["source"] != "gift_card" and i != original_method(order)
    ]
    if not third:
        return None
    bad = draft.method(good, draft.pick(third))
    return replace(bad, expect="denied", record=good.order_id), good


def other_type(draft: Draft) -> Pair | None:
    """Exchanging something for another kind of product."""
    good = draft.goal("exchange")
    if good is None:
        return None
    want = good.wants[0]
    names = [p["name"] for p in draft.desk.shop.products.values() if p["name"] != want.name]
    other = Want(
        item_id=want.item_id,
        name=want.name,
        options=want.options,
        set={"product": draft.pick(names).lower()},
    )
    bad = replace(good, wants=(other,), expect="denied", record=good.order_id)
    return bad, good


def unavailable(draft: Draft) -> Pair | None:
    """Exchanging something for a variant that is out of stock."""
    good = draft.goal("exchange")
    if good is None:
        return None
    bad = out_of_stock(draft, good)
    return None if bad is None else (bad, good)


def out_of_stock(draft: Draft, good: Goal) -> Goal | None:
    """The goal with a first line that wants a variant which is not available."""
    want = good.wants[0]
    variants = draft.variants({"product_id": draft.desk.shop.product_of[want.item_id]})
    gone = [v for v in variants if not v["available"] and v["item_id"] != want.item_id]
    gone = [v for v in gone if v["options"] != want.options]
    if not gone:
        return None
    target = draft.pick(gone)["options"]
    wish = Want(
        item_id=want.item_id,
        name=want.name,
        options=want.options,
        set=dict(target),
        new_options=dict(target),
    )
    product = draft.desk.shop.product_of[want.item_id]
    return replace(good, wants=(wish,), expect="denied", record=product, value=0.0)


def gift_low(draft: Draft) -> Pair | None:
    """Paying an order by a gift card that does not hold enough."""
    for order in draft.orders("pending"):
        good = draft.payment_in(order)
        amount = order["payment_history"][0]["amount"]
        poor = [
            i
            for i, m in draft.user["payment_methods"].items()
            if m["source"] == "gift_card" and m["balance"] < amount and i != original_method(order)
        ]
        if good is not None and poor:
            bad = draft.method(good, poor[0])
            return replace(bad, expect="denied", record=draft.user_id), good
    return None


def split_payment(draft: Draft) -> Pair | None:
    """Paying an order by two methods."""
    good = draft.goal("payment")
    if good is None:
        return None
    words = "one half with my first card and the other half with another method"
    bad = replace(
        good,
        method="both",
        method_words=words,
        method_keys=("half", "split"),
        expect="denied",
        record=good.order_id,
    )
    return bad, good


def partial_cancel(draft: Draft) -> Pair | None:
    """Cancelling one item of an order."""
    for order in draft.orders("pending"):
        lines = draft.single_lines(order)
        if len(lines) > 1:
            good = Goal(intent="cancel", order_id=order["order_id"], reason=draft.pick(REASONS))
            wants = (Want(item_id=lines[0]["item_id"], name=lines[0]["name"]),)
            bad = replace(
                good,
                wants=wants,
                others=draft.others(order, wants),
                expect="denied",
                record=order["order_id"],
            )
            return bad, good
    return None


def other_user(draft: Draft) -> Pair | None:
    """Cancelling somebody else's order."""
    good = draft.goal("cancel")
    strangers = [
        o["order_id"]
        for o in draft.desk.shop.orders.values()
        if o["status"] == "pending" and o["user_id"] != draft.user_id
    ]
    if good is None or not strangers:
        return None
    order_id = draft.pick(strangers)
    record = f"{order_id}|{draft.user_id}"
    return replace(good, order_id=order_id, expect="denied", record=record), good


def advice(draft: Draft) -> Pair | None:
    """Asking for an opinion."""
    product = draft.pick(list(draft.desk.shop.products.values()))
    bad = Goal(
        intent="advice",
        about=f"which {product['name'].lower()} do you personally find the nicest?",
        expect="denied",
    )
    return _pair(bad, question(draft, None))


def _other(about: str, record: str = "") -> Goal:
    return Goal(intent="other", about=about, expect="transferred", record=record)


def undo_cancel(draft: Draft) -> Pair | None:
    """Undoing a cancellation."""
    order = _order(draft, "cancelled")
    if order is None:
        return None
    order_id = order["order_id"]
    bad = _other(f"order {order_id} was cancelled and I want that undone.", order_id)
    return _pair(bad, draft.goal("cancel"))


def lost_parcel(draft: Draft) -> Pair | None:
    """A parcel that never came."""
    order = _order(draft, "delivered", "processed")
    if order is None:
        return None
    order_id = order["order_id"]
    bad = _other(f"my parcel of order {order_id} got lost on the way.", order_id)
    if draft.micro:
        return _pair(bad, draft.goal("return"))
    return _pair(bad, question(draft, None))


def foreign_refund(draft: Draft) -> Pair | None:
    """A refund to a card that is not the customer's."""
    good = draft.goal("return")
    if good is None:
        return None
    about = f"please refund order {good.order_id} to my sister's bank card, which you do not know."
    return _other(about, good.order_id), good


def new_email(draft: Draft) -> Pair | None:
    """Another email address for the account."""
    bad = _other("I want a new email address on my account.", "")
    return _pair(bad, draft.goal("move"))


def price_drop(draft: Draft) -> Pair | None:
    """Money back because the price fell."""
    order = _order(draft, "delivered", "pending")
    if order is None:
        return None
    order_id = order["order_id"]
    bad = _other(f"the price fell after I placed order {order_id} and I want the rest.", order_id)
    return _pair(bad, question(draft, None))


def wants_human(draft: Draft) -> Pair | None:
    """A right denial after which the customer asks for a person."""
    pair = cancel_status(draft)
    if pair is None:
        return None
    bad, good = pair
    human = _other("I want to speak to a human agent.", bad.record)
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
