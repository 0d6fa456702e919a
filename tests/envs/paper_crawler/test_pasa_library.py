"""Settings to tasks and a library: local search, services, copies."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.paper_servers import Service, feed, service
from helpers.pasa_files import PAPERS, UNZIPPED, write_layout, write_zip

from turngym.envs.core.errors import BadValueError, DataError, EnvFault, UnknownNameError
from turngym.envs.paper_crawler.papers import Search
from turngym.envs.paper_crawler.real import open_real
from turngym.envs.paper_crawler.real.database import write_passages
from turngym.envs.paper_crawler.real.engines import LocalSearch
from turngym.envs.paper_crawler.real.library import PasaLibrary, open_library
from turngym.envs.tools.retrieval.base import Hit
from turngym.envs.tools.retrieval.index.build import build_index

GRIP, SLIP, SURVEY = "2105.90001", "2203.90417", "2306.00002"
LATE = 20241001


@pytest.fixture
def pasa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    return write_layout(tmp_path / "pasa")


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("SERPER_API_KEY", "the-secret")
    with service() as told:
        yield told


def test_files_become_tasks_and_a_library(pasa: Path) -> None:
    tasks, library = open_real(data=pasa, papers=pasa, data_settings={"days_back": 7})
    request = tasks.task("dev", 0).payload
    assert request.date == 20230607
    assert not library.blocking
    (found,) = library.search([Search(request.text, 10, request.date)])
    assert set(found) == {GRIP, SLIP, SURVEY, "cs/0309040"}
    first = library.find(found[0])
    assert first is not None
    assert first.date < request.date
    assert library.find("2105.90001v3") == library.find(GRIP)
    assert library.find("9999.00001") is None


def test_titles_are_searched_with_a_date_limit(pasa: Path) -> None:
    library = open_library(pasa / "data" / "paper_database")
    asked = [
        Search("survey of tactile memory", 2, LATE),
        Search("survey of tactile memory", 9, 20240101),  # the day of a paper, which is too late
        Search("survey of tactile memory", 9, 20030901),
        Search("zzz", 9, LATE),
    ]
    best, early, none, unknown = library.search(asked)
    assert (best[0], len(best)) == (SURVEY, 2)
    assert UNZIPPED not in early
    assert SURVEY in early
    assert (none, unknown) == ([], [])
    with pytest.raises(BadValueError, match="k is 0"):
        library.search([Search("memory", 0, LATE)])


class Ranked:
    """Finds the same passages for everything."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids, self.asked = ids, []

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.asked.append(k)
        return [[Hit(i, "", "", 1.0) for i in self.ids[:k]] for _ in queries]


def test_more_is_asked_for_until_enough_are_early_enough() -> None:
    ids = [f"{year}01.{n:05}" for year in (24, 23, 20) for n in range(50)]
    retriever = Ranked([*ids, "2001.00003v2"])
    engine = LocalSearch(retriever, lambda i: 20_000_000 + int(i[:2]) * 10_000 + 101, "x")
    (found,) = engine.search([Search("a", 3, 20210101)])
    assert found == ["2001.00000", "2001.00001", "2001.00002"]
    assert retriever.asked == [16, 64, 256]
    (all_early,) = engine.search([Search("a", 99, 20210101)])
    assert len(all_early) == 50


def test_a_broken_index_breaks_the_episode() -> None:
    class Broken:
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            raise OSError("the disk is gone")

    with pytest.raises(EnvFault, match="the disk is gone"):
        LocalSearch(Broken(), int, "x").search([Search("a", 3, LATE)])


def test_abstracts_are_searched_by_an_index_of_their_passages(pasa: Path, tmp_path: Path) -> None:
    library = open_library(pasa)
    out = tmp_path / "passages.jsonl"
    assert write_passages(library.database, out) == (len(PAPERS), 0)
    build_index(out, tmp_path / "index")
    by_abstract = open_library(pasa, search_settings={"index": str(tmp_path / "index")})
    asked = [Search("gates", 3, LATE)]
    assert library.search(asked) == [[]]
    assert by_abstract.search(asked) == [[GRIP]]
    assert by_abstract.identity != library.identity
    with pytest.raises(DataError, match="is there"):
        write_passages(library.database, out)


def test_passages_tell_of_damaged_members(pasa: Path, tmp_path: Path) -> None:
    write_zip(
        pasa / "data" / "paper_database" / "cs_paper_2nd.zip", {"asurveyoftactilememory": b"{"}
    )
    library = open_library(pasa)
    assert write_passages(library.database, tmp_path / "out.jsonl") == (len(PAPERS), 1)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {row["id"] for row in rows} == set(PAPERS)


def test_services_find_papers_of_the_files_only(pasa: Path, there: Service) -> None:
    links = [{"link": f"https://arxiv.org/abs/{i}"} for i in ("2001.00001", SLIP, GRIP)]
    there.answers = [(200, json.dumps({"organic": links}).encode())]
    library = open_library(pasa, "serper", search_settings={"url": there.url})
    assert library.blocking
    assert library.search([Search("memory", 5, LATE)]) == [[SLIP, GRIP]]
    assert library.find("2001.00001") is None
    assert len(there.paths) == 1
    assert "the-secret" not in library.identity


def test_papers_outside_of_the_files_are_looked_up_on_demand(pasa: Path, there: Service) -> None:
    there.answers = [
        (200, feed(("2001.00001", "Outside", "2020-01-02"), (SLIP, "Slip", "2022-03-28"))),
        (200, feed(("2001.00001", "Outside", "2020-01-02"))),
        (200, feed()),
    ]
    client = {"url": there.url, "pause_s": 0}
    library = open_library(
        pasa, "arxiv", search_settings=client, papers_settings={"look_up": client, "kept": 2}
    )
    assert library.search([Search("memory", 5, LATE)]) == [["2001.00001", SLIP]]
    paper = library.find("2001.00001")
    assert paper is not None
    assert (paper.title, paper.date, paper.sections) == ("Outside", 20200101, {})
    assert len(there.paths) == 2
    assert library.find("2001.00002") is None
    assert library.find("2001.00002") is None
    assert len(there.paths) == 3


def test_equal_settings_are_one_library_and_copies_share_it(pasa: Path) -> None:
    library = open_library(pasa)
    assert open_library(str(pasa), papers_settings={}) is library
    assert copy.deepcopy(library) is library
    stored = pickle.dumps(library)
    assert len(stored) < 2_000
    assert pickle.loads(stored) is library
    titles = pasa / "data" / "paper_database" / "id2paper.json"
    titles.write_text(json.dumps({GRIP: PAPERS[GRIP][0]}))
    assert open_library(pasa).identity != library.identity
    with pytest.raises(DataError, match="have changed"):
        pickle.loads(stored)


def test_a_library_pickled_in_another_process_is_made_again(pasa: Path) -> None:
    library = open_library(pasa)
    make, arguments = library.__reduce__()
    open_library.__globals__["_open"].cache_clear()
    again = make(*arguments)
    assert isinstance(again, PasaLibrary)
    assert again is not library
    assert again.find(GRIP) == library.find(GRIP)


@pytest.mark.parametrize(
    ("settings", "error", "reason"),
    [
        ({"search": "google"}, UnknownNameError, "unknown search engine 'google'"),
        ({"search_settings": {"k1": 2}}, UnknownNameError, "Known: index"),
        ({"search_settings": "index"}, BadValueError, "expected {name: value}"),
        ({"search_settings": {"index": "nowhere"}}, DataError, "nowhere"),
        (
            {"search_settings": {"index": object()}},
            BadValueError,
            "the folder of an index",
        ),
        ({"papers_settings": {"look_up": object()}}, BadValueError, "something else than"),
        ({"search": "arxiv", "search_settings": {"key": "x"}}, UnknownNameError, "'key'"),
        ({"papers_settings": {"size": 2}}, UnknownNameError, "unknown setting 'size'"),
        ({"papers_settings": {"kept": 0}}, BadValueError, "kept is 0"),
        ({"papers_settings": {"look_up": {"tries": 1}}}, UnknownNameError, "'tries'"),
        ({"papers_settings": {"look_up": 3}}, BadValueError, "look_up: is 3"),
        ({"data_settings": {"days": 7}}, UnknownNameError, "Did you mean 'days_back'"),
        ({"papers": "nowhere"}, DataError, "no such folder"),
        ({"papers": None}, BadValueError, "expected the path"),
        ({"data": "nowhere.jsonl"}, DataError, "cannot be read"),
    ],
)
def test_bad_settings_are_refused(
    pasa: Path, settings: dict[str, Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        open_real(**{"data": pasa, "papers": pasa, **settings})


def test_missing_files_of_the_database_are_named(pasa: Path, tmp_path: Path) -> None:
    place = pasa / "data" / "paper_database"
    with pytest.raises(DataError, match=r"holds no id2paper\.json"):
        open_library(tmp_path)
    (place / "cs_paper_2nd.zip").rename(place / "mine.zip")
    assert open_library(place).find(GRIP) is not None
    write_zip(place / "other.zip", {})
    with pytest.raises(DataError, match=r"Zips: mine\.zip, other\.zip"):
        open_library(place)
    for path in place.glob("*.zip"):
        path.unlink()
    with pytest.raises(DataError, match="Zips: none"):
        open_library(place)
