"""Questions that a customer asks, with the value that settles them."""

from __future__ import annotations

from typing import Any

from ..customer.scenario import Goal
from .feasible_goals import Draft


def draw_question(draft: Draft, about: Goal | None) -> Goal | None:
    """Draw a question about what a goal comes to, or about an order, a balance or a product.

    Args:
        draft: The visit, at the state that the answer is about.
        about: A goal that was just reached, if any.
    """
    if about is not None and about.intent == "return":
        return _ask_refund(draft, about)
    if about is not None and about.intent in ("exchange", "modify") and draft.chance(0.6):
        return _ask_amount("What is the exact price difference for that?", abs(about.value))
    makers = (_ask_balance, _ask_total, _ask_tracking, _ask_stock)
    for at in draft.rng.permutation(len(makers)).tolist():
        if (goal := makers[at](draft)) is not None:
            return goal
    return None


def _ask_amount(ask: str, amount: float, **fields: Any) -> Goal:
    return Goal(intent="info", ask=ask, answer=f"{amount:.2f}", money=True, **fields)


def _ask_refund(draft: Draft, about: Goal) -> Goal:
    order = draft.overlay.order(about.order_id)
    assert order is not None
    prices = {line["item_id"]: line["price"] for line in order["items"]}
    total = sum(prices[want.item_id] for want in about.wants)
    return _ask_amount("How much money will I get back for the return?", total)


def _ask_balance(draft: Draft) -> Goal | None:
    cards = [m for m in draft.user["payment_methods"].values() if m["source"] == "gift_card"]
    if len(cards) != 1:
        return None
    words = "What is the balance of my gift card now?"
    return _ask_amount(words, cards[0]["balance"], record=draft.user_id)


def _ask_total(draft: Draft) -> Goal | None:
    orders = draft.draw_orders("pending", "delivered", "processed", fresh=False)
    if not orders:
        return None
    order_id, paid = orders[0]["order_id"], orders[0]["payment_history"][0]["amount"]
    words = f"How much did I pay for order {order_id} when I placed it?"
    return _ask_amount(words, paid, order_id=order_id, record=order_id)


def _ask_tracking(draft: Draft) -> Goal | None:
    orders = draft.draw_orders("delivered", "processed", fresh=False)
    if not orders:
        return None
    order_id = orders[0]["order_id"]
    return Goal(
        intent="info",
        order_id=order_id,
        ask=f"What is the tracking number of order {order_id}?",
        answer=orders[0]["fulfillments"][0]["tracking_id"][0],
        record=order_id,
    )


def _ask_stock(draft: Draft) -> Goal:
    product = draft.pick(list(draft.overlay.shop.products.values()))
    available = sum(v["available"] for v in product["variants"].values())
    return Goal(
        intent="info",
        ask=f"How many different variants of the {product['name'].lower()} can I order right now?",
        answer=str(available),
        record=product["product_id"],
    )
