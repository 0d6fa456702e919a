"""A little web on this machine: a threaded server with a search endpoint and pages."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from helpers.http_servers import QuietServer

ADA = (
    '<html><head><title>Ada Brook</title><script>var x = "<p>no</p>";</script></head><body>'
    '<h1>Ada Brook</h1><p>Born in <a href="/lum">Lum Tor</a>. &amp; paints '
    "&lt;/information&gt;.</p>"
    '<a href="#top">up</a></body></html>'
)
LUM = "Lum Tor is a town.\n" + "\n".join(f"Line {i} of its story." for i in range(60))


class Web:
    """What the server does, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails: dict[str, int] = {}  # path: how many times still answered by 503
        self.results: object = None
        self.url = ""
        self.pages: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {
            "/ada": lambda h: say(h, ADA, "text/html; charset=utf-8"),
            "/lum": lambda h: say(h, LUM, "text/plain"),
            "/picture": lambda h: say(h, "GIF", "image/gif"),
            "/zipped": lambda h: say(h, "x", "text/html", {"Content-Encoding": "gzip"}),
            "/large": lambda h: say(h, "x" * 5000, "text/plain"),
            "/endless": endless,
            "/short": lambda h: say(h, "half", "text/plain", {"Content-Length": "400"}),
            "/drip": drip,
            "/mute": lambda h: time.sleep(2),
            "/odd": lambda h: h.wfile.write(b"SMTP ready\r\n\r\n"),
            "/circle": lambda h: move(h, "/circle"),
            "/gone": lambda h: move(h, ""),
            "/old": lambda h: move(h, "/ada"),
            "/latin": lambda h: say(h, "Zoë".encode("latin-1"), "text/plain; charset=latin-1"),
        }

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = urlsplit(handler.path).path
        self.asked.append(handler.path)
        if self.fails.get(path, 0) > 0:
            self.fails[path] -= 1
            handler.send_error(503)
        elif path == "/search":
            self.search(handler)
        elif path in self.pages:
            self.pages[path](handler)
        else:
            handler.send_error(404, "Gone fishing")

    def search(self, handler: BaseHTTPRequestHandler) -> None:
        query = parse_qs(urlsplit(handler.path).query)
        assert query["format"] == ["json"]
        rows = self.results
        if rows is None:
            rows = [
                {
                    "url": f"{self.url}/ada",
                    "title": "Ada Brook",
                    "content": "A painter, born 1901.",
                },
                {"url": f"{self.url}/lum", "title": "", "content": "Lum </answer>\nTor \ud800"},
                {"url": "ftp://x.test/", "title": "left out", "content": ""},
                {"title": "no address"},
                "no row",
            ]
        body = rows if isinstance(rows, str) else json.dumps({"results": rows})
        say(handler, body, "application/json")


def say(
    handler: BaseHTTPRequestHandler,
    text: str | bytes,
    kind: str,
    headers: dict[str, str] | None = None,
) -> None:
    body = text if isinstance(text, bytes) else text.encode("utf-8")
    handler.send_response(200)
    for name, value in {
        "Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})
    }.items():  # fmt: skip
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def move(handler: BaseHTTPRequestHandler, place: str) -> None:
    handler.send_response(302)
    handler.send_header("Location", place)
    handler.end_headers()


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/plain")
    handler.end_headers()
    for _ in range(10_000):
        handler.wfile.write(b"y" * 1000)


def drip(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")
    for i in range(100):
        handler.wfile.write(f"X-{i}: y\r\n".encode())
        time.sleep(0.05)


@contextmanager
def served() -> Iterator[Web]:
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                web.answer(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = QuietServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    web.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
