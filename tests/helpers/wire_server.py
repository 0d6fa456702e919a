"""A server that says bytes, whatever HTTP thinks of them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class WireServer:
    """Says ``first`` on every connection, then ``again`` after each pause until nobody listens.

    Without ``again`` it hangs up. Requests are read up to the end of their headers.
    """

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.first, self.again, self.pause_s = b"", b"", 0.0
        self.visits = 0
        self._open = True
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        return self._listening.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def say(self, first: bytes, again: bytes = b"", pause_s: float = 0.0) -> None:
        self.first, self.again, self.pause_s = first, again, pause_s

    def close(self) -> None:
        self._open = False
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listening.accept()
            except OSError:
                return
            self.visits += 1
            threading.Thread(target=self._talk, args=(link,), daemon=True).start()

    def _talk(self, link: socket.socket) -> None:
        with link:
            try:
                said = b""
                while b"\r\n\r\n" not in said and (block := link.recv(1 << 16)):
                    said += block
                link.sendall(self.first)
                while self.again and self._open:
                    link.sendall(self.again)
                    time.sleep(self.pause_s)
                link.shutdown(socket.SHUT_WR)
                while link.recv(1 << 16):  # a reset would overtake what was said
                    pass
            except OSError:
                return  # nobody listens any more


@contextmanager
def wire_server() -> Iterator[WireServer]:
    server = WireServer(socket.create_server(("127.0.0.1", 0)))
    try:
        yield server
    finally:
        server.close()
