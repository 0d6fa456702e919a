"""Services on the internet as tests need them: told answers, counted questions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from helpers.http_servers import QuietServer


@dataclass
class Service:
    """What a server answers, in order; the last answer again and again."""

    answers: list[tuple[int, bytes]] = field(default_factory=lambda: [(200, b"{}")])
    slow_s: float = 0.0
    cut: bool = False  # promises more bytes than come
    place: str = ""  # of a redirect
    url: str = ""
    paths: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def service() -> Iterator[Service]:
    told = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:

            told.paths.append(self.path)
            told.headers.append({k.lower(): v for k, v in self.headers.items()})
            told.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            time.sleep(told.slow_s)
            status, said = told.answers.pop(0) if len(told.answers) > 1 else told.answers[0]
            try:
                self.send_response(status)
                if told.place:
                    self.send_header("Location", told.place)
                self.send_header("Content-Length", str(len(said) + 100 * told.cut))
                self.end_headers()
                self.wfile.write(said)
            except OSError:  # a client that has stopped waiting
                pass

        do_GET = do_POST

        def log_message(self, *args: object) -> None:
            return

    server = QuietServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}/asked"
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def feed(*entries: tuple[str, str, str]) -> bytes:
    """An Atom feed as arXiv's, from (id with version, title, day)."""
    told = "".join(
        f"<entry><id>http://arxiv.org/abs/{paper_id}</id><published>{day}T10:00:00Z</published>"
        f"<title>{title}</title><summary>About\n {title}.</summary></entry>"
        for paper_id, title, day in entries
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<feed xmlns="http://www.w3.org/2005/Atom"><title>Query</title>{told}</feed>'
    ).encode()
