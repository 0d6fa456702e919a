"""The client of retrieval servers: what it sends, reads, tries again and refuses."""

from __future__ import annotations

import copy
import json
import os
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.retrieval_servers import Stock, client, stock_server

from turngym.envs.core.errors import BadValueError, DataError, EnvFault, UnknownNameError
from turngym.envs.tools.retrieval.base import Batched, Hit, Query
from turngym.envs.tools.retrieval.http import HttpRetriever, RetrieverError, as_retriever
from turngym.envs.wrappers.vector import TextVectorEnv


@pytest.fixture
def stock() -> Iterator[Stock]:
    with stock_server() as server:
        yield server


# ---------------------------------------------------------------- what goes over the wire


def test_one_request_in_the_stock_client_s_words(stock: Stock) -> None:
    hits = client(stock).search(["red fox", "Müller?"], 2)
    # what requests.post(url, json={"queries": …, "topk": …, "return_scores": True}) sends
    (body,) = stock.asked
    assert body == rb'{"queries": ["red fox", "M\u00fcller?"], "topk": 2, "return_scores": true}'
    assert stock.paths == ["/retrieve"]
    assert hits[0] == [
        Hit("red fox-0", '"About red fox"', "Text 0.", 9.0),
        Hit("red fox-1", '"About red fox"', "Text 1.", 8.0),
    ]
    assert [hit.id for hit in hits[1]] == ["Müller?-0", "Müller?-1"]


def test_a_stock_reply_is_read_byte_for_byte(stock: Stock) -> None:
    stock.said = (
        b'{"result":[[{"document":{"id":"1042","contents":"\\"Lum Tor\\"\\nLum Tor is a town.\\n'
        b'It is old."},"score":0.8731231093406677},{"document":{"title":"Ada","text":"Ada paints.",'
        b'"contents":"\\"Ada\\"\\nAda paints."},"score":7}],[]]}'
    )
    first, second = client(stock).search(["a", "b"], 3)
    assert first[0] == Hit(
        "1042", '"Lum Tor"', "Lum Tor is a town.\nIt is old.", 0.8731231093406677
    )
    assert first[1][1:] == ('"Ada"', "Ada paints.", 7.0)
    assert second == []


@pytest.mark.parametrize(
    ("row", "hit"),
    [
        ({"document": {"contents": '"A"\nb'}}, ('"A"', "b", 0.0)),
        ({"document": {"title": "A", "text": "b"}, "score": None}, ("A", "b", 0.0)),
        ({"document": '"A"\nb', "score": 2}, ('"A"', "b", 2.0)),
        ({"id": 7, "contents": "A\nb\nc"}, ("A", "b\nc", 0.0)),
        ({"document": {"id": "x", "contents": "only a title"}}, ("only a title", "", 0.0)),
        ({"document": {"contents": "A\n\ud800b"}, "score": -1.5}, ("A", "?b", -1.5)),
        ("A\nb", ("A", "b", 0.0)),
    ],
)
def test_relatives_of_the_stock_reply(stock: Stock, row: Any, hit: tuple[str, str, float]) -> None:
    stock.said = json.dumps({"result": [[row] * 5]}).encode()
    (hits,) = client(stock).search(["a"], 3)
    assert len(hits) == 3  # servers that ignore topk
    assert hits[0][1:] == hit
    assert hits[0].id


def test_a_passage_without_id_has_the_same_one_everywhere(stock: Stock) -> None:
    stock.answer = lambda query, k: [{"document": f"{t}\nx"} for t in "ab"]
    first = client(stock).search(["q"], 2)[0]
    assert [h.id for h in first] == [h.id for h in client(stock).search(["other"], 2)[0]]
    assert first[0].id != first[1].id


def test_queries_without_words_and_twice(stock: Stock) -> None:
    assert client(stock).search([], 3) == []
    assert client(stock).search(["", " ?"], 3) == [[], []]
    assert stock.asked == []
    hits = client(stock).search(["fox", "", "fox", "\ud800 fox"], 1)
    assert json.loads(stock.asked[0])["queries"] == ["fox", "? fox"]
    assert hits[0] == hits[2] != hits[3]
    assert hits[1] == []


def test_connections_are_kept_and_shared_by_threads(stock: Stock) -> None:
    retriever = client(stock)
    for i in range(5):
        retriever.search([f"q{i}"], 1)
    assert stock.links == 1
    found: dict[int, str] = {}
    stock.slow_s = 0.02

    def ask(i: int) -> None:
        for j in range(5):
            found[i * 5 + j] = retriever.search([f"q{i * 5 + j}"], 1)[0][0].id

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: f"q{i}-0" for i in range(40)}
    assert stock.links <= 9


def test_a_kept_connection_that_the_server_closed_is_no_failed_attempt() -> None:
    with stock_server() as first:
        retriever = client(first, attempts=1)
        retriever.search(["a"], 1)
        port = int(first.url.rpartition(":")[2])
    with stock_server(port):
        assert retriever.search(["b"], 1)[0][0].id == "b-0"


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize("status", [429, 500, 503])
def test_tries_again_then_succeeds(stock: Stock, status: int) -> None:
    stock.statuses = [status, status]
    assert client(stock).search(["a"], 1)[0][0].id == "a-0"
    assert len(stock.asked) == 3


def test_gives_up_after_its_attempts(stock: Stock) -> None:
    stock.statuses = [503] * 9
    with pytest.raises(RetrieverError, match=r"no answer after 3 attempts: status 503.*not now"):
        client(stock, attempts=3).search(["a"], 1)
    assert len(stock.asked) == 3
    with pytest.raises(EnvFault, match="the retriever failed"):
        Batched(client(stock, attempts=2))([Query("a", 1)])


def test_waits_double(stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("turngym.envs.utils.http.time.sleep", waits.append)
    stock.statuses = [500] * 9
    with pytest.raises(OSError, match="4 attempts"):
        HttpRetriever(stock.url).search(["a"], 1)
    # http.server's own thread sleeps too
    assert [w for w in waits if w] == [0.5, 1.0, 2.0]


def test_a_slow_server_is_a_timeout(stock: Stock) -> None:
    stock.slow_s = 0.6
    began = time.monotonic()
    with pytest.raises(RetrieverError, match=r"2 attempts: no answer within 0\.1 seconds"):
        client(stock, timeout_s=0.1, attempts=2).search(["a"], 1)
    assert time.monotonic() - began < 0.6
    assert len(stock.asked) == 2


def test_a_dead_server_and_one_that_hangs_up(stock: Stock) -> None:
    stock.dying = True
    with pytest.raises(RetrieverError, match="2 attempts"):
        client(stock, attempts=2).search(["a"], 1)
    with pytest.raises(RetrieverError, match="refused"):
        HttpRetriever("http://127.0.0.1:9", wait_s=0, attempts=2).search(["a"], 1)


def test_what_the_server_refuses_is_not_tried_again(stock: Stock) -> None:
    stock.statuses = [422]
    with pytest.raises(RetrieverError, match="refused the request: status 422"):
        client(stock).search(["a"], 1)
    assert len(stock.asked) == 1


@pytest.mark.parametrize("status", [404, 405, 307])
def test_no_retrieval_server(stock: Stock, status: int) -> None:
    stock.statuses = [status]
    with pytest.raises(DataError, match=rf"status {status}.*Is this a retrieval server"):
        client(stock).search(["a"], 1)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"<html>hello</html>", "is no JSON: <html>hello"),
        (b'{"results": []}', r'the reply is \{"results": \[\]\}'),
        (b'{"result": []}', "0 lists for 1 queries"),
        (b'{"result": [7]}', r"result\[0\] of the reply is 7"),
        (b'{"result": [[{"document": {"body": 1}}]]}', r"result\[0\]\[0\].*body"),
        (b'{"result": [[{"document": "a", "score": "high"}]]}', "number as score"),
        (b'{"result": [[{"document": "a", "score": NaN}]]}', "number as score"),
        (b"[" * 100_000, "is no JSON"),
    ],
)
def test_a_reply_of_another_shape_says_what_came(stock: Stock, said: bytes, told: str) -> None:
    stock.said = said
    with pytest.raises(DataError, match=told):
        client(stock).search(["a"], 1)
    assert len(stock.asked) == 1


# ---------------------------------------------------------------- the value


def test_addresses() -> None:
    one = HttpRetriever("http://host:8000")
    for same in ("http://host:8000/", "http://host:8000/retrieve", "http://host:8000/retrieve/"):
        assert HttpRetriever(same) == one
        assert hash(HttpRetriever(same)) == hash(one)
    assert one.url == "http://host:8000/retrieve"
    assert HttpRetriever("https://[::1]/wiki").url == "https://[::1]/wiki/retrieve"
    for bad in ("localhost:8000", "", "http://", "http://h:x", "http://u:p@h", "http://h/?a", 3):
        with pytest.raises(BadValueError, match="the address is"):
            HttpRetriever(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [{"timeout_s": 0}, {"timeout_s": True}, {"attempts": 0}, {"wait_s": -1}, {"cache": 3}],
)
def test_settings_out_of_range(settings: dict[str, Any]) -> None:
    with pytest.raises(BadValueError, match=next(iter(settings))):
        HttpRetriever("http://h", **settings)


def test_copies_and_pickles_ask_the_same_server(stock: Stock) -> None:
    retriever = client(stock, attempts=2)
    retriever.search(["a"], 1)
    assert copy.deepcopy(retriever) is retriever
    twin = pickle.loads(pickle.dumps(retriever))
    assert twin == retriever
    assert twin.search(["a"], 1) == retriever.search(["a"], 1)
    assert Batched(twin) == Batched(retriever)


def test_a_fork_takes_connections_of_its_own(stock: Stock) -> None:
    retriever = client(stock)
    retriever.search(["a"], 1)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = int(retriever.search(["b"], 1)[0][0].id != "b-0")
        finally:
            os._exit(code)
    assert retriever.search(["c"], 1)[0][0].id == "c-0"
    assert os.waitpid(child, 0)[1] == 0
    assert stock.links == 2


def test_as_a_setting(stock: Stock) -> None:
    assert as_retriever(None) is None
    assert as_retriever(stock.url, {"attempts": 2}) == HttpRetriever(stock.url, attempts=2)
    with pytest.raises(UnknownNameError, match="Did you mean 'timeout_s'"):
        as_retriever(stock.url, {"timeout": 2})
    for given, settings in ((None, {"attempts": 2}), (stock.url, 5), (stock.url, {"url": "x"})):
        with pytest.raises(BadValueError, match="retriever_settings"):
            as_retriever(given, settings)  # type: ignore[arg-type]
    for given in (7, HttpRetriever):
        with pytest.raises(BadValueError, match="expected the address"):
            as_retriever(given)


# ---------------------------------------------------------------- in SearchQA


def test_searchqa_over_an_address(stock: Stock, tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    row = {"id": "1", "question": "who paints?", "golden_answers": ["Ada"]}
    questions.write_text(json.dumps(row))
    settings: dict[str, Any] = {"attempts": 2, "cache": str(tmp_path / "cache")}
    for made in ({"data": str(questions)}, {"size": "micro"}):
        env = gym.make(
            "SearchQA-v0", retriever=f"{stock.url}/retrieve", retriever_settings=settings, **made
        )
        env.reset(seed=0)
        told, _, _, _, _ = env.step("<search> painter </search>")
        assert 'Doc 1(Title: "About painter") Text 0.' in told
        assert told.count("Doc ") == 3
        twin = env.unwrapped.fork()  # type: ignore[attr-defined]
        assert twin.retriever is env.unwrapped.retriever  # type: ignore[attr-defined]
        assert env.unwrapped.blocking  # type: ignore[attr-defined]
    assert len(stock.asked) == 1  # the second world had it from the cache
    with pytest.raises(UnknownNameError, match="attempts"):
        gym.make("SearchQA-v0", retriever=stock.url, retriever_settings={"attemps": 2})
    with pytest.raises(BadValueError, match="SearchQA: retriever_settings"):
        gym.make("SearchQA-v0", size="micro", retriever_settings={"attempts": 2})
    with pytest.raises(BadValueError, match="SearchQA: HttpRetriever: the address"):
        gym.make("SearchQA-v0", size="micro", retriever="localhost:8000")


def test_a_server_that_dies_breaks_only_the_episodes_that_ask(stock: Stock) -> None:
    settings = {"attempts": 2, "wait_s": 0.01}

    env = gym.make("SearchQA-v0", size="micro", retriever=stock.url, retriever_settings=settings)
    envs = TextVectorEnv(env.unwrapped, 3)  # type: ignore[arg-type]
    envs.reset(seed=0)
    search, answer = "<search> fox </search>", "<answer> no </answer>"
    stock.asked.clear()
    _, _, _, truncated, infos = envs.step([search] * 3)
    assert len(stock.asked) == 1  # three copies, one request
    assert not truncated.any()
    stock.dying = True
    _, _, terminated, truncated, infos = envs.step([search, answer, search])
    assert list(infos["status"]) == ["env_error", "failed", "env_error"]
    assert truncated.tolist() == [True, False, True]
    assert terminated.tolist() == [False, True, False]
    stock.dying = False
    envs.step([search] * 3)
    _, _, _, _, infos = envs.step([search] * 3)
    assert list(infos["status"]) == ["running"] * 3
