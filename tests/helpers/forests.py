"""Builders and hypothesis strategies of forests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from turngym.algos.core.forest import ROOT, Edge, Forest, Group, Tree, Turn, last_token_reward

ENDS = ("solved", "failed", "truncated", "env_error")
FLOAT32 = st.floats(-50, 50, width=32)


def turn(
    reward: float | Sequence[float] = 0.0,
    *,
    n: int = 1,
    parent: int = ROOT,
    status: Any = "running",
    **more: Any,
) -> Turn:
    """A turn of ``n`` action tokens; a list of rewards sets them token by token."""
    if isinstance(reward, (list, tuple)):
        n, rewards = len(reward), np.array(reward, np.float32)
    else:
        rewards = last_token_reward(reward, n)
    values: dict[str, Any] = {
        "obs_ids": np.array([7, 8], np.int64),
        "act_ids": np.arange(1, n + 1, dtype=np.int64),
        "logprobs": np.full(n, -1.0, np.float32),
        "entropies": np.ones(n, np.float32),
    }
    return Turn(parent=parent, rewards=rewards, status=status, **(values | more))


def tree(*turns: Turn) -> Tree:
    made = Tree()
    for t in turns:
        made.add(t)
    return made


def single_turns(*groups: Sequence[float], n: int = 1, status: str = "solved") -> Forest:
    """Groups of one-turn trees with these rewards."""
    return Forest.of(
        [
            Group(f"g{i}", f"t{i}", [tree(turn(r, n=n, status=status)) for r in rewards])
            for i, rewards in enumerate(groups)
        ]
    )


class Fixed:
    """A scorer that says what it was told."""

    def __init__(self, **arrays: Any) -> None:
        self.arrays = arrays
        self.calls: list[str] = []

    def _say(self, name: str) -> Any:
        self.calls.append(name)
        return self.arrays[name]

    def logprobs(self, forest: Forest) -> Any:
        return self._say("logprobs")

    def ref_logprobs(self, forest: Forest) -> Any:
        return self._say("ref_logprobs")

    def values(self, forest: Forest) -> Any:
        return self._say("values")


@st.composite
def turns(draw: st.DrawFn, at: int, parent: int, edge: Edge, status: str) -> Turn:
    n = draw(st.integers(1, 4))
    floats = st.lists(FLOAT32, min_size=n, max_size=n)
    ids = st.integers(0, 200_000)
    return Turn(
        parent=parent,
        edge=edge,
        obs_ids=np.array(draw(st.lists(ids, max_size=4)), np.int64),
        act_ids=np.array(draw(st.lists(ids, min_size=n, max_size=n)), np.int64),
        logprobs=np.array(draw(floats), np.float32),
        entropies=np.array(draw(floats), np.float32),
        rewards=np.array(draw(floats), np.float32),
        verdict=draw(st.sampled_from((-1, 0, 1))),
        status=status,  # pyright: ignore[reportArgumentType]
        version=draw(st.integers(0, 9)),
        action=draw(st.text(max_size=8)),
        valid=draw(st.booleans()),
        reward_terms=tuple(draw(_named()).items()),
        metrics=tuple(draw(_named()).items()),
        stop=draw(st.sampled_from(("stop", "eos", "length"))),
        overflow=draw(st.booleans()),
        previous=draw(st.one_of(st.none(), st.integers(ROOT, at - 1))),
        spawned=tuple(
            np.array(prompt, np.int64)
            for prompt in draw(st.lists(st.lists(ids, min_size=1, max_size=3), max_size=2))
        ),
    )


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Any legal tree: branches, several starts, spawned contexts, all statuses."""
    made = Tree()
    for i in range(draw(st.integers(1, 8))):
        running = [j for j in range(i) if made.turns[j].status == "running"]
        parent, edge = ROOT, Edge.CONTINUE
        if i and draw(st.booleans()):
            parent, edge = draw(st.integers(0, i - 1)), Edge.SPAWN
        elif running:
            parent = draw(st.sampled_from([ROOT, *running]))
        status = draw(st.sampled_from(("running", "running", *ENDS)))
        made.add(draw(turns(i, parent, edge, status)))
    return made


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    groups = [
        Group(f"u{i}", draw(st.text(max_size=5)), kids, faults=draw(st.integers(0, 2)))
        for i, kids in enumerate(draw(st.lists(st.lists(trees(), max_size=3), max_size=3)))
    ]
    return Forest.of(groups)


def _named() -> st.SearchStrategy[Mapping[str, float]]:
    finite = st.floats(allow_nan=False, allow_infinity=False)
    return st.dictionaries(st.text(max_size=4), finite, max_size=2)


def plain(forest: Forest) -> list[Any]:
    def one(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(one(part) for part in value)
        return (value.dtype.str, value.tobytes()) if isinstance(value, np.ndarray) else value

    def fields(t: Turn) -> list[Any]:
        return [one(getattr(t, f.name)) for f in dataclasses.fields(t)]

    return [
        (
            g.uid,
            g.task_id,
            g.faults,
            g.pruned_tokens,
            g.pruned_turns,
            [[fields(t) for t in kid.turns] for kid in g.trees],
        )
        for g in forest.groups
    ]
