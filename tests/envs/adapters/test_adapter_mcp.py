"""MCP: a client over memory, and the server as a program over standard input and output."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from helpers.adapter_play import (
    MICRO,
    SEARCH,
    SESSIONS,
    TALKING,
    as_call,
    broken_world,
    modules,
    played,
    without,
)

from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs.adapters.conversation import task_rows
from turngym.envs.adapters.tool_view import NOTE
from turngym.envs.core.errors import BadValueError, MissingExtraError, UnknownNameError

needs_mcp = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None,
    reason="mcp is not installed; `make test-adapters` tests against it",
)
META = "turngym/episode"


@pytest.fixture
def adapter() -> Any:
    return importlib.import_module("turngym.envs.adapters.mcp_server")


def text(result: Any) -> str:
    return "".join(part.text for part in result.content)


@needs_mcp
@pytest.mark.parametrize("env_id", TALKING)
def test_an_expert_s_episode(adapter: Any, env_id: str) -> None:
    from mcp import Client

    direct = played(env_id)
    tools = adapter.McpEnvironment(env_id, MICRO).game.action_tools

    async def play() -> Any:
        async with Client(adapter.mcp_server(env_id, MICRO)) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == ["new_episode", *tools]
            for tool in listed[1:]:
                assert tool.input_schema == dict(tools[tool.name].parameters)
            row = {key: direct.row[key] for key in ("split", "task", "seed")}
            started = await client.call_tool("new_episode", row)
            assert text(started).replace(NOTE, "", 1) == direct.prompt
            for action in direct.actions:
                last = await client.call_tool(*as_call(action, tools))
                assert not last.is_error
            late = await client.call_tool(*as_call(action, tools))
            assert late.is_error
            assert "over" in text(late)
            return last

    last = asyncio.run(play())
    report = last.meta[META]
    assert text(last) == f"{direct.observations[-1]}\nThe episode is over ({direct.status})."
    assert report["done"]
    assert report["return"] == pytest.approx(direct.total)
    assert report["terms"] == pytest.approx(direct.terms)
    assert report["metrics"]["success"] == 1


@needs_mcp
def test_refusals_are_error_results(adapter: Any) -> None:
    from mcp import Client

    environment = adapter.McpEnvironment("SearchQA-v0", SEARCH)

    async def play() -> None:
        async with Client(adapter.mcp_server("SearchQA-v0", SEARCH, split="test")) as client:
            for name, arguments, reason in (
                ("search", {"query": "x"}, "no episode yet"),
                ("new_episode", {"sed": 3}, "unknown argument 'sed'"),
                ("new_episode", {"split": "tset"}, "Did you mean 'test'"),
                ("new_episode", {"task": -1}, "not in split"),
                ("serach", {}, "Did you mean 'search'"),
            ):
                result = await client.call_tool(name, arguments)
                assert result.is_error
                assert reason in text(result)
            for given in ({}, {"split": None, "task": None, "seed": None}):
                started = await client.call_tool("new_episode", given)
                assert started.meta[META]["split"] == "test"
            wrong = await client.call_tool("search", {"words": "x"})
            assert not wrong.is_error
            assert "invalid" in text(wrong)

    asyncio.run(play())
    for env_id in SESSIONS:
        with pytest.raises(BadValueError, match="opens sessions"):
            adapter.mcp_server(env_id, MICRO)
    with pytest.raises(UnknownNameError, match="Did you mean 'test'"):
        adapter.mcp_server("SearchQA-v0", SEARCH, split="tset")
    environment._call("new_episode", {"seed": 1})
    broken_world(environment.game.talk)
    from types import SimpleNamespace

    call = SimpleNamespace(name="search", arguments={"query": "x"})
    result = asyncio.run(environment.call_tool(None, call))
    assert result.is_error
    assert result.meta[META] == {"status": "env_error"}


@needs_mcp
def test_the_command_serves_over_standard_input_and_output() -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    words = ["mcp", "MathWord-v0", "--env.size", "micro"]
    program = (
        "import sys; from turngym.benchmarks.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    server = StdioServerParameters(
        command=sys.executable, args=["-c", program, *words], env=dict(os.environ)
    )
    direct = played("MathWord-v0")

    async def play() -> Any:
        async with Client(stdio_client(server)) as client:
            row = {key: direct.row[key] for key in ("task", "seed")}
            await client.call_tool("new_episode", row)
            answer = direct.actions[0].partition("<answer>")[2].partition("</answer>")[0]
            return await client.call_tool("answer", {"answer": answer.strip()})

    assert json.loads(json.dumps(asyncio.run(play()).meta[META]))["status"] == "solved"


@needs_mcp
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_server_whose_client_stays(number: signal.Signals) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    words = [sys.executable, "-m", "turngym", "mcp", "MathWord-v0", "--env.size", "micro"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(hello).encode() + b"\n")
        server.stdin.flush()
        assert b"serverInfo" in server.stdout.readline()
        server.send_signal(number)
        try:
            assert server.wait(20) == 128 + number
        finally:
            server.kill()


@needs_mcp
def test_an_evaluated_agent_does_not_choose_its_tasks(adapter: Any) -> None:
    from mcp import Client

    rows = list(task_rows("SearchQA-v0", 2, split="test", seed=5, settings=SEARCH))
    server = adapter.mcp_server("SearchQA-v0", SEARCH, fixed=rows)

    async def play() -> None:
        async with Client(server) as client:
            start, *_ = (await client.list_tools()).tools
            assert start.input_schema["properties"] == {}
            for choice in ({"task": 7}, {"split": "train"}, {"seed": 1}):
                result = await client.call_tool("new_episode", choice)
                assert result.is_error
                assert "the tasks are fixed" in text(result)
            for row in rows:
                report = (await client.call_tool("new_episode", {})).meta[META]
                assert (report["split"], report["task"]) == ("test", row["task"])
                again = await client.call_tool("new_episode", {})
                assert again.is_error
                assert "not over" in text(again)
                done = False
                while not done:
                    done = (await client.call_tool("search", {"query": "x"})).meta[META]["done"]
            late = await client.call_tool("new_episode", {})
            assert late.is_error
            assert "all episodes have been played" in text(late)

    asyncio.run(play())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--n", "2"], "give that too"),
        (["--seed", "2"], "give that too"),
        (["--fixed", "--n", "0"], "--n is 0"),
        (["--fixed", "--n", "10_000_000"], "10000000 were asked for"),
        (["--fixed", "--split", "tset"], "Did you mean 'test'"),
    ],
)
def test_fixed_episodes_that_do_not_exist(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "SearchQA-v0", "--env.size", "micro", *words]) == REFUSED
    assert line in capsys.readouterr().err


def test_without_the_package() -> None:
    for _ in without("mcp", "mcp_server"):
        with pytest.raises(MissingExtraError, match=r"mcp>=2.*turngym\[mcp\]"):
            importlib.import_module("turngym.envs.adapters.mcp_server")


def test_the_first_version_of_the_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    first = modules(
        mcp={"types": None},
        mcp__server__lowlevel={"Server": None},
        mcp__server__stdio={"stdio_server": None},
    )
    for module, made in first.items():
        monkeypatch.setitem(sys.modules, module, made)
    monkeypatch.delitem(sys.modules, "turngym.envs.adapters.mcp_server", raising=False)
    with pytest.raises(MissingExtraError, match=r"mcp>=2.*'Client'"):
        importlib.import_module("turngym.envs.adapters.mcp_server")
