"""The retrieval server: Search-R1's requests and answers to the byte, and searching together."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

import gymnasium as gym
import httpx
from fastapi.testclient import TestClient
from helpers.http_servers import serve_app

from turngym.agents.retrieval.batching import Batcher
from turngym.agents.retrieval.server import RequestLimits, make_app
from turngym.envs.core.errors import BadValueError, MissingExtraError
from turngym.envs.core.spaces import Utf8Text
from turngym.envs.tools.retrieval.base import Hit, Retriever
from turngym.envs.wrappers.vector import TextVectorEnv


class Shelf:
    """A retriever that writes down how it was called."""

    identity = "shelf-1"

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], int]] = []
        self.slow_s = 0.0
        self.threads: set[int] = set()

    def __len__(self) -> int:
        return 7

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.calls.append((list(queries), k))
        self.threads.add(threading.get_ident())
        time.sleep(self.slow_s)
        if "poison" in queries:
            raise RuntimeError("no such word")
        if "refuse" in queries:
            raise BadValueError("the query is refused")
        if "short" in queries:
            return []
        score = float("nan") if "nan" in queries else 0.5
        return [[Hit(f"{q}{i}", f'"{q}"', "é\nz", score + i) for i in range(k)] for q in queries]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def web(shelf: Shelf) -> Iterator[TestClient]:
    with TestClient(make_app(shelf, limits=RequestLimits(topk=50, queries=20))) as client:
        yield client


def test_the_stock_request_and_answer_to_the_byte(web: TestClient, shelf: Shelf) -> None:
    # requests.post(url, json={"queries": ["a", "b"], "topk": 2, "return_scores": True})
    reply = web.post(
        "/retrieve",
        content=b'{"queries": ["a", "b"], "topk": 2, "return_scores": true}',
        headers={"Content-Type": "application/json", "User-Agent": "python-requests/2.32.3"},
    )
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    assert (
        reply.content
        == (
            '{"result":[[{"document":{"id":"a0","contents":"\\"a\\"\\né\\nz"},"score":0.5},'
            '{"document":{"id":"a1","contents":"\\"a\\"\\né\\nz"},"score":1.5}],'
            '[{"document":{"id":"b0","contents":"\\"b\\"\\né\\nz"},"score":0.5},'
            '{"document":{"id":"b1","contents":"\\"b\\"\\né\\nz"},"score":1.5}]]}'
        ).encode()
    )
    assert shelf.calls == [(["a", "b"], 2)]
    # what the stock client reads
    contents = reply.json()["result"][0][0]["document"]["contents"]
    assert contents.split("\n")[0] == '"a"'


@pytest.mark.parametrize("queries", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_without_scores_plain_passages(web: TestClient, queries: list[str]) -> None:
    for body in ({"queries": queries, "topk": 1}, {"queries": queries, "return_scores": False}):
        result = web.post("/retrieve", json=body).json()["result"]
        assert [rows[0] for rows in result] == [
            {"id": f"{q}0", "contents": f'"{q}"\né\nz'} for q in queries
        ]


@pytest.mark.parametrize("topk", [None, 0])
def test_the_default_is_three(web: TestClient, shelf: Shelf, topk: int | None) -> None:
    body = {"queries": ["a"], "topk": topk, "return_scores": True}
    assert len(web.post("/retrieve", json=body).json()["result"][0]) == 3
    assert shelf.calls == [(["a"], 3)]


@pytest.mark.parametrize("scores", [True, False])
def test_no_queries(web: TestClient, shelf: Shelf, scores: bool) -> None:
    reply = web.post("/retrieve", json={"queries": [], "topk": 3, "return_scores": scores})
    assert reply.content == b'{"result":[]}'
    assert shelf.calls == []


def test_a_retriever_s_own_rows() -> None:
    class Stored(Shelf):
        def row(self, hit: Hit) -> dict[str, Any]:
            return {"title": hit.title.strip('"'), "text": hit.text, "contents": "whole"}

    with TestClient(make_app(Stored())) as web:
        reply = web.post("/retrieve", json={"queries": ["a"], "topk": 1, "return_scores": True})
    row = {"title": "a", "text": "é\nz", "contents": "whole"}
    assert reply.json() == {"result": [[{"document": row, "score": 0.5}]]}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "the body is not JSON"),
        (b"[]", "the body is []"),
        (b"{}", "queries is missing; expected"),
        (b'{"queries": "a"}', "queries is 'a'; expected"),
        (b'{"queries": ["a", 5]}', "queries[1] is 5; expected"),
        (b'{"queries": null}', "queries is None"),
        (b'{"queries": ["a"], "topk": "many"}', "topk is 'many'"),
        (b'{"queries": ["a"], "topk": -1}', "topk is -1; expected 1 to 50"),
        (b'{"queries": ["a"], "topk": 51}', "topk is 51; expected 1 to 50"),
        (b'{"queries": ["a"], "return_scores": 7}', "return_scores is 7"),
        (json.dumps({"queries": ["a"] * 21}).encode(), "21 queries; expected at most 20"),
        (b'{"queries": ["refuse"]}', "the query is refused"),
    ],
)
def test_bad_requests(web: TestClient, body: bytes, told: str) -> None:
    reply = web.post("/retrieve", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert told in reply.json()["detail"]


def test_a_lone_surrogate_is_replaced(web: TestClient, shelf: Shelf) -> None:
    body = b'{"queries": ["a\\ud800"], "topk": 1}'
    reply = web.post("/retrieve", content=body, headers={"Content-Type": "application/json"})
    assert reply.json()["result"][0][0]["id"] == "a?0"
    assert shelf.calls == [(["a?"], 1)]


@pytest.mark.parametrize("query", ["poison", "short", "nan"])
def test_a_broken_retriever_is_told(web: TestClient, query: str) -> None:
    reply = web.post("/retrieve", json={"queries": [query], "return_scores": True})
    assert reply.status_code == 500
    assert "the retriever failed" in reply.json()["detail"]
    assert web.post("/retrieve", json={"queries": ["a"]}).status_code == 200


def test_health(web: TestClient) -> None:
    web.post("/retrieve", json={"queries": ["a", "b"]})
    health = web.get("/health").json()
    assert health.pop("uptime_s") >= 0
    assert health == {
        "status": "ok",
        "passages": 7,
        "index": "shelf-1",
        "queries_served": 2,
        "batches": 1,
    }


def test_health_of_a_retriever_that_tells_nothing() -> None:
    class Bare:
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            return [[] for _ in queries]

    with TestClient(make_app(Bare())) as web:
        assert set(web.get("/health").json()) == {"status", "queries_served", "batches", "uptime_s"}


def together(retriever: Retriever, bodies: Sequence[dict[str, Any]], **settings: Any) -> list[Any]:
    """The replies to requests that are made at one time."""
    app = make_app(retriever, **settings)

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await asyncio.gather(*(client.post("/retrieve", json=b) for b in bodies))

    return asyncio.run(ask())


def test_concurrent_requests_are_searched_together(shelf: Shelf) -> None:
    shelf.slow_s = 0.05
    bodies = [{"queries": [f"q{i}", f"r{i}"], "topk": 1} for i in range(20)]
    replies = together(shelf, bodies, max_wait_ms=20)
    for i, reply in enumerate(replies):
        assert [rows[0]["id"] for rows in reply.json()["result"]] == [f"q{i}0", f"r{i}0"]
    assert len(shelf.calls) <= 4
    assert len(shelf.threads) == 1
    assert sum(len(queries) for queries, _ in shelf.calls) == 40


def test_each_k_goes_by_itself_and_batches_are_bounded(shelf: Shelf) -> None:
    bodies = [{"queries": ["a"] * 3, "topk": 1 + i % 2} for i in range(8)]
    replies = together(shelf, bodies, max_wait_ms=20, max_batch=6)
    for i, reply in enumerate(replies):
        assert [len(rows) for rows in reply.json()["result"]] == [1 + i % 2] * 3
    assert all(len(queries) <= 6 for queries, _ in shelf.calls)
    shelf.calls.clear()
    (reply,) = together(shelf, [{"queries": ["a"] * 15, "topk": 1}], max_batch=6)
    assert len(reply.json()["result"]) == 15
    assert [len(queries) for queries, _ in shelf.calls] == [6, 6, 3]


def test_one_request_s_error_is_its_own(shelf: Shelf) -> None:
    bodies = [{"queries": [q]} for q in ("a", "poison", "b", "refuse", "c")]
    replies = together(shelf, bodies, max_wait_ms=20)
    assert [reply.status_code for reply in replies] == [200, 500, 200, 422, 200]


def test_who_leaves_does_not_stop_the_others(shelf: Shelf) -> None:
    shelf.slow_s = 0.05
    batcher = Batcher(shelf, max_wait_ms=5, max_batch=8)

    async def ask() -> list[list[Hit]]:
        gone = asyncio.create_task(batcher.find(["a"], 1))
        stays = asyncio.create_task(batcher.find(["b"], 1))
        await asyncio.sleep(0.02)
        gone.cancel()
        return await stays

    assert asyncio.run(ask())[0][0].id == "b0"
    batcher.close()


@pytest.mark.parametrize("fault", [StopIteration(), KeyError("b")])
def test_a_request_that_breaks_leaves_the_others_of_its_batch(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    search = shelf.search

    def breaking(queries: Sequence[str], k: int) -> list[list[Hit]]:
        if "b" in queries:
            raise fault
        return search(queries, k)

    monkeypatch.setattr(shelf, "search", breaking)
    batcher = Batcher(shelf, max_wait_ms=5, max_batch=8)

    async def ask() -> list[Any]:
        asked = asyncio.gather(*(batcher.find([q], 1) for q in "abc"), return_exceptions=True)
        answers = await asyncio.wait_for(asked, 30)
        batcher.close()
        with pytest.raises(RuntimeError, match="after shutdown"):
            await asyncio.wait_for(batcher.find(["a"], 1), 30)
        return answers

    first, broken, last = asyncio.run(ask())
    assert (first[0][0].id, last[0][0].id) == ("a0", "c0")
    assert isinstance(broken, KeyError | RuntimeError)


def test_refused_settings(shelf: Shelf) -> None:
    for settings in (
        {"default_k": 0},
        {"max_batch": 0},
        {"max_wait_ms": -1},
        {"limits": RequestLimits(topk=2)},
    ):
        with pytest.raises(BadValueError, match="retrieval server"):
            make_app(shelf, **settings)


def test_without_fastapi(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingExtraError, match=r"turngym\[web\]"):
        make_app(shelf)


def test_bodies_queries_and_passages_are_bounded(shelf: Shelf) -> None:
    limits = RequestLimits(body_bytes=2000, query_chars=50, passages=20, held_bytes=10_000)
    app = make_app(shelf, limits=limits)
    with TestClient(app) as web:
        assert web.post("/retrieve", json={"queries": ["a"]}).status_code == 200
        for body, status, said in (
            ({"queries": ["a" * 3000]}, 413, "2,000 bytes"),
            ({"queries": ["a" * 51]}, 422, "51 characters"),
            ({"queries": ["a"] * 3, "topk": 7}, 422, "are 21"),
            ({"queries": ["a"] * 7}, 422, "are 21"),
        ):
            reply = web.post("/retrieve", json=body)
            assert reply.status_code == status
            assert said in reply.json()["detail"]

        def endless() -> Iterator[bytes]:
            for _ in range(1000):
                yield b" " * 100

        assert web.post("/retrieve", content=endless()).status_code == 413
    assert len(shelf.calls) == 1


def test_the_longest_action_of_an_environment_is_searched(shelf: Shelf) -> None:
    """Refused, it would end the episodes of all copies whose searches travel with it."""
    with serve_app(make_app(shelf)) as url:
        env = gym.make("SearchQA-v0", size="micro", retriever=url)
        space = env.action_space
        assert isinstance(space, Utf8Text)
        longest = "<search>" + "a" * (space.max_chars - len("<search></search>")) + "</search>"
        envs = TextVectorEnv(env.unwrapped, 2)  # type: ignore[arg-type]
        envs.reset(seed=0)
        _, _, _, _, infos = envs.step([longest, "<search> fox </search>"])
    assert list(infos["status"]) == ["running", "running"]
    assert max(map(len, shelf.calls[0][0])) > space.max_chars - 20


def test_requests_under_way_are_bounded_together(shelf: Shelf) -> None:
    app = make_app(shelf, limits=RequestLimits(body_bytes=1000, held_bytes=1500))

    async def ask(hold: asyncio.Event) -> int:
        sent: list[Any] = []
        parts = [{"type": "http.request", "body": b" " * 900, "more_body": True}]

        async def receive() -> Any:
            if parts:
                return parts.pop()
            await hold.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/retrieve", "headers": []}
        await app({**scope, "query_string": b""}, receive, send)
        return sent[0]["status"]

    async def both() -> tuple[int, int, int]:
        hold = asyncio.Event()
        first = asyncio.create_task(ask(hold))
        await asyncio.sleep(0)
        second = await ask(hold)
        hold.set()
        return await first, second, await ask(hold)

    assert asyncio.run(both()) == (400, 503, 400)  # cut off, full, and free again


def test_a_token_is_asked_for(shelf: Shelf) -> None:
    with TestClient(make_app(shelf, token="secret")) as web:
        body = {"queries": ["a"]}
        for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret"}):
            assert web.post("/retrieve", json=body, headers=given).status_code == 401
        good = {"Authorization": "Bearer secret"}
        assert web.post("/retrieve", json=body, headers=good).status_code == 200
        assert web.get("/health").status_code == 200
    assert len(shelf.calls) == 1
