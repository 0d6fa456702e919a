"""Generate a shop from a seed: products, customers and orders; a seed gives the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product as combinations_of
from typing import Any

import numpy as np

from ...core.errors import UnknownNameError
from . import goods, people
from .tables import Record, Shop, Table, show_all

SPLITS = ("train", "dev", "test", "hard")
_METHODS = (0.42, 0.38, 0.15, 0.05)
_STATUSES = ("pending", "delivered", "processed", "cancelled")
_SHARES = (0.43, 0.37, 0.10, 0.10)


@dataclass(frozen=True, slots=True)
class ShopSize:
    """How large a shop is.

    Attributes:
        users: Customers.
        orders: Shares of customers with 0, 1, 2, ... orders.
        lines: Maximum number of lines of an order.
        variants: Minimum and maximum number of variants of a product.
        digits: Digits of product and item ids, of order ids, of method ids.
        available: Share of the variants that are available.
    """

    users: int
    orders: tuple[float, ...]
    lines: int
    variants: tuple[int, int]
    digits: tuple[int, int, int]
    available: float


SIZES = {
    "full": ShopSize(500, (0.06, 0.2, 0.26, 0.22, 0.13, 0.08, 0.05), 5, (5, 20), (10, 7, 7), 0.66),
    "micro": ShopSize(800, (0.0, 0.3, 0.5, 0.2), 2, (4, 6), (4, 4, 4), 0.8),
}


@lru_cache(maxsize=12)
def make_shop(size: str, world_seed: int, split: str) -> Shop:
    """Generate the shop of a split; different splits share no customer, order or item id.

    Args:
        size: ``"full"`` or ``"micro"``.
        world_seed: Seed of all shops of the size.
        split: One of :data:`SPLITS`.
    """
    if size not in SIZES:
        raise UnknownNameError("size", size, SIZES, "Retail")
    return _ShopGenerator(size, world_seed, SPLITS.index(split)).shop(split)


class _ShopGenerator:
    def __init__(self, size: str, seed: int, number: int) -> None:
        self.size, self.seed, self.number = size, seed, number
        self.sizes = SIZES[size]
        self.rng = np.random.default_rng((seed, number, len(size)))
        self.used: set[str] = set()
        self.micro = size == "micro"

    def shop(self, split: str) -> Shop:
        products = self.products()
        users, orders = self.customers(products)
        return Shop(
            f"{self.size}/{self.seed}/{split}",
            products,
            users,
            orders,
            origin=(make_shop, (self.size, self.seed, split)),
            view=_show_briefly if self.micro else show_all,
        )

    def below(self, top: int) -> int:
        return int(self.rng.integers(top))

    def pick(self, options: Any) -> Any:
        return options[self.below(len(options))]

    def weighted(self, shares: tuple[float, ...]) -> int:
        point, total = float(self.rng.random()) * sum(shares), 0.0
        for i, share in enumerate(shares):
            total += share
            if point < total:
                return i
        return len(shares) - 1

    def number_id(self, digits: int, prefix: str = "") -> str:
        """Draw an unused number whose digit sum, modulo the number of splits, tells the split.

        So splits share no number, and no single digit tells them apart: a model that copies the
        numbers of one split copies those of another.
        """
        low = 10 ** (digits - 1)
        while True:
            number = str(low + self.below(9 * low))
            text = prefix + number
            if sum(map(int, number)) % len(SPLITS) == self.number and text not in self.used:
                self.used.add(text)
                return text

    def products(self) -> Table:
        kinds = goods.MICRO if self.micro else goods.FULL
        made: Table = {}
        for kind in kinds:
            product_id = self.number_id(self.sizes.digits[0])
            variants = self.variants(kind)
            made[product_id] = {"name": kind.name, "product_id": product_id, "variants": variants}
        return made

    def variants(self, kind: goods.ProductType) -> Table:
        keys = [key for key, _ in kind.options]
        every = list(combinations_of(*(values for _, values in kind.options)))
        low, high = self.sizes.variants
        count = min(len(every), low + self.below(high - low + 1))
        chosen = sorted(self.rng.permutation(len(every))[:count].tolist())
        prices: set[float] = set()
        made: Table = {}
        for place, at in enumerate(chosen):
            price = self.price(kind.price, prices)
            item_id = self.number_id(self.sizes.digits[0])
            made[item_id] = {
                "item_id": item_id,
                "options": dict(zip(keys, every[at], strict=True)),
                "available": place < 2 or float(self.rng.random()) < self.sizes.available,
                "price": price,
            }
        return made

    def price(self, base: float, taken: set[float]) -> float:
        while True:
            cents = round(base * (75 + self.below(51)))
            price = float(cents // 100) if self.micro else round((cents + self.below(60)) / 100, 2)
            if self.micro or price not in taken:
                taken.add(price)
                return max(price, 1.0)

    def customers(self, products: Table) -> tuple[Table, Table]:
        first, last = people.FIRST_NAMES[self.size], people.LAST_NAMES[self.size]
        mine = [
            (a, b)
            for i, a in enumerate(first)
            for j, b in enumerate(last)
            if (i + j) % len(SPLITS) == self.number
        ]
        order = self.rng.permutation(len(mine))
        lists = [list(product["variants"].values()) for product in products.values()]
        shelf = list(zip(products.values(), lists, strict=True))
        users: Table = {}
        orders: Table = {}
        for n in range(self.sizes.users):
            user = self.user(*mine[int(order[n % len(mine)])])
            users[user["user_id"]] = user
            self.orders_of(user, shelf, orders)
        return users, orders

    def address(self) -> dict[str, str]:
        city, state, code = self.pick(people.CITIES)
        return {
            "address1": f"{100 + self.below(900)} {self.pick(people.STREETS)}",
            "address2": f"Suite {100 + self.below(900)}",
            "city": city,
            "country": "USA",
            "state": state,
            "zip": f"{code}{self.below(100):02d}",
        }

    def user(self, first: str, last: str) -> Record:
        stem = f"{first}_{last}_".lower()
        if self.micro:
            short = self.number_id(3, first.lower())
            user_id, email = stem + short.removeprefix(first.lower()), f"{short}@mail.com"
        else:
            user_id = self.number_id(4, stem)
            email = f"{first}.{last}{1000 + self.below(9000)}@example.com".lower()
        return {
            "user_id": user_id,
            "name": {"first_name": first, "last_name": last},
            "address": self.address(),
            "email": email,
            "payment_methods": self.methods(),
            "orders": [],
        }

    def methods(self) -> Table:
        made: Table = {}
        cards = 0
        for _ in range(1 + self.weighted(_METHODS)):
            source = self.pick(("credit_card", "credit_card", "paypal", "gift_card"))
            if source == "credit_card":
                cards += 1
            taken = [m["source"] for m in made.values()]
            if source in taken and (source != "credit_card" or cards > 2):
                continue
            method_id = self.number_id(self.sizes.digits[2], f"{source}_")
            made[method_id] = self.method(source, method_id)
        return made

    def method(self, source: str, method_id: str) -> Record:
        if source == "gift_card":
            return {"source": source, "balance": self.below(301), "id": method_id}
        if source == "paypal":
            return {"source": source, "id": method_id}
        return {
            "source": source,
            "brand": self.pick(("visa", "mastercard")),
            "last_four": f"{self.below(10_000):04d}",
            "id": method_id,
        }

    def orders_of(self, user: Record, shelf: list[Any], orders: Table) -> None:
        days = self.rng.permutation(180)
        bought: list[Any] = []
        for n in range(self.weighted(self.sizes.orders)):
            order_id = self.number_id(self.sizes.digits[1], "#W")
            lines = self.lines(shelf, bought)
            orders[order_id] = self.order(order_id, user, lines, int(days[n]))
            user["orders"].append(order_id)

    def lines(self, shelf: list[Any], bought: list[Any]) -> list[Record]:
        made: list[Record] = []
        for _ in range(1 + self.below(self.sizes.lines)):
            again = bought and float(self.rng.random()) < 0.2
            product, variants = self.pick(bought) if again else self.pick(shelf)
            if self.micro and any(line["product_id"] == product["product_id"] for line in made):
                continue
            bought.append((product, variants))
            variant = self.pick(variants)
            made.append(
                {
                    "name": product["name"],
                    "product_id": product["product_id"],
                    "item_id": variant["item_id"],
                    "price": variant["price"],
                    "options": variant["options"],
                }
            )
        return made

    def order(self, order_id: str, user: Record, lines: list[Record], day: int) -> Record:
        status = _STATUSES[self.weighted(_SHARES)]
        home = float(self.rng.random()) < 0.8
        method = self.pick(list(user["payment_methods"]))
        amount = round(sum(line["price"] for line in lines), 2)
        paid = {"transaction_type": "payment", "amount": amount, "payment_method_id": method}
        sent = {
            "tracking_id": [f"{self.below(10**12):012d}"],
            "item_ids": [line["item_id"] for line in lines],
        }
        return {
            "order_id": order_id,
            "user_id": user["user_id"],
            "placed": f"2026-{1 + day // 30:02d}-{1 + day % 30:02d}",
            "address": user["address"] if home else self.address(),
            "items": lines,
            "fulfillments": [] if status == "pending" else [sent],
            "status": status,
            "payment_history": [paid, {**paid, "transaction_type": "refund"}]
            if status == "cancelled"
            else [paid],
        }


def _show_briefly(order: Record) -> Any:
    """Return what the micro shop's tools show of an order: little enough for a small model."""
    return {
        "order": order["order_id"],
        "status": order["status"],
        "items": {line["item_id"]: line["name"] for line in order["items"]},
        "paid": order["payment_history"][0]["payment_method_id"],
    }
