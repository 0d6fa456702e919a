"""A local server that speaks OpenAI's protocol and says what a test tells it to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from helpers.http_servers import QuietServer

Reply = str | int | dict[str, Any] | Callable[[dict[str, Any]], Any]
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


class ModelServer(QuietServer):
    """Replies in order, the last one over and over.

    A text is a completion, an int a status, ``{"raw": bytes, "status": ..., "headers": ...,
    "wait": ...}`` anything else, a dict without ``raw`` a body, a function makes one of these from
    the request.
    """

    daemon_threads = True

    def __init__(self, *replies: Reply) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = list(replies)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def next(self, request: dict[str, Any], headers: dict[str, str]) -> Any:
        with self._lock:
            reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
            self.asked.append(request)
            self.headers.append(headers)
        return reply(request) if callable(reply) else reply

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up waiting is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(size)) | {"path": self.path}
        reply = self.server.next(request, dict(self.headers))
        status, body, headers = 200, b"", {}
        if isinstance(reply, int):
            status, body = reply, b'{"error": {"message": "no"}}'
        elif isinstance(reply, str):
            body = json.dumps(completion(reply, chat="chat" in self.path)).encode()
        elif "raw" in reply:
            time.sleep(reply.get("wait", 0))
            status, body, headers = reply.get("status", 200), reply["raw"], reply.get("headers", {})
        else:
            body = json.dumps(reply).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def completion(text: str, *, chat: bool = True, finish: str = "stop", **more: Any) -> Any:
    """The body of a reply; ``more`` goes into its choice."""
    said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    return {"choices": [{**said, "finish_reason": finish, **more}], "usage": USAGE}


@contextmanager
def serving(*replies: Reply) -> Iterator[ModelServer]:
    server = ModelServer(*replies)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
