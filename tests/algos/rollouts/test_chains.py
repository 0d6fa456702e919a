"""The runner and the chains: what hangs where, what seeds what, how episodes end."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.talk_world import EOS, LetterRenderer, ScriptEngine, Talk

from turngym.agents.engines.base import Completion, Request, Sampling
from turngym.algos.core.forest import ROOT, Edge, Forest, Group, Tree
from turngym.algos.core.protocols import Start
from turngym.algos.rollouts import Chains, EpisodeRunner, play_out, seed_at
from turngym.envs.core.errors import BadValueError, EnvFault, EpisodeError

START = Start("train", 2, 5, "u")


def runner(engine: ScriptEngine, env: Talk | None = None, **more: Any) -> EpisodeRunner:
    sampling = Sampling(max_tokens=more.pop("max_tokens", 8))
    renderer: Any = LetterRenderer()
    return EpisodeRunner(env or Talk(), engine, renderer, sampling, **more)


def play(n: int, engine: ScriptEngine, start: Start = START, **more: Any) -> Group:
    return asyncio.run(Chains(n=n)(runner(engine, **more), start))


def told(tree: Tree) -> list[tuple[int, str, str, str]]:
    """Parent, edge, observation and action of each turn."""
    return [(t.parent, t.edge.value, "".join(map(chr, t.obs_ids)), t.action) for t in tree.turns]


def scripted(*actions: str, **more: Any) -> Tree:
    return play(1, ScriptEngine(actions), **more).trees[0]


def test_a_chain_is_an_episode_turn_by_turn() -> None:
    tree = scripted("x.", "yy.", "f.")
    assert told(tree) == [
        (ROOT, "continue", "Say.t2:", "x."),
        (0, "continue", "[x]", "yy."),
        (1, "continue", "[yy]", "f."),
    ]
    last = tree.turns[-1]
    assert [t.status for t in tree.turns] == ["running", "running", "failed"]
    assert tree.turns[1].rewards.tolist() == [0.0, 0.0, 0.125]
    assert (last.verdict, last.version, last.stop) == (-1, 7, "stop")
    assert last.reward_terms == (("outcome", -0.5), ("style", 0.25))
    assert dict(last.metrics)["words"] == 3.0
    assert last.logprobs.tolist() == [-0.5, -0.5]
    assert not any(t.metrics or t.overflow for t in tree.turns[:-1])


def test_an_error_of_an_environment_says_what_would_show_it_again() -> None:
    class Careless(Talk):
        def play(self, episode: Any, action: str) -> Any:
            return {"x.": super().play(episode, action)}[action]

    with pytest.raises(KeyError, match=r"yy\.") as caught:
        scripted("x.", "yy.", env=Careless())
    assert caught.value.__notes__ == [
        "Careless, task train/2, episode seed 5, turn 2: the action was 'yy.'"
    ]


def test_no_end_of_text_token_reaches_the_environment() -> None:
    """A model of several: the tokenizer, and with it the renderer, knows one of them."""

    class Ending(ScriptEngine):
        async def generate(self, request: Request) -> Completion:
            done = await super().generate(request)
            more = np.zeros(1, np.float32)
            return replace(
                done,
                ids=np.append(done.ids, EOS + 1),
                logprobs=np.append(done.logprobs, more),
                entropies=np.append(done.entropies, more),
                stop="eos",
            )

    tree = play(1, Ending(["x.", "s."])).trees[0]
    assert [t.action for t in tree.turns] == ["x.", "s."]
    assert tree.turns[-1].status == "solved"
    assert [t.act_ids.tolist()[-1] for t in tree.turns] == [EOS + 1] * 2  # it was sampled


def test_the_context_is_all_that_came_before() -> None:
    engine = ScriptEngine(["x.", "yy.", "s."])
    tree = play(1, engine).trees[0]
    grown: list[int] = []
    for request, turn in zip(engine.requests, tree.turns, strict=True):
        grown += turn.obs_ids.tolist()
        assert list(request.ids) == grown
        grown += turn.act_ids.tolist()
    assert [r.cache for r in engine.requests] == [None, 1, 2]


def test_the_environment_s_stop_strings_apply_unless_others_are_given() -> None:
    engine = ScriptEngine(["s."])
    play(1, engine)
    assert engine.requests[0].sampling.stop == (".",)
    own = EpisodeRunner(Talk(), engine, LetterRenderer(), Sampling(max_tokens=1, stop=("!",)))  # pyright: ignore
    assert own.sampling.stop == ("!",)


def same(a: Group, b: Group) -> bool:
    return [told(t) for t in a.trees] == [told(t) for t in b.trees]


@pytest.mark.parametrize("delays", [1, 2, 3])
def test_what_is_sampled_does_not_depend_on_scheduling(delays: int) -> None:
    calm = play(6, ScriptEngine(delays=0))
    assert same(calm, play(6, ScriptEngine(delays=delays)))
    assert len({str(told(t)) for t in calm.trees}) > 1
    assert not same(calm, play(6, ScriptEngine(), Start("train", 2, 6, "u")))


def test_fewer_chains_are_the_first_of_more() -> None:
    few, more = play(3, ScriptEngine()), play(6, ScriptEngine())
    assert [told(t) for t in few.trees] == [told(t) for t in more.trees[:3]]


def test_the_environment_is_reset_once_per_group() -> None:
    before = Talk.resets
    group = play(5, ScriptEngine())
    assert Talk.resets == before + 1
    assert (group.uid, group.task_id, len(group.trees)) == ("u", "train/2", 5)


def test_every_cache_is_released_exactly_once() -> None:
    engine = ScriptEngine()
    play(5, engine)
    assert engine.handles == len(engine.requests) > 5
    assert engine.alive == set()


def test_a_forked_seat_goes_on_from_its_position() -> None:
    engine = ScriptEngine(["x.", "s.", "yy.", "f."])
    who = runner(engine)

    async def grow() -> Tree:
        tree = Tree()
        handle = await who.open(START)
        await who.turn(handle, tree)
        branch = handle.fork(1)
        await play_out(who, handle, tree)
        assert engine.alive == {1}  # the branch still holds it
        await play_out(who, branch, tree)
        return tree

    tree = asyncio.run(grow())
    assert told(tree)[1:] == [
        (0, "continue", "[x]", "s."),
        (0, "continue", "[x]", "yy."),
        (2, "continue", "[yy]", "f."),
    ]
    assert dict(tree.turns[-1].metrics)["words"] == 3.0
    assert engine.alive == set()
    assert [p.turns for p in Forest.of([Group("u", "t", [tree])])] == [(0, 1), (0, 2, 3)]


def test_branches_of_a_seat_are_seeded_by_their_place() -> None:
    engine = ScriptEngine(["x."] * 9)
    who = runner(engine)

    async def grow() -> None:
        tree = Tree()
        handle = await who.open(START)
        await who.turn(handle, tree)
        twins = [handle.fork(1), handle.fork(1), handle.fork(2)]
        for s in (handle, *twins):
            await who.turn(s, tree)

    asyncio.run(grow())
    first, trunk, one, same_one, two = (r.seed for r in engine.requests)
    assert one == same_one
    assert len({first, trunk, one, two}) == 4


def test_seeds_are_fixed_numbers() -> None:
    assert seed_at(0, 0) == 520810605562734633
    assert len({seed_at(a, b) for a in range(30) for b in range(30)}) == 900
    assert all(0 <= seed_at(-1, i) < 2**63 for i in range(100))


def test_the_turn_limit_truncates() -> None:
    tree = scripted(*["x."] * 6)
    assert [t.status for t in tree.turns] == ["running"] * 5 + ["truncated"]
    assert not tree.turns[-1].overflow


def test_a_full_context_truncates_and_says_so() -> None:
    """Say.t2: (7) x. (2) [x] (3) yyy. (4) leave 1 of 17, [yyy] takes 5."""
    tree = scripted("x.", "yyy.", max_context=17)
    last = tree.turns[-1]
    assert (last.status, last.overflow, last.reward) == ("truncated", True, 0.125)
    metrics = dict(last.metrics)
    assert metrics["success"] == 0.0
    assert metrics["return"] == pytest.approx(0.25)
    assert metrics["words"] == metrics["turns"] == 2.0
    assert len(Forest.of([Group("u", "t", [tree])]).paths) == 1


def test_the_last_action_gets_the_room_that_is_left() -> None:
    engine = ScriptEngine(["x.", "yyyyyyy."])
    tree = play(1, engine, max_context=15, env=Talk(max_turns=2)).trees[0]
    assert [r.sampling.max_tokens for r in engine.requests] == [8, 3]
    assert (tree.turns[-1].action, tree.turns[-1].stop) == ("yyy", "length")


def test_a_prompt_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(BadValueError, match=r"train/2: the first prompt has 7 tokens"):
        scripted("x.", max_context=7)


@pytest.mark.parametrize("bad", [1, 401])
def test_a_context_beyond_the_engine_s_is_refused(bad: int) -> None:
    with pytest.raises(BadValueError, match=f"max_context is {bad}; expected 2 to 400"):
        runner(ScriptEngine(), max_context=bad)


def test_a_world_that_cannot_begin_is_counted() -> None:
    group = play(4, ScriptEngine(), Start("train", 12, 0, "u"))
    assert (group.trees, group.faults) == ([], 4)
    assert Forest.of([group]).env_errors == 4


def test_a_world_that_breaks_is_left_out_and_counted_and_the_others_go_on() -> None:
    group = play(2, ScriptEngine(["x.", "yy.", "b.", "s."]))
    assert [t.turns[-1].status for t in group.trees] == ["env_error", "solved"]
    forest = Forest.of([group])
    assert [p.tree for p in forest] == [1]
    assert forest.env_errors == 1


def test_a_measure_that_breaks_at_a_full_context_is_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> Any:
        raise EnvFault("grader")

    monkeypatch.setattr(Talk, "metrics", broken)
    tree = scripted("x.", "yyy.", max_context=17)
    assert tree.turns[-1].status == "env_error"


def test_a_measure_or_debug_info_that_cannot_be_written_is_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rare nan ended the run where the step's means were checked, at every resuming again."""
    with monkeypatch.context() as patch:
        patch.setattr(Talk, "metrics", lambda *_: {"hops": float("nan")})
        tree = scripted("x.", "yyy.", max_context=17)  # its context is full
        assert (tree.turns[-1].status, tree.turns[-1].metrics) == ("env_error", ())
        assert scripted("s.").turns[-1].status == "env_error"
    monkeypatch.setattr(Talk, "debug_info", lambda _, ep: {"x": float("nan") if ep.turn > 1 else 1})
    engine = ScriptEngine(["x.", "s."])
    tree = play(1, engine).trees[0]
    assert [turn.debug_info for turn in tree.turns] == [{"x": 1}, {}]
    assert [turn.status for turn in tree.turns] == ["running", "env_error"]
    assert Forest.of([Group("u", "t", [tree])]).env_errors == 1
    assert engine.alive == set()


def test_a_session_starts_a_new_context_and_can_be_returned_to() -> None:
    engine = ScriptEngine(["x.", "r.", "yy.", "h.", "s."])
    tree = play(1, engine).trees[0]
    assert told(tree) == [
        (ROOT, "continue", "Say.t2:", "x."),
        (0, "continue", "[x]", "r."),
        (1, "spawn", "Say.room:", "yy."),
        (2, "continue", "[yy]", "h."),
        (1, "continue", "home:", "s."),
    ]
    asked = ["".join(map(chr, r.ids)) for r in engine.requests]
    assert asked[2] == "Say.room:"
    assert asked[4] == "Say.t2:x.[x]r.home:"
    assert [r.cache for r in engine.requests] == [None, 1, None, 3, 2]
    assert engine.alive == set()
    assert tree.turns[2].edge is Edge.SPAWN


def test_blocking_worlds_step_side_by_side() -> None:
    """Each step waits for that of the other chain: one after the other would never end."""
    env = Talk(barrier=threading.Barrier(2))
    engine = ScriptEngine(["s.", "f."])
    group = play(2, engine, env=env)
    assert [t.turns[-1].status for t in group.trees] == ["solved", "failed"]


def test_a_turn_after_the_end_is_refused() -> None:
    who = runner(ScriptEngine(["s.", "s."]))

    async def two() -> None:
        handle, tree = await who.open(START), Tree()
        await who.turn(handle, tree)
        await who.turn(handle, tree)

    with pytest.raises(EpisodeError, match="after the end"):
        asyncio.run(two())


def test_end_of_text_alone_is_an_action() -> None:
    tree = scripted(chr(EOS), "s.")
    assert tree.turns[0].act_ids.tolist() == [EOS]
    assert tree.turns[0].action == ""


def test_an_engine_s_failure_reaches_the_caller() -> None:
    with pytest.raises(IndexError):
        play(3, ScriptEngine(["x."]))


def test_chains_need_a_number() -> None:
    with pytest.raises(BadValueError, match=r"Chains\.n is 0"):
        Chains(n=0)
    assert Chains(n=3).max_paths == 3


def test_a_one_turn_world_is_one_turn() -> None:
    tree = scripted("s.", env=Talk(max_turns=1))
    longer = scripted("s.")
    assert told(tree) == told(longer)
    np.testing.assert_array_equal(tree.turns[0].rewards, longer.turns[0].rewards)
