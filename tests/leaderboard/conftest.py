"""One tiny suite and one good entry for all tests; each test tampers with a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers.board_helpers import make_entry, tiny_suite

from turngym.leaderboard.schema.suite import Suite


@pytest.fixture(scope="session")
def suite() -> Suite:
    return tiny_suite()


@pytest.fixture(scope="session")
def good(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("entries") / "good"
    make_entry(suite, root)
    return root


@pytest.fixture
def entry(good: Path, tmp_path: Path) -> Path:
    """A copy of a good entry, to be tampered with."""
    return Path(shutil.copytree(good, tmp_path / "entry"))
