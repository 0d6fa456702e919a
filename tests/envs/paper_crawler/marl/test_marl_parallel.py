"""The version at once: PettingZoo's contract, the lag of one step, idling, ends."""

import warnings

import pytest
from helpers.shelf import example_four
from helpers.two_agents import TEXTS, decided, ground, play_alone, play_at_once, sample, scheduled
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import parallel_api_test, parallel_seed_test

from turngym.envs.core.errors import BadValueError, EpisodeError, UnknownNameError
from turngym.envs.paper_crawler.marl import parallel_env


def start(**rules):
    world = ground(example_four(), **rules)
    env = parallel_env(**world)
    _, infos = env.reset(seed=0)
    return env, world["selector"], infos


def step(env, crawler, selector="ignored"):
    return env.step({"crawler": crawler, "selector": selector})


def test_pettingzoo_accepts_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it advises against text and against names of roles
        parallel_api_test(parallel_env(**sample()), num_cycles=200)
        parallel_seed_test(lambda: parallel_env(**sample()), num_cycles=60)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 5),
    TEXTS,
    st.sampled_from(["action", "session"]),
    st.sampled_from(["layered", "best_first", "sampled"]),
    st.sampled_from(["none", "counts"]),
    st.sampled_from(["frozen", "live"]),
)
def test_the_crawlers_return_is_that_of_the_environment_for_one(
    seed, texts, granularity, schedule, feedback, mode
):
    world = sample(seed, granularity=granularity, feedback=feedback, **scheduled(schedule))
    one, total = play_alone(world, texts, seed)
    env = parallel_env(**world, reward_selector=mode)
    _, infos = env.reset(seed=seed)
    totals, seen = play_at_once(env, texts, world["selector"], infos)
    assert totals["crawler"] == pytest.approx(total)
    assert env.game.digest() == one.digest()
    shown = [text for text in seen if text != "WAIT"]
    assert shown == [*(s.observation for s in one.episode.steps[1:]), "DONE"]


def test_example_four_with_a_lag_of_one():
    env, table, _ = start()
    observations, rewards, _, _, infos = step(env, "[Search] start")
    assert rewards == {"crawler": pytest.approx(-0.1), "selector": 0.0}
    assert observations["crawler"]["text"] == ""
    assert observations["selector"]["text"].startswith("Question 1\n")
    assert infos["crawler"]["idle"] is infos["selector"]["idle"] is False
    # the crawler stops while the selector decides about what it found before
    observations, rewards, _, _, infos = step(env, "[Stop]", decided(env, table))
    assert rewards == {"crawler": pytest.approx(1.5), "selector": -0.5}
    assert "Title: start here" in observations["crawler"]["text"]
    assert infos["selector"]["idle"] is True
    _, rewards, _, _, _ = step(env, "[Expand] A")
    assert rewards["crawler"] == pytest.approx(-0.1)
    _, rewards, _, _, _ = step(env, "[Expand] B", decided(env, table))
    assert rewards["crawler"] == pytest.approx(-0.1 + 2 * 1.5)
    assert rewards["selector"] == pytest.approx(-1.0 - 0.5 + 0.0)  # p3 False, p4 True, p6 False
    observations, rewards, terminated, _, infos = step(
        env, "[Expand] C [Stop]", decided(env, table)
    )
    assert rewards == {"crawler": pytest.approx(-0.1 + 1.5), "selector": 1.0}
    assert terminated == {"crawler": True, "selector": True}  # C found nothing: nothing to wait for
    assert observations["crawler"] == {"text": "DONE"}
    assert env.agents == []
    with pytest.raises(EpisodeError, match="call reset"):
        step(env, "x")


def test_the_crawler_idles_until_the_last_papers_of_a_session_are_decided():
    env, table, _ = start(cost_search=0.5)
    observations, rewards, _, _, infos = step(env, "[Search] start [Stop]")
    assert rewards["crawler"] == -0.5
    assert observations["crawler"] == {"text": "WAIT"}
    assert infos["crawler"]["idle"] is True
    observations, rewards, _, _, infos = step(env, "[Expand] A", decided(env, table))
    assert rewards["crawler"] == 1.5  # its text was ignored and cost nothing
    assert "Title: start here" in observations["crawler"]["text"]
    assert infos["crawler"]["idle"] is False
    assert env.game.episode.state.actions == 1


def test_the_last_papers_are_decided_before_both_end():
    env, table, infos = start(layers=0)
    _, _, terminated, _, infos = step(env, "[Search] start [Stop]")
    assert (terminated["crawler"], infos["crawler"]["idle"]) == (False, True)
    _, rewards, terminated, truncated, infos = step(env, "", decided(env, table))
    assert rewards == {"crawler": 1.5, "selector": -0.5}
    assert terminated == {"crawler": True, "selector": True}
    assert not any(truncated.values())
    assert infos["selector"]["metrics"]["decisions"] == 2.0
    assert infos["crawler"]["metrics"]["return"] == pytest.approx(1.4)


def test_results_are_shown_only_when_they_are_known():
    env, table, _ = start(feedback="counts")
    observations, _, _, _, infos = step(env, "[Search] start")
    assert (observations["crawler"]["text"], infos["crawler"]["idle"]) == ("WAIT", True)
    observations, _, _, _, _ = step(env, "", decided(env, table))
    assert observations["crawler"]["text"] == "Result: 2 new papers, 1 judged relevant.\n"


def test_a_limit_of_turns_ends_the_episode_before_the_next_action():
    env, table, _ = start(layers=0, max_search=2)
    step(env, "x" * 100_001)
    step(env, "[Search] start")  # the last turn, taken while the session is still open
    _, rewards, _, truncated, _ = step(env, "[Search] more", decided(env, table))
    assert truncated == {"crawler": True, "selector": True}
    assert rewards["crawler"] == 1.5  # the search that came too late costs nothing
    assert env.game.episode.state.actions == 1


def test_a_copy_goes_on_as_the_original():
    env, table, _ = start()
    step(env, "[Search] start")
    twin = env.fork()
    told = step(twin, "[Stop]", decided(twin, table))
    assert env.game.episode.turn == 0
    assert step(env, "[Stop]", decided(env, table)) == told
    assert env.agents is not twin.agents


def test_bad_calls_are_refused():
    env = parallel_env(**sample())
    with pytest.raises(EpisodeError, match="call reset"):
        step(env, "a")
    env.reset(seed=0)
    with pytest.raises(BadValueError, match="'selector' is missing"):
        env.step({"crawler": "[Search] gold"})
    for actions in (None, "[Stop]", ["a", "b"]):
        with pytest.raises(BadValueError, match=r"the actions are .*; expected a dictionary"):
            env.step(actions)
    with pytest.raises(UnknownNameError, match="selektor"):
        env.step({"crawler": "a", "selector": "b", "selektor": "c"})
    with pytest.raises(TypeError, match="'selector' is a NoneType"):
        step(env, "[Search] gold", None)
    assert env.game.episode.turn == 0
    with pytest.raises(BadValueError, match="batch was given"):
        parallel_env(**sample(), batch=True)
