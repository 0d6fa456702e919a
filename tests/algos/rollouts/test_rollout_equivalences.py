"""One rollout is another one with small numbers, and every tree is true to its world."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from helpers.rollout_laws import WORDS, check_replay, check_sampled, plain, play
from hypothesis import given, settings
from hypothesis import strategies as st

import turngym.envs
from turngym.agents.engines.base import Sampling
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.rendering.factory import make_renderer
from turngym.algos.core.forest import Edge, Forest, Group
from turngym.algos.core.protocols import Start
from turngym.algos.learner.batching.rows import rows_of
from turngym.algos.rollouts import Branch, Chains, EpisodeRunner, Expand

INSIDE: list[dict[str, Any]] = [
    {},
    {"granularity": "sentence"},
    {"granularity": "tokens", "span": 1},
    {"granularity": "tokens", "span": 3},
]
SEEDS = st.integers(0, 10**6)
some_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(tuple)


@given(st.integers(1, 4), some_words, SEEDS, st.sampled_from([40, 400]), st.sampled_from(INSIDE))
@settings(max_examples=40, deadline=None)
def test_without_forks_all_are_chains(
    n: int, words: Any, seed: int, room: int, inside: dict[str, Any]
) -> None:
    more: dict[str, Any] = {"words": words, "max_context": room, "delays": seed}
    chains = plain(play(Chains(n=n), seed, **more)[0])
    none = {"nodes": 0, "rounds": 0, **inside}
    assert chains == plain(play(Expand(trees=n, **none), seed, **more)[0])
    assert chains == plain(play(Expand(trees=n, **none | {"nodes": 2}), seed, **more)[0])
    assert chains == plain(play(Branch(initial=n, budget=n), seed, **more)[0])
    alone = Branch(initial=n, budget=n + 2, alpha=0.0, beta=0.0)
    assert plain(play(Chains(n=n + 2), seed, **more)[0]) == plain(play(alone, seed, **more)[0])


@given(
    st.integers(1, 2),
    st.integers(0, 4),
    st.integers(0, 3),
    some_words,
    SEEDS,
    st.sampled_from([40, 400]),
    st.sampled_from(INSIDE),
)
@settings(max_examples=60, deadline=None)
def test_expanded_trees_are_true_to_worlds_with_sessions_faults_and_overflow(
    trees: int, nodes: int, rounds: int, words: Any, seed: int, room: int, inside: dict[str, Any]
) -> None:
    rollout = Expand(trees=trees, nodes=nodes, rounds=rounds, **inside)
    group, engine = play(rollout, seed, words, max_context=room, delays=seed)
    check_replay(group, seed)
    check_sampled(group, engine)
    assert [len(tree.finals()) for tree in group.trees] == [1 + nodes * rounds] * trees


@given(st.integers(1, 4), st.integers(0, 5), st.integers(2, 4), some_words, SEEDS)
@settings(max_examples=40, deadline=None)
def test_branched_trees_are_true_to_worlds_with_sessions_faults_and_overflow(
    n: int, more: int, beam: int, words: Any, seed: int
) -> None:
    rollout = Branch(initial=n, budget=n + more, beam=beam, alpha=0.6)
    group, engine = play(rollout, seed, words, delays=seed)
    check_replay(group, seed)
    check_sampled(group, engine)
    assert sum(len(tree.finals()) for tree in group.trees) == n + more


def test_the_random_worlds_do_have_forks_in_rooms_and_inside_actions() -> None:
    """The two laws above would hold for nothing if nothing happened in them."""
    rooms = inside = broken = 0
    for seed in range(30):
        how = {"granularity": "tokens", "span": 1}
        group, _ = play(Expand(trees=1, nodes=6, rounds=2, **how), seed, WORDS)
        tree = group.trees[0]
        parents = [t.parent for t in tree.turns if t.edge is Edge.CONTINUE and t.parent >= 0]
        twice = {p for p in parents if parents.count(p) > 1}
        heads = {i: tree.chain(i)[0] for i in twice}
        rooms += sum(tree.turns[head].edge is Edge.SPAWN for head in heads.values())
        inside += sum(tree.turns[p].partial for p in twice)
        broken += sum(t.status == "env_error" for t in tree.turns)
    assert min(rooms, inside, broken) > 10


def test_an_episode_of_one_turn_expands_from_its_start() -> None:
    group, engine = play(Expand(trees=2, nodes=3, rounds=2), words=("s.",))
    for tree in group.trees:
        assert [turn.parent for turn in tree.turns] == [-1] * 7
    assert len(engine.requests) == 14


# ---------------------------------------------------------------------- a real model


def grow(folder: Path, rollout: Any, tasks: int = 2, seed: int = 11) -> tuple[list[Group], Any]:
    """Groups of a tiny model in SearchQA, and the model."""
    assert turngym.envs
    tokenizer, model = load_tokenizer(folder), load_model(folder, device="cpu")
    engine = TransformersEngine(model, tokenizer, dtype="float32", max_batch=8)
    env = gym.make("SearchQA-v0", size="micro", prompt="none", max_turns=3)
    sampling = Sampling(max_tokens=9, temperature=0.7)
    runner = EpisodeRunner(env, engine, make_renderer(tokenizer), sampling)

    async def all_groups() -> list[Group]:
        starts = [Start("dev", i, seed * i, f"u{i}") for i in range(tasks)]
        return list(await asyncio.gather(*(rollout(runner, s) for s in starts)))

    return asyncio.run(all_groups()), model


def test_without_forks_all_are_chains_for_a_real_model(tiny_model: Path) -> None:
    chains, _ = grow(tiny_model, Chains(n=3))
    for rollout in (
        Expand(trees=3, nodes=0, rounds=0),
        Branch(initial=3, budget=3),
        Branch(initial=3, budget=3, reference_compat=True),
    ):
        for a, b in zip(chains, grow(tiny_model, rollout)[0], strict=True):
            for s, t in zip(a.trees, b.trees, strict=True):
                for x, y in zip(s.turns, t.turns, strict=True):
                    assert x.act_ids.tolist() == y.act_ids.tolist()
                    assert x.obs_ids.tolist() == y.obs_ids.tolist()
                    assert (x.parent, x.status, x.reward) == (y.parent, y.status, y.reward)
                    # other batch mates, so float32 sums come in another order
                    np.testing.assert_allclose(x.logprobs, y.logprobs, atol=1e-5)


@pytest.mark.parametrize(
    "rollout",
    [
        Expand(trees=2, nodes=3, rounds=2),
        Expand(trees=1, nodes=4, rounds=2, granularity="tokens", span=3),
        Expand(trees=9, nodes=2, rounds=1, granularity="sentence"),
        Branch(initial=2, budget=6, alpha=0.8),
        Branch(initial=2, budget=6, alpha=0.8, reference_compat=True),
    ],
    ids=["step", "tokens", "sentence", "branch", "released"],
)
def test_recorded_numbers_are_those_of_the_tokens_at_their_places(
    tiny_model: Path, rollout: Any
) -> None:
    """Every path, forks inside actions included, scored in one piece by the model itself."""
    groups, model = grow(tiny_model, rollout)
    forest = Forest.of(groups)
    assert len(forest.paths) == 2 * rollout.max_paths
    turns = [t for group in groups for tree in group.trees for t in tree.turns]
    assert any(t.partial for t in turns) == (getattr(rollout, "granularity", "step") != "step")
    for row in rows_of(forest):
        with torch.no_grad():
            logits = model(torch.from_numpy(row.ids)[None]).logits[0] / 0.7
        scores = logits.log_softmax(-1)[row.at - 1, row.ids[row.at]]
        np.testing.assert_allclose(row.sampled, scores.numpy(), atol=3e-5)
