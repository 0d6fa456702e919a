"""Addresses in disguise: guarded fetching asks no machine that it may not ask."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.attack_cases import cases
from helpers.web_server import Web, move, served

from turngym.envs.web_qa.sites.fetch import Fetcher
from turngym.envs.web_qa.sites.rules import BadAddress, Rules, is_public, read_address

ANYWHERE = Rules(allow=("*", "*:1", "*:8080"))
PORT = 8080


class Asked(AssertionError):
    """A connection was tried."""


@pytest.fixture
def no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*place: Any, **_: Any) -> None:
        raise Asked(place)

    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with served() as web:
        yield web


@pytest.mark.parametrize("case", cases("addresses", "ip"))
def test_machines_that_are_not_public(case: dict[str, Any], no_connections: None) -> None:
    ip = case["ip"]
    assert not is_public(ipaddress.ip_address(ip))
    host = f"[{ip}]" if ":" in ip else ip
    listed = Rules(allow=(host, "*"))  # even by a rule that names it
    with pytest.raises(BadAddress):
        Fetcher(rules=listed, resolve=lambda *_: [ip])(f"http://{host}/")


@pytest.mark.parametrize("case", cases("addresses", "address"))
def test_addresses_that_are_none(case: dict[str, Any], no_connections: None) -> None:
    with pytest.raises(BadAddress):
        read_address(case["address"])
    with pytest.raises(BadAddress) as caught:
        Fetcher(rules=ANYWHERE, resolve=lambda *_: ["93.184.216.34"])(case["address"])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("case", cases("addresses", "stranger"))
def test_hosts_that_nobody_allowed(case: dict[str, Any], no_connections: None) -> None:
    looked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        looked.append(host)
        return ["93.184.216.34"]

    with pytest.raises(BadAddress):
        Fetcher(rules=Rules(allow=("good.test",)), resolve=resolve)(case["address"])
    assert looked == []


@pytest.mark.parametrize("case", cases("addresses", "name"))
def test_names_that_mean_other_machines(case: dict[str, Any], no_connections: None) -> None:
    ask = Fetcher(rules=Rules(allow=("*.test",)), resolve=lambda *_: case["ips"])
    with pytest.raises(BadAddress, match="not on the public internet"):
        ask("http://good.test/")


@pytest.mark.parametrize("case", cases("addresses", "name"))
def test_names_that_change_their_mind(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebinding: public at the first look, something else at every later one."""
    asked: list[Any] = []
    answers = [["93.184.216.34"]]

    def connect(place: Any, timeout: float) -> socket.socket:
        asked.append(place)
        raise ConnectionRefusedError("nobody is asked in a test")

    monkeypatch.setattr(socket, "create_connection", connect)
    rules = Rules(allow=("*.test",))
    ask = Fetcher(rules=rules, resolve=lambda *_: answers.pop() if answers else case["ips"])
    with pytest.raises(OSError, match="nobody is asked"):
        ask("http://good.test/")
    assert asked == [("93.184.216.34", 80)]  # the machine that was checked, and no other
    with pytest.raises(BadAddress):
        ask("http://good.test/")
    assert len(asked) == 1


@pytest.mark.parametrize("case", cases("addresses", "redirect"))
def test_redirects(web: Web, case: dict[str, Any]) -> None:
    place = case["location"].format(port=web.port)
    web.pages["/leave"] = lambda handler: move(handler, place)
    rules = Rules(allow=(f"*.test:{web.port}",))

    class FirstIsPublic(Rules):
        """Takes the first host for a public one; it is on this machine, as all servers of tests."""

        def check_ip(self, host: str, ip: str) -> None:
            if host != "good.test":
                rules.check_ip(host, ip)

    before = len(web.asked)
    ask = Fetcher(rules=FirstIsPublic(allow=rules.allow), resolve=lambda *_: ["127.0.0.1"])
    with pytest.raises(BadAddress):
        ask(f"http://good.test:{web.port}/leave")
    assert len(web.asked) == before + 1
