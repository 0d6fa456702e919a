"""How a server that is interrupted ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
