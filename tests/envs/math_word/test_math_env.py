"""MathWord-v0: problems, traps, play in one turn and in several, verdicts, measures."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from typing import Any

import gymnasium as gym
import pytest

from turngym.envs import check_text_env
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.core.tasks import Task
from turngym.envs.math_word.arithmetic import evaluate
from turngym.envs.math_word.env import STEP_REPLY, MathWord
from turngym.envs.math_word.generated.generator import TOPICS, TRAPS
from turngym.envs.math_word.problem import Problem, SolvingStep


def world(**settings: Any) -> MathWord:
    env = gym.make("MathWord-v0", **settings).unwrapped
    assert isinstance(env, MathWord)
    return env


def problems(n: int, split: str = "train", **settings: Any) -> list[Problem]:
    source = world(**settings).source
    return [source.task(split, i).payload for i in range(n)]


@pytest.mark.parametrize("settings", [{}, {"size": "micro"}])
def test_plans_lead_to_the_answer(settings: dict[str, Any]) -> None:
    for problem in problems(150, **settings):
        results: list[str] = []
        for step in problem.plan:
            value = evaluate(step.fill_in(results))
            assert value == step.evaluate(results) == Fraction(step.value)
            assert value > 0
            results.append(step.value)
        assert results[-1] == problem.answer
        assert problem.text.endswith("?")
        assert "{" not in problem.text


def test_the_full_world_has_every_topic_trap_and_length() -> None:
    drawn = problems(400)
    assert {p.topic for p in drawn} == set(TOPICS)
    assert {trap for p in drawn for trap in p.traps} == set(TRAPS)
    lengths = Counter(len(p.plan) for p in drawn)
    assert sorted(lengths) == [1, 2, 3, 4, 5, 6]
    assert min(lengths.values()) > 25
    assert len({p.text for p in drawn}) == len(drawn)


def test_the_micro_world_is_small() -> None:
    drawn = problems(300, size="micro")
    numbers = {n for p in drawn for n in re.findall(r"\d+", p.text + p.answer)}
    assert max(map(int, numbers)) <= 60  # the largest note that a bill is paid with
    assert len({w for p in drawn for w in re.findall(r"[A-Za-z]+", p.text)}) < 110
    assert {len(p.plan) for p in drawn} == {1, 2}


def test_no_number_alone_of_a_problem_is_its_answer() -> None:
    for problem in problems(200):
        assert not re.search(rf"(?<!\w){re.escape(problem.answer)}(?!\w)", problem.text)


def test_settings_choose_what_is_drawn() -> None:
    drawn = problems(60, steps=[2, 3], topics=["trip", "shop"], traps=["fewer"])
    assert {p.topic for p in drawn} == {"trip", "shop"}
    assert {len(p.plan) for p in drawn} == {2, 3}
    assert {t for p in drawn for t in p.traps} == {"fewer"}
    assert all(p.traps == () for p in problems(60, traps=()))
    assert problems(5, world_seed=1) != problems(5)
    assert problems(5, world_seed=1) == problems(5, world_seed=1)


def test_splits_share_no_numbers_even_under_other_names() -> None:
    """Problems of equal sums and numbers, whatever the names, are in one split."""
    made = {"size": "micro", "steps": 2, "topics": "shop", "traps": ()}

    def skeletons(split: str) -> set[str]:
        found = set()
        for problem in problems(400, split, **made):
            numbers = " ".join(re.findall(r"\d+", problem.text))
            coupon, thing = "coupon" in problem.text, "each" in problem.text
            found.add(f"{numbers} {coupon} {thing} {' '.join(s.form for s in problem.plan)}")
        return found

    train, dev, test = (skeletons(s) for s in ("train", "dev", "test"))
    assert min(map(len, (train, dev, test))) > 30
    assert not train & (dev | test)
    assert not dev & test


def test_dev_and_test_hold_no_problem_twice() -> None:
    texts = [p.text for p in problems(500, "dev")]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("settings", [{"max_turns": 4, "size": "micro"}, {"max_turns": 8}])
def test_thinking_in_turns_keeps_every_law(settings: dict[str, Any]) -> None:
    report = check_text_env("MathWord-v0", tasks_checked=12, **settings)
    assert set(report.skipped) == {"legal actions are valid"}


def at(text: str, answer: str, *forms: tuple[str, str], **settings: Any) -> MathWord:
    """A world whose next episode is this problem."""
    env = world(**settings)
    plan = tuple(SolvingStep(*form) for form in forms)
    env.reset(seed=0)
    env.episode.task = Task("x", "train", 0, Problem(text, answer, plan))
    return env


def test_one_reply_is_the_episode() -> None:
    env = at("2 and 3?", "5", ("2 + 3", "5"))
    _, reward, done, cut, info = env.step("2 + 3 = 5. <answer> 5 </answer>")
    assert (reward, done, cut, info["status"], info["verdict"]) == (1.0, True, False, "solved", 1)
    for said, valid in (("2 + 3 = 6. <answer> 6 </answer>", True), ("it is 5", False)):
        env = at("2 and 3?", "5", ("2 + 3", "5"))
        _, reward, done, cut, info = env.step(said)
        assert (reward, done, cut, info["status"], info["verdict"]) == (
            0,
            True,
            False,
            "failed",
            -1,
        )
        assert info["valid_action"] is valid


def test_steps_are_turns_that_are_judged() -> None:
    env = at("7, 2, 3?", "15", ("7 - 2", "5"), ("#0 * 3", "15"), max_turns=9)
    said = [
        ("<step> 7 - 2 = 5 </step>", 1),
        ("<step> the same again: 7 - 2 = 5 </step>", 0),
        ("<step> 5 * 3 = 16 </step>", -1),
        ("<step> let me think </step>", 0),
        ("<step> 5 * 3 = 16. Wait, 5 * 3 = 15 </step>", 0),
        ("no tag at all", -1),
        ("<answer> 15 </answer>", 1),
    ]
    for action, verdict in said:
        observation, _, done, _, info = env.step(action)
        assert info["verdict"] == verdict, action
        if not done:
            assert (observation == STEP_REPLY) == info["valid_action"]
    assert info["status"] == "solved"
    measured = info["metrics"]
    assert (measured["waits"], measured["self_corrections"], measured["steps"]) == (1, 1, 2)
    assert (measured["sums"], measured["false_sums"]) == (5, pytest.approx(0.4))
    assert measured["response_chars"] == sum(len(a) for a, _ in said)
    assert (measured["answered"], measured["turns"]) == (1, 7)


def test_a_right_step_after_a_taken_back_sum_counts_from_the_next_time() -> None:
    env = at("2 and 3?", "5", ("2 + 3", "5"), max_turns=3)
    assert env.step("<step> 2 + 3 = 6, hold on, 2 + 3 = 5 </step>")[4]["verdict"] == 0
    _, _, _, truncated, info = env.step("<step> ... </step>")
    assert not truncated
    _, _, _, truncated, info = env.step("<step> ... </step>")
    assert truncated
    assert info["metrics"]["answered"] == 0


def test_each_of_two_equal_results_is_reached_by_a_sum_of_its_own() -> None:
    env = at("6, half of it?", "3", ("6 / 2", "3"), ("6 - #0", "3"), max_turns=5)
    for said, verdict in (("6 / 2 = 3", 1), ("6 - 3 = 3", 1), ("6 - 3 = 3", 0)):
        assert env.step(f"<step> {said} </step>")[4]["verdict"] == verdict
    assert env.episode.state.reached == (0, 1)


def test_a_list_of_numbers_reaches_nothing() -> None:
    """Neither ``7 = 7`` nor a sum for every number: only the last three sums of a step count."""
    for form in ("{n} = {n}", "1 * {n} = {n}", "{n}% = {n}"):
        env = at("7, 2, 3?", "15", ("7 - 2", "5"), ("#0 * 3", "15"), max_turns=3)
        said = " ; ".join(form.format(n=n) for n in range(1, 500))
        assert env.step(f"<step> {said} </step>")[4]["verdict"] == 0, form
        assert env.episode.state.reached == ()
        assert env.step("<step> 7 - 2 = 5 </step>")[4]["verdict"] == 1


@pytest.mark.parametrize(
    ("said", "verdict", "reached"),
    [
        ("7 - 2 = 5, check: 5 + 2 = 7", 1, (0,)),
        ("5 = 7 - 2", 1, (0,)),
        ("7 - 2 = 5. 5 x 3 = 15", 1, (0, 1)),
        ("- 7 - 2 = 5", 1, (0,)),
        ("500% = 5", 0, ()),
        ("7 + 3 = 15. Then 3 + 3 = 6", 0, ()),  # a false sum reaches nothing
        ("100% of 15 = 15", 1, (1,)),
        ("half of 14 = 7", 0, ()),
        ("20 / 3 = 6.67", 0, ()),  # rounded, which is not false
        ("20 - 25% = 15", 1, (1,)),
        ("4.99 * 1 = 5.0", 0, ()),  # nothing is reached by rounding to it
    ],
)
def test_forms_of_a_step(said: str, verdict: int, reached: tuple[int, ...]) -> None:
    env = at("7, 2, 3?", "15", ("7 - 2", "5"), ("#0 * 3", "15"), max_turns=3)
    assert env.step(f"<step> {said} </step>")[4]["verdict"] == verdict
    assert env.episode.state.reached == reached


@pytest.mark.parametrize("settings", [{}, {"max_turns": 8}, {"size": "micro", "max_turns": 3}])
def test_the_expert_errs_on_request(settings: dict[str, Any]) -> None:
    env = world(**settings)
    solved, waits = Counter[float](), Counter[float]()
    for mistakes in (0.0, 0.4, 1.0):
        player = env.expert(mistakes, seed=3)
        for index in range(60):
            observation, info = env.reset(seed=index, options={"split": "dev", "task": index})
            while info["status"] == "running":
                observation, _, _, _, info = env.step(player(env, observation, info))
            solved[mistakes] += info["status"] == "solved"
            waits[mistakes] += info["metrics"]["waits"]
    assert solved[0.0] == 60
    assert 60 > solved[0.4] > solved[1.0]
    assert waits[0.0] == 0 < waits[0.4] < waits[1.0]
    with pytest.raises(BadValueError, match="mistakes is 2"):
        env.expert(2)


@pytest.mark.parametrize(
    "settings",
    [{"max_turns": 2}, {"max_turns": 6, "steps": 6}, {"size": "micro", "max_turns": 2}],
)
def test_the_expert_works_out_what_is_left_in_its_last_turn(settings: dict[str, Any]) -> None:
    env = world(**settings)
    player = env.expert()
    for index in range(20):
        observation, info = env.reset(seed=index, options={"split": "dev", "task": index})
        while info["status"] == "running":
            observation, _, _, _, info = env.step(player(env, observation, info))
        assert info["status"] == "solved"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"size": "tiny"}, "unknown size 'tiny'"),
        ({"steps": 7}, "steps is 7; expected an integer from 1 to 6"),
        ({"steps": [True]}, "expected an integer from 1 to 6"),
        ({"steps": []}, "steps is empty"),
        ({"topics": "shopp"}, "unknown topic 'shopp'.*Did you mean 'shop'"),
        ({"size": "micro", "topics": "trip"}, "unknown topic 'trip'"),
        ({"topics": 3}, "topics is 3; expected a text or a list of texts"),
        ({"traps": ["unit"]}, "unknown trap 'unit'.*Did you mean 'units'"),
        ({"world_seed": -1}, "world_seed is -1"),
        ({"prompt": "long"}, "unknown prompt 'long'"),
        ({"max_turns": 0}, "max_turns is 0"),
        ({"grader": "sympy"}, "unknown grader"),
        ({"skip_unreadable": True}, "is about rows of data"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises((BadValueError, UnknownNameError), match=reason):
        world(**settings)


def test_a_draw_that_nothing_fits_says_so() -> None:
    env = world(size="micro", topics="ages", steps=6)
    with pytest.raises(BadValueError, match=r"no problem fits steps=\(6,\)"):
        env.reset(seed=0)
