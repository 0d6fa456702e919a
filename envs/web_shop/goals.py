"""What is to be bought: instructions made from the items of a generated shop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.fork import Shared
from ..core.tasks import SPLITS, Task, parse_index
from .catalogue import load_shop
from .items import Item, Shop
from .reward import NO_LIMIT, Goal

GOALS_PER_ITEM = 4
_SHARES = (0.8, 0.9)  # train below the first, dev below the second, test above
_SECOND_ATTRIBUTE = 0.7
_HIGHEST = 990
TEMPLATES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "full": {
        "train": (
            "i am looking for {kind}, {attributes}{with_options}, and price lower than {limit} "
            "dollars",
            "i need {kind} with these features: {attributes}{with_options}, at most {limit} "
            "dollars",
            "find me {attributes} {kind}{with_options}, and stay under {limit} dollars",
            "i want to buy {attributes} {kind}{with_options}. my budget is {limit} dollars",
        ),
        "dev": (
            "please get {kind}{with_options}. it should be listed as {attributes} and cost no "
            "more than {limit} dollars",
            "for less than {limit} dollars, choose {kind}, {attributes}{with_options}",
        ),
        "test": (
            "my old {kind} broke. wanted for the next: {attributes}{with_options}; i can spend "
            "{limit} dollars",
            "{limit} dollars is my limit for {attributes} {kind}{with_options}, can you order it",
        ),
    },
    "micro": {
        "train": (
            "buy a {attributes} {kind}{with_options} under {limit}",
            "find a {kind} {attributes}{with_options} under {limit}",
        ),
        "dev": ("find a {attributes} {kind} under {limit}{with_options}",),
        "test": ("buy a {kind} {attributes} under {limit}{with_options}",),
    },
}


class Goals(Shared):
    """Goals per split; no two splits share an item or a form of words.

    Args:
        shop: The generated shop.
        size: Its size.
        seed: Its seed.
    """

    def __init__(self, shop: Shop, size: str, seed: int) -> None:
        self.shop, self.size, self.seed = shop, size, seed
        order = np.random.default_rng((seed, 1)).permutation(len(shop.items))
        cuts = [0, *(int(share * len(order)) for share in _SHARES), len(order)]
        self._places = {
            split: order[low:high] for split, low, high in zip(SPLITS, cuts, cuts[1:], strict=False)
        }

    def __reduce__(self) -> Any:
        return load_goals, (self.size, self.seed)

    def sizes(self) -> Mapping[str, int | None]:
        """Number of goals per split."""
        return {split: len(places) * GOALS_PER_ITEM for split, places in self._places.items()}

    def task(self, split: str, index: int) -> Task[Goal]:
        """The goal at ``index``; neighbours are about different items."""
        places = self._places[split]
        item = self.shop.items[int(places[index % len(places)])]
        rng = np.random.default_rng((self.seed, 2, SPLITS.index(split), index))
        goal = make_goal(item, TEMPLATES[self.size][split], rng, plain=self.size == "micro")
        return Task(f"{split}/{index}", split, index, goal)

    def index_of(self, split: str, task_id: str) -> int | None:
        """The index that a task id names."""
        return parse_index(split, task_id, len(self._places[split]) * GOALS_PER_ITEM)


@lru_cache(maxsize=8)
def load_goals(size: str, seed: int) -> Goals:
    """The goals of a generated shop, one object per process."""
    return Goals(load_shop(size, seed), size, seed)


def make_goal(
    item: Item, templates: Sequence[str], rng: np.random.Generator, *, plain: bool = False
) -> Goal:
    """A goal that buying ``item`` meets in full.

    It asks for one or two of the item's attributes, none to all of its options, and a price limit.

    Args:
        item: The item.
        templates: Forms of the instruction.
        rng: Draws all of it.
        plain: Words in a row, no commas and no names of options.
    """
    wanted = 2 if rng.random() < _SECOND_ATTRIBUTE and len(item.attributes) > 1 else 1
    attributes = [item.attributes[int(i)] for i in rng.permutation(len(item.attributes))[:wanted]]
    count = int(rng.integers(len(item.options) + 1))
    kept = sorted(rng.permutation(len(item.options))[:count])
    options = []
    for name, values in (item.options[i] for i in kept):
        options.append((name, values[int(rng.integers(len(values)))]))
    limit = draw_price_limit(item.price, rng)
    if plain:
        said = "".join(f" {value}" for _, value in options)
    else:
        listed = ", and ".join(f"{name}: {value}" for name, value in options)
        said = f", with {listed}" if options else ""
    text = templates[int(rng.integers(len(templates)))].format(
        kind=item.kind,
        attributes=(" " if plain else " and ").join(attributes),
        with_options=said,
        limit=f"{limit:.0f}",
    )
    return Goal(
        text=text,
        item=item.id,
        kind=item.kind,
        nouns=item.nouns,
        path=item.path,
        attributes=tuple(attributes),
        options=tuple(value for _, value in options),
        price_limit=limit,
    )


def draw_price_limit(price: float, rng: np.random.Generator) -> float:
    """The larger of two of the next four multiples of ten above a price, as WebShop draws it.

    :data:`NO_LIMIT` where fewer than two of them are at most 990.
    """
    first = int(price // 10 + 1) * 10
    above = [float(p) for p in range(first, first + 40, 10) if p <= _HIGHEST]
    if len(above) < 2:
        return NO_LIMIT
    return above[int(rng.permutation(len(above))[:2].max())]
