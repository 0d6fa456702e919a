"""The other end lies: retrieval servers, model servers, clients of adapters, a second server."""

from __future__ import annotations

import asyncio
import copy
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.attack_cases import cases, filled, joined
from helpers.model_server import ModelServer, Reply, serving
from helpers.retrieval_servers import Stock, client, stock_server
from helpers.wire_server import WireServer, wire_server

from turngym.agents.engines.openai_client import Endpoint, EndpointError
from turngym.agents.prompting import Message, OpenAIModel
from turngym.envs.adapters.openai_tools import ToolConversation
from turngym.envs.core.errors import (
    DataError,
    EnvFault,
    EpisodeError,
    TurngymError,
    UnknownNameError,
)
from turngym.envs.retail.customer.chat import ChatEndpoint
from turngym.envs.tools.retrieval.http import HttpRetriever, RetrieverError
from turngym.envs.wrappers.season_client import SeasonClient
from turngym.envs.wrappers.season_replies import (
    Reply as SeasonForm,
)
from turngym.envs.wrappers.season_replies import (
    SeasonReply,
    StartReply,
    StepReply,
    read_reply,
)

FAULTS = {"DataError": DataError, "RetrieverError": RetrieverError}
PATIENCE_S = 0.1
SETTINGS = {"size": "micro", "hops": 1}


def body_of(case: dict[str, Any]) -> bytes:
    return filled(case.get("fill", case["text"])).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def stock() -> Iterator[Stock]:
    with stock_server() as stock:
        yield stock


@pytest.mark.parametrize("case", cases("peers", "retriever"))
def test_a_retrieval_server_that_lies(stock: Stock, case: dict[str, Any]) -> None:
    """A fault that a caller knows, or passages that are text; never anything else."""
    stock.said = body_of(case)
    stock.statuses = [case["status"]] if "status" in case else []
    one = client(stock, attempts=1)
    if case["fault"]:
        with pytest.raises(FAULTS[case["fault"]]) as caught:
            one.search(["a"], 3)
        assert len(str(caught.value)) < 2000
        return
    (hits,) = one.search(["a"], 3)
    assert len(hits) <= 3
    for hit in hits:
        assert isinstance(hit.score, float)
        for text in (hit.id, hit.title, hit.text):
            text.encode("utf-8")


@pytest.mark.parametrize("health", [[], "x", {"index": None}, {"index": 7}, {"index": ""}, {}])
def test_a_server_that_lies_about_its_index(tmp_path: Path, health: Any) -> None:
    with stock_server() as stock:
        stock.health = health
        assert client(stock, cache=str(tmp_path)).search(["a"], 1)[0][0].id == "a-0"


@pytest.fixture(scope="module")
def model_server() -> Iterator[ModelServer]:
    with serving("x") as server:
        yield server


@pytest.mark.parametrize("case", cases("peers", "model"))
def test_a_model_server_that_lies(model_server: ModelServer, case: dict[str, Any]) -> None:
    """vLLM and its like, over OpenAI's protocol."""
    replies: list[Reply] = [{"raw": body_of(case), "status": case.get("status", 200)}]
    model_server.replies = replies
    model_server.asked.clear()
    model = OpenAIModel(Endpoint(url=model_server.url, first_pause=0.0, attempts=1), "m")

    async def ask() -> None:
        try:
            await model.complete([Message("user", "hi")], max_tokens=8)
        finally:
            await model.close()

    with pytest.raises(EndpointError) as caught:
        asyncio.run(ask())
    assert len(str(caught.value)) < 2000


@pytest.fixture(scope="module")
def wire() -> Iterator[WireServer]:
    with wire_server() as server:
        yield server


def wired(given: Any) -> bytes:
    return joined(given).encode("latin-1")


def ask_all(url: str) -> None:
    """Both clients of this project refuse what comes back, in one line."""
    retriever = HttpRetriever(url, attempts=1, timeout_s=PATIENCE_S)
    endpoint = Endpoint(url=url, first_pause=0.0, attempts=1, timeout=PATIENCE_S)
    for fault, ask in (
        ((DataError, RetrieverError), lambda: retriever.search(["a"], 3)),
        ((EndpointError,), lambda: endpoint.ask("completions", {}, lambda reply: reply["choices"])),
    ):
        with pytest.raises(fault) as caught:
            ask()
        assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("case", cases("peers", "wire"))
def test_a_server_that_does_not_speak_http(wire: WireServer, case: dict[str, Any]) -> None:
    """Retrieval and model servers alike, vLLM's among them; nobody else is asked."""
    wire.say(wired(case["first"]))
    ask_all(wire.url)


@pytest.mark.parametrize("case", cases("peers", "drip"))
def test_a_server_whose_reply_never_ends(wire: WireServer, case: dict[str, Any]) -> None:
    """Every wait ends with the attempt, whichever part of a reply it is that goes on."""
    wire.say(wired(case["first"]), wired(case["again"]), case["pause_s"])
    began = time.monotonic()
    ask_all(wire.url)
    assert time.monotonic() - began < 20 * PATIENCE_S


INFO = {
    "task_id": "sealed/0", "split": "sealed", "dataset": "", "turn": 0, "status": "running",
    "valid_action": True, "reward_terms": {}, "metrics": {}, "session": 0, "parent_session": None,
    "verdict": None,
}  # fmt: skip
CELL = {
    "env_id": "Password-v0", "key": "Password-v0", "split": "sealed", "settings": {}, "tasks": 2,
    "trials": 1, "max_turns": 3, "max_chars": 99, "instructions": "", "stop": [], "tools": [],
}  # fmt: skip
STEP = {"observation": "x", "reward": 0, "terminated": False, "truncated": False, "info": INFO}
SEASON: dict[str, tuple[type[SeasonForm], dict[str, Any]]] = {
    "season": (SeasonReply, {"name": "spring", "cells": [CELL]}),
    "start": (StartReply, {"session": "a1", "observation": "x", "info": INFO}),
    "step": (StepReply, STEP),
}


@pytest.mark.parametrize("case", cases("peers", "season"))
def test_a_season_s_server_that_lies(case: dict[str, Any]) -> None:
    form, reply = SEASON[case["form"]]
    assert read_reply(json.dumps(reply).encode(), form) == reply
    changed = copy.deepcopy(reply) if case["place"] else case["value"]
    if case["place"]:
        *path, last = case["place"].split(".")
        at: Any = changed
        for name in path:
            at = at[int(name)] if name.isdecimal() else at[name]
        at[int(last) if last.isdecimal() else last] = case["value"]
    with pytest.raises(ValueError, match="validation error"):
        read_reply(json.dumps(changed).encode(), form)


def test_a_season_s_server_that_lies_breaks_the_episode_alone(
    wire: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.envs.wrappers.season_client._WAIT_S", 0.0)
    client = SeasonClient(wire.url, "tg_x")
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 14"  # it hangs up, and says so
    wire.say(head + b'\r\n\r\n{"session": 3}')
    for ask in (
        client.describe_season,
        lambda: client.start("Password-v0", 0, 0, "r"),
        lambda: client.step("s", 1, "x"),
    ):
        with pytest.raises(EnvFault, match="cannot be read") as caught:
            ask()
        assert len(str(caught.value)) < 2000
    message = b'{"error": {"message": "' + b"a" * 200_000 + b'"}}'
    wire.say(b"HTTP/1.1 409 No\r\nContent-Length: %d\r\n\r\n%s" % (len(message), message))
    with pytest.raises(EpisodeError) as refused:
        client.finish()
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize(
    ("text", "told"), [("a\ud800b", "a?b"), ("x" * 100_001, None)], ids=["surrogate", "long"]
)
def test_texts_of_a_model_that_fit_into_no_file(text: str, told: str | None) -> None:
    with serving(text) as server:
        model = OpenAIModel(Endpoint(url=server.url), "m")
        said = asyncio.run(model.complete([Message("user", "hi")], max_tokens=8))
        assert said.text == (told or text)
        customer = ChatEndpoint(url=server.url, attempts=1)
        if told is None:
            with pytest.raises(EnvFault, match="100,001 characters"):
                customer.ask({})
        else:
            assert customer.ask({}) == told


@pytest.fixture(scope="module")
def talk() -> ToolConversation:
    return ToolConversation("SearchQA-v0", SETTINGS, where="attack")


@pytest.mark.parametrize("case", cases("peers", "call"))
def test_a_client_whose_calls_are_wrong(talk: ToolConversation, case: dict[str, Any]) -> None:
    """Tool calls of an agent: a move that is not valid, or an error that names what is wrong."""
    talk.start({"split": "test", "task": 0, "seed": 1})
    if case["name"] == "new_episode":
        with pytest.raises(TurngymError):
            talk.start(case["arguments"])
    elif case["name"] not in talk.action_tools:
        with pytest.raises(UnknownNameError):
            talk.call(case["name"], case["arguments"])
    else:
        reply = talk.call(case["name"], case["arguments"])
        reply.text.encode("utf-8")
        assert reply.info["status"] not in ("solved", "env_error")


@pytest.mark.parametrize("case", cases("peers", "call"))
def test_an_mcp_client_whose_calls_are_wrong(case: dict[str, Any]) -> None:
    pytest.importorskip("mcp", reason="mcp is not installed; make test-adapters has it")
    from turngym.envs.adapters.mcp_server import McpEnvironment

    env = McpEnvironment("SearchQA-v0", SETTINGS, split="test")
    call = SimpleNamespace(name=case["name"], arguments=case["arguments"])
    result = asyncio.run(env.call_tool(None, call))
    assert result.is_error  # an invalid move needs an episode, which has not begun


@pytest.mark.parametrize("case", cases("peers", "call"))
def test_an_openenv_client_whose_calls_are_wrong(case: dict[str, Any]) -> None:
    pytest.importorskip("openenv", reason="openenv is not installed; make test-adapters has it")
    from turngym.envs.adapters.openenv_server import TextAction, TextEnvironment

    env = TextEnvironment("SearchQA-v0", SETTINGS)
    if case["name"] == "new_episode":
        with pytest.raises(TurngymError):
            env.reset(**case["arguments"])
        return
    env.reset(seed=1, split="test", task=0)
    said = env.step(TextAction(text=f"<{case['name']}>{case['arguments']}</{case['name']}>"))
    assert said.status not in ("solved", "env_error")


def test_two_servers_on_one_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused before it sweeps what the first receives and verifies."""
    pytest.importorskip("fastapi", reason="the extra web is missing")
    uvicorn = pytest.importorskip("uvicorn", reason="the extra web is missing")
    from turngym.leaderboard.server import ServerSettings, serve_forever
    from turngym.leaderboard.server.serving import hold_home

    served: list[Any] = []
    configs: list[Any] = []
    stand_in = SimpleNamespace(run=lambda sockets: served.extend(sockets), started=True)
    monkeypatch.setattr(uvicorn, "Server", lambda config: configs.append(config) or stand_in)
    settings = ServerSettings(home=tmp_path)
    settings.entries.mkdir()
    settings.uploads.mkdir()
    coming = settings.uploads / "coming-abc"
    coming.write_text("half an upload")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with hold_home(tmp_path), pytest.raises(DataError, match="another server uses this"):
            serve_forever(settings, bound)
        assert served == []
        assert coming.read_text() == "half an upload"
        serve_forever(settings, bound)
        assert served == [bound]
        # A request that never ends, as an upload of one byte a second, keeps no server from ending.
        assert configs[0].timeout_graceful_shutdown < 10
