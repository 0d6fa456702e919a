"""Why a tool refuses a call: every reason, with the message that the agent reads."""

from __future__ import annotations

from typing import Any

REASONS = {
    "user_unknown": "user not found: {value!r}",
    "order_unknown": "order not found: {value!r}{hint}",
    "product_unknown": "product not found: {value!r}{hint}",
    "item_unknown": "item not found: {value!r}{hint}",
    "method_unknown": "payment method not found: {value!r} is none of this customer's",
    "not_pending_cancel": "an order that is {value} cannot be cancelled; only pending ones can",
    "not_pending_modify": "an order that is {value} cannot be modified; only pending ones can",
    "not_delivered_return": "an order that is {value} cannot be returned; only delivered ones can",
    "not_delivered_exchange": (
        "an order that is {value} cannot be exchanged; only delivered ones can"
    ),
    "bad_reason": ("invalid reason {value!r}; expected 'no longer needed' or 'ordered by mistake'"),
    "item_not_ordered": "item {value!r} is not in the order, or not that often",
    "lengths_differ": "{value} item ids and {other} new item ids; expected one new id for each",
    "new_item_unavailable": (
        "new item {value!r} is unknown, unavailable, or of another product than the old one"
    ),
    "new_item_same": "new item {value!r} is the item that it should replace",
    "refund_method": (
        "the refund goes to the original payment method or to a gift card, not to {value!r}"
    ),
    "same_method": "{value!r} is the present payment method; expected another one",
    "history": "the payment can be changed only while the order has exactly one payment",
    "balance_order": "gift card balance {value} is too low to pay for the order of {other}",
    "balance_items": "gift card balance {value} is too low to pay for the new items: {other}",
    "balance_exchange": "gift card balance {value} is too low for the price difference {other}",
    "characters": (
        "invalid characters in the expression; expected digits, + - * / ( ) . and blanks"
    ),
    "expression": "the expression cannot be computed: {value}",
    "empty_field": "{value} is empty; expected a whole address",
}


class Refused(Exception):
    """A tool call that changes nothing.

    Args:
        reason: Key of :data:`REASONS`.
        value: What was wrong.
        other: What it was compared with.
        hint: Words after the reason.
    """

    def __init__(self, reason: str, value: Any = "", other: Any = "", hint: str = "") -> None:
        super().__init__(REASONS[reason].format(value=value, other=other, hint=hint))
        self.reason = reason
