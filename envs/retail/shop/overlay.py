"""The overlay: what one episode has changed, over tables that all episodes share."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.digest import digest_of
from .tables import Record, Shop

Changes = Mapping[tuple[str, str], Record]
"""Records that differ from the shop's, by ("order" or "user", id)."""


class Overlay:
    """A shop as one episode sees it; changed records are kept here, all others in the shop.

    Attributes:
        shop: The shared tables.
        users: Customers that were written.
        orders: Orders that were written.
    """

    __slots__ = ("orders", "shop", "users")

    def __init__(
        self,
        shop: Shop,
        users: dict[str, Record] | None = None,
        orders: dict[str, Record] | None = None,
    ) -> None:
        self.shop = shop
        self.users = {} if users is None else users
        self.orders = {} if orders is None else orders

    def order(self, order_id: str) -> Record | None:
        """Return the order as it is now; None where there is none."""
        return self.orders.get(order_id) or self.shop.orders.get(order_id)

    def user(self, user_id: str) -> Record | None:
        """Return the customer as they are now; None where there is none."""
        return self.users.get(user_id) or self.shop.users.get(user_id)

    def fork(self) -> Overlay:
        """Return an independent copy; records are shared, as nobody changes them in place."""
        return Overlay(self.shop, self.users.copy(), self.orders.copy())

    def changes(self) -> dict[tuple[str, str], Record]:
        """Return what differs from the shop; a record written back as it was is no change."""
        found: dict[tuple[str, str], Record] = {}
        for order_id, record in self.orders.items():
            if record != self.shop.orders[order_id]:
                found["order", order_id] = record
        for user_id, record in self.users.items():
            if record != self.shop.users[user_id]:
                found["user", user_id] = record
        return found

    def is_at(self, wanted: Changes) -> bool:
        """Tell whether exactly the wanted records differ, in the wanted way."""
        orders, users = self.orders, self.users
        for (kind, key), record in wanted.items():
            if (orders if kind == "order" else users).get(key) != record:
                return False
        return all(
            ("order", i) in wanted or r == self.shop.orders[i] for i, r in orders.items()
        ) and all(("user", i) in wanted or r == self.shop.users[i] for i, r in users.items())

    def digest(self) -> str:
        """Return a stable hash of the shop's name and of what was changed."""
        return digest_of((self.shop.name, self.users, self.orders))

    def full_digest(self) -> str:
        """Return a stable hash of all records, changed or not: slow, for checks."""
        return digest_of(
            (
                self.shop.products,
                {**self.shop.users, **self.users},
                {**self.shop.orders, **self.orders},
            )
        )
