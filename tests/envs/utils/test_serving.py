"""How a server that is interrupted ends, and the sockets of servers."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import pytest

from turngym.envs.utils.serving import bind_socket

pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")

SERVER = """
import signal, socket, sys, threading, time
import uvicorn
from fastapi import FastAPI
from turngym.envs.utils.serving import serve

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored behind `&` of a shell
server = uvicorn.Server(uvicorn.Config(FastAPI(), log_level="warning"))

def interrupt():
    while not server.started:
        time.sleep(0.01)
    for _ in range(int(sys.argv[1])):
        server.handle_exit(signal.SIGINT, None)  # as the signal does

threading.Thread(target=interrupt).start()
with socket.create_server(("127.0.0.1", 0)) as bound:
    try:
        serve(server, bound)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("times", ["1", "2"])
def test_an_interrupted_server_says_nothing_and_passes_it_on(times: str) -> None:
    words = [sys.executable, "-c", SERVER, times]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_connections_to_a_bound_socket_send_at_once() -> None:
    """Each answer on a kept connection took 40 ms: its second part waited for a receipt."""

    async def asked() -> list[int]:
        found: list[int] = []

        async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            mine = writer.get_extra_info("socket")
            found.append(mine.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with bind_socket("127.0.0.1", 0, "here") as bound:
            server = await asyncio.start_server(connected, sock=bound)
            async with server:
                reader, writer = await asyncio.open_connection(*bound.getsockname())
                await reader.read()
                writer.close()
        return found

    (at_once,) = asyncio.run(asked())
    assert at_once
