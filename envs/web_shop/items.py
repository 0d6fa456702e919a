"""What a shop holds: items, and the shop itself with its search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import DataError
from ..core.fork import Shared
from ..tools.retrieval.base import Corpus
from ..tools.retrieval.bm25 import Bm25

Options = tuple[tuple[str, tuple[str, ...]], ...]
"""Names of what can be chosen, each with its values, all in lower case."""
Chosen = tuple[tuple[str, str], ...]
"""What was chosen: names with their values."""
Reload = tuple[Callable[..., "Shop"], tuple[Any, ...]]
"""A function and its arguments."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something on sale.

    Attributes:
        id: What is clicked to open it, in capitals.
        title: Its title.
        kind: What it is, in lower case; two items of one kind are of one type.
        nouns: Words of the title that say what it is.
        path: The shelf, from the department down.
        attributes: What it is like, in lower case.
        options: What can be chosen.
        price: In dollars.
        description: One text.
        features: Several short texts.
    """

    id: str
    title: str
    kind: str
    nouns: frozenset[str]
    path: tuple[str, ...]
    attributes: tuple[str, ...]
    options: Options
    price: float
    description: str
    features: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, str, str]:
        """Title, features and description in lower case, where words are looked for."""
        return self.title.lower(), " ".join(self.features).lower(), self.description.lower()


class Shop(Shared):
    """Items and a search over them; shared by all copies of an environment.

    Args:
        items: The items; no id twice.
        name: Names the cached search index; carries all that the items depend on.
        reload: Function and arguments that give this very shop again, which is what a pickle
            stores.

    Raises:
        DataError: Two items with one id.
    """

    def __init__(self, items: Sequence[Item], *, name: str, reload: Reload) -> None:
        self.items = tuple(items)
        self.places = {item.id: place for place, item in enumerate(self.items)}
        if len(self.places) < len(self.items):
            raise DataError(f"WebShop: {name} holds two items with one id; expected each once.")
        self._reload = reload
        corpus = Corpus(
            [item.id for item in self.items],
            [item.title for item in self.items],
            [write_searched_text(item) for item in self.items],
        )
        self.retriever = Bm25(corpus, name=name, reload=(_load_retriever, reload))

    def __reduce__(self) -> Any:
        return self._reload

    def __getitem__(self, item_id: str) -> Item:
        return self.items[self.places[item_id]]


def _load_retriever(load: Callable[..., Shop], arguments: tuple[Any, ...]) -> Bm25:
    return load(*arguments).retriever


def write_searched_text(item: Item) -> str:
    """What a search finds an item by beside its title."""
    values = (value for _, values in item.options for value in values)
    return " ".join([item.kind, item.description, *item.features, *item.attributes, *values])
