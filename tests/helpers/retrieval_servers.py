"""Retrieval servers for tests: any answer, counted, stopped and slowed at will."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from helpers.http_servers import QuietServer

from turngym.envs.tools.retrieval.http import HttpRetriever


class Stock:
    """A server as Search-R1's: what it answers, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.paths: list[str] = []
        self.links = 0
        self.statuses: list[int] = []  # of the next answers; then 200
        self.slow_s = 0.0
        self.dying = False  # closes connections without an answer
        self.health: Any = None  # None: the route is missing
        self.said: bytes | None = None  # instead of an answer
        self.answer: Callable[[str, int], list[Any]] = passages
        self.url = ""

    def reply(self, path: str, body: bytes) -> tuple[int, bytes]:
        self.paths.append(path)
        if path.endswith("/health"):
            return (404, b"{}") if self.health is None else (200, json.dumps(self.health).encode())
        self.asked.append(body)
        time.sleep(self.slow_s)
        if self.statuses and (status := self.statuses.pop(0)) != 200:
            return status, b'{"detail":"not now"}'
        if self.said is not None:
            return 200, self.said
        ask = json.loads(body)
        result = [self.answer(query, ask["topk"] or 3) for query in ask["queries"]]
        return 200, json.dumps({"result": result}).encode()


def passages(query: str, k: int) -> list[Any]:
    return [
        {
            "document": {"id": f"{query}-{i}", "contents": f'"About {query}"\nText {i}.'},
            "score": 9 - i,
        }
        for i in range(k)
    ]


@contextlib.contextmanager
def stock_server(port: int = 0) -> Iterator[Stock]:
    stock = Stock()
    kept: list[socket.socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            stock.links += 1
            kept.append(self.connection)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if stock.dying:
                self.close_connection = True
                return
            status, said = stock.reply(self.path, body)
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)
            except OSError:  # a client that has stopped waiting
                self.close_connection = True

        do_GET = do_POST

        def log_message(self, *args: object) -> None:
            return

    server = QuietServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    stock.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield stock
    finally:
        server.shutdown()
        server.server_close()
        for connection in kept:
            with contextlib.suppress(OSError):  # its client has closed it
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()


def client(stock: Stock, **settings: Any) -> HttpRetriever:
    return HttpRetriever(stock.url, **{"wait_s": 0.01, "timeout_s": 5.0, **settings})
