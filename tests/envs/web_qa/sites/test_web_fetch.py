"""One guarded request: what is asked is what was checked."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from helpers.web_server import Web, move, served

from turngym.envs.web_qa.sites.fetch import Fetcher, Unreachable, resolve
from turngym.envs.web_qa.sites.rules import BadAddress, Rules


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with served() as web:
        yield web


def fetcher(web: Web, **settings: Any) -> Fetcher:
    return Fetcher(rules=Rules(allow=(web.host,), allow_private=True), **settings)


def named(web: Web, *answers: Sequence[str], allow_private: bool = False) -> Fetcher:
    """Everything named ``*.test`` at the server's port; each look-up takes the next answer."""
    left = list(answers)
    rules = Rules(allow=(f"*.test:{web.port}",), allow_private=allow_private)
    return Fetcher(rules=rules, resolve=lambda *_: left.pop(0))


def test_a_page_comes_back(web: Web) -> None:
    found = fetcher(web)(f"{web.url}/lum#part")
    assert (found.address, found.kind) == (f"{web.url}/lum", "text/plain")
    assert found.body.startswith(b"Lum Tor is a town.")
    assert fetcher(web)(f"{web.url}/old").address == f"{web.url}/ada"
    assert fetcher(web)(f"{web.url}/latin").charset == "latin-1"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/nothing", "status 404 Gone fishing"),
        ("/picture", "it is image/gif"),
        ("/zipped", "compressed"),
        ("/large", "larger than 2,000 bytes"),
        ("/endless", "larger than 2,000 bytes"),
        ("/circle", "more than 5 redirects"),
        ("/gone", r"has moved \(status 302\) and does not say where"),
    ],
)
def test_what_cannot_be_shown_says_why(web: Web, path: str, reason: str) -> None:
    before = len(web.asked)
    with pytest.raises(BadAddress, match=reason):
        fetcher(web, max_bytes=2000)(f"{web.url}{path}")
    assert len(web.asked) - before == (6 if path == "/circle" else 1)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/mute", "no answer within 0.3 seconds"),
        ("/drip", "no answer within 0.3 seconds"),
        ("/odd", "SMTP"),
        ("/short", "broke off after 4 bytes"),
    ],
)
def test_a_server_that_gives_no_answer(web: Web, path: str, reason: str) -> None:
    start = time.monotonic()
    with pytest.raises(Unreachable, match=reason):
        fetcher(web, timeout_s=0.3)(f"{web.url}{path}")
    assert time.monotonic() - start < 1.5


def test_a_server_that_is_busy_or_away(web: Web) -> None:
    web.fails["/busy"] = 1
    with pytest.raises(Unreachable, match="status 503"):
        fetcher(web)(f"{web.url}/busy")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        away = Fetcher(rules=Rules(allow=(host,), allow_private=True))
        with pytest.raises(Unreachable, match=host):
            away(f"http://{host}/")


def test_this_machine_is_refused_unless_the_caller_says_so(web: Web) -> None:
    before = len(web.asked)
    shut = Fetcher(rules=Rules(allow=(web.host, f"localhost:{web.port}")))
    for host in (web.host, f"localhost:{web.port}", f"[::ffff:127.0.0.1]:{web.port}"):
        with pytest.raises(BadAddress, match="not on the public internet"):
            shut(f"http://{host}/ada")
    assert len(web.asked) == before


def test_a_name_that_means_this_machine_is_refused(web: Web) -> None:
    before = len(web.asked)
    for ips in (["127.0.0.1"], ["::1"], ["93.184.216.34", "127.0.0.1"], ["169.254.169.254"]):
        with pytest.raises(BadAddress, match=r"good\.test may not be visited"):
            named(web, ips)(f"http://good.test:{web.port}/ada")
    assert len(web.asked) == before


def test_a_name_is_looked_up_once_and_that_machine_is_asked(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebinding: a second look-up would give another machine, so there must be none."""
    asked: list[tuple[str, int]] = []
    looked: list[str] = []
    connect = socket.create_connection

    def watched(place: tuple[str, int], timeout: float) -> socket.socket:
        asked.append(place)
        return connect(("127.0.0.1", web.port), timeout=timeout)

    def flips(host: str, port: int) -> list[str]:
        looked.append(host)
        return ["93.184.216.34"] if len(looked) == 1 else ["127.0.0.1"]

    monkeypatch.setattr(socket, "create_connection", watched)
    ask = Fetcher(rules=Rules(allow=(f"good.test:{web.port}",)), resolve=flips)
    assert ask(f"http://good.test:{web.port}/lum").kind == "text/plain"
    assert asked == [("93.184.216.34", web.port)]
    assert looked == ["good.test"]
    with pytest.raises(BadAddress, match="not on the public internet"):
        ask(f"http://good.test:{web.port}/lum")
    assert len(asked) == 1


def test_encryption_is_never_left_out(web: Web) -> None:
    with pytest.raises(Unreachable, match=web.host):
        fetcher(web)(f"https://{web.host}/ada")


@pytest.mark.parametrize(
    "place",
    [
        "http://127.0.0.1:{port}/ada",
        "http://localhost:{port}/ada",
        "http://inside.test:{port}/ada",
        "http://2130706433:{port}/ada",
        "//[::1]:{port}/ada",
        "ftp://good.test/",
        "http://user@good.test:{port}/",
        "http://[broken/",
    ],
)
def test_redirects_are_checked_one_by_one(web: Web, place: str) -> None:
    web.pages["/leave"] = lambda handler: move(handler, place.format(port=web.port))
    rules = Rules(allow=(f"*.test:{web.port}",))
    asked: list[str] = []

    class Local(Rules):
        """Lets only the first host pass as if it were public."""

        def check_ip(self, host: str, ip: str) -> None:
            asked.append(host)
            if host != "good.test":
                rules.check_ip(host, ip)

    ask = Fetcher(rules=Local(allow=rules.allow), resolve=lambda *_: ["127.0.0.1"])
    before = len(web.asked)
    with pytest.raises(BadAddress):
        ask(f"http://good.test:{web.port}/leave")
    assert len(web.asked) == before + 1
    assert asked[0] == "good.test"


def test_the_second_address_of_a_host_is_tried(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.create_connection

    def first_is_down(place: tuple[str, int], timeout: float) -> socket.socket:
        if place[0] == "127.0.0.9":
            raise ConnectionRefusedError("down")
        return connect(place, timeout=timeout)

    monkeypatch.setattr(socket, "create_connection", first_is_down)
    ask = named(web, ["127.0.0.9", "127.0.0.1"], allow_private=True)
    assert ask(f"http://good.test:{web.port}/lum").kind == "text/plain"


def test_names_that_there_are_none_of() -> None:
    with pytest.raises((BadAddress, Unreachable)):
        resolve("no-such-host.invalid", 80)
    with pytest.raises(Unreachable, match="has no address"):
        Fetcher(rules=Rules(allow=("x.test",)), resolve=lambda *_: [])("http://x.test/")
