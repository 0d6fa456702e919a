"""The shop's tables: products, customers and orders, read-only and shared by all episodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ...core.digest import digest_of
from ...core.fork import Shared

Record = dict[str, Any]
Table = dict[str, Record]
"""Records by id. Nobody changes a record in place: a change is a new record."""
View = Callable[[Record], Any]


to_json = json.JSONEncoder(ensure_ascii=False).encode
"""Write a value as the tools show it."""


def show_all(record: Record) -> Any:
    """Return the whole record: what the tools show of an order, unless a shop says otherwise."""
    return record


class Shop(Shared):
    """Products, customers and orders, with indexes and the JSON of every record once written.

    Args:
        name: What the shop is called; part of its digest.
        products: Product records by id, each with its ``variants``.
        users: Customer records by id.
        orders: Order records by id.
        origin: Function and arguments that make the shop again in another process.
        view: What a tool shows of an order.

    Attributes:
        variants: The variants of all products by item id.
        product_of: The product id of each item id.
        product_types: JSON of the product names with their ids, sorted by name.
    """

    def __init__(
        self,
        name: str,
        products: Table,
        users: Table,
        orders: Table,
        *,
        origin: tuple[Callable[..., Shop], tuple[Any, ...]],
        view: View = show_all,
    ) -> None:
        self.name = name
        self.products = products
        self.users = users
        self.orders = orders
        self.view = view
        self.variants: Table = {}
        self.product_of: dict[str, str] = {}
        for product_id, product in products.items():
            for item_id, variant in product["variants"].items():
                if item_id not in self.variants:
                    self.variants[item_id] = variant
                    self.product_of[item_id] = product_id
        self._by_email: dict[str, str] = {}
        self._by_name: dict[tuple[str, str, str], str] = {}
        for user_id, user in users.items():
            name_of, place = user["name"], user["address"]
            key = (name_of["first_name"].lower(), name_of["last_name"].lower(), place["zip"])
            self._by_email.setdefault(user["email"].lower(), user_id)
            self._by_name.setdefault(key, user_id)
        ids = {product["name"]: product_id for product_id, product in products.items()}
        self.product_types = to_json(dict(sorted(ids.items())))
        self._json: dict[tuple[str, str], str] = {}
        self._origin = origin
        self._digest = ""

    def __reduce__(self) -> Any:
        return self._origin

    def digest(self) -> str:
        """Return a stable hash of the tables."""
        if not self._digest:
            self._digest = digest_of((self.name, self.products, self.users, self.orders))
        return self._digest

    def by_email(self, email: str) -> str | None:
        """Return the id of the customer who had this address at first; case does not matter."""
        return self._by_email.get(email.lower())

    def by_name(self, first: str, last: str, code: str) -> str | None:
        """Return the id of the customer who had this name and zip code at first."""
        return self._by_name.get((first.lower(), last.lower(), code))

    def record_json(self, kind: str, key: str, record: Record) -> str:
        """Return the JSON of an unchanged record, which is written once."""
        place = (kind, key)
        if (known := self._json.get(place)) is None:
            known = self._json[place] = to_json(self.visible_part(kind, record))
        return known

    def visible_part(self, kind: str, record: Record) -> Any:
        """Return what the tools show of a record."""
        return self.view(record) if kind == "order" else record
