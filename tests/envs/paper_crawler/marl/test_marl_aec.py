"""The version in turns: PettingZoo's contract, order of moves, rewards, ends, copies."""

import copy
import pickle
import warnings

import pytest
from helpers.shelf import Requests, Shelf, Table, example_four, paper
from helpers.two_agents import (
    TEXTS,
    decided,
    four,
    ground,
    play_alone,
    play_turns,
    sample,
    scheduled,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import api_test, seed_test

from turngym.envs.core.errors import EnvFault, EpisodeError, UnknownNameError
from turngym.envs.paper_crawler.marl import aec_env
from turngym.envs.paper_crawler.papers import Request


@pytest.mark.parametrize("batch", [False, True])
def test_pettingzoo_accepts_it(batch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it advises against text and against names of roles
        api_test(aec_env(**sample(batch=batch)), num_cycles=200)
        seed_test(lambda: aec_env(**sample(batch=batch)), num_cycles=60)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 5),
    TEXTS,
    st.booleans(),
    st.sampled_from(["action", "session"]),
    st.sampled_from(["layered", "fifo", "best_first", "sampled"]),
    st.sampled_from(["frozen", "live", "ema"]),
)
def test_the_crawlers_return_is_that_of_the_environment_for_one(
    seed, texts, batch, granularity, schedule, mode
):
    world = sample(seed, granularity=granularity, **scheduled(schedule))
    one, total = play_alone(world, texts, seed)
    selector = world["selector"]
    slow = selector if mode == "ema" else None
    env = aec_env(**world, batch=batch, reward_selector=mode, slow_selector=slow)
    env.reset(seed=seed)
    totals = play_turns(env, texts, selector)
    assert totals["crawler"] == pytest.approx(total)
    assert env.game.digest() == one.digest()
    assert env.agents == []


def test_one_turn_for_every_paper_and_the_session_closes_after_them():
    world = ground(example_four())
    env = aec_env(**world)
    env.reset(seed=0)
    start = env.observe("crawler")["text"]
    assert env.observe("selector") == {"text": ""}
    env.step("[Search] start [Stop]")
    asked = []
    while env.agent_selection == "selector":
        assert env.observe("crawler")["text"] == start
        observation, _, _, _, info = env.last()
        assert observation["text"].endswith("Decision:")
        assert info["pending"] == 2 - len(asked)
        asked += info["paper_ids"]
        env.step(decided(env, world["selector"]))
    assert asked == ["p1", "p2"]
    assert "Title: start here" in env.observe("crawler")["text"]


def test_a_batch_is_one_turn_with_a_line_for_each_paper():
    env = four(batch=True)
    env.step("[Expand] A")
    text = env.observe("selector")["text"]
    assert [f"Question {n}\n" in text for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert env.instructions["selector"].startswith("Answer every numbered question")
    env.step("2: True 0.8\n1: False\n3: no")
    found = env.game.episode.state.queue
    assert [found[p].score for p in ("p3", "p4", "p6")] == [0.0, 0.8, 0.0]
    assert env.infos["selector"]["invalid_decisions"] == 1
    assert env.infos["selector"]["valid_action"] is False


def test_example_four_by_hand():
    env = four()
    env.last()
    env.step("[Expand] A")  # p3 is an answer, p4 counts by the world's selector, p6 does not
    assert env.rewards == {"crawler": pytest.approx(-0.1), "selector": 0.0}
    gains = []
    for text in ("False 0.2", "True 0.81", "False 0.5"):
        env.step(text)
        gains.append((env.rewards["crawler"], env.rewards["selector"]))
    assert gains == [(1.5, -1.0), (1.5, -0.5), (0.0, 0.0)]
    assert env.agent_selection == "crawler"
    assert env.last()[1] == pytest.approx(2.9)
    env.step("[Expand] B")
    env.step("True")
    assert env.rewards == {"crawler": 1.5, "selector": 1.0}
    assert env.last()[1] == pytest.approx(1.4)
    env.step("[Expand] C")  # p5 again
    assert env.agent_selection == "crawler"
    assert env.last()[1] == pytest.approx(-0.1)


def test_the_frontier_follows_the_selector_agents_scores():
    papers = [paper(i, "a", {"s": [9]}) for i in (0, 1, 2)] + [paper(9)]
    world = ground((Shelf(papers), Table({}), Request("a", 20230101, ("p9",))))
    env = aec_env(**world)
    env.reset(seed=0)
    env.step("[Search] a [Stop]")
    for text in ("False", "True 0.6", "True 0.9"):
        env.step(text)
    opened = []
    while env.agents and env.agent_selection == "crawler" and not env.terminations["crawler"]:
        opened.append(env.game.session_key())
        env.step("[Stop]")
    assert opened == ["p2", "p1", "p0"]


def test_both_end_together_and_are_told_their_measures():
    world = ground(example_four())
    env = aec_env(**world, render_mode="ansi")
    env.reset(seed=0, options={"split": "train", "task": 0})
    totals = play_turns(env, ["[Search] start [Stop]", "[Expand] A [Expand] B"], Table({}))
    assert env.agents == []
    assert env.observe("crawler") == env.observe("selector") == {"text": "DONE"}
    with pytest.raises(EpisodeError, match="call reset"):
        env.step("x")
    env.reset(seed=0)
    assert env.infos["selector"]["metrics"] == {}
    env.step("[Search] start [Stop]")
    env.step("True")
    env.step("maybe")
    env.step("[Stop]")
    assert env.terminations == {"crawler": True, "selector": True}
    assert env.infos["selector"]["metrics"] == {
        "return": -0.5,
        "decisions": 2.0,
        "invalid_decisions": 1.0,
        "accuracy": 0.5,
    }
    assert env.infos["crawler"]["metrics"]["return"] == pytest.approx(-0.1 + 1.5)
    assert "[crawler]\n" in env.render()
    assert "Decision:maybe\n" in env.render()
    assert totals["selector"] == -1.0  # False to the answer p3 of section A, the one opened
    env.close()


def test_max_actions_truncates_both_after_the_decisions():
    env = four(max_actions=2)
    env.step("[Expand] A")
    assert not any(env.truncations.values())
    for _ in range(3):
        env.step("True")
    assert env.truncations == {"crawler": True, "selector": True}
    assert not any(env.terminations.values())


class Breaks(Shelf):
    def search(self, requests):
        if "crash" in requests[0].text:
            raise EnvFault("the engine is down")
        return super().search(requests)


def test_a_broken_step_scores_nothing():
    shelf, table, request = example_four()
    world = ground((Breaks(shelf.papers.values()), table, request), granularity="session")
    env = aec_env(**world)
    env.reset(seed=0)
    env.step("[Search] start [Search] crash [Stop]")
    env.step("True")
    assert env.rewards["selector"] == -0.5
    env.step("True")
    assert env.truncations == {"crawler": True, "selector": True}
    assert env.infos["crawler"]["status"] == env.infos["selector"]["status"] == "env_error"
    assert env.last()[1] == pytest.approx(0.0)
    assert env._cumulative_rewards["selector"] == pytest.approx(0.5)  # takes the -0.5 back
    assert env.infos["selector"]["metrics"] == {}


def test_an_action_that_is_too_long_costs_a_turn_as_it_does_for_one():
    env = four()
    env.step("x" * 100_001)
    assert env.agent_selection == "crawler"
    assert env.last()[1] == 0.0
    assert env.infos["crawler"]["valid_action"] is False
    env.step("[Expand] B")
    env.step("x" * 100_001)
    assert env.infos["selector"]["errors"] == ["the text is too long or no valid UTF-8"]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 5), TEXTS, st.integers(0, 25), st.sampled_from(["fork", "deep", "pickle"]))
def test_a_copy_goes_on_as_the_original(seed, texts, at, how):
    world = sample(seed, schedule="sampled")
    env = aec_env(**world, reward_selector="ema", slow_selector=Table({}))
    env.reset(seed=seed)
    texts = iter([*texts, *["[Stop]"] * 99])
    for _ in range(at):
        if env.terminations["crawler"]:
            break
        asked = env.agent_selection == "selector"
        env.step(decided(env, world["selector"]) if asked else next(texts))
    left = list(texts)
    copies = {"fork": env.fork, "deep": lambda: copy.deepcopy(env)}
    twin = copies.get(how, lambda: pickle.loads(pickle.dumps(env)))()
    before = (env.game.digest(), env.observe("selector"), env.infos, dict(env.rewards))
    gained = play_turns(twin, left, world["selector"])
    assert (env.game.digest(), env.observe("selector"), env.infos, env.rewards) == before
    assert play_turns(env, left, world["selector"]) == gained
    assert env.game.digest() == twin.game.digest()


def test_a_copy_asks_the_world_nothing_again():
    env = four()
    env.step("[Expand] A")
    env.step("True")
    calls = len(env.game.parts.selector.calls)
    twin = env.fork()
    twin.step("True")
    assert len(env.game.parts.selector.calls) == calls
    assert (twin.infos["selector"]["pending"], env.infos["selector"]["pending"]) == (1, 2)


def test_moves_out_of_order_are_refused():
    env = aec_env(**sample())
    with pytest.raises(EpisodeError, match="call reset"):
        env.step("[Search] a")
    env.reset(seed=0)
    with pytest.raises(TypeError, match="'crawler' is a int"):
        env.step(3)
    with pytest.raises(UnknownNameError, match="selektor"):
        env.observe("selektor")
    with pytest.raises(UnknownNameError, match="reset option"):
        env.reset(options={"tusk": 1})
    with pytest.raises(EpisodeError, match="both agents"):
        env.game.step("[Search] gold iron salt wood clay")


def test_settings_are_those_of_the_environment_for_one():
    with pytest.raises(UnknownNameError, match="layers"):
        aec_env(**sample(), layerz=1)
    with pytest.raises(UnknownNameError, match="Did you mean 'reward_selector'"):
        aec_env(**sample(), reward_selectr="live")
    env = aec_env(data=Requests(Request("a", 20200101, ())), papers=Shelf([]), layers=1)
    assert env.game.rules.layers == 1
