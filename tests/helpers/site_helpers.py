"""A small board with everything on it: references, agents, algorithms, errors, hostile texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.board_helpers import fields, make_entry, verdict_of

from turngym.leaderboard.entries_io.files import write_entry
from turngym.leaderboard.entries_io.packing import make_manifest
from turngym.leaderboard.entries_io.play import AgentStopped, play_suite
from turngym.leaderboard.ranking.index import Indexed, entry_folders
from turngym.leaderboard.schema.entry import Budget, ModelCard, Run, Track
from turngym.leaderboard.schema.suite import Suite

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def make_demo(entries: Path, suite: Suite) -> None:
    home = entries / suite.id
    for name in ("expert", "random", "null"):
        make_entry(suite, home / name, name, name=name, reference=name)
    card = ModelCard(
        model="'\"><svg onload=alert(4)>",
        sampling="greedy, at most 64 tokens",
        links=("https://example.org/x?a=1&b=2",),
    )
    written(suite, home / "evil", says("</pre><script>alert(3)</script>"), **_evil(card))
    written(suite, home / "broken", gives_up, name="broken")
    for name, tokens in (("GRPO", 10**5), ("GRPO", 10**6), ("Tree-GRPO", 10**5)):
        _algorithm(suite, home / f"{name.lower()}-{tokens}", name, tokens)


def _evil(card: ModelCard) -> dict[str, Any]:
    return {
        "name": EVIL,
        "organisation": '"><b>x \u202egnp.exe',
        "description": "</p><script>alert(5)</script>{{ 7*7 }}",
        "card": card,
    }


def _algorithm(suite: Suite, root: Path, name: str, tokens: int) -> None:
    used = Budget(sampled_tokens=tokens, tool_calls=100)
    track = Track(start="starter", start_digest="sha256:" + "a" * 64, budget=used)
    runs = tuple(Run(seed=seed, used=used) for seed in range(4))
    make_entry(suite, root, "random", name=name, board="algorithms", track=track, runs=runs)


def says(text: str) -> Any:
    return lambda env, observation, info: text


def gives_up(env: Any, observation: str, info: Any) -> str:
    raise AgentStopped("agent_error", "the agent gave up")


def written(suite: Suite, root: Path, policy: Any, **others: Any) -> None:
    episodes = play_suite(suite, lambda world, seed: policy)
    write_entry(root, make_manifest(suite, **fields(**others)), list(episodes))


def index_of(root: Path, suite: Suite) -> list[Indexed]:
    return [
        Indexed(entry_id=name, verdict=verdict_of(folder, suite))
        for name, folder in entry_folders(root / "entries")
    ]
