"""The state of an episode of WebShop."""

from __future__ import annotations

from dataclasses import dataclass

from .items import Chosen
from .reward import Match


@dataclass(slots=True)
class WebShopState:
    """The episode's state: the open page, what was found and chosen, and the purchase.

    Attributes:
        page: ``search``, ``results``, ``item``, or the name of a tab.
        found: Places of the items that the last search found, best first.
        rank: Rank of the first of them that fits the goal, -1 for none.
        number: The page of the results, from 1.
        item: Place of the open item, -1 for none.
        chosen: Options chosen on the open item.
        searches: Searches so far.
        opened: Items opened so far.
        bought: What the purchase was worth; None before it.
    """

    page: str = "search"
    found: tuple[int, ...] = ()
    rank: int = -1
    number: int = 1
    item: int = -1
    chosen: Chosen = ()
    searches: int = 0
    opened: int = 0
    bought: Match | None = None

    def copy(self) -> WebShopState:
        """An equal state; its fields are immutable."""
        return WebShopState(
            self.page,
            self.found,
            self.rank,
            self.number,
            self.item,
            self.chosen,
            self.searches,
            self.opened,
            self.bought,
        )
