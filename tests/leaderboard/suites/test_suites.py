"""Suites are frozen: their digests are pinned, and hold for the installed environments."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.board_helpers import tiny_draft, tiny_suite
from pydantic import ValidationError

from turngym.envs.core import registration
from turngym.envs.core.errors import DataError, UnknownNameError
from turngym.envs.core.registration import (
    EnvironmentSpec,
    LeaderboardCell,
    all_ids,
    find_environment,
)
from turngym.leaderboard.ranking.index import entries_folder
from turngym.leaderboard.schema.suite import Cell, Slot, Suite
from turngym.leaderboard.suites.definitions import DRAFTS, draft
from turngym.leaderboard.suites.digests import find_drifts
from turngym.leaderboard.suites.files import known_suites, load_suite, suite_ids, write_suite

FROZEN = {
    "micro-v3": ("b3ce2c0941f9733cfacdbbc902d0eb7d", 9, 180, 360),
    "standard-v3": ("66537ebf4d6f38f7fb74672773d1075a", 9, 450, 1800),
    "standard-v4": ("6c8f3f1f5363646670efdc7d6bb02658", 9, 450, 1800),
}


@pytest.mark.parametrize("name", FROZEN)
def test_published_suites_never_change(name: str) -> None:
    suite = load_suite(name)
    tasks = sum(len(cell.tasks) for cell in suite.cells)
    found = (suite.digest, len(suite.cells), tasks, sum(1 for _ in suite.slots()))
    assert found == FROZEN[name]
    assert suite.id == name
    made = draft(next(one for one in DRAFTS if one.startswith(f"{suite.name}-v")))
    assert [(c.key, c.settings, c.tasks, c.trials, c.metric) for c in made.cells] == [
        (c.key, c.settings, c.tasks, c.trials, c.metric) for c in suite.cells
    ]


def test_every_published_suite_is_pinned() -> None:
    assert set(FROZEN) == set(suite_ids())
    newest = {name.rpartition("-v")[0]: name for name in sorted(FROZEN)}
    assert set(DRAFTS) == set(newest.values())


def test_every_folder_of_entries_is_of_a_known_suite() -> None:
    assert {path.name for path in entries_folder().iterdir()} <= set(known_suites())


def test_micro_holds_every_environment_but_the_mixture() -> None:
    suite = draft("micro-v3")
    ours = [env_id for env_id in all_ids() if find_environment(env_id).builtin]
    assert [cell.env_id for cell in suite.cells] == [i for i in ours if i != "MixedTasks-v0"]
    assert all(cell.settings == {"size": "micro"} for cell in suite.cells)
    assert {cell.env_id: cell.metric for cell in suite.cells if cell.metric != "success"} == {
        "PaperCrawler-v0": "recall"
    }


def test_a_plugin_s_environment_is_in_no_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    row = EnvironmentSpec(
        id="A-v0", entry_point="mine:A", summary="", leaderboard=LeaderboardCell()
    )
    monkeypatch.setitem(registration._SPECS, row.id, row)
    assert row.id not in {cell.env_id for cell in draft("micro-v3").cells}


def test_micro_is_still_that_of_the_installed_environments() -> None:
    assert list(find_drifts(load_suite("micro-v3"))) == []


def test_drift_names_the_task_and_the_limit(suite: Suite) -> None:
    assert list(find_drifts(suite)) == []
    cell = suite.cells[0]
    digests = (cell.digests[0], "f" * 32, cell.digests[2])
    other = Cell(**(dict(cell) | {"digests": digests, "max_turns": 99}))
    found = list(find_drifts(Suite(**(dict(suite) | {"cells": (other, suite.cells[1])}))))
    assert [(drift.env, drift.task) for drift in found] == [
        ("Password-v0", None),
        ("Password-v0", 2),
    ]
    assert "99" in found[0].what
    assert cell.digests[1] in found[1].what


def test_seeds_differ_by_slot_and_version(suite: Suite) -> None:
    seeds = [suite.seed_of(slot) for slot in suite.slots()]
    assert len(set(seeds)) == len(seeds) == 12
    assert all(0 <= seed < 2**52 for seed in seeds)
    assert suite.seed_of(Slot("Fork-v0", 0, 0)) == 2603391913134042
    for other in (tiny_draft(version=2), tiny_draft(seed=1)):
        assert not set(seeds) & {other.seed_of(slot) for slot in other.slots()}


def test_the_digest_covers_everything(suite: Suite) -> None:
    assert tiny_suite() == suite
    changed = [
        {"description": "other"},
        {"max_action_chars": 5},
        {"cells": suite.cells[::-1]},
        {"cells": suite.cells[:1]},
    ]
    digests = {Suite(**(dict(suite) | change)).digest for change in changed}
    assert len(digests | {suite.digest}) == 5


def test_a_suite_on_disk_is_never_overwritten(suite: Suite, tmp_path: Path) -> None:
    path = write_suite(suite, tmp_path)
    assert path == write_suite(suite, tmp_path)
    assert load_suite(path) == suite
    with pytest.raises(DataError, match="another version"):
        write_suite(tiny_suite(seed=1), tmp_path)
    renamed = path.rename(tmp_path / "other-v1.json")
    with pytest.raises(DataError, match="contains the suite tiny-v1"):
        load_suite(renamed)
    with pytest.raises(UnknownNameError, match="Did you mean 'micro-v"):
        load_suite("mikro-v2")
    with pytest.raises(UnknownNameError):
        draft("mikro-v2")


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": (0, 0, 1)},
        {"tasks": (0, 1)},
        {"tasks": ()},
        {"trials": 0},
        {"digests": ("x",) * 3},
    ],
)
def test_cells_that_make_no_sense(suite: Suite, change: dict) -> None:
    with pytest.raises(ValidationError):
        Cell(**(dict(suite.cells[0]) | change))
    with pytest.raises(ValidationError, match="same key"):
        Suite(**(dict(suite) | {"cells": suite.cells[:1] * 2}))


def test_every_environment_of_a_suite_is_a_suite_of_its_own() -> None:
    whole = load_suite("micro-v3")
    parts = {name: suite for name, suite in known_suites().items() if name.startswith("micro-")}
    assert len(parts) == len(whole.cells) + 1
    part = load_suite("micro-game24-v3")
    assert [cell.env_id for cell in part.cells] == ["Game24-v0"]
    assert part.cells[0] in whole.cells
    slots = list(part.slots())
    assert [part.seed_of(s) for s in slots] == [whole.seed_of(s) for s in slots]
    assert part.digest != whole.digest
    assert list(find_drifts(part)) == []  # the whole suite's digests are the part's
    assert load_suite("micro-v3").digest == whole.digest
