"""The rollout of PaSa: which sessions are played, what hangs where, what was paid for."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import pytest
from helpers.talk_world import LetterRenderer, ScriptEngine, Talk
from hypothesis import given, settings
from hypothesis import strategies as st

import turngym.envs  # noqa: F401 - registers
from turngym.agents.engines.base import Sampling
from turngym.algos.core.forest import ROOT, Edge, Forest, Group, Tree, Turn
from turngym.algos.core.protocols import Start
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts import Chains, EpisodeRunner, Sessions
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.wrappers.session_window import SEPARATOR

LETTERS = "abcts"


def play(rollout: Any, engine: Any, start: Start | None = None, env: Any = None) -> Group:
    renderer: Any = LetterRenderer()
    env = gym.make("Spawn-v0") if env is None else env
    runner = EpisodeRunner(env, engine, renderer, Sampling(max_tokens=8))
    return asyncio.run(rollout(runner, start or Start("train", 0, 0, "u")))


def two_boxes() -> Start:
    """A task whose boxes a and b hold a coin each, and a has another in c."""
    source = gym.make("Spawn-v0").unwrapped.source  # pyright: ignore
    for split, size in source.sizes().items():
        for i in range(size):
            if source.task(split, i).payload == (("a", "c"), ("b", "")):
                return Start(split, i, 0, "u")
    raise AssertionError


def text(ids: Any) -> str:
    return "".join(map(chr, ids))


def told(tree: Tree) -> list[tuple[int, str, str, str, int | None]]:
    """Parent, edge, observation, action and the turn before where that is not the parent."""
    return [(t.parent, t.edge.value, text(t.obs_ids), t.action, t.previous) for t in tree.turns]


def said(turn: Turn) -> tuple[str, str, float]:
    return text(turn.obs_ids), turn.action, turn.reward


def heads(tree: Tree) -> list[int]:
    """First turns of the sessions."""
    return sorted({tree.chain(i)[0] for i in range(len(tree.turns))})


def keys(tree: Tree) -> list[str]:
    """The box of each session, read off the actions that asked."""
    box: dict[int, str] = {}
    for head in heads(tree):
        turn = tree.turns[head]
        box[head] = ""
        if turn.edge is Edge.SPAWN:
            box[head] = box[tree.chain(turn.parent)[0]] + tree.turns[turn.parent].action
    return list(box.values())


def test_every_session_hangs_on_the_turn_that_asked_for_it() -> None:
    script = [*"abs", *"cts", *"ts", *"ts"]
    tree = play(Chains(n=1), ScriptEngine(script), two_boxes()).trees[0]
    assert told(tree) == [
        (ROOT, "continue", "a b:", "a", None),
        (0, "continue", "\n:", "b", None),
        (1, "continue", "\n:", "s", None),
        (0, "spawn", "t c:", "c", 2),
        (3, "continue", "\n:", "t", None),
        (4, "continue", "\n:", "s", None),
        (1, "spawn", "t:", "t", 5),
        (6, "continue", "\n:", "s", None),
        (3, "spawn", "t:", "t", 7),
        (8, "continue", "\n:", "s", None),
    ]
    assert [[text(p) for p in t.spawned] for t in tree.turns[:4]] == [["t c:"], ["t:"], [], ["t:"]]
    assert tree.turns[-1].status == "solved"
    assert Forest.of([Group("u", "t", [tree])]).returns() == pytest.approx([1.0] * 4)


def test_only_drawn_sessions_are_played_one_layer_after_the_other() -> None:
    engine = ScriptEngine([*"abs", *"cts", *"ts"])
    sessions = Sessions(per_layer=1, layers=2, sampler="score")  # equal scores: the first asked for
    group = play(sessions, engine, two_boxes())
    (tree,) = group.trees
    assert told(tree)[3:] == [
        (0, "spawn", "t c:", "c", 2),
        (3, "continue", "\n:", "t", None),
        (4, "continue", "\n:", "s", None),
        (3, "spawn", "t:", "t", 5),
        (6, "continue", "\n:", "s", None),
    ]
    assert tree.turns[-1].status == "running"  # box b still waits
    assert engine.alive == set()
    assert (group.pruned_turns, group.pruned_tokens) == (0, 0)


def test_the_full_queue_plays_all_and_keeps_the_drawn() -> None:
    engine = ScriptEngine([*"abs", *"cts", *"ts", *"ts"])
    sessions = Sessions(per_layer=1, layers=2, sampler="score", queue="full")
    group = play(sessions, engine, two_boxes())
    (tree,) = group.trees
    assert told(tree)[3:] == [
        (0, "spawn", "t c:", "c", 2),
        (3, "continue", "\n:", "t", None),
        (4, "continue", "\n:", "s", None),
        (3, "spawn", "t:", "t", 5),
        (6, "continue", "\n:", "s", None),
    ]
    assert tree.turns[-1].status == "solved"
    assert (group.pruned_turns, group.pruned_tokens) == (2, 2)
    assert engine.script == []


def test_the_score_sampler_takes_what_the_world_finds_promising() -> None:
    # c is asked for first and holds nothing
    for queue, script in (("sampled", [*"cab", *"ts"]), ("full", [*"cab", "s", *"ts", *"ts"])):
        sessions = Sessions(per_layer=1, layers=1, sampler="score", queue=queue)  # pyright: ignore
        (tree,) = play(sessions, ScriptEngine(script), two_boxes()).trees
        assert keys(tree) == ["", "a"]


@given(
    task=st.integers(0, 18),
    per_layer=st.floats(0, 3),
    layers=st.integers(0, 3),
    n=st.integers(1, 3),
    sampler=st.sampled_from(("random", "score")),
)
@settings(max_examples=60)
def test_laws_of_the_draw(task: int, per_layer: float, layers: int, n: int, sampler: Any) -> None:
    start = Start("train", task, task, "u")
    for queue in ("sampled", "full"):
        rollout: Any = Sessions(
            n=n, per_layer=per_layer, layers=layers, queue=queue, sampler=sampler
        )
        engine = ScriptEngine(words=LETTERS)
        group = play(rollout, engine, start)
        assert len(group.trees) == n
        assert engine.alive == set()
        sampled = sum(len(tree.turns) for tree in group.trees) + group.pruned_turns
        assert sampled == len(engine.requests)
        whole = play(Chains(n=n), ScriptEngine(words=LETTERS), start)
        for tree, chain in zip(group.trees, whole.trees, strict=True):
            boxes = keys(tree)
            assert len(set(boxes)) == len(boxes)
            for layer in range(1, 4):
                of_layer = [box for box in boxes if len(box) == layer]
                assert len(of_layer) <= (per_layer + 1 if layer <= layers else 0)
            assert all(box[:-1] in boxes for box in boxes if box)
            if queue == "full":  # the turns of the whole episode in their order, some left out
                rest = iter([said(t) for t in chain.turns])
                assert all(said(t) in rest for t in tree.turns)
            # the turns that are kept are one line, in the order they were taken
            assert tree.episode(len(tree.turns) - 1) == tuple(range(len(tree.turns)))


def test_the_first_session_alone_is_layer_zero() -> None:
    engine = ScriptEngine([*"abs"])
    (tree,) = play(Sessions(layers=0), engine, two_boxes()).trees
    assert [t.action for t in tree.turns] == ["a", "b", "s"]
    assert tree.turns[-1].status == "running"


def test_draws_depend_on_the_place_alone() -> None:
    rollout = Sessions(n=3, per_layer=1.5)
    groups = [
        play(rollout, ScriptEngine(words=LETTERS, delays=delay), Start("train", 3, 7, "u"))
        for delay in (0, 1)
    ]
    first, second = ([told(tree) for tree in group.trees] for group in groups)
    assert first == second
    assert first[0] != first[1]
    other = play(rollout, ScriptEngine(words=LETTERS), Start("train", 3, 8, "u"))
    assert [told(tree) for tree in other.trees] != first


def test_a_share_of_a_session_is_drawn_that_often() -> None:
    counts = []
    for seed in range(150):
        engine = ScriptEngine([*"abc", *"sss"])
        (tree,) = play(
            Sessions(per_layer=1.5, layers=1), engine, Start("train", 0, seed, "u")
        ).trees
        counts.append(len(heads(tree)) - 1)
    assert set(counts) == {1, 2}
    assert 1.35 < sum(counts) / len(counts) < 1.65


def test_worlds_without_sessions_are_cut_into_windows() -> None:
    engine = ScriptEngine(["x.", "yy.", "x.", "s."])
    (tree,) = play(Sessions(window=2, layers=0), engine, env=Talk()).trees
    assert told(tree) == [
        (ROOT, "continue", "Say.t0:", "x.", None),
        (0, "continue", "[x]", "yy.", None),
        (1, "spawn", f"Say.t0:{SEPARATOR}yy.[yy]", "x.", None),
        (2, "continue", "[x]", "s.", None),
    ]
    assert [text(p) for p in tree.turns[1].spawned] == [f"Say.t0:{SEPARATOR}yy.[yy]"]
    assert [len(t.spawned) for t in tree.turns] == [0, 1, 0, 0]
    assert tree.turns[-1].status == "solved"


@given(st.integers(0, 9), st.integers(1, 4), st.integers(0, 5))
def test_windows_earn_what_the_bare_world_pays(task: int, window: int, seed: int) -> None:
    (tree,) = play(
        Sessions(window=window), ScriptEngine(), Start("train", task, seed, "u"), Talk()
    ).trees
    bare = Talk()
    bare.reset(seed=seed, options={"split": "train", "task": task})
    for at, turn in enumerate(tree.turns):
        _, reward, _, _, info = bare.step(turn.action)
        assert (turn.reward, turn.status) == (reward, info["status"])
        assert (turn.edge is Edge.SPAWN) == (at > 0 and at % window == 0)
    assert tree.turns[-1].status != "running"


def test_a_task_that_cannot_begin_is_a_fault() -> None:
    group = play(Sessions(n=2), ScriptEngine(), Start("train", 12, 0, "u"), Talk())
    assert (group.faults, group.trees) == (2, [])


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ({"n": 0}, BadValueError),
        ({"per_layer": -0.1}, BadValueError),
        ({"per_layer": float("nan")}, BadValueError),
        ({"layers": -1}, BadValueError),
        ({"window": 0}, BadValueError),
        ({"carry": 0}, BadValueError),
        ({"queue": "ful"}, UnknownNameError),
        ({"sampler": "top"}, UnknownNameError),
    ],
)
def test_settings_are_checked(setting: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(setting))):
        Sessions(**setting)


def paid(group: Group, unit: str) -> int:
    turns = [t for tree in group.trees for t in tree.turns]
    if unit == "tokens":
        return sum(len(t.act_ids) for t in turns) + group.pruned_tokens
    return len(turns) + group.pruned_turns


def sessions_of(tree: Tree) -> list[list[tuple[str, str, float]]]:
    chains: dict[int, list[tuple[str, str, float]]] = {}
    for i, turn in enumerate(tree.turns):
        chains.setdefault(tree.chain(i)[0], []).append(said(turn))
    return list(chains.values())


@pytest.mark.parametrize("own", [True, False], ids=["own", "windows"])
@given(
    amount=st.integers(1, 25),
    unit=st.sampled_from(("tokens", "calls")),
    queue=st.sampled_from(("sampled", "full")),
    n=st.integers(1, 3),
    task=st.integers(0, 8),
)
@settings(max_examples=60, deadline=None)
def test_a_limit_is_passed_by_at_most_one_turn(
    own: bool, amount: int, unit: str, queue: Any, n: int, task: int
) -> None:
    def one(**limit: Any) -> tuple[Group, ScriptEngine]:
        engine = ScriptEngine(words=LETTERS if own else ("x.", "yy z. ", "f."))
        rollout = Sessions(n=n, per_layer=2, queue=queue, **limit)
        start = Start("train", task, 0, "u")
        return play(rollout, engine, start, None if own else Talk(5)), engine

    free, _ = one()
    some, engine = one(**{f"limit_{unit}": amount})
    assert engine.alive == set()
    assert paid(some, "calls") == len(engine.requests)
    assert paid(some, unit) < amount + (8 if unit == "tokens" else 1)
    if paid(free, unit) <= amount:
        assert [told(t) for t in some.trees] == [told(t) for t in free.trees]
        assert paid(some, "tokens") == paid(free, "tokens")
    else:
        assert paid(some, unit) >= amount
        assert len(some.trees) <= n
    if own and queue == "sampled":
        # what is there are whole sessions, the first ones that would have been played
        for limited, whole in zip(some.trees, free.trees, strict=False):
            played = sessions_of(limited)
            assert played == sessions_of(whole)[: len(played)]
    if not own:
        assert [told(t) for t in some.trees] == [told(t) for t in free.trees[: len(some.trees)]]


def test_limits_are_settings_of_pasa() -> None:
    recipe = make_recipe("pasa", {"limit_tokens": "900"})
    assert recipe.rollout.limit_tokens == 900  # pyright: ignore
    with pytest.raises(BadValueError, match="limit_calls is 0"):
        Sessions(limit_calls=0)
