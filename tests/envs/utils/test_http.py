"""The HTTP client: what it sends, tries again, refuses, bounds, hides and shares."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from helpers.http_servers import QuietServer
from helpers.wire_server import wire_server

from turngym.envs.core.errors import BadValueError, EnvFault
from turngym.envs.utils import http
from turngym.envs.utils.http import (
    HttpClient,
    HttpError,
    bearer_headers,
    check_url,
    excerpt,
    parse_json,
    wait_in_thread,
)


@dataclass
class Told:
    """What the server answers, the last answer again and again, and what it was asked."""

    answers: list[tuple[int, bytes, dict[str, str]]] = field(default_factory=list)
    slow_s: float = 0.0
    pieces: int = 1
    url: str = ""
    links: int = 0
    asked: list[tuple[str, str, bytes, dict[str, str]]] = field(default_factory=list)

    def say(self, *answers: Any) -> None:
        """Answer with statuses, bodies, or (status, body, headers)."""
        whole = {int: lambda a: (a, b"not now", {}), bytes: lambda a: (200, a, {}), tuple: tuple}
        self.answers = [whole[type(answer)](answer) for answer in answers]


@pytest.fixture
def there() -> Iterator[Told]:
    told = Told()
    told.say(b"{}")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            told.links += 1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            told.asked.append((self.command, self.path, body, headers))
            status, said, more = told.answers.pop(0) if len(told.answers) > 1 else told.answers[0]
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(said))} | more).items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = "Content-Length" in more
            size = -(-len(said) // told.pieces) or 1
            try:
                for at in range(0, len(said), size):
                    time.sleep(told.slow_s)
                    self.wfile.write(said[at : at + size])
            except OSError:  # a client that has stopped waiting
                self.close_connection = True

        do_GET = do_PUT = do_POST

        def log_message(self, *args: object) -> None:
            return

    server = QuietServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}"
    yield told
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses that are noted instead of made."""
    noted: list[float] = []

    class Clock:
        monotonic = staticmethod(time.monotonic)
        sleep = staticmethod(noted.append)

    monkeypatch.setattr(http, "time", Clock)
    return noted


def client(**settings: Any) -> HttpClient:
    return HttpClient(**{"owner": "test", "wait_s": 0.0, "timeout_s": 5.0, **settings})


def test_what_is_sent(there: Told) -> None:
    there.say(b"[1]")
    assert client().send(f"{there.url}/a?b=c") == b"[1]"
    assert client().send(there.url, {"q": "ü"}, headers={"X-Key": "k"}, read=parse_json) == [1]
    client().send(there.url, {}, method="PUT")
    first, second, third = there.asked
    assert first[:3] == ("GET", "/a?b=c", b"")
    assert second[:3] == ("POST", "/", rb'{"q": "\u00fc"}')
    assert second[3]["x-key"] == "k"
    assert second[3]["content-type"] == "application/json"
    assert second[3]["accept-encoding"] == "identity"
    assert third[0] == "PUT"
    assert there.links == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_what_may_pass_is_tried_again(there: Told, status: int, pauses: list[float]) -> None:
    there.say(status, status, b"yes")
    assert client(wait_s=0.5).send(there.url) == b"yes"
    assert pauses == [0.5, 1.0]


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 409])
def test_what_is_refused_is_final(there: Told, status: int) -> None:
    there.say((status, b"no\n such", {"Location": "/other"}), b"yes")
    with pytest.raises(HttpError, match=f"refused the request: status {status}: no such") as caught:
        client().send(there.url)
    assert caught.value.refused
    assert (caught.value.reply.status, caught.value.reply.body) == (status, b"no\n such")
    assert len(there.asked) == 1
    there.say(status, b"yes")
    assert client(retried_statuses=(status,)).send(there.url) == b"yes"


def test_attempts_end_and_pauses_are_bounded(there: Told, pauses: list[float]) -> None:
    there.say(503)
    with pytest.raises(EnvFault, match="gave no answer after 8 attempts: status 503: not now"):
        client(attempts=8, wait_s=1.0).send(there.url)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    with pytest.raises(HttpError, match="after 1 attempt: status 503") as caught:
        client(attempts=1).send(there.url)
    assert not caught.value.refused


def test_retry_after_is_kept_to(there: Told, pauses: list[float]) -> None:
    there.say(*((429, b"", {"Retry-After": after}) for after in ("7", "0", "900", "Wed")), b"yes")
    assert client(attempts=9, wait_s=0.5).send(there.url) == b"yes"
    assert pauses == [7.0, 1.0, 30.0, 4.0]


@pytest.mark.parametrize("form", ["GMT", "-0000"])
def test_retry_after_may_be_a_date(there: Told, pauses: list[float], form: str) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=20)).replace("+0000", form)
    past = "Sun, 06 Nov 1994 08:49:37 GMT"
    nonsense = "Fri, 99 Nov 2026 08:00:00 GMT"
    beyond = f"Fri, 06 Nov {10**20} 08:00:00 GMT"
    dates = soon, past, nonsense, beyond
    there.say(*((429, b"", {"Retry-After": after}) for after in dates), b"yes")
    assert client(attempts=9, wait_s=0.5).send(there.url) == b"yes"
    assert 10.0 < pauses[0] <= 20.0
    assert pauses[1:] == [1.0, 2.0, 4.0]


def test_a_busy_server_is_waited_for_beside_the_attempts(there: Told, pauses: list[float]) -> None:
    busy = (429, b"slow", {"Retry-After": "40"})
    there.say(busy, busy, busy, b"yes")
    assert client(attempts=1, busy_wait_s=90.0).send(there.url) == b"yes"
    assert pauses == [40.0] * 3
    there.say((429, b"slow", {"Retry-After": "91"}))
    with pytest.raises(HttpError, match="status 429: slow") as caught:
        client(busy_wait_s=90.0, retried_statuses=()).send(there.url)
    assert caught.value.reply.after_s == 91.0


def test_unusable_replies_are_tried_again(there: Told) -> None:
    def read(body: bytes) -> int:
        return parse_json(body)["a"][0]

    there.say(b"<html>", b"[1]", b'{"b": 1}', b'{"a": []}', b"[" * 100_000, b'{"a": [7]}')
    assert client(attempts=6).send(there.url, read=read) == 7
    there.say(b"<html>")
    with pytest.raises(HttpError, match=r"cannot be read \(JSONDecodeError: .*\): <html>"):
        client(attempts=2).send(there.url, read=read)
    with pytest.raises(RuntimeError, match="a mistake"):
        client().send(there.url, read=lambda _: (_ for _ in ()).throw(RuntimeError("a mistake")))


def test_time_is_bounded_though_bytes_keep_coming(there: Told) -> None:
    there.say(b"x" * 100)
    there.pieces, there.slow_s = 100, 0.05
    began = time.monotonic()
    with pytest.raises(HttpError, match=r"after 1 attempt: no answer within 0\.2 seconds"):
        client(timeout_s=0.2, attempts=1).send(there.url)
    assert time.monotonic() - began < 1.5


def test_size_is_bounded_and_whole(there: Told) -> None:
    there.say(b"x" * 5000)
    assert len(client(max_bytes=5000).send(there.url)) == 5000
    with pytest.raises(HttpError, match="the reply is larger than 4,999 bytes"):
        client(max_bytes=4999, attempts=1).send(there.url)
    there.say((200, b"half", {"Content-Length": "8"}))
    with pytest.raises(HttpError, match="the connection broke off"):
        client(attempts=1).send(there.url)


def test_absent_servers_and_addresses_that_are_none() -> None:
    with pytest.raises(HttpError, match=r"127\.0\.0\.1:9/x gave no answer .*refused"):
        client(attempts=2).send("http://127.0.0.1:9/x?key=secret")
    with pytest.raises(HttpError, match="UnsupportedProtocol"):
        client(attempts=1).send("localhost")


def test_keys_stay_out_of_messages(there: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "tell-nobody")
    assert bearer_headers("A_KEY") == {"Authorization": "Bearer tell-nobody"}
    assert bearer_headers("NO_KEY") == bearer_headers("") == {}
    said = b"x" * 190 + b"key tell-nobody is wrong"  # the excerpt ends within the key
    url = f"{there.url}/?key=tell-nobody"
    for status in (200, 401, 500):
        there.say((status, said, {}))
        with pytest.raises(HttpError) as caught:
            client(attempts=1).send(url, headers=bearer_headers("A_KEY"), read=parse_json)
        assert "tell" not in f"{caught.value} {caught.value.reply}"
        assert "***" in str(caught.value)
    assert there.asked[-1][3]["authorization"] == "Bearer tell-nobody"
    there.say(500)
    with pytest.raises(HttpError) as caught:  # the address itself may hold one
        client(attempts=1).send(there.url.replace("//", "//user:tell-nobody@"))
    assert "tell" not in str(caught.value)
    for bad in ("two\nlines", "kéy"):
        with pytest.raises(BadValueError, match="header X-Key") as refused:
            client().send(there.url, headers={"X-Key": bad})
        assert bad not in str(refused.value)


@pytest.mark.parametrize("echo", ["HTTP/1.1 401 {}\r\n\r\n", "HTTP/1.1 200 OK\r\n{}\r\n\r\n"])
def test_keys_stay_out_of_messages_about_what_is_no_body(echo: str) -> None:
    with wire_server() as server:
        server.say(echo.format("no key tell-nobody").encode())
        with pytest.raises(HttpError, match=r"\*\*\*") as caught:
            client(attempts=1).send(server.url, headers={"X-Key": "tell-nobody"})
        assert "tell-nobody" not in str(caught.value)


def test_a_request_that_nobody_reads_ends() -> None:
    http._connections.cache_clear()  # one to a server that had the port before may still be open
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(HttpError, match=r"no answer within 0\.2 seconds"):
            client(timeout_s=0.2, attempts=1).send(url, "x" * 20_000_000)
        assert time.monotonic() - began < 2


def test_proxies_are_used_but_not_for_this_machine(
    there: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", there.url)
    http._connections.cache_clear()
    try:
        assert client().send("http://host.invalid/x") == b"{}"
        assert there.asked[0][1] == "http://host.invalid/x"
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        http._connections.cache_clear()
        for url in (there.url, there.url.replace("127.0.0.1", "localhost")):
            assert client().send(url) == b"{}"
        with pytest.raises(HttpError, match="gave no answer"):
            client(attempts=1).send("http://host.invalid/x")
        monkeypatch.setenv("http_proxy", there.url)
        with pytest.raises(HttpError, match="gave no answer"):
            client(attempts=1, proxies=False).send("http://host.invalid/x")
    finally:
        http._connections.cache_clear()


def test_requests_to_one_address_are_apart(there: Told, pauses: list[float]) -> None:
    paced = client(pause_s=20.0)
    for query in "abc":
        paced.send(f"{there.url}/p?{query}")
    client(pause_s=20.0).send(f"{there.url}/other")
    client().send(f"{there.url}/p")
    assert pauses == pytest.approx([20, 40], abs=10)  # less what the requests took


def test_threads_forks_and_pickles(there: Told) -> None:
    one = client()
    assert pickle.loads(pickle.dumps(one)) == one
    broken = pickle.loads(pickle.dumps(HttpError("told")))
    assert str(broken) == "told"
    one.send(there.url)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = int(one.send(there.url) != b"{}")
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert there.links == 2
    one.send(there.url)
    assert there.links == 2


def test_users_share_connections_but_no_cookies(there: Told) -> None:
    there.say((200, b"{}", {"Set-Cookie": "session=secret; Path=/"}))
    for _ in range(2):
        client().send(there.url)
    assert "cookie" not in there.asked[1][3]
    assert there.links == 1


def test_many_requests_wait_together(there: Told) -> None:
    there.slow_s = 0.2

    async def ask() -> list[bytes]:
        asks = (wait_in_thread(lambda: client().send(there.url)) for _ in range(20))
        return await asyncio.gather(*asks)

    began = time.monotonic()
    assert asyncio.run(ask()) == [b"{}"] * 20
    assert time.monotonic() - began < 2.5


def test_a_cancelled_wait_is_not_waited_for(there: Told) -> None:
    there.slow_s = 3.0

    async def ask() -> None:
        await asyncio.wait_for(wait_in_thread(lambda: client().send(there.url)), 0.1)

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(ask())
    assert time.monotonic() - began < 1.5

    async def fail() -> None:
        await wait_in_thread(lambda: client(timeout_s=0.1, attempts=1).send(there.url))

    with pytest.raises(HttpError, match="no answer within"):
        asyncio.run(fail())


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout_s": 0},
        {"timeout_s": True},
        {"wait_s": float("nan")},
        {"pause_s": -1},
        {"attempts": 0},
        {"attempts": 1.0},
        {"attempts": True},
    ],
)
def test_settings_out_of_range(settings: dict[str, Any]) -> None:
    with pytest.raises(BadValueError, match=f"test: {next(iter(settings))} is"):
        client(**settings)


def test_addresses() -> None:
    for good in ("http://h", "https://[::1]:80/a", "http://localhost:8000/v1"):
        assert check_url(good, "x") == good
    for bad in ("h:8000", "", "http://", "http://h:x", "http://h:0", "ftp://h", None, b"http://h"):
        with pytest.raises(BadValueError, match=r"it is .*; expected an address"):
            check_url(bad, "it")
    for bad in ("http://u@h", "http://h/?a", "http://h#a", "http://h/a b", "http://hé"):
        with pytest.raises(BadValueError, match="expected an address"):
            check_url(bad, "it")


def test_excerpts() -> None:
    assert excerpt(b"a\n  b\xff") == "a b\ufffd"
    assert excerpt({"a": [1]}) == '{"a": [1]}'
    assert excerpt(b"x" * 300) == "x" * 200 + "…"


def test_httpx_is_imported_when_something_is_sent() -> None:
    code = (
        "import sys, json, turngym.envs.tools.retrieval.http, turngym.envs.wrappers.season_client;"
        "print(json.dumps('httpx' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) is False
