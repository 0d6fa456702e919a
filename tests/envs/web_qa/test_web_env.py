"""WebQA as a world: what actions do, what is measured, who solves it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turngym.envs
from turngym.envs.core.env import TextEnv
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.web_qa.env import WebQA
from turngym.envs.web_qa.text import INVALID, PROMPTS


def play(env: WebQA, policy: Any, split: str, task: int) -> Any:
    observation, info = env.reset(seed=1, options={"split": split, "task": task})
    while info["status"] == "running":
        observation, _, _, _, info = env.step(policy(env, observation, info))
    return info


@pytest.mark.parametrize(
    ("size", "hops"), [(size, n) for size in ("full", "micro") for n in (1, 2, 3, 4)]
)
def test_the_expert_finds_the_evidence_and_answers(size: str, hops: int) -> None:
    env = WebQA(size=size, hops=hops)
    expert = env.expert()
    for task in range(250):
        info = play(env, expert, "dev", task)
        metrics = info["metrics"]
        assert info["status"] == "solved"
        assert metrics["recall"] == metrics["em"] == metrics["f1"] == metrics["return"] == 1.0
        assert metrics["hops"] == hops
        assert metrics["failed_opens"] == 0.0
        assert metrics["well_formed"] == float(size == "full")


def test_some_facts_need_a_page_and_some_do_not() -> None:
    for size in ("full", "micro"):
        env = WebQA(size=size, hops=1)
        infos = [play(env, env.expert(), "test", i) for i in range(150)]
        assert 0.2 < np.mean([info["metrics"]["opens"] > 0 for info in infos]) < 0.95
        assert all(info["metrics"]["searches"] == 1.0 for info in infos)


def test_long_pages_are_read_part_by_part() -> None:
    env = WebQA(page_chars=200, hops=1, snippets="first")
    expert = env.expert()
    infos = [play(env, expert, "dev", i) for i in range(100)]
    assert all(info["status"] == "solved" for info in infos)
    parts = [info["metrics"]["opens"] - info["metrics"]["pages"] for info in infos]
    assert max(parts) >= 2
    assert np.mean([info["metrics"]["recall"] for info in infos]) > 0.9


def test_mistakes_make_a_middling_player() -> None:
    env = WebQA(size="micro")
    rates = []
    for mistakes in (0.0, 0.5, 1.0):
        expert = env.expert(mistakes=mistakes, seed=3)
        infos = [play(env, expert, "train", i) for i in range(200)]
        rates.append(np.mean([info["status"] == "solved" for info in infos]))
    assert rates[0] == 1.0 > rates[1] > rates[2]
    with pytest.raises(BadValueError, match="mistakes is 2"):
        env.expert(mistakes=2)


def test_the_floor() -> None:
    env = WebQA()
    rng = np.random.default_rng(0)

    def echo(env: Any, observation: str, info: Mapping[str, Any]) -> str:
        said = observation.split()
        return f"<answer> {said[int(rng.integers(len(said)))]} </answer>"

    for policy in (lambda *_: "", lambda env, *_: env.action_space.sample(), echo):
        solved = sum(play(env, policy, "dev", i)["status"] == "solved" for i in range(200))
        assert solved / 200 < 0.02


def test_a_micro_episode_reads_as_planned() -> None:
    env = WebQA(size="micro")
    question, _ = env.reset(seed=0, options={"split": "dev", "task": 3})
    assert env.instructions == PROMPTS["none"] == ""
    probe = env.episode.task.payload.plan[0]
    assert question == "Question: Who is the teacher of Zoe Dove?\n"
    found, reward, *_, info = env.step(f"<search> {probe.subject} {probe.keyword} </search>")
    assert found.splitlines()[2:5] == [
        "<information>1. Zoe Dove",
        "https://wiki.test/zoe-dove",
        "The partner of Zoe Dove is Abe Lark.",
    ]
    assert (reward, info["verdict"]) == (0.0, 0)
    page, *_, info = env.step("<open> 1 </open>")
    assert page.startswith("\n\n<information>Zoe Dove\nhttps://wiki.test/zoe-dove\nThe partner of ")
    assert "The teacher of Zoe Dove is [Kai Thorn](https://wiki.test/kai-thorn)." in page
    assert info["verdict"] == 1
    linked, *_ = env.step("<open> https://wiki.test/kai-thorn </open>")
    assert "<information>Kai Thorn\n" in linked
    _, reward, terminated, *_, info = env.step("<answer> Kai Thorn </answer>")
    assert (reward, terminated, info["status"]) == (1.0, True, "solved")
    assert (info["metrics"]["pages"], info["metrics"]["turns"]) == (2.0, 4.0)


def test_numbers_are_those_of_the_last_search() -> None:
    env = WebQA(size="micro")
    env.reset(seed=0)
    said, *_ = env.step("<open> 1 </open>")
    assert "There is no result 1: no result was shown so far." in said
    env.step("<search> Gwen Frost </search>")
    env.step("<search> Iris Hill </search>")
    said, *_ = env.step("<open> [1] </open>")
    assert "Iris Hill\nhttps://wiki.test/iris-hill\n" in said
    said, _, _, _, info = env.step("<open> 4 </open>")
    assert "There is no result 4: the last search has 3 results." in said
    assert info["valid_action"]
    assert env.episode.state.failed_opens == 2


@pytest.mark.parametrize(
    ("content", "said", "valid"),
    [
        ("https://wiki.test/nobody", "There is no page https://wiki.test/nobody.", True),
        ("https://wiki.test/gwen-frost page 9", "has 1 part; there is no part 9", True),
        ("gwen-frost page 0", "there is no part 0", True),
        ("the page of Gwen Frost", INVALID, False),
        ("", INVALID, False),
    ],
)
def test_bad_addresses_are_moves(content: str, said: str, valid: bool) -> None:
    env = WebQA(size="micro")
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(f"<open> {content} </open>")
    assert said in observation
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["valid_action"] == valid


def test_nothing_is_searched_or_opened_in_the_last_turn() -> None:
    env = WebQA(size="micro", max_turns=1)
    for action in ("<search> Gwen Frost </search>", "<open> gwen-frost </open>"):
        env.reset(seed=0)
        observation, reward, terminated, truncated, info = env.step(action)
        assert (observation, reward, terminated, truncated) == ("", 0.0, False, True)
        assert info["metrics"]["searches"] == info["metrics"]["opens"] == 0.0


def test_the_reward_is_f1_and_form_counts_opening_as_searching() -> None:
    env = WebQA(size="micro", structure_score=0.2, format_score=0.1, retrieval_score=0.05)
    env.reset(seed=0, options={"split": "dev", "task": 3})
    env.step("<think> a </think> <search> Zoe Dove </search>")
    env.step("<think> b </think> <open> 1 </open>")
    _, reward, _, _, info = env.step("<think> c </think> <answer> Kai </answer>")
    assert info["reward_terms"] == {
        "outcome": pytest.approx(2 / 3),
        "format": 0.0,
        "retrieval": 0.0,
    }
    assert reward == pytest.approx(2 / 3)
    assert info["status"] == "failed"
    assert info["metrics"]["well_formed"] == 1.0
    env.reset(seed=0, options={"split": "dev", "task": 3})
    env.step("<open> zoe-dove </open>")
    *_, info = env.step("<answer> nobody </answer>")
    assert info["reward_terms"]["format"] == 0.1
    assert WebQA(size="micro", outcome="em").rewards.outcome == "em"


def test_a_fork_goes_its_own_way_and_a_replay_is_the_same() -> None:
    env = WebQA(size="micro")
    env.reset(seed=7, options={"task": 11})
    env.step("<search> Gwen Frost </search>")
    twin = env.fork()
    assert twin.digest() == env.digest()
    first, second = env.step("<open> 1 </open>"), twin.step("<open> 1 </open>")
    assert first == second
    twin.step("<open> 2 </open>")
    assert twin.digest() != env.digest()
    assert len(env.episode.state.opened) == 1
    again = pickle.loads(pickle.dumps(env))
    assert again.digest() == env.digest()
    assert again.web.site is env.web.site
    fresh = WebQA(size="micro")
    fresh.reset(seed=7, options={"task": 11})
    for step in env.episode.steps:
        fresh.step(step.action)
    assert fresh.digest() == env.digest()


def test_copies_are_served_together() -> None:
    envs: Any = gym.make_vec("WebQA-v0", num_envs=4, size="micro")
    envs.reset(seed=0)
    observations, *_ = envs.step(["<search> Ada Brook </search>", "<open> gwen-frost </open>"] * 2)
    assert len(set(observations)) == 2
    assert len({envs.envs[i].unwrapped._serve for i in range(4)}) == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="<>/openpage 12\n") | st.text(), max_size=6))
def test_no_text_breaks_it(actions: list[str]) -> None:
    env = WebQA(size="micro", structure_score=0.2)
    env.reset(seed=0)
    env.step("<search> Gwen Frost </search>")
    for action in actions:
        if not env.action_space.contains(action):
            continue
        observation, reward, terminated, truncated, _ = env.step(f"<open>{action}</open>")
        assert env.observation_space.contains(observation)
        assert reward == 0.0
        if terminated or truncated:
            break


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"size": "mirco"}, UnknownNameError, "'micro'"),
        ({"prompt": "wep"}, UnknownNameError, "'web'"),
        ({"snippets": "fiting"}, UnknownNameError, "'fitting'"),
        ({"outcome": "f2"}, UnknownNameError, "'f1'"),
        ({"topk": 3}, UnknownNameError, "'top_k'"),
        ({"max_turns": 0}, BadValueError, "max_turns is 0"),
        ({"top_k": 0}, BadValueError, "top_k is 0; expected an integer from 1 to 100"),
        ({"page_chars": 5}, BadValueError, "page_chars is 5; expected an integer from 40"),
        ({"page_chars": 10**6}, BadValueError, "to 50,000"),
        ({"snippet_chars": True}, BadValueError, "snippet_chars is True"),
        ({"timeout_s": 0}, BadValueError, "timeout_s is 0"),
        ({"max_bytes": float("inf")}, BadValueError, "max_bytes is inf"),
        ({"site": "folder"}, BadValueError, "without questions"),
        ({"search_url": "http://x.test/"}, BadValueError, "without questions"),
        ({"data": "q.jsonl"}, BadValueError, "neither site nor search_url"),
        ({"data": "q", "site": "f", "search_url": "http://x/"}, BadValueError, "both site and"),
        ({"data": "q", "site": "f", "hops": 2}, BadValueError, "hops=2"),
        ({"data": "q", "site": "f", "snippets": "first"}, BadValueError, "snippets='first'"),
        ({"allow": "example.org"}, BadValueError, "allow=.* search_url"),
        ({"timeout_s": 3.0}, BadValueError, "timeout_s=3.0 .* search_url"),
        ({"data": "q", "site": "f", "max_bytes": 9}, BadValueError, "max_bytes=9 .* search_url"),
    ],
)
def test_refusals(settings: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        WebQA(**settings)


@pytest.mark.parametrize("allow", [[], "", ()])
def test_no_host_may_be_said_without_an_endpoint(allow: Any) -> None:
    assert WebQA(size="micro", allow=allow).max_turns


@pytest.mark.parametrize(
    "settings",
    [
        {"size": "mirco"},
        {"hops": 5},
        {"hops": 1, "kinds": "comparison"},
        {"kinds": "bridges"},
        {"size": "micro", "kinds": "counting"},
        {"size": "micro", "distractors": 3},
        {"distractors": 9},
        {"world_seed": -1},
        {"outcome": "f2"},
        {"format_score": 2},
        {"data": {"tests": "q.jsonl"}, "site": "folder"},
        {"data": {}, "site": "folder"},
        {"data": 3, "site": "folder"},
        {"data": {"train": {"nq": 3}}, "site": "folder"},
        {"data": {"train": {"a/b": "q.jsonl"}}, "site": "folder"},
        {"data": {"train": ["a/q.jsonl", "b/q.jsonl"]}, "site": "folder"},
        {"data": "q.txt", "site": "folder"},
    ],
)
def test_refusals_name_the_world_that_was_made(settings: dict[str, Any]) -> None:
    with pytest.raises((BadValueError, UnknownNameError, DataError), match=r"^WebQA") as caught:
        WebQA(**settings)
    assert "SearchQA" not in str(caught.value)


def test_the_expert_refuses_impossible_shares_of_mistakes() -> None:
    with pytest.raises(BadValueError, match="expert: mistakes is 2; expected a number"):
        WebQA(size="micro").expert(mistakes=2)


def test_only_the_web_needs_the_web() -> None:
    code = (
        "import sys, gymnasium, turngym.envs; gymnasium.make('WebQA-v0', size='micro').reset();"
        "site = 'turngym.envs.web_qa.sites.';"
        "bad = {'ssl', 'torch', site + 'fetch', site + 'folder'};"
        "sys.exit(str(bad & set(sys.modules)) if bad & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_conformance() -> None:
    report = turngym.envs.check_text_env("WebQA-v0", size="micro", hops=(1, 2))
    assert set(report.skipped) <= {"legal actions are valid"}
    assert isinstance(gym.make("WebQA-v0", size="micro"), TextEnv)
