"""Search-R1's route byte for byte, requests searched together, and the command that serves."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from fastapi.testclient import TestClient

from turngym.agents.retrieval.batching import Batcher
from turngym.agents.retrieval.server import make_app
from turngym.envs.errors import BadValueError
from turngym.envs.index import open_index
from turngym.envs.index.build import build_index
from turngym.envs.retrieval import Hit
from turngym.envs.search_qa.env import SearchQA

HITS = [
    Hit("7", '"Ada Brook"', "born in Élan", 2.5),
    Hit("9", '"Élan"', "a town", 1.25),
    Hit("12", '"Lum"', "a tor", 0.5),
]


class Fixed:
    """Always the same passages; fails for the query "bad"; counts its calls."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.open = threading.Event()
        self.open.set()

    def search(self, queries: Any, k: int) -> list[list[Hit]]:
        self.open.wait(10)
        self.calls.append(list(queries))
        if "bad" in queries:
            raise RuntimeError("no such luck")
        return [HITS[:k] for _ in queries]


@pytest.fixture
def fixed() -> Fixed:
    return Fixed()


@pytest.fixture
def client(fixed: Fixed) -> Any:
    with TestClient(make_app(fixed)) as made:
        yield made


def test_a_stock_request_gets_a_stock_answer(client: Any) -> None:
    # what requests.post(url, json={...}) of the stock client sends
    body = b'{"queries": ["where was ada born"], "topk": 3, "return_scores": true}'
    reply = client.post("/retrieve", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    assert (
        reply.content
        == (
            '{"result":[[{"document":{"id":"7","contents":"\\"Ada Brook\\"\\nborn in Élan"},'
            '"score":2.5},'
            '{"document":{"id":"9","contents":"\\"Élan\\"\\na town"},"score":1.25},'
            '{"document":{"id":"12","contents":"\\"Lum\\"\\na tor"},"score":0.5}]]}'
        ).encode()
    )


def test_without_scores_come_plain_documents(client: Any) -> None:
    documents = [{"id": h.id, "contents": f"{h.title}\n{h.text}"} for h in HITS]
    for asked in ({"return_scores": False}, {}):
        for count in (1, 2, 3):  # the original breaks on all of these, silently on two
            reply = client.post("/retrieve", json={"queries": ["x"] * count, **asked})
            assert reply.json() == {"result": [documents] * count}


@pytest.mark.parametrize(("topk", "count"), [(None, 3), (0, 3), (1, 1), (2, 2), (50, 3)])
def test_how_many(client: Any, topk: int | None, count: int) -> None:
    reply = client.post("/retrieve", json={"queries": ["x"], "topk": topk, "return_scores": True})
    assert len(reply.json()["result"][0]) == count


def test_no_queries_no_passages(client: Any, fixed: Fixed) -> None:
    for scores in (True, False):
        reply = client.post("/retrieve", json={"queries": [], "topk": 3, "return_scores": scores})
        assert reply.json() == {"result": []}
    assert fixed.calls == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "not JSON"),
        (b"{}", "queries is missing"),
        (b'{"queries": "x"}', "queries is 'x'"),
        (b'{"queries": [3]}', r"queries\[0\] is 3"),
        (b'{"queries": ["x"], "topk": -1}', "topk is -1"),
        (b'{"queries": ["x"], "topk": 1001}', "expected 1 to 1000"),
        (b'{"queries": ["x"], "topk": "3"}', "topk is '3'"),
        (b'{"queries": ["x"], "return_scores": 1}', "return_scores is 1"),
    ],
)
def test_bad_requests_are_told(client: Any, body: bytes, told: str) -> None:
    reply = client.post("/retrieve", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert re.search(told, reply.json()["detail"])


def test_a_broken_search_is_told_to_who_asked(client: Any) -> None:
    reply = client.post("/retrieve", json={"queries": ["bad"]})
    assert reply.status_code == 500
    assert "RuntimeError: no such luck" in reply.json()["detail"]
    assert client.post("/retrieve", json={"queries": ["good"]}).status_code == 200


def test_health(client: Any) -> None:
    client.post("/retrieve", json={"queries": ["a", "b"]})
    said = client.get("/health").json()
    assert (said["status"], said["queries_served"], said["batches"]) == ("ok", 2, 1)


def test_requests_that_come_together_are_searched_together(fixed: Fixed) -> None:
    async def many() -> list[Any]:
        batcher = Batcher(fixed, max_wait_ms=1, max_batch=100)
        fixed.open.clear()
        first = asyncio.create_task(batcher.find(["first"], 2))
        await asyncio.sleep(0.05)  # it is being searched
        rest = [asyncio.create_task(batcher.find([f"q{i}"], 2)) for i in range(20)]
        broken = asyncio.create_task(batcher.find(["bad"], 1))
        await asyncio.sleep(0.05)
        fixed.open.set()
        found = await asyncio.gather(first, *rest)
        with pytest.raises(RuntimeError, match="luck"):
            await broken
        batcher.close()
        return found

    assert asyncio.run(many()) == [[HITS[:2]]] * 21
    assert [len(call) for call in fixed.calls] == [1, 20, 1]


def test_who_asks_with_a_broken_one_is_served(fixed: Fixed) -> None:
    async def both() -> list[Any]:
        batcher = Batcher(fixed, max_wait_ms=20, max_batch=100)
        return await asyncio.gather(
            batcher.find(["good"], 1), batcher.find(["bad"], 1), return_exceptions=True
        )

    good, bad = asyncio.run(both())
    assert good == [HITS[:1]]
    assert isinstance(bad, RuntimeError)


def test_large_requests_are_cut(fixed: Fixed) -> None:
    async def one() -> Any:
        return await Batcher(fixed, max_wait_ms=0, max_batch=4).find(["x"] * 10, 1)

    assert asyncio.run(one()) == [HITS[:1]] * 10
    assert [len(call) for call in fixed.calls] == [4, 4, 2]


@pytest.mark.parametrize("wrong", [{"default_k": 0}, {"default_k": 9, "max_topk": 8}])
def test_settings_are_checked(fixed: Fixed, wrong: dict[str, int]) -> None:
    with pytest.raises(BadValueError, match="default_k"):
        make_app(fixed, **wrong)  # type: ignore[arg-type]


def test_the_command_serves_an_index(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    rows = [
        {"id": "0", "contents": '"Ada Brook"\nAda Brook was born in Lum Tor.', "url": "kept"},
        {"id": "1", "contents": '"Red Lamp"\nRed Lamp is a novel by Ada Brook.'},
    ]
    corpus, asked = tmp_path / "corpus.jsonl", tmp_path / "q.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    question = {"id": "q", "question": "where was ada brook born", "golden_answers": ["Lum Tor"]}
    asked.write_text(json.dumps(question) + "\n")
    build_index(corpus, tmp_path / "index")
    words = ["retriever", "serve", "--index", str(tmp_path / "index"), "--port", "0"]
    server = subprocess.Popen(
        [sys.executable, "-m", "turngym.benchmarks.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        found = re.search(r"Serving 2 passages on (http://\S+)/retrieve", said)
        assert found is not None, said
        env = SearchQA(data=asked, retriever=found[1])
        env.reset(seed=0)
        there, *_ = env.step("<search> ada brook born </search>")
        env = SearchQA(data=asked, corpus=tmp_path / "index")
        env.reset(seed=0)
        here, *_ = env.step("<search> ada brook born </search>")
        assert there == here
        assert "Lum Tor" in there
    finally:
        server.send_signal(signal.SIGINT)
        rest, _ = server.communicate(timeout=20)
    assert server.returncode == 0
    assert "Traceback" not in rest
    index = open_index(tmp_path / "index")
    (hits,) = index.search(["ada brook born"], 1)
    with TestClient(make_app(index)) as client:  # rows come as the corpus has them
        reply = client.post("/retrieve", json={"queries": ["ada brook born"], "topk": 1})
    assert reply.json() == {"result": [[rows[0]]]}
    assert hits[0].id == "0"
