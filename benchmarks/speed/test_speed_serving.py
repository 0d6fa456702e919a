"""A request on a kept connection to our servers: ``pytest benchmarks --benchmark-only -s``.

What it is compared with is a socket that does not name its protocol, on which the second part of an
answer waits for the receipt of the first one.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import pytest

from turngym.envs.utils.serving import bind_socket

pytest.importorskip("fastapi")
uvicorn = pytest.importorskip("uvicorn")

from fastapi import FastAPI  # noqa: E402

REQUESTS, ROUNDS = 25, 5


@contextmanager
def served(bound: socket.socket) -> Iterator[http.client.HTTPConnection]:
    """A connection to a server that answers at once."""
    app = FastAPI()
    app.get("/")(lambda: {"text": "x" * 200})
    server: Any = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    connection = http.client.HTTPConnection("127.0.0.1", bound.getsockname()[1], timeout=30)
    try:
        yield connection
    finally:
        connection.close()
        server.should_exit = True
        thread.join()


def ask(connection: http.client.HTTPConnection) -> float:
    """Seconds of a request, the median of some."""
    took = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        connection.request("GET", "/")
        assert connection.getresponse().read()
        took.append(time.perf_counter() - began)
    return median(took)


def test_kept_connection(benchmark: Any) -> None:
    plain = socket.socket()
    plain.bind(("127.0.0.1", 0))
    found: list[tuple[float, float]] = []
    with served(bind_socket("127.0.0.1", 0, "here")) as ours, served(plain) as other:
        benchmark.pedantic(lambda: found.append((ask(ours), ask(other))), rounds=ROUNDS)
    fast, slow = (median(side) for side in zip(*found, strict=True))
    ratio = median(late / soon for soon, late in found)
    benchmark.extra_info |= {"ms": 1e3 * fast, "ratio": ratio}
    print(f"\n{1e3 * fast:.1f} ms a request, {1e3 * slow:.1f} where it waits: {ratio:.1f} times")
    assert ratio > 2
