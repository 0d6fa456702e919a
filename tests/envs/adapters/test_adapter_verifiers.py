"""verifiers: real episodes against a served model, and every environment by a stub."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler
from types import ModuleType, SimpleNamespace
from typing import Any

import pydantic
import pytest
from helpers.adapter_play import (
    MICRO,
    SESSIONS,
    broken_world,
    loaded,
    modules,
    played,
    without,
    worlds_for,
)
from helpers.http_servers import QuietServer

from turngym.envs.adapters import conversation
from turngym.envs.core.errors import BadValueError, EnvFault, MissingExtraError
from turngym.envs.search_qa.env import SearchQA


def stub() -> dict[str, ModuleType]:
    """The part of verifiers 0.4's v1 that the adapter uses."""

    class Config(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        task: Any = None

    class Generic:
        def __class_getitem__(cls, parameters: Any) -> type:
            return cls

    class Task(Generic):
        def __init__(self, data: Any, config: Any = None) -> None:
            self.data, self.config = data, config

    class Taskset(Generic):
        def __init__(self, config: Any) -> None:
            self.config = config

    class TaskData(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(frozen=True)
        id: str | None = None
        name: str | None = None
        prompt: Any = None

    names = {"State": object, "Task": Task, "Taskset": Taskset, "TaskData": TaskData}
    names |= {"Env": type("Env", (Generic,), {})}
    for name in ("TaskConfig", "TasksetConfig", "EnvConfig", "AgentConfig", "SubprocessConfig"):
        names[name] = type(name, (Config,), {})
    return modules(verifiers__v1=names)


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    request = SimpleNamespace(param="stub", addfinalizer=lambda end: None)
    yield loaded(request, monkeypatch, "verifiers_taskset", "verifiers", stub)  # type: ignore[arg-type]
    sys.modules.pop("turngym.envs.adapters.verifiers_taskset", None)


class Seat:
    """An agent that gives the given replies; what it was told is kept."""

    def __init__(self, replies: list[str]) -> None:
        self.replies, self.told = list(replies), []
        self.rewards: dict[str, float] = {}
        self.metrics: dict[str, float] = {}
        self.info: dict[str, Any] = {}

    @asynccontextmanager
    async def interaction(self, task: Any) -> AsyncIterator[Any]:
        yield SimpleNamespace(turn=self._turn, trace=self)

    async def _turn(self, message: str | None = None) -> Any:
        self.told.append(message)
        if not self.replies:
            return SimpleNamespace(terminated=True, last_reply="")
        return SimpleNamespace(terminated=False, last_reply=self.replies.pop(0))

    def record_reward(self, name: str, value: float, weight: float = 1.0) -> None:
        self.rewards[name] = value * weight

    def record_metrics(self, values: dict[str, float]) -> None:
        self.metrics.update(values)


def tasks(adapter: Any, env_id: str, **config: Any) -> list[Any]:
    made = {"env_id": env_id, "settings": MICRO, "split": "dev", "count": 2, "seed": 5, **config}
    return list(adapter.TextEnvTaskset(adapter.TextEnvTasksetConfig(**made)).load())


def run(adapter: Any, task: Any, replies: list[str]) -> Seat:
    seat, env = Seat(replies), object.__new__(adapter.TextEnvironment)
    asyncio.run(env.run(task, SimpleNamespace(agent=seat)))
    return seat


@pytest.mark.parametrize("env_id", worlds_for("verifiers"))
def test_an_expert_s_episode(stubbed: Any, env_id: str) -> None:
    direct = played(env_id)
    task = tasks(stubbed, env_id)[1]
    assert task.data.prompt == direct.prompt
    assert task.data.id == task.data.row["task"] == direct.row["task"]
    seat = run(stubbed, task, direct.actions)
    assert seat.told == [None, *direct.observations[:-1]]
    assert seat.rewards == pytest.approx(direct.terms)
    assert seat.metrics == pytest.approx(direct.metrics)
    assert seat.info == {"status": direct.status}


def test_an_agent_that_stops_early_keeps_what_it_earned(stubbed: Any) -> None:
    direct = played("ScienceWorld-v0")
    assert len(direct.actions) > 1
    seat = run(stubbed, tasks(stubbed, "ScienceWorld-v0")[1], direct.actions[:1])
    assert seat.info == {"status": "running"}
    assert sum(seat.rewards.values()) < direct.total


def test_an_environment_that_waits_does_not_hold_the_others_up(
    stubbed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, list[bool]] = {"start": [], "act": []}
    own = {name: getattr(conversation.Conversation, name) for name in threads}

    def on(name: str) -> Any:
        def call(talk: Any, *given: Any) -> Any:
            threads[name].append(threading.current_thread() is threading.main_thread())
            return own[name](talk, *given)

        return call

    direct = played("SearchQA-v0")
    task = tasks(stubbed, "SearchQA-v0")[1]
    for name in threads:
        monkeypatch.setattr(conversation.Conversation, name, on(name))
    make = SearchQA.__init__
    for waits in (False, True):

        def made(env: Any, *given: Any, waits: bool = waits, **settings: Any) -> None:
            make(env, *given, **settings)
            env.blocking = waits

        monkeypatch.setattr(SearchQA, "__init__", made)
        run(stubbed, task, direct.actions)
    n = len(direct.actions)
    assert threads == {"start": [False, False], "act": [True] * n + [False] * n}


def test_refusals(stubbed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadValueError, match="the verifiers adapter keeps one append-only"):
        tasks(stubbed, SESSIONS[0])
    with pytest.raises(BadValueError, match="no end; give a count"):
        tasks(stubbed, "SearchQA-v0", split=None, count=None)
    break_worlds(monkeypatch)
    with pytest.raises(EnvFault, match="server is down"):
        run(stubbed, tasks(stubbed, "SearchQA-v0")[0], ["<search> x </search>"])


def break_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    start = conversation.Conversation.start

    def break_after(self: Any, row: Any) -> str:
        text = start(self, row)
        broken_world(self)
        return text

    monkeypatch.setattr(conversation.Conversation, "start", break_after)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An OpenAI-compatible server that plays the expert of one episode."""
    actions = played("SearchQA-v0").actions

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            turn = sum(message["role"] == "assistant" for message in body["messages"])
            delta = {"role": "assistant", "content": actions[turn]}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            parts = [
                {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {"choices": [], "usage": usage},
            ]
            same = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "expert"}
            lines = [f"data: {json.dumps(same | part)}\n\n" for part in parts]
            reply = "".join([*lines, "data: [DONE]\n\n"]).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *words: Any) -> None:
            """Quiet."""

    monkeypatch.setenv("EXPERT_KEY", "none")
    with QuietServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.mark.skipif(
    importlib.util.find_spec("verifiers") is None or shutil.which("uv") is None,
    reason="verifiers and uv are not installed; `make test-adapters` tests against them",
)
@pytest.mark.parametrize("works", [True, False])
def test_an_episode_of_the_installed_plugin(
    model: str, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import verifiers.v1 as vf

    direct = played("SearchQA-v0")
    row = {"id": "turngym-verifiers", "env_id": "SearchQA-v0", "settings": MICRO}
    taskset = {**row, "split": "dev", "count": 2, "seed": 5}
    config = vf.env_config_type("turngym-verifiers").model_validate({"taskset": taskset})
    env = vf.load_environment(config)
    client = vf.EvalClientConfig(base_url=model, api_key_var="EXPERT_KEY")

    async def play() -> Any:
        task = list(env.taskset)[1]
        assert (task.data.prompt, task.data.row) == (direct.prompt, direct.row)
        if not works:
            break_worlds(monkeypatch)
        async with env.serving():
            slot = env.slots(task)[0]
            return await env.run_slot(slot, vf.ModelContext(model="expert", client=client))

    episode = asyncio.run(play())
    if not works:
        assert not episode.ok
        assert any("server is down" in error.message for error in episode.errors)
        return
    assert episode.ok, episode.errors
    (trace,) = episode.traces
    assert {name: reward.score for name, reward in trace.rewards.items()} == direct.terms
    assert trace.metrics["success"] == 1
    assert trace.info["status"] == "solved"


def test_without_the_package() -> None:
    assert "EXPERT_KEY" not in os.environ
    for _ in without("verifiers", "verifiers_taskset"):
        with pytest.raises(MissingExtraError, match=r"turngym\[verifiers\]"):
            importlib.import_module("turngym.envs.adapters.verifiers_taskset")
