"""SearchQA with search and python: grammar, results, metrics, replay, and the laws of a world."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.computing_world import CODE, ComputingQA

from turngym.envs import RecordEpisodes, check_text_env, read_transcripts, replay
from turngym.envs.core.errors import BadValueError, EnvFault, UnknownNameError
from turngym.envs.search_qa.env import SearchQA
from turngym.envs.search_qa.rewards import Piece, is_well_formed
from turngym.envs.search_qa.text import BOTH_INVALID, INVALID, PROMPTS, find_code, write_result
from turngym.envs.testing.check import LAWS
from turngym.envs.tools.python import protections
from turngym.envs.tools.python.tool import PythonTool

BOTH = ("search", "python")
LACKING = "; ".join(f"{name}: {why}" for name, why in protections.find_missing().items())
pytestmark = pytest.mark.skipif(bool(LACKING), reason=LACKING or "nothing is missing")


def make(**settings: Any) -> SearchQA:
    return SearchQA(**{"size": "micro", "tools": BOTH, **settings})


def test_a_call_is_answered_by_what_it_prints() -> None:
    env = make()
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(
        "<think> a <python> </think> no <search </think><python>\n    x = 2\n    x * 3\n</python>"
    )
    assert (reward, terminated, truncated, info["valid_action"]) == (0.0, False, False, True)
    assert info["verdict"] == 0
    observation, *_ = env.step("<python> print('a')\n1 / 0 </python>")
    assert observation.startswith("\n\n<result>\nTraceback")
    assert observation.endswith("ZeroDivisionError: division by zero\n</result>\n\n")
    observation, *_ = env.step("<search> x </search> <python> 1 </python>")
    assert observation.startswith("\n\n<information>")
    info = env.step("<answer> x </answer>")[4]
    assert info["metrics"]["python_calls"] == 2
    assert info["metrics"]["searches"] == 1


def test_code_keeps_its_indentation() -> None:
    assert find_code("<python>\n    if 1:\n        2\n    3\n</python>") == "if 1:\n    2\n3"
    assert find_code("<python> a = 1\nb = 2 </python>") == "a = 1\nb = 2"
    assert find_code("<python> for i in x:\n     print(i) </python>") == "for i in x:\n    print(i)"
    assert find_code("<python></python>") == ""
    assert find_code("nothing") == ""


def test_the_default_knows_no_python() -> None:
    env = SearchQA(size="micro")
    assert env.stop == ("</search>", "</answer>")
    assert not env.blocking
    env.reset(seed=0)
    observation, *_, info = env.step("<python> 1 </python>")
    assert (observation, info["valid_action"]) == (INVALID, False)
    assert "python_calls" not in env.step("<answer> x </answer>")[4]["metrics"]
    assert SearchQA().prompt == "search-r1"


def test_words_that_go_with_both_tools() -> None:
    env = make(prompt="search-python")
    assert env.stop == ("</search>", "</python>", "</answer>")
    assert env.blocking
    assert env.instructions == PROMPTS["search-python"]
    for tag in ("think", "search", "information", "python", "result", "answer"):
        assert f"<{tag}>" in env.instructions
        assert f"</{tag}>" in env.instructions
    assert make().prompt == "none"
    assert SearchQA(tools=["python", "search"]).prompt == "search-python"
    env.reset(seed=0)
    assert env.step("hello")[0] == BOTH_INVALID


def test_a_call_in_the_last_turn_is_not_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(max_turns=2)
    env.reset(seed=0)
    env.step("<python> 1 </python>")
    monkeypatch.setattr(PythonTool, "__call__", lambda *_: pytest.fail("it was executed"))
    observation, _, terminated, truncated, info = env.step("<python> 2 </python>")
    assert (observation, terminated, truncated) == ("", False, True)
    assert info["metrics"]["python_calls"] == 1


def test_the_observation_budget_keeps_the_closing_tag() -> None:
    env = make(max_observation_chars=100)
    env.reset(seed=0)
    observation, *_ = env.step("<python> 'x' * 500 </python>")
    assert len(observation) == 100
    assert observation.startswith("\n\n<result>\nxxx")
    assert observation.endswith("x\n</result>\n\n")
    assert write_result("abc", 100) == "\n\n<result>\nabc\n</result>\n\n"
    wide = make(max_observation_chars=None, python_tool={"max_output_chars": 300_000})
    wide.reset(seed=0)
    assert wide.observation_space.contains(wide.step("<python> 'x' * 200000 </python>")[0])


def test_whatever_code_prints_is_a_text(tmp_path: Path) -> None:
    env = make()
    env.reset(seed=0)
    observation, *_ = env.step("<python> import os; os.write(1, bytes(range(256))) </python>")
    assert env.observation_space.contains(observation)


def test_a_timeout_is_an_observation_and_a_fault_ends_the_episode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = make(python_tool={"timeout_s": 0.3})
    env.reset(seed=0)
    observation, *_ = env.step("<python> while True: pass </python>")
    stopped = "The code was stopped: it ran longer than 0.3 seconds."
    assert observation == f"\n\n<result>\n{stopped}\n</result>\n\n"
    monkeypatch.setattr(PythonTool, "__call__", lambda _, asked: [EnvFault("no")] * len(asked))
    _, reward, terminated, truncated, info = env.step("<python> 1 </python>")
    assert (reward, terminated, truncated, info["status"]) == (0.0, False, True, "env_error")


def test_a_recorded_episode_replays(tmp_path: Path) -> None:
    env = RecordEpisodes(
        gym.make("SearchQA-v0", size="micro", tools=list(BOTH), python_tool={"timeout_s": 9}),
        tmp_path / "episodes.jsonl",
    )
    env.reset(seed=3)
    env.step(f"<python> {CODE} </python>")
    env.step("<python> object() </python>")
    env.step("<search> x </search>")
    env.step("<answer> x </answer>")
    env.close()
    (transcript,) = read_transcripts(tmp_path / "episodes.jsonl")
    report = replay(transcript)
    assert report.same, report.difference
    assert report.turns == 4
    assert json.loads(json.dumps(dict(transcript.kwargs)))["tools"] == list(BOTH)


def test_a_fork_goes_on_by_itself() -> None:
    env = make()
    env.reset(seed=0)
    env.step("<python> 1 </python>")
    twin = env.fork()
    steps = [e.step("<python> {'a', 'b', 'c'} </python>") for e in (env, twin)]
    assert steps[0] == steps[1]
    assert env.digest() == twin.digest()
    twin.step("<python> 2 </python>")
    assert env.digest() != twin.digest()


def test_copies_are_served_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    serve = PythonTool.__call__
    monkeypatch.setattr(
        PythonTool, "__call__", lambda self, codes: asked.append(len(codes)) or serve(self, codes)
    )
    envs = gym.make_vec("SearchQA-v0", num_envs=3, size="micro", tools=BOTH)
    envs.reset(seed=0)
    observations, *_ = envs.step([f"<python> {i} </python>" for i in range(3)])
    assert [text.split()[1] for text in observations] == ["0", "1", "2"]
    assert asked == [3]


def piece(*texts: str) -> list[Piece]:
    return [Piece(text, by_model=i % 2 == 0) for i, text in enumerate(texts)]


THINK, ANSWER = "<think> a </think>", "<think> b </think> <answer> c </answer>"
FOUND, PRINTED = "\n\n<information>d</information>\n\n", "\n\n<result>\ne\n</result>\n\n"


@pytest.mark.parametrize(
    ("pieces", "formed"),
    [
        (piece(f"{THINK} <python> 1 </python>", PRINTED, ANSWER), True),
        (
            piece(
                f"{THINK} <python> 1 </python>",
                PRINTED,
                f"{THINK}<search> q </search>",
                FOUND,
                ANSWER,
            ),
            True,
        ),
        (piece(f"{THINK} <python> 1 </python>", FOUND, ANSWER), False),
        (piece(f"{THINK} <search> 1 </search>", PRINTED, ANSWER), False),
        (piece("<python> 1 </python>", PRINTED, ANSWER), False),
        (piece(f"{THINK} <python> 1 </python>", ANSWER), False),
        (piece(f"{THINK} <python> 1 </python> so", PRINTED, ANSWER), False),
        (piece(f"{THINK} <result> 1 </result>", PRINTED, ANSWER), False),
    ],
)
def test_form_with_both_tools(pieces: list[Piece], formed: bool) -> None:
    assert is_well_formed(pieces, BOTH) is formed
    assert not is_well_formed(pieces)


def test_python_tags_are_plain_text_without_the_tool() -> None:
    pieces = piece("<think> a <python> b <result> </think> <answer> c </answer>")
    assert is_well_formed(pieces)
    assert not is_well_formed(pieces, BOTH)


def test_form_counts_in_the_reward() -> None:
    env = make(structure_score=0.2)
    for call, score in ((f"{THINK} <python> 1 </python>", 0.2), ("<python> 1 </python>", 0.0)):
        env.reset(seed=0)
        env.step(call)
        _, reward, *_, info = env.step(ANSWER)
        assert reward == pytest.approx(score)
        assert info["metrics"]["well_formed"] == float(score > 0)


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"tools": ("search", "pyhton")}, UnknownNameError, "unknown tool 'pyhton'.*'python'"),
        ({"tools": "bing"}, UnknownNameError, "unknown tool 'bing'"),
        ({"tools": ()}, BadValueError, r"tools is \(\); expected 'search'"),
        ({"tools": "python"}, BadValueError, "tools is 'python'; expected 'search'"),
        ({"tools": "search", "python_tool": {}}, BadValueError, "python_tool was given"),
        ({"tools": "search", "prompt": "search-python"}, BadValueError, "explains the python"),
        ({"python_tool": {"timeout": 5}}, UnknownNameError, "PythonTool.*'timeout_s'"),
        ({"python_tool": {"timeout_s": -1}}, BadValueError, "timeout_s is -1"),
        ({"python_tool": 5}, BadValueError, "python_tool is 5"),
        ({"prompt": "searchpython"}, UnknownNameError, "'search-python'"),
    ],
)
def test_refusals(settings: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make(**settings)


def test_a_tool_may_be_given_ready_made() -> None:
    ready = PythonTool(timeout_s=3)
    assert make(python_tool=ready).toolbox.python is ready
    assert SearchQA(size="micro", tools="search").toolbox.names == ("search",)


def test_a_machine_without_protection_refuses_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protections, "_find_fault", lambda names: "no such thing")
    with pytest.raises(BadValueError, match="this machine lacks namespaces"):
        make()
    with pytest.warns(RuntimeWarning, match="runs without namespaces"):
        make(python_tool={"allow_weaker": True})
    assert SearchQA(size="micro").toolbox.python is None


def test_conformance() -> None:
    report = check_text_env("SearchQA-v0", size="micro", tools=BOTH, tasks_checked=10)
    assert set(report.skipped) == {"legal actions are valid"}


def test_conformance_of_episodes_that_compute() -> None:
    report = check_text_env(ComputingQA, tasks_checked=5)
    assert set(LAWS) - set(report.passed) == {"legal actions are valid"}
