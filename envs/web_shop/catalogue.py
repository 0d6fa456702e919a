"""A shop made from a seed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from ..utils.disk_cache import name_seed, source_digest
from .items import Item, Options, Shop
from .words import LANGUAGES, Department, Language

ITEMS_PER_KIND = {"full": 64, "micro": 20}
MAX_ATTRIBUTES = {"full": 6, "micro": 3}
_LETTERS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_ID_LETTERS = {"full": 8, "micro": 2}
T = TypeVar("T")


class Shelf(NamedTuple):
    """Where a kind stands."""

    department: str
    name: str
    kind: str
    price: int


def list_shelves(language: Language) -> list[Shelf]:
    """Every kind and its place, in a fixed order."""
    return [
        Shelf(name, shelf, kind, price)
        for name, department in language.departments.items()
        for shelf, kinds in department.shelves.items()
        for kind, price in kinds.items()
    ]


@lru_cache(maxsize=8)
def load_shop(size: str, seed: int) -> Shop:
    """The shop of a size and a seed, one per process."""
    return Shop(
        make_items(size, seed),
        name=f"webshop-{size}-{name_seed(seed)}-{_hash_code()}",
        reload=(load_shop, (size, seed)),
    )


def make_items(size: str, seed: int) -> list[Item]:
    """The items, a function of size and seed alone."""
    language = LANGUAGES[size]
    kinds = list_shelves(language)
    rng = np.random.default_rng((seed, 0))
    count = len(kinds) * ITEMS_PER_KIND[size]
    length = _ID_LETTERS[size]
    numbers = rng.choice(len(_LETTERS) ** length, size=count, replace=False)
    ids = [f"B{_write_id(int(number), length)}" for number in numbers]
    order = rng.permutation(count)
    return [
        _draw_item(size, ids[at], kinds[place % len(kinds)], rng) for at, place in enumerate(order)
    ]


def _draw_item(size: str, item_id: str, shelf: Shelf, rng: np.random.Generator) -> Item:
    language = LANGUAGES[size]
    department = language.departments[shelf.department]
    most = MAX_ATTRIBUTES[size]
    attributes = _draw_some(rng, department.attributes, int(rng.integers(most - 2, most + 1)))
    words = {
        "brand": _draw_one(rng, language.brands),
        "series": _draw_one(rng, language.series),
        "kind": shelf.kind,
        "use": _draw_one(rng, language.uses),
        "first": attributes[0],
        "second": attributes[1 % len(attributes)],
        "extra": attributes[-1],
    }
    features = tuple(
        _draw_one(rng, language.features).format(attribute=attribute, **words)
        for attribute in attributes[1:]
    )
    return Item(
        id=item_id,
        title=_draw_one(rng, language.titles).format(**words),
        kind=shelf.kind,
        nouns=frozenset(shelf.kind.split()),
        path=(shelf.department, shelf.name, shelf.kind.title()),
        attributes=tuple(attributes),
        options=_draw_options(department, rng),
        price=_draw_price(size, shelf.price, rng),
        description=_draw_one(rng, language.descriptions).format(**words),
        features=features,
    )


def _draw_options(department: Department, rng: np.random.Generator) -> Options:
    """One or all of the things to choose, each with some of its values, in their order."""
    names = list(department.options)
    if rng.random() < 0.3:
        names = [_draw_one(rng, names)]
    chosen = []
    for name in names:
        values = department.options[name]
        kept = _draw_some(rng, values, int(rng.integers(2, len(values) + 1)))
        chosen.append((name, tuple(value for value in values if value in kept)))
    return tuple(chosen)


def _draw_price(size: str, usual: int, rng: np.random.Generator) -> float:
    price = usual * float(np.exp(rng.normal(0.0, 0.45)))
    if size == "micro":
        return float(max(1, round(price)))
    return round(max(1.0, price) // 1 + float(_draw_one(rng, (0.49, 0.95, 0.99, 0.5))), 2)


def _write_id(number: int, length: int) -> str:
    text = ""
    for _ in range(length):
        number, digit = divmod(number, len(_LETTERS))
        text = _LETTERS[digit] + text
    return text


def _draw_one(rng: np.random.Generator, values: list[T] | tuple[T, ...]) -> T:
    return values[int(rng.integers(len(values)))]


def _draw_some(rng: np.random.Generator, values: tuple[str, ...], count: int) -> list[str]:
    return [values[i] for i in rng.permutation(len(values))[:count]]


def _hash_code() -> str:
    return source_digest(Path(__file__).parent, "catalogue.py", "items.py", "words.py")
