"""The pages of a shop as text, what can be clicked on them, and where a click leads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .items import Chosen, Item, Shop
from .state import WebShopState

BACK, PREVIOUS, NEXT, BUY = "back to search", "< prev", "next >", "buy now"
TABS = ("description", "features")
MAX_QUERY = 500
"""Characters of a search that are read."""
_ACTION = re.compile(r"\b(search|click)\s*\[([^\[\]]*)\]", re.IGNORECASE)


class Action(NamedTuple):
    """An action that was read: ``search`` or ``click``, and what stood in the brackets."""

    name: str
    argument: str


def read_action(text: str) -> Action | None:
    """The first ``search[...]`` or ``click[...]`` in ``text``; None where there is none."""
    found = _ACTION.search(text)
    if found is None or not found[2].strip():
        return None
    argument = " ".join(found[2].split()).lower()
    return Action(found[1].lower(), argument[:MAX_QUERY])


class Pages:
    """How the pages of a shop look.

    Args:
        shop: The shop.
        per_page: Results on a page.
    """

    def __init__(self, shop: Shop, per_page: int) -> None:
        self.shop = shop
        self.per_page = per_page

    def item(self, visit: WebShopState) -> Item:
        """The open item."""
        return self.shop.items[visit.item]

    def count(self, visit: WebShopState) -> int:
        """Pages of results, at least one."""
        return max(1, -(-len(visit.found) // self.per_page))

    def list_items(self, visit: WebShopState, number: int = 0) -> tuple[int, ...]:
        """Places of the items on a page of the results, the present one by default."""
        first = ((number or visit.number) - 1) * self.per_page
        return visit.found[first : first + self.per_page]

    def list_clickable(self, visit: WebShopState) -> list[str]:
        """What can be clicked, in lower case but for the ids of items, in the order shown."""
        if visit.page == "search":
            return []
        if visit.page == "results":
            ids = [self.shop.items[place].id for place in self.list_items(visit)]
            return [BACK, *self._turn_page(visit), *ids]
        if visit.page == "item":
            values = [value for _, values in self.item(visit).options for value in values]
            return [BACK, PREVIOUS, *dict.fromkeys(values), *TABS, BUY]
        return [BACK, PREVIOUS]

    def click(self, visit: WebShopState, label: str) -> None:
        """Follow a click on something that can be clicked, other than the purchase."""
        if label == BACK:
            visit.page, visit.item, visit.chosen = "search", -1, ()
        elif visit.page == "results":
            self._write_results(visit, label)
        elif label == PREVIOUS:
            self._go_back(visit)
        elif label in TABS:
            visit.page = label
        else:
            visit.chosen = add_choice(self.item(visit), visit.chosen, label)

    def show(self, visit: WebShopState) -> str:
        """The open page."""
        if visit.page == "search":
            return "search page\n"
        if visit.page == "results":
            return "".join(self._results(visit))
        if visit.page == "item":
            return "".join(self._item(visit))
        item = self.item(visit)
        text = item.description if visit.page == "description" else "\n".join(item.features)
        return f"[{BACK}] [{PREVIOUS}]\n{text or 'nothing is written here'}\n"

    def _write_results(self, visit: WebShopState, label: str) -> None:
        if label in (NEXT, PREVIOUS):
            visit.number += 1 if label == NEXT else -1
            return
        visit.page, visit.item, visit.chosen = "item", self.shop.places[label], ()
        visit.opened += 1

    def _go_back(self, visit: WebShopState) -> None:
        if visit.page == "item":
            visit.page, visit.item, visit.chosen = "results", -1, ()
        else:
            visit.page = "item"

    def _turn_page(self, visit: WebShopState) -> list[str]:
        back = [PREVIOUS] if visit.number > 1 else []
        return [*back, NEXT] if visit.number < self.count(visit) else back

    def _results(self, visit: WebShopState) -> Iterator[str]:
        buttons = " ".join(f"[{label}]" for label in (BACK, *self._turn_page(visit)))
        if not visit.found:
            yield f"{buttons}\nnothing found\n"
            return
        yield f"{buttons} page {visit.number} of {self.count(visit)}\n"
        for place in self.list_items(visit):
            item = self.shop.items[place]
            yield f"[{item.id}] {item.title} {write_price(item.price)}\n"

    def _item(self, visit: WebShopState) -> Iterator[str]:
        item, chosen = self.item(visit), dict(visit.chosen)
        yield f"[{BACK}] [{PREVIOUS}]\n{item.title} {write_price(item.price)}\n"
        for name, values in item.options:
            offered = " ".join(f"[{value}]" for value in values)
            mark = f" -> {chosen[name]}" if name in chosen else ""
            yield f"{name}: {offered}{mark}\n"
        yield " ".join(f"[{label}]" for label in (*TABS, BUY)) + "\n"


def add_choice(item: Item, chosen: Chosen, value: str) -> Chosen:
    """The choice after a click on a value: it takes the place of one of the same option."""
    name = next(name for name, values in item.options if value in values)
    others = tuple(pair for pair in chosen if pair[0] != name)
    return (*others, (name, value))


def write_price(price: float) -> str:
    """``$24.50``, or ``$24`` where there are no cents."""
    return f"${price:.0f}" if price == int(price) else f"${price:.2f}"
