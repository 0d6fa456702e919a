"""What holds for the trees of any rollout, checked against the world itself."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from helpers.talk_world import LetterRenderer, ScriptEngine, Talk

from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import ROOT, Edge, Group, Tree, Turn
from turngym.algos.core.protocols import Start
from turngym.algos.rollouts import EpisodeRunner

WORDS = ("s.", "f.", "x.", "yy z. ", "r.", "h.", "yz; zz", "b.")
"""Endings, rooms, a fault, words with and without a stop."""


class Hall(Talk):
    """``Talk`` that counts its steps."""

    steps = 0

    def play(self, episode: Any, action: str) -> Any:
        type(self).steps += 1
        return super().play(episode, action)


def play(
    rollout: Any,
    seed: int = 5,
    words: Sequence[str] = WORDS,
    max_turns: int = 5,
    **engine: Any,
) -> tuple[Group, ScriptEngine]:
    """One group in the hall, and the engine that knows what was asked of it."""
    voice = ScriptEngine(words=words, **engine)
    renderer: Any = LetterRenderer()
    runner = EpisodeRunner(Hall(max_turns), voice, renderer, Sampling(max_tokens=8))
    Hall.steps = 0
    return asyncio.run(rollout(runner, Start("train", 1, seed, "u"))), voice


def plain(group: Group) -> Any:
    """Everything in a group, bit by bit, as values that can be compared."""
    return (
        group.faults,
        group.pruned_tokens,
        group.pruned_turns,
        [[_plain(turn) for turn in tree.turns] for tree in group.trees],
    )


def _plain(turn: Turn) -> dict[str, Any]:
    values = {f.name: getattr(turn, f.name) for f in dataclasses.fields(turn)}
    return {k: (v.dtype, v.tolist()) if isinstance(v, np.ndarray) else v for k, v in values.items()}


def episodes(tree: Tree) -> list[list[tuple[Turn, list[int]]]]:
    """Every episode as its whole turns in the order they were taken, with all their tokens."""
    out = []
    for last in tree.finals():
        line: list[tuple[Turn, list[int]]] = []
        parts: list[Turn] = []
        for turn in (tree.turns[i] for i in tree.episode(last)):
            parts.append(turn)
            if not turn.partial:
                joined = dataclasses.replace(turn, obs_ids=parts[0].obs_ids, edge=parts[0].edge)
                line.append((joined, [i for part in parts for i in part.act_ids.tolist()]))
                parts = []
        assert not parts, "an action that nothing finishes"
        out.append(line)
    return out


def check_replay(group: Group, seed: int = 5, max_turns: int = 5) -> None:
    """Every episode, replayed alone in a new world, sees and earns what its turns say."""
    renderer = LetterRenderer()
    for tree in group.trees:
        for line in episodes(tree):
            env = Talk(max_turns)
            seen, _ = env.reset(seed=seed, options={"split": "train", "task": 1})
            for at, (turn, ids) in enumerate(line):
                opens = at == 0 or turn.edge is Edge.SPAWN
                assert turn.obs_ids.tolist() == renderer.open(env.instructions * opens, seen)
                assert turn.action == renderer.text(ids)
                seen, reward, _, _, info = env.step(turn.action)
                assert turn.reward == reward
                assert turn.overflow or turn.status == info["status"]
            assert line[-1][0].status != "running"


def check_sampled(group: Group, engine: ScriptEngine) -> None:
    """Each request is a turn in its place; nothing was executed twice; no cache was forgotten.

    Only for groups from which nothing was pruned.
    """
    prefixes: Counter[tuple[int, ...]] = Counter()
    whole = 0
    for tree in group.trees:
        before: dict[int, tuple[int, ...]] = {ROOT: ()}
        for i, turn in enumerate(tree.turns):
            context = () if turn.edge is Edge.SPAWN else before[turn.parent]
            prefix = (*context, *turn.obs_ids.tolist())
            prefixes[prefix] += 1
            before[i] = (*prefix, *turn.act_ids.tolist())
            whole += not turn.partial
    assert not Counter(tuple(map(int, r.ids)) for r in engine.requests) - prefixes
    assert len(engine.requests) == whole == Hall.steps
    assert not engine.alive
