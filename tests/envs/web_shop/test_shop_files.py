"""WebShop's own files: read as the original reads them; what is wrong names file and entry."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.core.errors import DataError
from turngym.envs.web_shop.env import WebShop
from turngym.envs.web_shop.files import load_files


def row(number: int, **changes: Any) -> dict[str, Any]:
    made = {
        "asin": f"B{number:04d}",
        "name": f"Acme Desk Lamp {number} for the Bedroom",
        "full_description": "A lamp.",
        "small_description": ["bright", "dimmable"],
        "pricing": "$24.50",
        "query": " Desk Lamps ",
        "product_category": "Home › Lighting › Lamps",
        "customization_options": {
            "Color": [{"value": " Navy/Blue "}, {"value": "red [new]", "image": "x"}],
            "Pattern": None,
        },
    }
    return made | changes


def written(folder: Path, items: Any, attributes: Any, goals: Any) -> Path:
    for name, held in (
        ("items_shuffle_1000.json", items),
        ("items_ins_v2_1000.json", attributes),
        ("items_human_ins.json", goals),
    ):
        (folder / name).write_text(json.dumps(held), encoding="utf-8")
    return folder


def wish(text: str = "i want a lamp.", **changes: Any) -> dict[str, Any]:
    return {
        "instruction": text,
        "instruction_attributes": ["energy efficient"],
        "instruction_options": ["navy | blue", "red  [new]"],
    } | changes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    items = [row(n) for n in range(12)]
    items[1] |= {"pricing": None, "small_description": "one text", "customization_options": ""}
    items[2] |= {"pricing": "$10.00$20.00"}
    items += [row(0, name="again"), row(0, asin="nan"), row(0, asin="B" * 11)]
    attributes = {f"B{n:04d}": {"attributes": ["energy efficient"]} for n in range(11)}
    goals = {f"B{n:04d}": [wish(f"lamp number {n}.")] for n in range(12)}
    goals["B0003"].append(wish(instruction_attributes=[]))
    return written(tmp_path, items, attributes, goals)


def test_items_are_read_as_the_original_does(folder: Path) -> None:
    shop = load_files(folder).shop
    assert len(shop.items) == 12
    first, second, third = shop.items[:3]
    assert first.options == (("color", ("navy | blue", "red (new)")),)
    assert (first.kind, first.path) == ("desk lamps", ("Home", "Lighting", "Lamps"))
    assert first.nouns == {"acme", "desk", "lamp", "bedroom"}
    assert first.features == ("bright", "dimmable")
    assert (second.price, second.features, second.options) == (100.0, ("one text",), ())
    assert 10 <= third.price <= 20
    assert (shop.items[10].attributes, shop.items[11].attributes) == (("energy efficient",), ())


def test_goals_come_in_the_shuffled_order(folder: Path) -> None:
    source = load_files(folder)
    assert source.sizes() == {"train": 10, "dev": 1, "test": 1}
    order = list(range(12))
    random.Random(233).shuffle(order)
    got = [source.task("test", 0), source.task("dev", 0)]
    got += [source.task("train", i) for i in range(10)]
    assert [task.payload.item for task in got] == [f"B{n:04d}" for n in order]
    assert got[0].dataset == "webshop"
    assert got[0].payload.options == ("navy | blue", "red (new)")
    assert source.index_of("train", "train/3") == 3
    assert source.index_of("train", "train/10") is None
    text = got[0].payload.text
    assert text.startswith(f"lamp number {order[0]}, and price lower than ")
    assert text.endswith("0.00 dollars")


def test_more_goals_than_1500_are_cut_as_published(tmp_path: Path) -> None:
    goals = {"B0000": [wish() for _ in range(1600)]}
    source = load_files(written(tmp_path, [row(0)], {}, goals))
    assert source.sizes() == {"train": 100, "dev": 1000, "test": 500}


def test_an_episode_on_files(folder: Path) -> None:
    env = WebShop(data=folder)
    text, info = env.reset(seed=0, options={"split": "train", "task": 0})
    expert = env.expert()
    goal = env.episode.task.payload
    while info["status"] == "running":
        action = expert(env, text, info)
        text, *_, info = env.step(action)
    assert info["metrics"]["attributes"] == 1
    assert info["metrics"]["score"] >= 0.5  # one colour can be chosen, two are named
    assert goal.text.startswith("lamp number")
    twin = pickle.loads(pickle.dumps(env))
    assert twin.source is env.source


BAD = [
    ({}, {}, {}, "items_shuffle_1000.json: holds a dict; expected a list of items"),
    ([row(0)], [], {}, "items_ins_v2_1000.json: holds a list; expected an object"),
    ([{"asin": 3}], {}, {}, "item 0: 'asin' is 3; expected text"),
    ([7], {}, {}, "item 0: 'asin' is None; expected text"),
    ([row(0), row(1, name=None)], {}, {}, "item 1: 'name' is None; expected text"),
    ([row(0, pricing="$x")], {}, {}, "item 0: 'pricing' is '\\$x'; expected"),
    ([row(0, pricing=9.5)], {}, {}, "item 0: 'pricing' is 9.5; expected"),
    ([row(0, customization_options=[1])], {}, {}, "'customization_options' is a list; expected"),
    ([row(0, customization_options={"color": "red"})], {}, {}, "option 'color' is 'red'; expected"),
    ([row(0, customization_options={"color": [{}]})], {}, {}, "option 'color': 'value' is None"),
    ([row(0)], {"B0000": {"attributes": "x"}}, {}, "B0000: 'attributes' is 'x'; expected a list"),
    ([row(0)], {}, {"B0000": {}}, "items_human_ins.json, B0000: is a dict; expected a list"),
    ([row(0)], {}, {"B0000": [{}]}, "instruction 0: 'instruction_attributes' is None"),
    ([row(0)], {}, {"B0000": [wish(instruction=1)]}, "instruction 0: 'instruction' is 1"),
    ([row(0)], {}, {}, "holds no instruction about an item of items_shuffle_1000.json"),
    ([], {}, {}, "holds no item that can be sold"),
]


@pytest.mark.parametrize(("items", "attributes", "goals", "why"), BAD)
def test_bad_files(tmp_path: Path, items: Any, attributes: Any, goals: Any, why: str) -> None:
    with pytest.raises(DataError, match=why):
        load_files(written(tmp_path, items, attributes, goals))


def test_missing_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no items_shuffle\.json or items_shuffle_1000\.json"):
        load_files(tmp_path)
    written(tmp_path, [row(0)], {}, {})
    (tmp_path / "items_human_ins.json").write_bytes(b"{\xff")
    with pytest.raises(DataError, match=r"items_human_ins.json: is no JSON in UTF-8"):
        load_files(tmp_path)
