"""Serper and arXiv against a server of this machine: what is asked, what is understood."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from helpers.paper_servers import Service, feed, service

from turngym.envs.core.errors import BadValueError, EnvFault, UnknownNameError
from turngym.envs.paper_crawler.papers import Search
from turngym.envs.paper_crawler.real.arxiv import ArxivSearch
from turngym.envs.paper_crawler.real.serper import SerperSearch
from turngym.envs.utils import deadlines, http

ASKED = Search("gated  memory\nfor grasps", 3, 20230614)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("SERPER_API_KEY", "the-secret")
    with service() as told:
        yield told


def serper(there: Service, **settings: Any) -> SerperSearch:
    return SerperSearch(**{"url": there.url, "wait_s": 0.0, "timeout_s": 5.0, **settings})


def arxiv(there: Service, **settings: Any) -> ArxivSearch:
    given = {"url": there.url, "wait_s": 0.0, "pause_s": 0.0, "timeout_s": 5.0, **settings}
    return ArxivSearch(**given)


def links(*given: str) -> bytes:
    return json.dumps({"organic": [{"link": link, "title": "t"} for link in given]}).encode()


def test_serper_is_asked_with_date_and_site_and_keeps_the_order(there: Service) -> None:
    there.answers = [
        (
            200,
            links(
                "https://arxiv.org/abs/2203.90417v2",
                "https://example.org/abs/2001.00001",
                "https://arxiv.org/pdf/2105.90001",
                "https://arxiv.org/html/2203.90417",
                "https://arxiv.org/abs/2306.00001",  # counts as of the first of June
                "https://arxiv.org/abs/2307.00001",  # after the day
                "https://arxiv.org/abs/cs/0309040",
            ),
        )
    ]
    found = serper(there).search([ASKED, ASKED, Search("  ", 3, 20230614)])
    assert found == [["2203.90417", "2105.90001", "2306.00001"]] * 2 + [[]]
    assert len(there.bodies) == 1
    assert json.loads(there.bodies[0]) == {
        "q": "gated memory for grasps before:2023-06-14 site:arxiv.org",
        "num": 3,
        "page": 1,
    }
    assert there.headers[0]["x-api-key"] == "the-secret"
    assert there.headers[0]["content-type"] == "application/json"


def test_a_paper_of_the_day_s_month_counts_as_of_its_first(there: Service) -> None:
    there.answers = [(200, links("https://arxiv.org/abs/2306.00001"))]
    assert serper(there).search([Search("a", 1, 20230601)]) == [[]]
    assert serper(there).search([Search("a", 1, 20230602)]) == [["2306.00001"]]


def test_no_results_are_no_fault(there: Service) -> None:
    there.answers = [(200, b'{"searchParameters": {}}'), (200, links())]
    assert serper(there).search([ASKED]) == [[]]
    assert serper(there).search([ASKED]) == [[]]


def test_failures_are_tried_again_and_then_told(there: Service) -> None:
    good = (200, links("https://arxiv.org/abs/2105.90001"))
    there.answers = [(500, b"no"), (429, b"slow down"), good]
    assert serper(there).search([ASKED]) == [["2105.90001"]]
    assert len(there.bodies) == 3
    there.answers = [(503, b"the-secret is busy")]
    with pytest.raises(EnvFault, match=r"after 3 attempts: status 503: \*\*\* is busy"):
        serper(there).search([ASKED])
    assert len(there.bodies) == 6
    there.answers = [(403, b'{"message": "Unauthorized."}')]
    with pytest.raises(EnvFault, match=r"refused the request: status 403.*Unauthorized"):
        serper(there).search([ASKED])
    assert len(there.bodies) == 7


def test_redirects_are_not_followed_with_the_key(there: Service) -> None:
    there.answers, there.place = [(302, b"elsewhere")], there.url + "/other"
    with pytest.raises(EnvFault, match="status 302"):
        serper(there).search([ASKED])
    assert there.paths == ["/asked"]


def test_slow_cut_and_absent_servers(there: Service) -> None:
    there.slow_s = 0.3
    with pytest.raises(EnvFault, match=r"after 1 attempt: no answer within 0\.05 seconds"):
        serper(there, timeout_s=0.05, attempts=1).search([ASKED])
    there.slow_s, there.cut = 0.0, True
    with pytest.raises(EnvFault, match="broke off"):
        serper(there, attempts=1).search([ASKED])
    with pytest.raises(EnvFault, match=r"after 2 attempts: .*refused"):
        serper(there, url="http://127.0.0.1:9/", attempts=2).search([ASKED])


@pytest.mark.parametrize(
    "said", [b"<html>", b"[]", b"{}", b'{"organic": 3}', b'{"organic": ["x"]}', b"[" * 100_000]
)
def test_other_answers_are_faults(there: Service, said: bytes) -> None:
    there.answers = [(200, said)]
    with pytest.raises(EnvFault, match="the reply"):
        serper(there).search([ASKED])


def test_keys_stay_out_of_sight(there: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = serper(there)
    assert "the-secret" not in f"{engine!r} {engine.identity}"
    assert "argument-key" not in repr(serper(there, key="argument-key"))
    monkeypatch.delenv("SERPER_API_KEY")
    with pytest.raises(BadValueError, match="set the environment variable SERPER_API_KEY"):
        serper(there)
    monkeypatch.setenv("OTHER", "other-key")
    there.answers = [(200, links())]
    serper(there, key_env="OTHER").search([ASKED])
    assert there.headers[-1]["x-api-key"] == "other-key"
    with pytest.raises(BadValueError, match="no usable key"):
        serper(there, key="two\nlines")


def test_what_was_found_is_remembered_and_nothing_else(there: Service, tmp_path: Path) -> None:
    there.answers = [(200, links()), (200, links("https://arxiv.org/abs/2105.90001"))]
    for expected in ([], ["2105.90001"], ["2105.90001"]):
        assert serper(there, cache=str(tmp_path)).search([ASKED]) == [expected]
    assert len(there.bodies) == 2
    serper(there, cache=str(tmp_path)).search([ASKED._replace(before=20230101)])
    assert len(there.bodies) == 3


def test_arxiv_is_asked_for_words_and_days(there: Service) -> None:
    there.answers = [
        (
            200,
            feed(
                ("2203.90417v2", "Slip", "2022-03-28"),
                ("2306.00009v1", "Late", "2023-06-14"),
                ("2307.00001v1", "Of the next month by its id", "2023-06-01"),
                ("2203.90417v1", "Slip", "2022-03-28"),
                ("cs/0309040v1", "Old", "2003-09-20"),
            ),
        )
    ]
    found = arxiv(there).search([ASKED, Search("?!", 3, 20230614)])
    assert found == [["2203.90417", "cs/0309040"], []]
    (asked,) = (parse_qs(urlsplit(path).query) for path in there.paths)
    assert asked["search_query"] == [
        "(all:gated OR all:memory OR all:for OR all:grasps) AND "
        "submittedDate:[199101010000 TO 202306132359]"
    ]
    assert (asked["max_results"], asked["sortBy"]) == (["3"], ["relevance"])
    arxiv(there, join="AND").search([Search('x) OR "all:y', 1, 20230301)])
    asked = parse_qs(urlsplit(there.paths[-1]).query)
    assert asked["search_query"] == [
        "(all:x AND all:or AND all:all AND all:y) AND submittedDate:[199101010000 TO 202302282359]"
    ]


def test_arxiv_s_records_are_papers(there: Service) -> None:
    there.answers = [(200, feed(("2203.90417v2", "Slip\n Aware", "2022-03-28")))]
    found = arxiv(there).papers(["2203.90417", "2203.00000"])
    assert list(found) == ["2203.90417"]
    paper = found["2203.90417"]
    assert (paper.title, paper.abstract) == ("Slip Aware", "About Slip Aware.")
    assert (paper.date, paper.sections) == (20220301, {})
    asked = parse_qs(urlsplit(there.paths[0]).query)
    assert asked["id_list"] == ["2203.90417,2203.00000"]


BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    b'<feed xmlns="http://www.w3.org/2005/Atom"><title>&b;</title></feed>'
)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (BOMB, "declares a document type"),
        (BOMB.decode().encode("utf-16"), "declares a document type"),
        (b'<!DOCTYPE feed SYSTEM "file:///etc/passwd"><feed/>', "declares a document type"),
        (b"<a>" * 100_000, "nested too deeply"),
        (b"not xml", "no Atom feed"),
        (b"", "no Atom feed"),
        (b"<rss/>", "no Atom feed"),
        (feed(("2203.90417", "", "2022-03-28")), "an entry has"),
        (feed(("2203.90417", "x", "some day")), "an entry has"),
        (feed(("nothing", "x", "2022-03-28")), "an entry has"),
        (
            feed(("x", "Error", "2022-03-28")).replace(b"/abs/x", b"/api/errors#bad"),
            "refused the request: About Error",
        ),
    ],
)
def test_feeds_are_read_safely(there: Service, said: bytes, reason: str) -> None:
    there.answers = [(200, said)]
    with pytest.raises(EnvFault, match=reason):
        arxiv(there).search([ASKED])


class Clock:
    """Time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


def test_requests_and_tries_are_apart(there: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(http, "time", clock)
    monkeypatch.setattr(deadlines, "time", clock)
    there.answers = [(200, feed())]
    engine = arxiv(there, pause_s=3.0)
    engine.search([ASKED, ASKED._replace(k=2)])
    clock.now += 1.0
    engine.search([ASKED])
    assert clock.slept == [3.0, 2.0]
    clock.slept.clear()
    there.answers = [(500, b"")]
    with pytest.raises(EnvFault, match="after 8 attempts"):
        serper(there, attempts=8, wait_s=1.0).search([ASKED])
    assert clock.slept == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"wait_s": float("nan")}, "wait_s"),
        ({"pause_s": True}, "pause_s"),
        ({"attempts": 0}, "attempts"),
        ({"url": "ftp://host/"}, "url"),
        ({"url": "http://user:pw@host/"}, "url"),
        ({"url": "http://host/?q=1"}, "url"),
        ({"url": None}, "url"),
    ],
)
def test_bad_settings_are_refused(there: Service, settings: dict[str, Any], reason: str) -> None:
    for make in (serper, arxiv):
        with pytest.raises(BadValueError, match=reason):
            make(there, **settings)


def test_bad_questions_and_joins_are_refused(there: Service) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'AND'"):
        arxiv(there, join="and")
    for engine in (serper(there), arxiv(there)):
        with pytest.raises(BadValueError, match="k is 0"):
            engine.search([ASKED._replace(k=0)])
    assert there.paths == []
