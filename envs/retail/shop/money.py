"""Who has paid what by which method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .desk import Desk
from .tables import Record


def original_method(order: Record) -> str:
    """The method of the order's first payment; empty where the history is."""
    history = order["payment_history"]
    return history[0]["payment_method_id"] if history else ""


def still_paid(history: Sequence[Record]) -> list[tuple[str, float]]:
    """(method, amount) that is paid and not refunded yet, in the order of the methods."""
    sums: dict[str, float] = {}
    for entry in history:
        sign = 1 if entry["transaction_type"] == "payment" else -1
        method = entry["payment_method_id"]
        sums[method] = sums.get(method, 0.0) + sign * entry["amount"]
    whole = round(sum(sums.values()), 2)
    paid = {method: round(amount, 2) for method, amount in sums.items()}
    if any(amount < 0 for amount in paid.values()):  # a difference went back by another method
        return [(original_of(history), whole)]
    return [(method, amount) for method, amount in paid.items() if amount > 0]


def original_of(history: Sequence[Record]) -> str:
    """The method of the last payment."""
    payments = [e for e in history if e["transaction_type"] == "payment"]
    return payments[-1]["payment_method_id"]


def balance(desk: Desk, user_id: str, method_id: str) -> float | None:
    """What is on a gift card; None for other methods."""
    user = desk.user(user_id)
    method = {} if user is None else user["payment_methods"].get(method_id, {})
    return method.get("balance") if method.get("source") == "gift_card" else None


def credited(desk: Desk, user_id: str, amounts: Iterable[tuple[str, float]]) -> None:
    """Put amounts on gift cards at once (negative ones are taken off); others take days."""
    user = desk.user(user_id)
    if user is None:
        return
    methods = user["payment_methods"]
    new = {}
    for method_id, amount in amounts:
        method = new.get(method_id) or methods.get(method_id)
        if method is not None and method["source"] == "gift_card":
            new[method_id] = {**method, "balance": round(method["balance"] + amount, 2)}
    if new:
        desk.users[user_id] = {**user, "payment_methods": {**methods, **new}}
