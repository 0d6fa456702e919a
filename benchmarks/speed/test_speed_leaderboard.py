"""Speed of verification: episodes replayed and read per second, on the reference entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from turngym.leaderboard.entries_io.files import EntryFiles
from turngym.leaderboard.ranking.index import entries_folder
from turngym.leaderboard.suites.digests import make_cell_env
from turngym.leaderboard.suites.files import load_suite
from turngym.leaderboard.verification.replay import replay_episode
from turngym.leaderboard.verification.verify import verify_folder

ENTRIES = entries_folder() / "micro-v3"


@pytest.mark.parametrize("name", ["expert", "null"])
def test_verify_a_whole_entry(benchmark: Any, name: str) -> None:
    verdict = benchmark.pedantic(verify_folder, args=(ENTRIES / name,), rounds=3, warmup_rounds=1)
    assert verdict.accepted
    benchmark.extra_info["episodes"] = verdict.replayed


@pytest.mark.parametrize("env", ["Retail-v0", "ScienceWorld-v0", "SearchQA-v0"])
def test_replay_a_world(benchmark: Any, env: str) -> None:
    suite = load_suite("micro-v3")
    cell = suite.by_key()[env]
    world = make_cell_env(cell)
    episodes = [e for e in EntryFiles(ENTRIES / "expert").episodes() if e.env == env]

    def replay_all() -> int:
        return sum(replay_episode(world, cell, e, 100_000).turns for e in episodes)

    benchmark.extra_info["turns"] = benchmark(replay_all)


def test_read_an_entry(benchmark: Any) -> None:
    def read(root: Path) -> int:
        return sum(1 for _ in EntryFiles(root).episodes())

    assert benchmark(read, ENTRIES / "expert") == 320
