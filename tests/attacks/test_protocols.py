"""Servers and clients of MCP and OpenEnv whose other end does not keep to the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.attack_cases import cases, joined
from helpers.http_servers import serve_app

from turngym.envs.core.errors import DataError

SETTINGS = {"size": "micro", "hops": 1}
PATIENCE_S = 20.0
LEAKS = "Traceback", "site-packages", os.path.expanduser("~") + "/"
PROGRAM = "import sys; from turngym.benchmarks.cli.main import main; sys.exit(main(sys.argv[1:]))"


class Lines:
    """A program that is talked to line by line."""

    def __init__(self, words: list[str]) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ),
        )
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._to, self._from = self._program.stdin, self._program.stdout
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._from, selectors.EVENT_READ)
        self._said = b""
        self._asked = 1000

    def send(self, line: bytes) -> None:
        self._to.write(line + b"\n")
        self._to.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The reply to a request of ours, whatever comes before it."""
        self._asked += 1
        request = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self.send(json.dumps(request).encode())
        while (reply := json.loads(self._line())).get("id") != self._asked:
            assert "Traceback" not in str(reply)
        return reply

    def _line(self) -> bytes:
        until = time.monotonic() + PATIENCE_S
        while b"\n" not in self._said:
            assert self._ready.select(until - time.monotonic()), "no reply"
            block = os.read(self._from.fileno(), 1 << 16)
            assert block, "the server has ended"
            self._said += block
        line, _, self._said = self._said.partition(b"\n")
        return line

    def end(self) -> int:
        self._to.close()
        code = self._program.wait(PATIENCE_S)
        self._ready.close()
        self._from.close()
        return code


@pytest.fixture(scope="module")
def lines() -> Iterator[Lines]:
    pytest.importorskip("mcp", reason="mcp is not installed; make test-adapters has it")
    server = Lines(["mcp", "MathWord-v0", "--env.size", "micro"])
    about = {"name": "mallory", "version": "0"}
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    assert "result" in server.ask("initialize", **greeting)
    server.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    yield server
    assert server.end() == 0


@pytest.mark.parametrize("case", cases("protocols", "mcp"))
def test_lines_that_are_no_mcp(lines: Lines, case: dict[str, Any]) -> None:
    """The server goes on, and an episode can be started."""
    lines.send(joined(case["text"]).encode("latin-1"))
    reply = lines.ask("tools/call", name="new_episode", arguments={"seed": 3})
    assert reply["result"]["isError"] is False


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    pytest.importorskip("openenv", reason="openenv is not installed; make test-adapters has it")
    from turngym.envs.adapters.openenv_server import openenv_app

    with serve_app(openenv_app("SearchQA-v0", SETTINGS)) as address:
        yield address


@pytest.mark.parametrize("case", cases("protocols", "openenv"))
def test_messages_that_are_no_openenv(served: str, case: dict[str, Any]) -> None:
    """One reply or the end of the connection, and the next visitor plays."""
    import httpx
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    begin = '{"type": "reset", "data": {"seed": 3, "split": "test", "task": 0}}'
    text = joined(case["text"])
    with connect(served.replace("http", "ws") + "/ws") as visitor:
        visitor.send(begin)
        assert json.loads(visitor.recv(PATIENCE_S))["type"] == "observation"
        visitor.send(text)
        try:
            said = str(visitor.recv(PATIENCE_S))
        except ConnectionClosed:
            said = ""
    for leak in LEAKS:
        assert leak not in said
    assert '"solved"' not in said
    limits = httpx.Limits(max_keepalive_connections=0)  # a fault closes its connection
    with httpx.Client(
        base_url=served, trust_env=False, timeout=PATIENCE_S, limits=limits
    ) as visitor:
        for place in ("/reset", "/step", "/mcp"):
            body = text.encode("utf-8", "replace")
            reply = visitor.post(place, content=body, headers={"Content-Type": "application/json"})
            for leak in LEAKS:
                assert leak not in reply.text
        assert visitor.post("/reset", json={"seed": 3}).status_code == 200


class Liar:
    """A server of websockets that answers any message with ``said``."""

    def __init__(self) -> None:
        from websockets.sync.server import serve

        self.said = ""
        self.server = serve(self._answer, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.socket.getsockname()[1]}"

    def _answer(self, link: Any) -> None:
        for _ in link:
            link.send(self.said)


@pytest.fixture(scope="module")
def liar() -> Iterator[Liar]:
    pytest.importorskip("openenv", reason="openenv is not installed; make test-adapters has it")
    import threading

    made = Liar()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()


@pytest.mark.parametrize("case", cases("protocols", "openenv-client"))
def test_an_openenv_server_that_lies(liar: Liar, case: dict[str, Any]) -> None:
    """A fault that names the server, in one line; never a reward that is no number."""
    from turngym.envs.adapters.openenv_client import TextEnvClient

    liar.said = joined(case["text"])

    async def play() -> None:
        async with TextEnvClient(base_url=liar.url, message_timeout_s=PATIENCE_S) as client:
            for ask in (client.reset, lambda: client.step("x")):
                with pytest.raises(DataError, match="the OpenEnv client") as caught:
                    await ask()
                assert len(str(caught.value)) < 2000

    asyncio.run(play())


def test_an_openenv_state_that_is_none(liar: Liar) -> None:
    from turngym.envs.adapters.openenv_client import TextEnvClient

    client = TextEnvClient(base_url=liar.url)
    with pytest.raises(DataError, match="state is none"):
        client._parse_state({"step_count": "many"})
    assert client._parse_state({"step_count": 2}).step_count == 2
