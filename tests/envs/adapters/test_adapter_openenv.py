"""OpenEnv: the environment, and a real server with the typed and the generic client."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from helpers.adapter_play import MICRO, SEARCH, SESSIONS, TALKING, broken_world, played, without

from turngym.benchmarks.cli.main import main
from turngym.envs.core.errors import (
    BadValueError,
    EpisodeError,
    MissingExtraError,
    UnknownNameError,
)

needs_openenv = pytest.mark.skipif(
    importlib.util.find_spec("openenv") is None,
    reason="openenv-core is not installed; `make test-adapters` tests against it",
)


@pytest.fixture
def adapter() -> Any:
    return importlib.import_module("turngym.envs.adapters.openenv_server")


@needs_openenv
@pytest.mark.parametrize("env_id", TALKING)
def test_an_expert_s_episode(adapter: Any, env_id: str) -> None:
    direct = played(env_id)
    env = adapter.TextEnvironment(env_id, MICRO)
    row = direct.row
    seen = env.reset(seed=row["seed"], episode_id="e1", split=row["split"], task=row["task"])
    assert seen.instructions + seen.text == direct.prompt
    assert (seen.task_id, seen.done, seen.reward) == (row["task"], False, None)
    total = 0.0
    for action in direct.actions:
        seen = env.step(adapter.TextAction(text=action))
        total += seen.reward
    assert seen.done
    assert not seen.truncated
    assert seen.status == direct.status
    assert seen.metrics == pytest.approx(direct.metrics)
    assert total == pytest.approx(direct.total)
    assert env.state.episode_id == "e1"
    assert (env.state.step_count, env.state.status) == (len(direct.actions), direct.status)
    with pytest.raises(EpisodeError):
        env.step(adapter.TextAction(text="x"))


@needs_openenv
@pytest.mark.parametrize("env_id", SESSIONS)
def test_worlds_of_sessions_tell_the_session(adapter: Any, env_id: str) -> None:
    env = adapter.TextEnvironment(env_id, MICRO)
    seen = env.reset(seed=3, split="dev", task=0)
    policy, sessions = env.env.expert(), {(0, None)}
    while not seen.done:
        info = seen.model_dump()
        action = policy(env.env, seen.text, info)
        seen = env.step(adapter.TextAction(text=action))
        sessions.add((seen.session, seen.parent_session))
    assert len(sessions) > 1
    assert json.loads(seen.model_dump_json())["session"] == seen.session


@needs_openenv
def test_truncation_faults_and_refusals(adapter: Any) -> None:
    env = adapter.TextEnvironment("SearchQA-v0", SEARCH)
    with pytest.raises(UnknownNameError, match="reset option"):
        env.reset(seed=1, taks=3)
    env.reset(seed=1)
    for _ in range(env.env.max_turns):
        seen = env.step(adapter.TextAction(text="<search> x </search>"))
    assert (seen.done, seen.truncated, seen.status) == (True, True, "truncated")
    env.reset(seed=1)
    broken_world(SimpleNamespace(env=env.env))
    seen = env.step(adapter.TextAction(text="<search> x </search>"))
    assert (seen.done, seen.status, seen.reward) == (True, "env_error", None)
    with pytest.raises(BadValueError):
        adapter.openenv_app("CartPole-v1")
    with pytest.raises(BadValueError, match="max_episodes is 0; expected"):
        adapter.openenv_app("SearchQA-v0", MICRO, max_episodes=0)
    assert env.get_metadata().description.startswith("Answer a question")


@pytest.fixture
def address() -> Iterator[str]:
    """A server of SearchQA in a thread."""
    import uvicorn

    from turngym.envs.adapters.openenv_server import openenv_app

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = uvicorn.Config(
        openenv_app("SearchQA-v0", MICRO), host="127.0.0.1", port=port, log_level="error"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(timeout=20)
    assert not thread.is_alive()


@needs_openenv
def test_two_clients_of_a_server_do_not_touch(address: str) -> None:
    from openenv import GenericEnvClient

    from turngym.envs.adapters.openenv_client import TextEnvClient

    direct = played("SearchQA-v0")
    start = {key: direct.row[key] for key in ("seed", "split", "task")}
    with (
        TextEnvClient(base_url=address).sync() as client,
        GenericEnvClient(base_url=address).sync() as other,
    ):
        first = client.reset(**start)
        assert first.observation.instructions + first.observation.text == direct.prompt
        elsewhere = other.reset(seed=77, split="dev").observation
        assert elsewhere["text"] != first.observation.text
        other.step({"text": "<answer> no </answer>"})
        total = 0.0
        for action in direct.actions:
            result = client.step(action)
            total += result.reward
        assert result.done
        assert result.observation.status == direct.status
        assert result.observation.reward_terms["outcome"] == 1.0
        assert total == pytest.approx(direct.total)
        assert client.state().step_count == len(direct.actions)
        assert client.state().task_id == direct.row["task"]
        assert other.state()["status"] == "failed"
        for action in (5, None, {"text": "x"}):
            with pytest.raises(TypeError, match=r"action is a .*; expected text"):
                client.step(action)
        with pytest.raises(Exception, match="task"):
            client.reset(task="dev/no-such-task")
        assert client.reset(**start).observation.text == first.observation.text


@needs_openenv
def test_a_client_that_leaves_is_no_error(address: str) -> None:
    from turngym.envs.adapters.openenv_client import TextEnvClient

    said: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = said.append
    logging.getLogger("uvicorn.error").addHandler(handler)
    try:
        for _ in range(2):
            with TextEnvClient(base_url=address).sync() as client:
                client.reset(seed=1)
        time.sleep(0.5)  # the server notices that they have left
    finally:
        logging.getLogger("uvicorn.error").removeHandler(handler)
    assert [record.getMessage() for record in said] == []


@needs_openenv
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_whoever_reads_the_address_can_connect(
    host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((host, 0))
    except OSError:
        pytest.skip(f"this machine has no {host}")

    def connect(server: Any, sockets: list[socket.socket]) -> None:
        address = re.search(r"http://(\S+)", capsys.readouterr().out)
        assert address is not None
        assert httpx.URL(address[0]).host == host
        socket.create_connection((host, httpx.URL(address[0]).port)).close()

    monkeypatch.setattr(uvicorn.Server, "run", connect)
    words = ["openenv", "MathWord-v0", "--env.size", "micro", "--host", host, "--port", "0"]
    assert main(words) == 0


@pytest.mark.parametrize("module", ["openenv_server", "openenv_client"])
def test_without_the_package(module: str) -> None:
    for _ in without("openenv", module):
        with pytest.raises(MissingExtraError, match=r"openenv-core.*turngym\[openenv\]"):
            importlib.import_module(f"turngym.envs.adapters.{module}")
