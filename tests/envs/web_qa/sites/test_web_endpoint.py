"""The web by an endpoint: searching, opening, and what happens when something breaks."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.web_server import Web, move, say, served

from turngym.envs.core.errors import BadValueError, EnvFault
from turngym.envs.web_qa.env import WebQA
from turngym.envs.web_qa.sites.endpoint import EndpointSite
from turngym.envs.web_qa.sites.fetch import Fetcher
from turngym.envs.web_qa.sites.pages import NoPage, Page
from turngym.envs.web_qa.sites.rules import Rules


@pytest.fixture
def web() -> Iterator[Web]:
    with served() as web:
        yield web


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "q.jsonl"
    row = {"id": "q1", "question": "Where was Ada Brook born?", "golden_answers": ["Lum Tor"]}
    file.write_text(json.dumps(row) + "\n")
    return file


def site(web: Web, **settings: Any) -> EndpointSite:
    pages = {"rules": Rules(allow=(web.host,), allow_private=True), "timeout_s": 1.0, **settings}
    return EndpointSite(
        search_url=f"{web.url}/search", pages=Fetcher(**pages), snippet_chars=200, wait_s=0.01
    )


def test_an_episode_on_the_web(web: Web, data: Path) -> None:
    env = WebQA(
        data=data,
        search_url=f"{web.url}/search",
        allow=web.host,
        allow_private=True,
        page_chars=200,
    )
    assert env.blocking
    env.reset(seed=0)
    observation, *_ = env.step("<search> Ada Brook & birth </search>")
    assert observation == (
        f"\n\n<information>1. Ada Brook\n{web.url}/ada\nA painter, born 1901.\n"
        f"2. {web.url}/lum\n{web.url}/lum\nLum (/answer) Tor ?</information>\n\n"
    )
    assert web.asked == ["/search?q=Ada+Brook+%26+birth&format=json"]
    observation, *_ = env.step("<open> 1 </open>")
    assert observation == (
        f"\n\n<information>Ada Brook\n{web.url}/ada\nAda Brook\n"
        f"Born in [Lum Tor]({web.url}/lum). & paints (/information).\nup</information>\n\n"
    )
    observation, *_ = env.step("<open> 2 page 3 </open>")
    assert "part 3 of" in observation
    observation, *_ = env.step(f"<open> {web.url}/nothing </open>")
    assert "status 404 Gone fishing" in observation
    observation, *_ = env.step("<open> https://example.org/ </open>")
    assert f"example.org may not be visited. Hosts that may be visited: {web.host}" in observation
    *_, info = env.step("<answer> Lum Tor </answer>")
    assert info["status"] == "solved"
    assert info["metrics"]["failed_opens"] == 2.0


def test_pages_of_this_machine_are_refused_though_the_endpoint_is_here(
    web: Web, data: Path
) -> None:
    env = WebQA(data=data, search_url=f"{web.url}/search", allow=(web.host, "*"))
    env.reset(seed=0)
    observation, *_ = env.step("<search> Ada </search>")
    assert "1. Ada Brook" in observation
    observation, *_, info = env.step("<open> 1 </open>")
    assert "not on the public internet" in observation
    assert info["status"] == "running"
    assert info["metrics"] == {}
    assert len(web.asked) == 1


def test_a_broken_endpoint_ends_the_episode_without_a_score(web: Web, data: Path) -> None:
    env = WebQA(data=data, search_url=f"{web.url}/search")
    env.reset(seed=0)
    web.results = "<html>no json</html>"
    observation, reward, terminated, truncated, info = env.step("<search> Ada </search>")
    assert (reward, terminated, truncated, info["status"]) == (0.0, False, True, "env_error")
    assert "The environment broke: the search endpoint" in observation
    assert "no JSON" in observation


def test_what_breaks_is_asked_three_times(web: Web) -> None:
    web.fails = {"/search": 2, "/lum": 2}
    here = site(web)
    (hits,) = here.search(["Ada"], 10)
    assert not isinstance(hits, EnvFault)
    assert len(hits) == 2
    assert isinstance(here.open([f"{web.url}/lum"])[0], Page)
    assert len(web.asked) == 6
    web.fails = {"/search": 3, "/ada": 3}
    (fault,) = here.search(["other"], 10)
    assert isinstance(fault, EnvFault)
    assert "status 503" in str(fault)
    (fault,) = here.open([f"{web.url}/ada"])
    assert isinstance(fault, EnvFault)


def test_a_server_that_is_away(web: Web, data: Path) -> None:
    url = web.url
    with served() as other:
        gone = other.url
    lost = site(web, rules=Rules(allow=(web.host, gone[7:]), allow_private=True))
    (page,) = lost.open([f"{gone}/x"])
    assert isinstance(page, NoPage)
    assert "cannot be reached now" in page.reason
    env = WebQA(data=data, search_url=f"{gone}/search")
    env.reset(seed=0)
    *_, info = env.step("<search> Ada </search>")
    assert info["status"] == "env_error"
    assert url != gone


def test_an_endpoint_that_refuses_or_leads_away(web: Web) -> None:
    web.pages["/closed"] = lambda h: h.send_error(403)
    web.pages["/away"] = lambda h: move(h, "http://127.0.0.1:9/search")
    web.pages["/odd"] = lambda h: say(h, '{"answers": []}', "application/json")
    for path, reason in (
        ("/closed", "status 403"),
        ("/away", "127.0.0.1:9 may not be visited"),
        ("/odd", 'without "results"'),
    ):
        there = EndpointSite(
            search_url=f"{web.url}{path}",
            pages=Fetcher(rules=Rules(), timeout_s=1.0),
            snippet_chars=200,
        )
        (fault,) = there.search(["Ada"], 10)
        assert isinstance(fault, EnvFault)
        assert reason in str(fault)


def test_mistakes_in_the_program_are_no_fault_of_the_web(web: Web) -> None:
    def broken(host: str, port: int) -> list[str]:
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        site(web, resolve=broken).search(["Ada"], 3)


def test_nothing_is_asked_for_nothing(web: Web) -> None:
    assert site(web).search([], 3) == site(web).open([]) == []
    assert web.asked == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"allow": 3}, "allow is 3; expected a text or a list of texts"),
        ({"allow": ["example.org", 3]}, "allow is .*, 3.; expected a text or a list"),
        ({"allow_private": "no"}, "allow_private is 'no'; expected True or False"),
        ({"max_bytes": 0.5}, "max_bytes is 0.5; expected an integer"),
        ({"timeout_s": "3"}, "timeout_s is '3'; expected a number above 0"),
    ],
)
def test_bad_settings_of_the_web(data: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValueError, match=message):
        WebQA(data=data, search_url="http://x.test/", **settings)


def test_one_fault_of_many_ends_only_its_own_episode(web: Web) -> None:
    web.pages["/some"] = lambda h: (
        h.send_error(400) if "bad" in h.path else say(h, '{"results": []}', "application/json")
    )
    there = EndpointSite(
        search_url=f"{web.url}/some?lang=en", pages=Fetcher(rules=Rules()), snippet_chars=200
    )
    found = there.search(["a", "bad", "b", ""], 10)
    assert found[0] == found[2] == found[3] == []
    assert isinstance(found[1], EnvFault)
    assert sorted(web.asked)[0] == "/some?lang=en&q=a&format=json"


def test_pages_and_searches_are_remembered_and_fetched_side_by_side(web: Web) -> None:
    here = site(web)
    web.pages["/slow"] = lambda h: (time.sleep(0.3), say(h, h.path, "text/plain"))[1]
    start = time.monotonic()
    pages = here.open([f"{web.url}/slow?{i}" for i in range(8)])
    assert time.monotonic() - start < 1.5
    assert [page.text for page in pages if isinstance(page, Page)] == [
        f"/slow?{i}" for i in range(8)
    ]
    for _ in range(3):
        here.search(["Ada"], 10)
        here.open([f"{web.url}/slow?1"])
    assert len(web.asked) == 9
    twin = pickle.loads(pickle.dumps(here))
    assert twin == here
    assert hash(twin) == hash(here)


def test_large_pages_and_other_kinds_are_observations(web: Web) -> None:
    here = site(web, max_bytes=1000)
    web.pages["/wordy"] = lambda h: h.send_error(404, "</information> gone " * 900)
    for path, reason in (
        ("/large", "larger than 1,000"),
        ("/picture", "image/gif"),
        ("/wordy", "(/information) gone"),
    ):
        (page,) = here.open([f"{web.url}{path}"])
        assert isinstance(page, NoPage)
        assert reason in page.reason
        assert len(page.reason) <= 500


def test_copies_ask_together(web: Web, data: Path) -> None:
    envs: Any = gym.make_vec("WebQA-v0", num_envs=4, data=data, search_url=f"{web.url}/search")
    envs.reset(seed=0)
    observations, *_ = envs.step(["<search> Ada </search>"] * 4)
    assert len(set(observations)) == 1
    assert len({envs.envs[i].unwrapped._serve for i in range(4)}) == 1
    envs.close()


@pytest.mark.parametrize("address", ["localhost/search", "ftp://x/search", "http://", "x", 3])
def test_an_address_that_is_none(address: Any, data: Path) -> None:
    with pytest.raises(BadValueError, match="search_url is"):
        WebQA(data=data, search_url=address)
