"""The tables of published shops, checked: every reference leads somewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import DataError
from ..shop.tables import Shop, Table

_METHOD_FIELDS = ("source", "id")


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        DataError: It cannot be read.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is no JSON: {error}.") from None


def table_of(value: Any, name: str, where: str) -> Table:
    """Records by id.

    Raises:
        DataError: It is something else.
    """
    good = isinstance(value, Mapping) and all(isinstance(r, dict) for r in value.values())
    if not good or not value:
        raise DataError(f"{where}: {name} is no table; expected an object of records by id.")
    return dict(value)


def made_shop(name: str, tables: Mapping[str, Table], where: str, origin: Any) -> Shop:
    """A shop of published tables.

    Raises:
        DataError: A record lacks a field, or names something that does not exist.
    """
    products, users, orders = (tables[key] for key in ("products", "users", "orders"))
    try:
        _check_orders(products, users, orders, where)
        _check_users(users, orders, where)
        return Shop(name, products, users, orders, origin=origin)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{where}: a record has not the expected form: {type(error).__name__} {error}."
        ) from None


def _check_orders(products: Table, users: Table, orders: Table, where: str) -> None:
    for order_id, order in orders.items():
        if order["user_id"] not in users:
            raise DataError(
                f"{where}: order {order_id!r} belongs to {order['user_id']!r}, who is not among "
                "the users."
            )
        for line in order["items"]:
            if line["product_id"] not in products:
                raise DataError(
                    f"{where}: order {order_id!r} holds product {line['product_id']!r}, which is "
                    "not among the products."
                )
        methods = users[order["user_id"]]["payment_methods"]
        for entry in order["payment_history"]:
            if entry["payment_method_id"] not in methods:
                raise DataError(
                    f"{where}: order {order_id!r} was paid by {entry['payment_method_id']!r}, "
                    f"which is none of the methods of {order['user_id']!r}."
                )


def _check_users(users: Table, orders: Table, where: str) -> None:
    for user_id, user in users.items():
        for order_id in user["orders"]:
            if order_id not in orders:
                raise DataError(
                    f"{where}: user {user_id!r} has order {order_id!r}, which is not among the "
                    "orders."
                )
        for method_id, method in user["payment_methods"].items():
            if any(field not in method for field in _METHOD_FIELDS):
                raise DataError(
                    f"{where}: payment method {method_id!r} of {user_id!r} lacks source or id."
                )
