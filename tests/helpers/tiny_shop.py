"""A tiny shop, and calls that its tools refuse."""

from __future__ import annotations

from typing import Any

from turngym.envs.retail.shop.tables import Shop


def tiny() -> Shop:
    """One customer with every kind of method, and orders of every status."""
    variants = {
        f"{i}": {"item_id": f"{i}", "options": {"color": c}, "available": a, "price": p}
        for i, c, a, p in (
            (1, "red", True, 10.0),
            (2, "blue", True, 12.5),
            (3, "green", False, 9.0),
            (4, "black", True, 80.0),
        )
    }
    cup = {"9": {"item_id": "9", "options": {}, "available": True, "price": 5.0}}
    products = {
        "p1": {"name": "Lamp", "product_id": "p1", "variants": variants},
        "p2": {"name": "Cup", "product_id": "p2", "variants": cup},
    }
    address = {k: k for k in ("address1", "address2", "city", "state", "country", "zip")}
    methods = {
        "credit_card_1": {"source": "credit_card", "brand": "visa", "last_four": "1", "id": "c"},
        "paypal_1": {"source": "paypal", "id": "paypal_1"},
        "gift_card_1": {"source": "gift_card", "balance": 20.0, "id": "gift_card_1"},
        "gift_card_2": {"source": "gift_card", "balance": 1.0, "id": "gift_card_2"},
    }

    def line(item: str) -> dict[str, Any]:
        owner = "p2" if item == "9" else "p1"
        v = products[owner]["variants"][item]
        name = products[owner]["name"]
        return {
            "name": name,
            "product_id": owner,
            **{k: v[k] for k in ("item_id", "price", "options")},
        }

    def order(number: str, status: str, items: str) -> dict[str, Any]:
        lines = [line(i) for i in items]
        paid = {
            "transaction_type": "payment",
            "amount": sum(x["price"] for x in lines),
            "payment_method_id": "credit_card_1",
        }
        return {
            "order_id": number,
            "user_id": "ada",
            "address": address,
            "items": lines,
            "fulfillments": [],
            "status": status,
            "payment_history": [paid],
        }

    orders = {
        o["order_id"]: o
        for o in (
            order("#W1", "pending", "129"),
            order("#W2", "delivered", "1129"),
            order("#W3", "processed", "1"),
            order("#W4", "pending", "1"),
        )
    }
    users = {
        "ada": {
            "user_id": "ada",
            "name": {"first_name": "Ada", "last_name": "Lee"},
            "address": address,
            "email": "Ada@mail.com",
            "payment_methods": methods,
            "orders": list(orders),
        }
    }
    return Shop("tiny", products, users, orders, origin=(tiny, ()))


SHOP = tiny()
ADDRESS = dict.fromkeys(("address1", "address2", "city", "state", "country", "zip"), "x")


REFUSALS = [
    ("user_unknown", "find_user_id_by_email", {"email": "x"}),
    ("user_unknown", "find_user_id_by_name_zip", {"first_name": "a", "last_name": "b", "zip": "c"}),
    ("user_unknown", "get_user_details", {"user_id": "x"}),
    ("user_unknown", "modify_user_address", {"user_id": "x", **ADDRESS}),
    ("order_unknown", "get_order_details", {"order_id": "W1"}),
    ("order_unknown", "cancel_pending_order", {"order_id": "W1", "reason": "?"}),
    ("product_unknown", "get_product_details", {"product_id": "1"}),
    ("item_unknown", "get_item_details", {"item_id": "p1"}),
    ("not_pending_cancel", "cancel_pending_order", {"order_id": "#W3", "reason": "?"}),
    ("bad_reason", "cancel_pending_order", {"order_id": "#W1", "reason": "?"}),
    ("not_pending_modify", "modify_pending_order_address", {"order_id": "#W3", **ADDRESS}),
    ("empty_field", "modify_pending_order_address", {"order_id": "#W1", **ADDRESS, "city": " "}),
    (
        "not_pending_modify",
        "modify_pending_order_payment",
        {"order_id": "#W2", "payment_method_id": "paypal_1"},
    ),
    (
        "method_unknown",
        "modify_pending_order_payment",
        {"order_id": "#W1", "payment_method_id": "x"},
    ),
    (
        "same_method",
        "modify_pending_order_payment",
        {"order_id": "#W1", "payment_method_id": "credit_card_1"},
    ),
    (
        "balance_order",
        "modify_pending_order_payment",
        {"order_id": "#W1", "payment_method_id": "gift_card_1"},
    ),
    (
        "not_delivered_return",
        "return_delivered_order_items",
        {"order_id": "#W1", "item_ids": ["1"], "payment_method_id": "x"},
    ),
    (
        "refund_method",
        "return_delivered_order_items",
        {"order_id": "#W2", "item_ids": ["1"], "payment_method_id": "paypal_1"},
    ),
    (
        "item_not_ordered",
        "return_delivered_order_items",
        {"order_id": "#W2", "item_ids": ["1", "1", "1"], "payment_method_id": "gift_card_1"},
    ),
    (
        "not_delivered_exchange",
        "exchange_delivered_order_items",
        {"order_id": "#W1", "item_ids": [], "new_item_ids": [], "payment_method_id": "x"},
    ),
    (
        "lengths_differ",
        "exchange_delivered_order_items",
        {"order_id": "#W2", "item_ids": ["1"], "new_item_ids": [], "payment_method_id": "x"},
    ),
    (
        "new_item_unavailable",
        "exchange_delivered_order_items",
        {"order_id": "#W2", "item_ids": ["1"], "new_item_ids": ["3"], "payment_method_id": "x"},
    ),
    (
        "new_item_unavailable",
        "exchange_delivered_order_items",
        {"order_id": "#W2", "item_ids": ["1"], "new_item_ids": ["9"], "payment_method_id": "x"},
    ),
    (
        "new_item_same",
        "exchange_delivered_order_items",
        {"order_id": "#W2", "item_ids": ["1"], "new_item_ids": ["1"], "payment_method_id": "x"},
    ),
    (
        "balance_exchange",
        "exchange_delivered_order_items",
        {
            "order_id": "#W2",
            "item_ids": ["1"],
            "new_item_ids": ["4"],
            "payment_method_id": "gift_card_1",
        },
    ),
    (
        "balance_items",
        "modify_pending_order_items",
        {
            "order_id": "#W1",
            "item_ids": ["1"],
            "new_item_ids": ["2"],
            "payment_method_id": "gift_card_2",
        },
    ),
    ("characters", "calculate", {"expression": "__import__('os')"}),
    ("expression", "calculate", {"expression": "1/0"}),
]
