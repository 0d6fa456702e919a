"""Questions that a customer asks, with the value that settles them."""

from __future__ import annotations

from ..customer.scenario import Goal
from .goals import Draft


def question(draft: Draft, about: Goal | None) -> Goal | None:
    """A question about what a goal comes to, or about an order, a balance or a product.

    Args:
        draft: The visit, at the state that the answer is about.
        about: A goal that was just reached, if any.
    """
    makers = [_balance, _total, _tracking, _count]
    if about is not None and about.intent == "return":
        makers = [_refund]
    elif about is not None and about.intent in ("exchange", "modify") and draft.chance(0.6):
        makers = [_difference]
    for at in draft.rng.permutation(len(makers)).tolist():
        if (goal := makers[at](draft, about)) is not None:
            return goal
    return None


def _refund(draft: Draft, about: Goal | None) -> Goal | None:
    assert about is not None
    order = draft.desk.order(about.order_id)
    assert order is not None
    prices = {line["item_id"]: line["price"] for line in order["items"]}
    total = sum(prices[want.item_id] for want in about.wants)
    return Goal(
        intent="info",
        ask="How much money will I get back for the return?",
        answer=f"{total:.2f}",
        money=True,
    )


def _difference(draft: Draft, about: Goal | None) -> Goal | None:  # noqa: ARG001 - called alike
    assert about is not None
    return Goal(
        intent="info",
        ask="What is the exact price difference for that?",
        answer=f"{abs(about.value):.2f}",
        money=True,
    )


def _balance(draft: Draft, about: Goal | None) -> Goal | None:  # noqa: ARG001 - called alike
    cards = [m for m in draft.user["payment_methods"].values() if m["source"] == "gift_card"]
    if len(cards) != 1:
        return None
    return Goal(
        intent="info",
        ask="What is the balance of my gift card now?",
        answer=f"{cards[0]['balance']:.2f}",
        money=True,
        record=draft.user_id,
    )


def _total(draft: Draft, about: Goal | None) -> Goal | None:  # noqa: ARG001 - called alike
    orders = draft.orders("pending", "delivered", "processed", fresh=False)
    if not orders:
        return None
    order = orders[0]
    return Goal(
        intent="info",
        order_id=order["order_id"],
        ask=f"How much did I pay for order {order['order_id']} when I placed it?",
        answer=f"{order['payment_history'][0]['amount']:.2f}",
        money=True,
        record=order["order_id"],
    )


def _tracking(draft: Draft, about: Goal | None) -> Goal | None:  # noqa: ARG001 - called alike
    orders = draft.orders("delivered", "processed", fresh=False)
    if not orders:
        return None
    order = orders[0]
    return Goal(
        intent="info",
        order_id=order["order_id"],
        ask=f"What is the tracking number of order {order['order_id']}?",
        answer=order["fulfillments"][0]["tracking_id"][0],
        record=order["order_id"],
    )


def _count(draft: Draft, about: Goal | None) -> Goal | None:  # noqa: ARG001 - called alike
    product = draft.pick(list(draft.desk.shop.products.values()))
    available = sum(v["available"] for v in product["variants"].values())
    name = product["name"].lower()
    return Goal(
        intent="info",
        ask=f"How many different variants of the {name} can I order right now?",
        answer=str(available),
        record=product["product_id"],
    )
