"""Goals that can be reached: drawn by enumerating what the shop's present state allows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..customer.scenario import Goal, LineChange
from ..shop import people
from ..shop.overlay import Overlay
from ..shop.payments import find_original_method
from ..shop.tables import Record
from ..shop.write_tools import CANCEL_REASONS
from .preferences import draw_preference


def list_refund_methods(user: Record, order: Record) -> list[str]:
    """Return the ids of the methods that may receive a refund, the original one first."""
    first = find_original_method(order)
    cards = [i for i, m in user["payment_methods"].items() if m["source"] == "gift_card"]
    return [first, *(card for card in cards if card != first)]


class Draft:
    """A visit in the making: a customer, the state so far, and what was used.

    Args:
        overlay: The state so far; written to as goals are added.
        user_id: The customer.
        rng: Where choices come from.
        micro: Whether the texts are those of the micro shop.
    """

    def __init__(
        self, overlay: Overlay, user_id: str, rng: np.random.Generator, *, micro: bool
    ) -> None:
        self.overlay, self.user_id, self.rng, self.micro = overlay, user_id, rng, micro
        self.used: set[str] = set()

    @property
    def user(self) -> Record:
        """Return the customer as they are now."""
        user = self.overlay.user(self.user_id)
        assert user is not None
        return user

    def pick(self, options: Any) -> Any:
        """Draw one of several."""
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share: float) -> bool:
        """Return True in this share of the cases."""
        return float(self.rng.random()) < share

    def draw_orders(self, *statuses: str, fresh: bool = True) -> list[Record]:
        """Return the customer's orders of some statuses, in a drawn order."""
        found = [self.overlay.order(i) for i in self.user["orders"]]
        kept = [
            o
            for o in found
            if o is not None
            and o["status"] in statuses
            and not (fresh and o["order_id"] in self.used)
        ]
        return [kept[i] for i in self.rng.permutation(len(kept)).tolist()]

    def single_lines(self, order: Record) -> list[Record]:
        """Return the lines whose product stands only once in the order."""
        names = [line["name"] for line in order["items"]]
        return [line for line in order["items"] if names.count(line["name"]) == 1]

    def variants(self, line: Record) -> list[Record]:
        """Return the variants of a line's product."""
        return list(self.overlay.shop.products[line["product_id"]]["variants"].values())

    def order_words(self, order: Record) -> str:
        """Describe an order for somebody who lost its number; empty where nothing is unique."""
        ids = [i for i in self.user["orders"] if i != order["order_id"]]
        others = [self.overlay.shop.orders[i] for i in ids]
        taken = {line["name"] for o in others for line in o["items"]}
        names = [name for name in self._names(order) if name not in taken]
        options = [f"the one with the {name}".lower() for name in names]
        city = order["address"]["city"]
        if city not in {o["address"]["city"] for o in others}:
            options.append(f"the one that goes to {city}")
        if others and order["placed"] > max(o["placed"] for o in others):
            options.append("my most recent one")
        if order["fulfillments"]:
            tracking = order["fulfillments"][0]["tracking_id"][0]
            options.append(f"the one with tracking number {tracking}")
        return self.pick(options) if options else ""

    @staticmethod
    def _names(order: Record) -> list[str]:
        return sorted({line["name"] for line in order["items"]})

    def add_method(self, goal: Goal, method_id: str, original: str = "") -> Goal:
        """Return the goal with a payment method and the ways to name it."""
        method = self.user["payment_methods"].get(method_id)
        if method is None:
            return replace(goal, method=method_id, method_keys=(method_id,))
        source = method["source"]
        keys = [method_id]
        if source == "credit_card":
            words = f"the {method['brand']} ending in {method['last_four']}"
            keys += [method["last_four"]]
        else:
            words = "my gift card" if source == "gift_card" else "my PayPal account"
            keys += ["gift card" if source == "gift_card" else "paypal"]
        same = [m for m in self.user["payment_methods"].values() if m["source"] == source]
        if source == "credit_card" and len(same) == 1:
            keys.append("credit card")
        if method_id == original:
            keys += ["original payment", "original method"]
            if self.chance(0.3):
                words = "the original payment method"
        return replace(goal, method=method_id, method_words=words, method_keys=tuple(keys))

    def others(self, order: Record, wants: tuple[LineChange, ...]) -> tuple[str, ...]:
        """Return the products of the order that the goal is not about."""
        mine = {want.name for want in wants}
        return tuple(name for name in self._names(order) if name not in mine)

    def draw_goal(self, intent: str, *, lines: int = 1) -> Goal | None:
        """Draw a goal of an intent that can be reached now; None where there is none."""
        make = getattr(self, f"_{intent}")
        return make(lines) if intent in ("return", "exchange", "modify") else make()

    def _cancel(self) -> Goal | None:
        orders = self.draw_orders("pending")
        if not orders:
            return None
        reason = self.pick(CANCEL_REASONS)
        return Goal(intent="cancel", order_id=orders[0]["order_id"], reason=reason)

    def _return(self, lines: int) -> Goal | None:
        for order in self.draw_orders("delivered"):
            single = self.single_lines(order)
            if single:
                few = self._some(single, lines)
                wants = tuple(LineChange(item_id=x["item_id"], name=x["name"]) for x in few)
                goal = Goal(
                    intent="return",
                    order_id=order["order_id"],
                    wants=wants,
                    others=self.others(order, wants),
                )
                return self._refunded(goal, order)
        return None

    def _refunded(self, goal: Goal, order: Record) -> Goal:
        """Add a method that may receive the refund, or none for somebody who does not mind."""
        options = list_refund_methods(self.user, order)
        if self.micro or (len(options) > 1 and self.chance(0.25)):
            return goal
        return self.add_method(goal, self.pick([options[0], *options]), options[0])

    def _some(self, lines: list[Record], most: int) -> list[Record]:
        picked = self.rng.permutation(len(lines))[:most].tolist()
        return [lines[i] for i in sorted(picked)]

    def _exchange(self, lines: int) -> Goal | None:
        return self._draw_change("exchange", "delivered", lines)

    def _modify(self, lines: int) -> Goal | None:
        return self._draw_change("modify", "pending", lines)

    def _draw_change(self, intent: Any, status: str, lines: int) -> Goal | None:
        for order in self.draw_orders(status):
            goal = self.draw_change(intent, order, lines)
            if goal is not None:
                return goal
        return None

    def draw_change(self, intent: Any, order: Record, lines: int) -> Goal | None:
        """Draw a goal to change lines of this order to other variants."""
        wants: list[LineChange] = []
        for line in self._some(self.single_lines(order), lines):
            if (want := self.draw_want(line)) is not None:
                wants.append(want)
        if not wants:
            return None
        goal = Goal(
            intent=intent,
            order_id=order["order_id"],
            wants=tuple(wants),
            others=self.others(order, tuple(wants)),
            value=self.difference(order, wants),
        )
        return self._paid(goal, order)

    def difference(self, order: Record, wants: list[LineChange]) -> float:
        """Return how much more the new items cost."""
        prices = {line["item_id"]: line["price"] for line in order["items"]}
        new = self.overlay.shop.variants
        return round(sum(new[w.new_id]["price"] - prices[w.item_id] for w in wants), 2)

    def draw_want(self, line: Record) -> LineChange | None:
        """Draw a preference for a line that means one available variant."""
        variants = self.variants(line)
        targets = [
            v
            for v in variants
            if v["available"]
            and v["item_id"] != line["item_id"]
            and v["options"] != line["options"]
        ]
        if not targets:
            return None
        return draw_preference(line, self.pick(targets), variants, self.rng)

    def _paid(self, goal: Goal, order: Record) -> Goal | None:
        """Add a method that can pay the difference."""
        fine = [
            i
            for i, m in self.user["payment_methods"].items()
            if m["source"] != "gift_card" or m["balance"] >= goal.value
        ]
        if not fine:
            return None
        return self.add_method(goal, self.pick(fine), find_original_method(order))

    def _payment(self) -> Goal | None:
        for order in self.draw_orders("pending"):
            if (goal := self.draw_payment(order)) is not None:
                return goal
        return None

    def draw_payment(self, order: Record) -> Goal | None:
        """Draw a goal to pay this order by another method."""
        history = order["payment_history"]
        if len(history) != 1:
            return None
        old, amount = history[0]["payment_method_id"], history[0]["amount"]
        fine = [
            i
            for i, m in self.user["payment_methods"].items()
            if i != old and (m["source"] != "gift_card" or m["balance"] >= amount)
        ]
        if not fine:
            return None
        return self.add_method(Goal(intent="payment", order_id=order["order_id"]), self.pick(fine))

    def draw_address(self) -> dict[str, str]:
        """Draw an address that is nobody's yet."""
        city, state, code = self.pick(people.CITIES)
        return {
            "address1": f"{1000 + int(self.rng.integers(9000))} {self.pick(people.STREETS)}",
            "address2": f"Apt {1 + int(self.rng.integers(99))}" if self.chance(0.5) else "",
            "city": city,
            "state": state,
            "country": "USA",
            "zip": f"{code}{int(self.rng.integers(100)):02d}",
        }

    def _ship_to(self) -> Goal | None:
        orders = self.draw_orders("pending")
        if not orders:
            return None
        order_id = orders[0]["order_id"]
        return Goal(intent="ship_to", order_id=order_id, address=self.draw_address())

    def _move(self) -> Goal | None:
        if "move" in self.used:
            return None
        return Goal(intent="move", address=self.draw_address())
