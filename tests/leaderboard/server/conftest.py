"""A server in a folder of its own, with accounts, a tiny suite, and a season."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("jinja2")

from fastapi.testclient import TestClient
from helpers.board_helpers import tiny_suite
from helpers.server_helpers import Place, make_generated_suite, sealed_base

from turngym.leaderboard.schema.suite import Suite
from turngym.leaderboard.server import ServerSettings, new_token
from turngym.leaderboard.suites.files import write_suite
from turngym.leaderboard.suites.sealed import SeasonTerms, open_season


@contextmanager
def other_cache(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNGYM_CACHE", str(folder))
        yield


@pytest.fixture(scope="session")
def seasons_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where worlds of secret seeds go, which nobody will ask for again."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module", autouse=True)
def nothing_left_in_the_cache(seasons_cache: Path) -> Iterator[None]:
    with other_cache(seasons_cache):
        yield


@pytest.fixture(scope="session")
def base_suite(seasons_cache: Path) -> Suite:
    with other_cache(seasons_cache):
        return sealed_base()


@pytest.fixture(scope="session")
def season_files(
    base_suite: Suite, seasons_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root = tmp_path_factory.mktemp("seasons")
    with other_cache(seasons_cache):
        open_season(root, "spring", base_suite, SeasonTerms())
        open_season(root, "open", base_suite, SeasonTerms(show_rewards=True))
    return root


@pytest.fixture(scope="session")
def generated_season(seasons_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a season of every environment that can be sealed, with a task each."""
    root = tmp_path_factory.mktemp("every")
    with other_cache(seasons_cache):
        open_season(root, "every", make_generated_suite(), SeasonTerms())
    return root / "every"


@pytest.fixture
def place(tmp_path: Path, season_files: Path) -> Place:
    home = tmp_path / "home"
    (home / "entries").mkdir(parents=True)
    shutil.copytree(season_files / "spring", home / "seasons" / "spring")
    suite_file = write_suite(tiny_suite(), tmp_path / "suites")
    settings = ServerSettings(home=home, suite_files=(suite_file,), requests_per_minute=100_000)
    return Place(settings, new_token(settings, "alice"))


@pytest.fixture
def client(place: Place) -> Iterator[TestClient]:
    with place.client() as client:
        yield client
