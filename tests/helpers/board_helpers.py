"""A tiny suite of diagnostic worlds, entries of it, and ways to tamper with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turngym.agents.scripted import scripted
from turngym.leaderboard.entries_io.files import write_entry
from turngym.leaderboard.entries_io.packing import make_manifest
from turngym.leaderboard.entries_io.play import play_suite
from turngym.leaderboard.schema.entry import Manifest
from turngym.leaderboard.schema.result import Refusal, Verdict
from turngym.leaderboard.schema.suite import Cell, Suite
from turngym.leaderboard.suites.digests import with_digests
from turngym.leaderboard.verification.verify import verify_folder

Change = Callable[[Any], Any]


def tiny_draft(
    version: int = 1, seed: int = 0, worlds: tuple[str, ...] = ("Password-v0", "Fork-v0")
):
    cells = [
        Cell(
            key=name,
            env_id=name,
            settings={"size": "micro"},
            tasks=(0, 2, 5),
            trials=2,
            max_turns=1,
            digests=("0" * 32,) * 3,
        )
        for name in ("Password-v0", "Fork-v0")
    ]
    return Suite(
        name="tiny", version=version, description="for tests", seed=seed, cells=tuple(cells)
    )


def tiny_suite(version: int = 1, seed: int = 0) -> Suite:
    return with_digests(tiny_draft(version, seed))


def fields(**others: Any) -> dict[str, Any]:
    given = {
        "name": "an entry",
        "organisation": "somebody",
        "board": "agents",
        "description": "for tests",
        "licence": "MIT",
        "date": "2026-01-31",
    }
    return given | others


def make_entry(suite: Suite, root: Path, agent: str = "expert", **others: Any) -> Manifest:
    manifest = make_manifest(suite, **fields(**others))
    episodes = []
    for run in range(len(manifest.runs)):

        def make(world: Any, seed: int, run: int = run) -> Any:
            return scripted(agent, seed + run, world)

        episodes += play_suite(suite, make, run=run)
    write_entry(root, manifest, episodes)
    return manifest


def edit_manifest(root: Path, change: Change) -> None:
    path = root / "entry.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def edit_episodes(root: Path, change: Change, env: str = "Password-v0") -> None:
    """``change`` gets the list of episodes of a world, as JSON, and changes it in place."""
    path = root / "episodes" / f"{env}.jsonl"
    episodes = [json.loads(line) for line in path.read_text().splitlines()]
    change(episodes)
    path.write_text("".join(json.dumps(episode) + "\n" for episode in episodes))


def verdict_of(root: Path, suite: Suite) -> Verdict:
    return verify_folder(root, {suite.id: suite})


def refusal_of(root: Path, suite: Suite) -> Refusal:
    verdict = verdict_of(root, suite)
    assert not verdict.accepted
    assert verdict.scores is None
    assert not verdict.episodes
    assert verdict.refusal is not None
    return verdict.refusal
