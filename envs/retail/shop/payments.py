"""Who has paid how much by which payment method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .overlay import Overlay
from .tables import Record


def find_original_method(order: Record) -> str:
    """Return the method of the order's first payment; empty where there is no payment."""
    history = order["payment_history"]
    return history[0]["payment_method_id"] if history else ""


def list_unrefunded_payments(history: Sequence[Record]) -> list[tuple[str, float]]:
    """Return (method, amount) of what is paid and not refunded, in the order of the methods."""
    sums: dict[str, float] = {}
    for entry in history:
        sign = 1 if entry["transaction_type"] == "payment" else -1
        method = entry["payment_method_id"]
        sums[method] = sums.get(method, 0.0) + sign * entry["amount"]
    whole = round(sum(sums.values()), 2)
    paid = {method: round(amount, 2) for method, amount in sums.items()}
    if any(amount < 0 for amount in paid.values()):  # a difference went back by another method
        payments = [e for e in history if e["transaction_type"] == "payment"]
        return [(payments[-1]["payment_method_id"], whole)]
    return [(method, amount) for method, amount in paid.items() if amount > 0]


def get_gift_card_balance(overlay: Overlay, user_id: str, method_id: str) -> float | None:
    """Return what is on a gift card; None for other methods."""
    user = overlay.user(user_id)
    method = {} if user is None else user["payment_methods"].get(method_id, {})
    return method.get("balance") if method.get("source") == "gift_card" else None


def credit_gift_cards(overlay: Overlay, user_id: str, amounts: Iterable[tuple[str, float]]) -> None:
    """Add amounts to gift cards at once, negative ones too; other methods take days."""
    user = overlay.user(user_id)
    if user is None:
        return
    methods = user["payment_methods"]
    new = {}
    for method_id, amount in amounts:
        method = new.get(method_id) or methods.get(method_id)
        if method is not None and method["source"] == "gift_card":
            new[method_id] = {**method, "balance": round(method["balance"] + amount, 2)}
    if new:
        overlay.users[user_id] = {**user, "payment_methods": {**methods, **new}}
