"""Passages remembered on disk: by index, across restarts and processes, damaged or not."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.retrieval_servers import Stock, client, stock_server

from turngym.envs.tools.retrieval.base import Hit
from turngym.envs.tools.retrieval.http import HttpRetriever, RetrieverError
from turngym.envs.tools.retrieval.http_cache import FILE, FoundCache


@pytest.fixture
def stock() -> Iterator[Stock]:
    with stock_server() as server:
        yield server


def test_cached_queries_touch_no_server_and_survive(stock: Stock, tmp_path: Path) -> None:
    folder = str(tmp_path / "deep" / "cache")
    first = client(stock, cache=folder)
    found = first.search(["a", "b"], 2)
    assert first.search(["b", "c", "a"], 2)[::2] == found[::-1]
    assert [json.loads(body)["queries"] for body in stock.asked] == [["a", "b"], ["c"]]
    again = client(stock, cache=folder)  # as after a restart
    assert again.search(["a", "b"], 2) == found
    assert len(stock.asked) == 2
    again.search(["a"], 1)  # another k is another question
    assert len(stock.asked) == 3


def test_the_cache_answers_while_the_server_is_down(tmp_path: Path) -> None:
    with stock_server() as stock:
        stock.health = {"status": "ok", "index": "wiki-1"}
        found = client(stock, cache=str(tmp_path)).search(["a"], 2)
        url = stock.url
    down = HttpRetriever(url, cache=str(tmp_path), attempts=1)
    assert down.search(["a"], 2) == found
    with pytest.raises(RetrieverError):
        down.search(["b"], 2)


def test_another_index_at_the_same_address_is_asked_anew(stock: Stock, tmp_path: Path) -> None:
    for index, asked in (("wiki-1", 1), ("wiki-1", 1), ("wiki-2", 2)):
        stock.health = {"status": "ok", "index": index}
        retriever = client(stock, cache=str(tmp_path))
        retriever.search(["a"], 1)
        retriever.search(["a"], 1)
        assert len(stock.asked) == asked
    # once per process, and after what was fetched
    assert sum(path.endswith("/health") for path in stock.paths) == 3 + 2


def test_a_server_that_changes_its_index_meanwhile_answers_anew(
    stock: Stock, tmp_path: Path
) -> None:
    def serve(index: str) -> None:
        stock.health = {"status": "ok", "index": index}
        stock.answer = lambda query, k: [{"document": f"{query}\n{index}"}]

    def texts(retriever: HttpRetriever) -> list[str]:
        return [hits[0].text for hits in retriever.search(["a", "b"], 1)]

    serve("wiki-1")
    retriever = client(stock, cache=str(tmp_path))
    retriever.search(["a"], 1)
    serve("wiki-2")  # as one that was started anew while the client ran
    assert texts(retriever) == ["wiki-2", "wiki-2"]
    assert texts(retriever) == ["wiki-2", "wiki-2"]
    assert len(stock.asked) == 3
    serve("wiki-1")
    assert texts(client(stock, cache=str(tmp_path))) == ["wiki-1", "wiki-1"]


def test_what_was_answered_just_before_a_server_changed_its_index_is_asked_anew(
    stock: Stock, tmp_path: Path
) -> None:
    stock.health = {"status": "ok", "index": "wiki-1"}
    retriever = client(stock, cache=str(tmp_path))

    def last(query: str, k: int) -> list[dict[str, str]]:
        stock.health = {"status": "ok", "index": "wiki-2"}
        stock.answer = lambda query, k: [{"document": f"{query}\nwiki-2"}]
        return [{"document": f"{query}\nwiki-1"}]

    stock.answer = last
    for asking in (retriever, client(stock, cache=str(tmp_path))):
        assert asking.search(["a"], 1)[0][0].text == "wiki-2"
    assert len(stock.asked) == 2


def test_what_a_server_that_no_longer_names_its_index_answers_is_not_kept(
    stock: Stock, tmp_path: Path
) -> None:
    stock.health = {"status": "ok", "index": "wiki-1"}
    retriever = client(stock, cache=str(tmp_path))
    retriever.search(["a"], 1)
    stock.health = None  # as a server of another program in its place
    stock.answer = lambda query, k: [{"document": f"{query}\nother"}]
    assert retriever.search(["b"], 1)[0][0].text == "other"
    assert FoundCache(str(tmp_path)).read("wiki-1", ["b"], 1) == {}


def test_nothing_found_and_failures_are_not_remembered(stock: Stock, tmp_path: Path) -> None:
    retriever = client(stock, cache=str(tmp_path), attempts=1)
    stock.answer = lambda query, k: []
    assert retriever.search(["a"], 1) == [[]]
    stock.statuses = [500]
    with pytest.raises(RetrieverError):
        retriever.search(["a"], 1)
    stock.answer = lambda query, k: [{"document": "A\nb"}]
    assert retriever.search(["a"], 1)[0][0].text == "b"


@pytest.mark.parametrize(
    "damage", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\1" * 5000]
)
def test_a_damaged_cache_is_ignored_with_a_word(
    stock: Stock, tmp_path: Path, damage: bytes
) -> None:
    (tmp_path / FILE).write_bytes(damage)
    retriever = client(stock, cache=str(tmp_path))
    with pytest.warns(RuntimeWarning, match=rf"{FILE}.*cannot be used.*Remove the file"):
        assert retriever.search(["a"], 1)[0][0].id == "a-0"
    assert (tmp_path / FILE).read_bytes() == damage


def test_a_damaged_row_and_a_folder_that_is_none(stock: Stock, tmp_path: Path) -> None:
    retriever = client(stock, cache=str(tmp_path))
    retriever.search(["a"], 1)
    with sqlite3.connect(tmp_path / FILE) as base:
        base.execute("UPDATE found SET hits = '[[1]]'")
    base.close()
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert retriever.search(["a"], 1)[0][0].id == "a-0"
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        client(stock, cache=str(tmp_path / "file")).search(["a"], 1)


def fill(folder: str, start: int) -> None:
    warnings.simplefilter("error")
    cache = FoundCache(folder)
    for i in range(start, start + 50):
        cache.keep("x", {f"q{i % 120}": [Hit(str(i % 120), "t", "é", 0.5)]}, 3)
        cache.read("x", [f"q{j}" for j in range(20)], 3)


def test_several_processes_write_one_cache(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("fork")
    crew = [spawn.Process(target=fill, args=(str(tmp_path), s)) for s in (0, 30, 60, 90)]
    for process in crew:
        process.start()
    for process in crew:
        process.join(60)
    assert [process.exitcode for process in crew] == [0] * 4
    known = FoundCache(str(tmp_path)).read("x", [f"q{i}" for i in range(120)], 3)
    assert known == {f"q{i}": [Hit(str(i), "t", "é", 0.5)] for i in range(120)}
