"""The shop's tables: products, customers and orders, read-only and shared by all episodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ...digest import digest_of

Record = dict[str, Any]
Table = dict[str, Record]
"""Records by id. Nobody changes a record in place: a change is a new record."""
View = Callable[[Record], Any]


_ENCODER = json.JSONEncoder(ensure_ascii=False).encode


def written(value: Any) -> str:
    """A value as the tools write it."""
    return _ENCODER(value)


def _whole(record: Record) -> Any:
    return record


class Shop:
    """Products, customers and orders, with indexes and the JSON of every record once written.

    Args:
        name: What the shop is called; part of its digest.
        products: Product records by id, each with its ``variants``.
        users: Customer records by id.
        orders: Order records by id.
        origin: Function and arguments that make the shop again in another process.
        view: What a tool shows of an order.
    """

    def __init__(
        self,
        name: str,
        products: Table,
        users: Table,
        orders: Table,
        *,
        origin: tuple[Callable[..., Shop], tuple[Any, ...]],
        view: View = _whole,
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
        self._types = written(
            {
                p["name"]: i
                for p, i in sorted(
                    ((p, i) for i, p in products.items()), key=lambda pair: pair[0]["name"]
                )
            }
        )
        self._json: dict[tuple[str, str], str] = {}
        self._origin = origin
        self._digest = ""

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Shop:
        return self

    def __reduce__(self) -> Any:
        return self._origin

    def digest(self) -> str:
        """Stable hash of the tables."""
        if not self._digest:
            self._digest = digest_of((self.name, self.products, self.users, self.orders))
        return self._digest

    def by_email(self, email: str) -> str | None:
        """The customer with this address in the first tables, letters' case aside."""
        return self._by_email.get(email.lower())

    def by_name(self, first: str, last: str, code: str) -> str | None:
        """The customer of this name and zip code in the first tables."""
        return self._by_name.get((first.lower(), last.lower(), code))

    def product_types(self) -> str:
        """JSON: product name to product id, by name."""
        return self._types

    def text(self, kind: str, key: str, record: Record) -> str:
        """JSON of an unchanged record; written once."""
        place = (kind, key)
        if (known := self._json.get(place)) is None:
            known = self._json[place] = written(self.shown(kind, record))
        return known

    def shown(self, kind: str, record: Record) -> Any:
        """What the tools show of a record."""
        return self.view(record) if kind == "order" else record
