"""WebShop's own files: items, their attributes, and instructions that people wrote.

A folder holds, under the names of the release,

- ``items_shuffle.json`` or ``items_shuffle_1000.json``: a list of items with ``asin``, ``name``,
  ``full_description``, ``small_description`` (a text or several), ``pricing`` (``"$9.99"``,
  ``"$5.00$9.00"`` for a range, or nothing), ``query``, ``product_category`` (parts between ``›``)
  and ``customization_options`` (``{name: [{"value": …}, …] or null}``, or nothing),
- ``items_ins_v2.json`` or ``items_ins_v2_1000.json``: ``{asin: {"attributes": […]}}``,
- ``items_human_ins.json``: ``{asin: [{"instruction", "instruction_attributes",
  "instruction_options"}, …]}``.

Goals come in the original's order: those of the items in turn, without those that name no
attribute, shuffled by Python's generator with seed 233. The first 500 are test, the next 1,000 dev,
the others train; where there are 1,500 or fewer, a tenth is test and a tenth is dev.

Differs from the original: the price of an item with a range, and the price limits, which the
original draws anew in every process, come from a fixed seed; the search is this project's BM25, not
Lucene's; there are no reviews; square brackets in the values of
options are round ones here, so that they can be clicked.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core.digest import digest_of
from ..core.errors import BadValueError, DataError
from ..core.fork import Shared
from ..core.tasks import Task, parse_index
from .goals import draw_price_limit
from .items import Item, Options, Shop
from .reward import NO_LIMIT, Goal

ITEM_FILES = ("items_shuffle.json", "items_shuffle_1000.json")
ATTRIBUTE_FILES = ("items_ins_v2.json", "items_ins_v2_1000.json")
GOAL_FILES = ("items_human_ins.json",)
SHUFFLE_SEED = 233
TEST, DEV = 500, 1500
"""Where the test and the dev split end."""
_MAX_ID_CHARS = 10
_UNPRICED = 100.0
_BRACKETS = str.maketrans("[]", "()")
_WORD = re.compile(r"[^\W\d_]+")
_SMALL_WORDS = frozenset(
    ("a", "an", "and", "are", "as", "at", "by", "for", "from", "in", "into", "is", "it", "of", "on")
) | {"or", "our", "that", "the", "this", "to", "up", "with", "your"}


class FileGoals(Shared):
    """Goals of WebShop's files, per split.

    Args:
        shop: The shop.
        goals: The goals, in the original's order.
        folder: Where they are from.
    """

    def __init__(self, shop: Shop, goals: Sequence[Goal], folder: str) -> None:
        self.shop, self.folder = shop, folder
        test, dev = (TEST, DEV) if len(goals) > DEV else (len(goals) // 10, len(goals) // 5)
        self._splits = {"train": goals[dev:], "dev": goals[test:dev], "test": goals[:test]}

    def __reduce__(self) -> Any:
        return load_files, (self.folder,)

    def sizes(self) -> Mapping[str, int | None]:
        """Number of goals per split."""
        return {split: len(goals) for split, goals in self._splits.items()}

    def task(self, split: str, index: int) -> Task[Goal]:
        """The goal at ``index``."""
        return Task(f"{split}/{index}", split, index, self._splits[split][index], "webshop")

    def index_of(self, split: str, task_id: str) -> int | None:
        """The index that a task id names."""
        return parse_index(split, task_id, len(self._splits[split]))


def load_files(folder: str | os.PathLike[str]) -> FileGoals:
    """The goals and the shop of a folder of WebShop's files, one object per process.

    Raises:
        BadValueError: No such folder, or no path.
        DataError: A file is missing or does not hold what it should; names file and entry.
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise BadValueError(f"WebShop: data is a {type(folder).__name__}; expected a folder.")
    place = Path(folder).resolve()
    if not place.is_dir():
        raise BadValueError(f"WebShop: there is no folder {str(place)!r}; expected WebShop's data.")
    return _load(str(place))


@lru_cache(maxsize=2)
def _load(folder: str) -> FileGoals:
    place = Path(folder)
    items_file, attributes_file, goals_file = (
        _find_file(place, names) for names in (ITEM_FILES, ATTRIBUTE_FILES, GOAL_FILES)
    )
    attributes = _read_json(attributes_file, dict)
    items = list(_read_items(items_file, _read_json(items_file, list), attributes, attributes_file))
    if not items:
        raise DataError(f"{items_file}: holds no item that can be sold; expected at least one.")
    goals = list(_read_goals(goals_file, _read_json(goals_file, dict), items))
    if not goals:
        raise DataError(f"{goals_file}: holds no instruction about an item of {items_file.name}.")
    random.Random(SHUFFLE_SEED).shuffle(goals)
    shop = Shop(items, name=f"webshop-files-{digest_of(items)}", reload=(_load_shop, (folder,)))
    return FileGoals(shop, goals, folder)


def _load_shop(folder: str) -> Shop:
    return load_files(folder).shop


def _find_file(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{folder}: there is no {' or '.join(names)}; expected WebShop's data folder.")


def _read_json(file: Path, kind: type) -> Any:
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: is no JSON in UTF-8: {error}") from error
    if not isinstance(held, kind):
        what = {list: "a list of items", dict: "an object with asins as keys"}[kind]
        raise DataError(f"{file}: holds a {type(held).__name__}; expected {what}.")
    return held


def _read_text(row: Any, key: str, where: str, default: str | None = None) -> str:
    value = row.get(key, default) if isinstance(row, dict) else None
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise DataError(f"{where}: {key!r} is {value!r:.60}; expected text.")
    return value


def _read_texts(row: Any, key: str, where: str) -> tuple[str, ...]:
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise DataError(f"{where}: {key!r} is {value!r:.60}; expected a list of texts.")
    return tuple(value)


def _read_items(
    file: Path, rows: Sequence[Any], attributes: Mapping[str, Any], attributes_file: Path
) -> Iterator[Item]:
    rng, seen = np.random.default_rng(0), set[str]()
    for number, row in enumerate(rows):
        where = f"{file}, item {number}"
        asin = _read_text(row, "asin", where)
        if asin == "nan" or len(asin) > _MAX_ID_CHARS or asin in seen:
            continue
        seen.add(asin)
        listed = attributes.get(asin)
        has = isinstance(listed, dict) and "attributes" in listed
        like = _read_texts(listed, "attributes", f"{attributes_file}, {asin}") if has else ()
        name, short = _read_text(row, "name", where), row.get("small_description")
        features = short if isinstance(short, list) else [short]
        yield Item(
            id=asin,
            title=name,
            kind=_read_text(row, "query", where).lower().strip(),
            nouns=list_content_words(name),
            path=tuple(x.strip() for x in _read_text(row, "product_category", where).split("›")),
            attributes=like,
            options=_parse_options(row.get("customization_options"), where),
            price=_parse_price(row.get("pricing"), where, rng),
            description=_read_text(row, "full_description", where, ""),
            features=tuple(str(feature) for feature in features if feature),
        )


def list_content_words(title: str) -> frozenset[str]:
    """Words of letters in a title, less the smallest: what stands in for its nouns."""
    return frozenset(_WORD.findall(title.lower())) - _SMALL_WORDS


def _parse_options(given: Any, where: str) -> Options:
    if not given:
        return ()
    if not isinstance(given, dict):
        raise DataError(
            f"{where}: 'customization_options' is a {type(given).__name__}; expected "
            "an object, name by name."
        )
    options = []
    for name, contents in given.items():
        if contents is None:
            continue
        if not isinstance(contents, list):
            raise DataError(f"{where}: option {name!r} is {contents!r:.60}; expected a list.")
        values = (_read_text(content, "value", f"{where}, option {name!r}") for content in contents)
        clean = (_make_label(value.replace("/", " | ").lower()) for value in values)
        options.append((name.lower(), tuple(clean)))
    return tuple(options)


def _make_label(value: str) -> str:
    """A value as it stands on a label: no square brackets, single blanks."""
    return " ".join(value.translate(_BRACKETS).split())


def _parse_price(given: Any, where: str, rng: np.random.Generator) -> float:
    """One price, or one from the range between two."""
    if not given:
        return _UNPRICED
    try:
        prices = [float(re.sub(r"[^\d.]", "", part)) for part in given.split("$")[1:]]
    except (ValueError, AttributeError) as error:
        raise DataError(f"{where}: 'pricing' is {given!r:.60}; expected '$9.99'.") from error
    if not prices:
        return _UNPRICED
    return (
        prices[0]
        if len(prices) == 1
        else round(float(rng.uniform(min(prices[:2]), max(prices[:2]))), 2)
    )


def _read_goals(file: Path, written: Mapping[str, Any], items: Sequence[Item]) -> Iterator[Goal]:
    rng = np.random.default_rng(1)
    for item in items:
        rows = written.get(item.id, [])
        if not isinstance(rows, list):
            raise DataError(f"{file}, {item.id}: is a {type(rows).__name__}; expected a list.")
        for number, row in enumerate(rows):
            where = f"{file}, {item.id}, instruction {number}"
            attributes = _read_texts(row, "instruction_attributes", where)
            if not attributes:
                continue
            limit = draw_price_limit(item.price, rng)
            price = "" if limit == NO_LIMIT else f", and price lower than {limit:.2f} dollars"
            yield Goal(
                text=_read_text(row, "instruction", where).strip(".") + price,
                item=item.id,
                kind=item.kind,
                nouns=item.nouns,
                path=item.path,
                attributes=attributes,
                options=tuple(map(_make_label, _read_texts(row, "instruction_options", where))),
                price_limit=limit,
            )
