"""The seven tools that change an order or a customer; a refused call changes nothing.

The checks stand in the order in which they are made: the first that fails is what the agent reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from .overlay import Overlay
from .payments import (
    credit_gift_cards,
    find_original_method,
    get_gift_card_balance,
    list_unrefunded_payments,
)
from .refusals import Refused
from .semantics import Semantics
from .tables import Record, Table

CANCEL_REASONS = ("no longer needed", "ordered by mistake")
PENDING, DELIVERED = "pending", "delivered"
MODIFIED = "pending (item modified)"
_ADDRESS_FIELDS = ("address1", "address2", "city", "state", "country", "zip")


def _find_order(
    overlay: Overlay, order_id: str, status: str, refusal: str, by_word: bool = False
) -> Record:
    """Return the order if it has the status, or, ``by_word``, one that holds the status's name."""
    if (order := overlay.order(order_id)) is None:
        known = overlay.order(f"#{order_id}") is not None
        raise Refused("order_unknown", order_id, hint=" (write the '#')" if known else "")
    if not (status in order["status"] if by_word else order["status"] == status):
        raise Refused(refusal, order["status"])
    return order


def _update_order(overlay: Overlay, order_id: str, order: Record, **changes: Any) -> Record:
    overlay.orders[order_id] = changed = {**order, **changes}
    return changed


def _find_method(overlay: Overlay, order: Record, method_id: str) -> Record:
    user = overlay.user(order["user_id"])
    if user is None or method_id not in user["payment_methods"]:
        raise Refused("method_unknown", method_id)
    return user["payment_methods"][method_id]


def _find_missing_item(lines: Sequence[Record], item_ids: Sequence[str]) -> str | None:
    """Return an item that is named more often than it is ordered; None where all are there."""
    have = [line["item_id"] for line in lines]
    for item_id in item_ids:
        if item_id not in have:
            return item_id
    if len(set(item_ids)) != len(item_ids):
        ordered = Counter(have)
        for item_id, times in Counter(item_ids).items():
            if times > ordered[item_id]:
                return item_id
    return None


def _replace_items(
    products: Table,
    lines: Sequence[Record],
    item_ids: Sequence[str],
    new_item_ids: Sequence[str],
    semantics: Semantics,
) -> list[Record]:
    """Return the order's lines with each old item changed to its new one."""
    new = list(lines)
    product_of = {line["item_id"]: line["product_id"] for line in lines}
    last = products[product_of[item_ids[-1]]]["variants"][new_item_ids[-1]] if item_ids else {}
    taken: set[int] = set()
    for old_id, new_id in zip(item_ids, new_item_ids, strict=True):
        at = next(
            i
            for i, line in enumerate(new if semantics.one_by_one else lines)
            if line["item_id"] == old_id and (semantics.one_by_one or i not in taken)
        )
        taken.add(at)
        variant = products[product_of[old_id]]["variants"][new_id]
        if semantics.last_for_all:
            variant = last
        new[at] = {
            **new[at],
            "item_id": new_id,
            "price": variant["price"],
            "options": variant["options"],
        }
    return new


def cancel_pending_order(
    overlay: Overlay, semantics: Semantics, order_id: str, reason: str
) -> Record:
    """Cancel a pending order; the payment is refunded. Ask the customer to confirm first.

    Parameters:
        order_id: The order id, with the '#' in front.
        reason: 'no longer needed' or 'ordered by mistake'; nothing else counts.
    """
    order = _find_order(overlay, order_id, PENDING, "not_pending_cancel")
    if reason not in CANCEL_REASONS:
        raise Refused("bad_reason", reason)
    history = order["payment_history"]
    if semantics.refund_every_entry:
        refunds = [(entry["payment_method_id"], entry["amount"]) for entry in history]
    else:
        refunds = list_unrefunded_payments(history)
    entries = [
        {"transaction_type": "refund", "amount": amount, "payment_method_id": method}
        for method, amount in refunds
    ]
    credit_gift_cards(overlay, order["user_id"], refunds)
    return _update_order(
        overlay,
        order_id,
        order,
        payment_history=[*history, *entries],
        status="cancelled",
        cancel_reason=reason,
    )


def _check_address(semantics: Semantics, *values: str) -> dict[str, str]:
    fields: dict[str, str] = dict(zip(_ADDRESS_FIELDS, values, strict=True))
    if semantics.filled_addresses:
        for name, value in fields.items():
            if name != "address2" and not value.strip():
                raise Refused("empty_field", name)
    return fields


def modify_pending_order_address(  # noqa: PLR0913 - the published parameters
    overlay: Overlay,
    semantics: Semantics,
    order_id: str,
    address1: str,
    address2: str,
    city: str,
    state: str,
    country: str,
    zip: str,
) -> Record:
    """Change the shipping address of a pending order. Ask the customer to confirm first.

    Parameters:
        order_id: The order id, with the '#' in front.
        address1: First line, such as '123 Main Street'.
        address2: Second line, such as 'Apt 1', or ''.
        city: City.
        state: State, such as 'CA'.
        country: Country, such as 'USA'.
        zip: Zip code.
    """
    by_word = semantics.pending_by_word
    order = _find_order(overlay, order_id, PENDING, "not_pending_modify", by_word)
    address = _check_address(semantics, address1, address2, city, state, country, zip)
    return _update_order(overlay, order_id, order, address=address)


def modify_user_address(  # noqa: PLR0913 - the published parameters
    overlay: Overlay,
    semantics: Semantics,
    user_id: str,
    address1: str,
    address2: str,
    city: str,
    state: str,
    country: str,
    zip: str,
) -> Record:
    """Change a customer's default address. Ask the customer to confirm first.

    Parameters:
        user_id: The user id.
        address1: First line, such as '123 Main Street'.
        address2: Second line, such as 'Apt 1', or ''.
        city: City.
        state: State, such as 'CA'.
        country: Country, such as 'USA'.
        zip: Zip code.
    """
    if (user := overlay.user(user_id)) is None:
        raise Refused("user_unknown", user_id)
    address = _check_address(semantics, address1, address2, city, state, country, zip)
    overlay.users[user_id] = changed = {**user, "address": address}
    return changed


def modify_pending_order_payment(
    overlay: Overlay, semantics: Semantics, order_id: str, payment_method_id: str
) -> Record:
    """Pay a pending order by another method. Ask the customer to confirm first.

    Parameters:
        order_id: The order id, with the '#' in front.
        payment_method_id: The new method, from the customer's record.
    """
    by_word = semantics.pending_by_word
    order = _find_order(overlay, order_id, PENDING, "not_pending_modify", by_word)
    method = _find_method(overlay, order, payment_method_id)
    history = order["payment_history"]
    if len(history) != 1 or history[0]["transaction_type"] != "payment":
        raise Refused("history")
    old, amount = history[0]["payment_method_id"], history[0]["amount"]
    if old == payment_method_id:
        raise Refused("same_method", payment_method_id)
    if method["source"] == "gift_card" and method["balance"] < amount:
        raise Refused("balance_order", method["balance"], amount)
    entries = [
        {"transaction_type": "payment", "amount": amount, "payment_method_id": payment_method_id},
        {"transaction_type": "refund", "amount": amount, "payment_method_id": old},
    ]
    credit_gift_cards(overlay, order["user_id"], [(payment_method_id, -amount), (old, amount)])
    return _update_order(overlay, order_id, order, payment_history=[*history, *entries])


def _price_difference(
    overlay: Overlay,
    order: Record,
    item_ids: Sequence[str],
    new_item_ids: Sequence[str],
    differ: bool,
) -> float:
    """Check old and new items and return the sum of the price differences, not rounded."""
    if (missing := _find_missing_item(order["items"], item_ids)) is not None:
        raise Refused("item_not_ordered", missing)
    if len(item_ids) != len(new_item_ids):
        raise Refused("lengths_differ", len(item_ids), len(new_item_ids))
    difference = 0.0
    for old_id, new_id in zip(item_ids, new_item_ids, strict=True):
        line = next(line for line in order["items"] if line["item_id"] == old_id)
        if differ and old_id == new_id:
            raise Refused("new_item_same", new_id)
        variant = overlay.shop.products.get(line["product_id"], {}).get("variants", {}).get(new_id)
        if variant is None or not variant["available"]:
            raise Refused("new_item_unavailable", new_id)
        difference += variant["price"] - line["price"]
    return difference


def modify_pending_order_items(
    overlay: Overlay,
    semantics: Semantics,
    order_id: str,
    item_ids: list[str],
    new_item_ids: list[str],
    payment_method_id: str,
) -> Record:
    """Change items of a pending order to other variants, once. Ask the customer to confirm first.

    Parameters:
        order_id: The order id, with the '#' in front.
        item_ids: Items to change; an item that is ordered twice may be named twice.
        new_item_ids: What each becomes, in the same order.
        payment_method_id: Pays, or receives, the price difference.
    """
    order = _find_order(overlay, order_id, PENDING, "not_pending_modify")
    difference = _price_difference(overlay, order, item_ids, new_item_ids, semantics.must_differ)
    method = _find_method(overlay, order, payment_method_id)
    if semantics.rounded:
        difference = round(difference, 2)
    if method["source"] == "gift_card" and method["balance"] < difference:
        raise Refused("balance_items", method["balance"], difference)
    entry = {
        "transaction_type": "payment" if difference > 0 else "refund",
        "amount": abs(difference),
        "payment_method_id": payment_method_id,
    }
    credit_gift_cards(overlay, order["user_id"], [(payment_method_id, -difference)])
    return _update_order(
        overlay,
        order_id,
        order,
        payment_history=[*order["payment_history"], entry],
        items=_replace_items(
            overlay.shop.products, order["items"], item_ids, new_item_ids, semantics
        ),
        status=MODIFIED,
    )


def return_delivered_order_items(
    overlay: Overlay,
    semantics: Semantics,  # noqa: ARG001 - tools are called alike
    order_id: str,
    item_ids: list[str],
    payment_method_id: str,
) -> Record:
    """Return items of a delivered order, once. Ask the customer to confirm first.

    Parameters:
        order_id: The order id, with the '#' in front.
        item_ids: Items to return; an item that is ordered twice may be named twice.
        payment_method_id: Receives the refund: the original method or a gift card.
    """
    order = _find_order(overlay, order_id, DELIVERED, "not_delivered_return")
    method = _find_method(overlay, order, payment_method_id)
    first = find_original_method(order)
    if method["source"] != "gift_card" and payment_method_id != first:
        raise Refused("refund_method", payment_method_id)
    if (missing := _find_missing_item(order["items"], item_ids)) is not None:
        raise Refused("item_not_ordered", missing)
    return _update_order(
        overlay,
        order_id,
        order,
        status="return requested",
        return_items=sorted(item_ids),
        return_payment_method_id=payment_method_id,
    )


def exchange_delivered_order_items(
    overlay: Overlay,
    semantics: Semantics,
    order_id: str,
    item_ids: list[str],
    new_item_ids: list[str],
    payment_method_id: str,
) -> Record:
    """Exchange items of a delivered order for other variants, once. Ask for confirmation first.

    Parameters:
        order_id: The order id, with the '#' in front.
        item_ids: Items to exchange; an item that is ordered twice may be named twice.
        new_item_ids: What each is exchanged for, in the same order.
        payment_method_id: Pays, or receives, the price difference.
    """
    order = _find_order(overlay, order_id, DELIVERED, "not_delivered_exchange")
    exact = _price_difference(
        overlay, order, item_ids, new_item_ids, semantics.exchange_must_differ
    )
    difference = round(exact, 2)
    _find_method(overlay, order, payment_method_id)
    left = get_gift_card_balance(overlay, order["user_id"], payment_method_id)
    if left is not None and left < difference:
        raise Refused("balance_exchange", left, difference)
    return _update_order(
        overlay,
        order_id,
        order,
        status="exchange requested",
        exchange_items=sorted(item_ids),
        exchange_new_items=sorted(new_item_ids),
        exchange_payment_method_id=payment_method_id,
        exchange_price_difference=difference,
    )
