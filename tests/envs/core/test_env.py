"""The base class: order of calls, turn limit, status, faults, sessions, seeds."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
import re
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.seeding import np_random as gymnasium_random
from helpers.guess_worlds import AskingGuess, FaultyGuess, Guess, SessionGuess, guess
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.core.env import Info, Outcome
from turngym.envs.core.errors import BadValueError, EnvFault, EpisodeError, UnknownNameError

DEV_3 = {"split": "dev", "task": 3}  # the number 309
WRONG, RIGHT = guess(301), guess(309)


def started(world: type[Guess] = Guess, **settings: object) -> Guess:
    env = world(**settings)  # type: ignore[arg-type]
    env.reset(seed=1, options=DEV_3)
    return env


def test_a_solved_episode() -> None:
    env = Guess()
    observation, info = env.reset(seed=1, options=DEV_3)
    assert "from 300 to 499" in observation
    assert info == {
        "task_id": "dev/3",
        "split": "dev",
        "dataset": "",
        "turn": 0,
        "status": "running",
        "valid_action": True,
        "reward_terms": {},
        "metrics": {},
        "session": 0,
        "parent_session": None,
        "verdict": None,
    }
    observation, reward, terminated, truncated, info = env.step(WRONG)
    assert (reward, terminated, truncated, info["status"]) == (0.0, False, False, "running")
    assert "higher" in observation
    assert (info["turn"], info["verdict"], info["metrics"]) == (1, 1, {})
    observation, reward, terminated, truncated, info = env.step(RIGHT)
    assert (observation, reward, terminated, truncated) == ("Yes.\n", 1.0, True, False)
    assert info["status"] == "solved"
    assert info["reward_terms"] == {"outcome": 1.0}
    assert info["metrics"] == {
        "success": 1.0, "return": 1.0, "turns": 2.0, "invalid_actions": 0.0, "guesses": 2.0,
    }  # fmt: skip
    assert set(info) == set(Info.__annotations__)
    json.dumps(info)


def test_the_turn_limit_truncates_and_gives_its_terms() -> None:
    class Consoling(Guess):
        def truncation_reward(self, episode):
            assert episode.status == "truncated"
            return {"consolation": 0.25, "outcome": np.float64(0.5)}

    env = started(Consoling, max_turns=2)
    assert env.step(WRONG)[2:4] == (False, False)
    _, reward, terminated, truncated, info = env.step(WRONG)
    assert (reward, terminated, truncated, info["status"]) == (0.75, False, True, "truncated")
    assert info["reward_terms"] == {"consolation": 0.25, "outcome": 0.5}
    assert type(info["reward_terms"]["outcome"]) is float
    assert info["metrics"]["success"] == 0.0


def test_solving_with_the_last_action_is_not_a_truncation() -> None:
    env = started(max_turns=1)
    assert env.step(RIGHT)[2:4] == (True, False)


@pytest.mark.parametrize("action", ["", "no tag", "<guess> x </guess>", "<guess> 301"])
def test_unreadable_actions_are_moves_that_teach(action: str) -> None:
    env = started()
    observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated, info["valid_action"]) == (0.0, False, False, False)
    assert "number" in observation
    env.step(RIGHT)
    assert env.episode.invalid_actions == 1


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("x" * 100_001, "it has 100001 characters"),
        ("\ud800" * 100_001, "it has 100001 characters"),
        ("\ud800", "character 1 is a lone surrogate (U+D800), which is not UTF-8"),
        ("so \udc9f\ud800", "character 4 is a lone surrogate (U+DC9F), which is not UTF-8"),
    ],
)
def test_actions_outside_the_space_never_reach_the_world(action: str, why: str) -> None:
    env = started()
    observation, _, _, _, info = env.step(action)
    assert not info["valid_action"]
    assert observation == (
        f"The action could not be read: {why}. Write at most 100000 characters of valid UTF-8 "
        "text.\n"
    )
    assert env.episode.state.asked == []


def test_calls_out_of_order_raise() -> None:
    env = Guess()
    with pytest.raises(EpisodeError, match="Guess: no episode yet; call reset"):
        env.step(RIGHT)
    with pytest.raises(EpisodeError, match="call reset"):
        env.digest()
    env.reset(seed=1, options=DEV_3)
    with pytest.raises(TypeError, match="action is a int"):
        env.step(309)  # type: ignore[arg-type]
    assert env.episode.turn == 0
    env.step(RIGHT)
    with pytest.raises(EpisodeError, match="status 'solved'"):
        env.step(RIGHT)


@pytest.mark.parametrize("action", [guess(13), guess(777)])
def test_a_broken_tool_or_grader_ends_the_episode_without_a_score(action: str) -> None:
    env = started(FaultyGuess, max_turns=2)
    env.step(WRONG)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated, info["status"]) == (0.0, False, True, "env_error")
    assert "is broken" in observation
    assert (info["metrics"], info["reward_terms"]) == ({}, {})
    assert [step.action for step in env.episode.steps] == [WRONG, action]
    with pytest.raises(EpisodeError):
        env.step(RIGHT)


@pytest.mark.parametrize("value", [math.nan, math.inf, None, np.float32("nan")])
def test_a_metric_that_is_no_finite_number_is_a_broken_grader(value: Any) -> None:
    class Unmeasured(Guess):
        def metrics(self, episode):
            return {"guesses": np.float32(1.5), "hops": value}

    env = started(Unmeasured, max_turns=1)
    observation, reward, *_, info = env.step(RIGHT)
    assert (reward, info["status"], info["metrics"]) == (0.0, "env_error", {})
    assert re.search(rf"Unmeasured, task {info['task_id']}: metrics\(\)\['hops'\]", observation)
    assert "expected a finite number" in observation


HALF = "half an emoji: \ud83d"


def test_an_observation_that_is_not_utf_8_is_a_broken_environment() -> None:
    class Cut(Guess):
        def play(self, episode, action):
            return Outcome.move(HALF)

    env = started(Cut)
    observation, reward, _, truncated, info = env.step(WRONG)
    assert (reward, truncated, info["status"]) == (0.0, True, "env_error")
    assert f"Cut, task {info['task_id']}, turn 1: the observation cannot be read" in observation
    assert "character 16 is a lone surrogate (U+D83D)" in observation
    assert observation.isascii()

    class CutAtFirst(Guess):
        def begin(self, task, random):
            return super().begin(task, random)[0], HALF

    with pytest.raises(EnvFault, match=r"CutAtFirst, task dev/3: the observation cannot be read"):
        started(CutAtFirst)


@pytest.mark.parametrize(("field", "what"), [("id", "id"), ("dataset", "data set")])
@pytest.mark.parametrize("text", [HALF, 7])
def test_names_of_tasks_are_texts(field: str, what: str, text: Any) -> None:
    env = Guess()
    source = copy.copy(env.source)
    find = source.task
    source.task = lambda *place: dataclasses.replace(find(*place), **{field: text})
    env.source = source
    with pytest.raises(TypeError, match=re.escape(f"{what} of task 3 of split 'dev' is {text!r}")):
        env.reset(seed=1, options={"split": "dev", "task": 3})


@pytest.mark.parametrize("name", ["", 7, HALF])
def test_metrics_and_terms_have_names_that_can_be_written(name: Any) -> None:
    class Measured(Guess):
        def metrics(self, episode):
            return {name: 1.0}

    class Rewarded(Guess):
        def play(self, episode, action):
            return Outcome.solved("", {name: 1.0})

    for cls, what in ((Measured, "metric"), (Rewarded, "term")):
        with pytest.raises(TypeError, match=rf"task dev/3.*: a {what} is called") as caught:
            started(cls).step(RIGHT)
        assert repr(name) in str(caught.value)


@pytest.mark.parametrize("name", ["success", "return", "turns", "invalid_actions"])
def test_metrics_of_every_environment_are_no_environment_s_own(name: str) -> None:
    class Measured(Guess):
        def metrics(self, episode):
            return {"guesses": 1.0, name: 0.3}

    env = started(Measured)
    with pytest.raises(TypeError, match=rf"Measured, task dev/3: metrics\(\) has '{name}'"):
        env.step(RIGHT)


def test_debug_info_that_is_no_json_data_is_named_where_it_is_taken() -> None:
    said: list[Any] = [{}]

    class Says(Guess):
        def debug_info(self, episode):
            return said[0]

    env = started(Says)
    for good in ({}, {"a": [1, 2.5, None, ("x", True)], "b": {"c": np.float64(2)}}):
        said[0] = good
        assert env.take_debug_info(env.episode) == good
    place = f"Says, task {env.episode.task.id}: debug_info()"
    for bad, where in (
        ({"a": math.nan}, "['a'] is nan, a float"),
        ({"a": [{"b": np.float32(1)}]}, "['a'][0]['b'] is np.float32(1.0), a float32"),
        ({"a": {"b": {1}}}, "['a']['b'] is {1}, a set"),
        ({"a": {(1, 2): 0}}, "['a'] is {(1, 2): 0}, a dict"),
        ({"a": ["b", HALF]}, f"['a'][1] is {HALF!r}, a str"),
        ({"a": {HALF: 1}}, f"['a'] is {{{HALF!r}: 1}}, a dict"),
    ):
        said[0] = bad
        with pytest.raises(EnvFault) as caught:
            env.take_debug_info(env.episode)
        assert str(caught.value).startswith(f"{place}{where}; expected JSON data")


def test_debug_info_has_names() -> None:
    class Says(Guess):
        def debug_info(self, episode):
            return [1]

    env = started(Says)
    with pytest.raises(
        TypeError, match=r"Says, task dev/3: debug_info\(\) is \[1\]; expected data"
    ):
        env.take_debug_info(env.episode)


def test_a_fault_at_the_limit_takes_the_reward_back() -> None:
    class Breaks(Guess):
        def judge(self, episode, number):
            return Outcome.move("", {"step": 0.5})

        def truncation_reward(self, episode):
            raise EnvFault("grader")

    env = started(Breaks, max_turns=2)
    assert env.step(WRONG)[1] == 0.5
    assert env.step(WRONG)[1] == 0.0
    assert (env.episode.total_reward, env.episode.status) == (0.5, "env_error")


@pytest.mark.parametrize(("number", "cause"), [(13, "unlucky"), (666, "slipped")])
def test_calls_are_served_and_their_faults_break_the_episode(number: int, cause: str) -> None:
    env = started(AskingGuess)
    assert isinstance(env, AskingGuess)
    assert "higher" in env.step(WRONG)[0]
    assert env.oracle.batches == [1, 1]
    observation, _, _, truncated, info = env.step(guess(number))
    assert truncated
    assert info["status"] == "env_error"
    assert cause in observation


def test_a_server_with_too_few_answers_is_a_programmers_mistake() -> None:
    env = started(AskingGuess)
    env.oracle.compare = lambda pairs: []  # type: ignore[attr-defined]
    with pytest.raises(BadValueError, match="0 replies to 1 requests"):
        env.step(WRONG)


def test_play_must_give_an_outcome() -> None:
    class Nothing(Guess):
        def play(self, episode, action):
            return None

    with pytest.raises(TypeError, match=r"Nothing\.play returned a NoneType"):
        started(Nothing).step("")


def test_play_must_yield_calls() -> None:
    class Asks(Guess):
        def play(self, episode, action):
            yield "how far?"

    with pytest.raises(TypeError, match=r"Asks\.play yielded a str; expected a Call"):
        started(Asks).step("")
    with pytest.raises(TypeError, match=r"Asks\.play yielded a str; expected a Call"):
        next(started(Asks).open_step(""))


@pytest.mark.parametrize("error", [KeyboardInterrupt, KeyError])
@pytest.mark.parametrize("where", ["play", "truncation_reward", "details"])
def test_after_half_a_step_an_episode_does_not_go_on(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException], where: str
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    env = started(Guess, max_turns=2)
    env.step(WRONG)
    with monkeypatch.context() as broken:
        broken.setattr(Guess, where, fail)
        with pytest.raises(error):
            env.step(WRONG)
    for half in (env, env.fork(), pickle.loads(pickle.dumps(env))):
        with pytest.raises(EpisodeError, match=r"left halfway; call reset first"):
            half.step(WRONG)
    env.reset(seed=1)
    assert env.step(WRONG)[4]["turn"] == 1


def test_a_step_that_was_opened_and_dropped_is_half_a_step() -> None:
    env = started(AskingGuess)
    next(env.open_step(WRONG))
    with pytest.raises(EpisodeError, match="left halfway"):
        env.step(WRONG)


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "much", np.float32("nan"), 10**400])
@pytest.mark.parametrize("at_limit", [False, True])
def test_a_reward_that_is_no_finite_number_is_a_broken_grader(value: Any, at_limit: bool) -> None:
    class Unpaid(Guess):
        def judge(self, episode, number):
            return Outcome.move("", {"step": 0.5} if at_limit else {"step": 0.5, "form": value})

        def truncation_reward(self, episode):
            return {"late": value}

    env = started(Unpaid, max_turns=1 if at_limit else 2)
    observation, reward, terminated, truncated, info = env.step(WRONG)
    assert (reward, terminated, truncated, info["status"]) == (0.0, False, True, "env_error")
    assert (info["reward_terms"], info["metrics"], env.episode.total_reward) == ({}, {}, 0.0)
    place = f"Unpaid, task {info['task_id']}, turn 1"
    place += ", truncation_reward(): reward term 'late'" if at_limit else ": reward term 'form'"
    assert f"{place} is {value!r:.200}; expected a finite number" in observation


def test_a_reward_that_no_float_holds_is_a_broken_grader() -> None:
    class Lavish(Guess):
        def judge(self, episode, number):
            return Outcome.move("", {"a": 1.7e308, "b": np.float32(1), "c": 1.7e308})

    observation, *_, info = started(Lavish).step(WRONG)
    assert info["status"] == "env_error"
    assert f"Lavish, task {info['task_id']}, turn 1: reward terms" in observation


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (Outcome.move(None), "the observation is a NoneType; expected text"),  # type: ignore
        (Outcome.move("", verdict=0.5), "the verdict is 0.5; expected 1, 0, -1 or None"),  # type: ignore
        (Outcome("", "won"), "the status is 'won'; expected one of running, solved"),  # type: ignore
    ],
)
def test_an_outcome_of_other_parts_is_named(outcome: Outcome, message: str) -> None:
    class Careless(Guess):
        def play(self, episode, action):
            return outcome

    with pytest.raises(TypeError, match=rf"^Careless\.play: {message}"):
        started(Careless).step("")


@pytest.mark.parametrize("value", [1.0, None])
@pytest.mark.parametrize("at_limit", [False, True])
def test_a_reward_without_names_is_refused(value: Any, at_limit: bool) -> None:
    class Careless(Guess):
        def play(self, episode, action):
            return Outcome.move("") if at_limit else Outcome.move("", value)

        def truncation_reward(self, episode):
            return value

    env = started(Careless, max_turns=1)
    place = f"Careless, task {env.episode.task.id}, turn 1"
    place += ", truncation_reward()" if at_limit else ""
    with pytest.raises(TypeError, match=rf"^{re.escape(place)}: the reward is {value}; expected"):
        env.step(WRONG)


@pytest.mark.parametrize(
    ("begun", "message"),
    [
        ("text alone", "begin returned a str; return the state and the observation"),
        (("state", "text", {}), "begin returned 3 values; return the state and"),
        (("state", 5), "begin: the observation is a int; expected text"),
    ],
)
def test_begin_must_give_a_state_and_a_text(begun: Any, message: str) -> None:
    class Careless(Guess):
        def begin(self, task, random):
            return begun

    with pytest.raises(TypeError, match=rf"^Careless\.{message}"):
        started(Careless)


def test_a_named_pair_is_a_pair() -> None:
    class Begun(NamedTuple):
        state: object
        observation: str

    class Named(Guess):
        def begin(self, task, random):
            return Begun(*super().begin(task, random))

    assert started(Named).step(RIGHT)[2]


def test_metrics_must_have_names() -> None:
    class Careless(Guess):
        def metrics(self, episode):
            return 3

    with pytest.raises(TypeError, match=r"task dev/3: metrics\(\) is 3; expected numbers by name"):
        started(Careless).step(RIGHT)


def test_a_text_is_no_tuple_of_stops() -> None:
    with pytest.raises(TypeError, match=re.escape("OneStop.stop is '</a>'; expected texts")):
        type("OneStop", (Guess,), {"stop": "</a>"})


def test_sessions_are_told() -> None:
    env = started(SessionGuess)
    info = env.step(guess(0))[4]
    assert (info["session"], info["parent_session"]) == (1, 0)
    info = env.step(WRONG)[4]
    assert (info["session"], info["parent_session"]) == (0, None)
    assert [step.session for step in env.episode.steps] == [0, 1]


def test_render_gives_the_transcript_when_asked_for() -> None:
    env = started(render_mode="ansi")
    env.step(WRONG)
    text = env.render()
    assert text is not None
    assert text.startswith(Guess.instructions + "Game ")
    assert WRONG in text
    assert started().render() is None


def test_an_action_and_its_answer_are_rendered_on_lines_of_their_own() -> None:
    class Terse(Guess):
        def play(self, episode, action):
            return Outcome.move("24 is made." if episode.turn == 1 else "\n\nnext")

    env = started(Terse, render_mode="ansi")
    first = env.episode.observation
    for action in ("14 + 10 = 24", "ended by a line\n", "x"):
        env.step(action)
    assert env.render() == (
        f"{Guess.instructions}{first}14 + 10 = 24\n24 is made.ended by a line\n\n\nnextx\n\nnext"
    )


@pytest.mark.parametrize("turns", [0, -1, 2.0, True, None])
def test_a_turn_limit_must_be_a_positive_integer(turns: object) -> None:
    with pytest.raises(BadValueError, match="max_turns"):
        Guess(max_turns=turns)  # type: ignore[arg-type]


def test_wrong_settings_and_options_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"Guess: unknown setting 'max_turn'.*'max_turns'"):
        Guess(max_turn=3)  # type: ignore[call-arg]
    with pytest.raises(UnknownNameError, match=r"'mikro'.*Did you mean 'micro'"):
        Guess(size="mikro")
    with pytest.raises(UnknownNameError, match="render mode 'ansy'"):
        Guess(render_mode="ansy")
    env = Guess()
    with pytest.raises(UnknownNameError, match=r"reset option 'tsk'.*'task'"):
        env.reset(options={"tsk": 1})
    with pytest.raises(UnknownNameError, match=r"split 'tets'.*'test'"):
        env.reset(options={"split": "tets"})
    for seed in (-1, 1.5, "7"):
        with pytest.raises(BadValueError, match="seed is"):
            env.reset(seed=seed)  # type: ignore[arg-type]


def test_a_failed_reset_leaves_the_old_episode() -> None:
    env = started()
    with pytest.raises(BadValueError):
        env.reset(options={"task": 999})
    assert env.step(RIGHT)[1] == 1.0


@given(seed=st.integers(0, 2**64), task=st.integers(0, 19))
@settings(max_examples=25, deadline=None)
def test_an_episode_is_its_task_and_its_seed(seed: int, task: int) -> None:
    env = Guess()
    env.reset(seed=seed)
    env.reset(options={"split": "dev", "task": task})
    episode, digest = env.episode, env.digest()
    again = Guess()
    options = {"split": episode.task.split, "task": episode.task.id}
    again.reset(seed=episode.random.seed, options=options)
    assert again.digest() == digest
    assert again.step(WRONG)[0] == env.step(WRONG)[0]


def test_unseeded_resets_go_on_from_the_generator() -> None:
    def episodes(env: Guess) -> list[str]:
        env.reset(seed=4)
        return [env.reset()[0] for _ in range(4)]

    one = episodes(Guess())
    assert one == episodes(Guess())
    assert len(set(one)) == 4
    assert Guess().np_random_seed != Guess().np_random_seed


def test_the_generator_is_gymnasiums() -> None:
    env = Guess()
    env.reset(seed=7, options=DEV_3)
    assert env.np_random_seed == 7
    want = gymnasium_random(7)[0]
    assert env.np_random.integers(1000, size=5).tolist() == want.integers(1000, size=5).tolist()
    env.np_random = np.random.default_rng(3)
    assert env.np_random_seed == -1
    assert env.np_random.random() == np.random.default_rng(3).random()
    assert isinstance(Guess().np_random_seed, int)


def test_the_episodes_stream_is_not_the_environments() -> None:
    env = started()
    draws = env.episode.random.fork().generator.integers(1 << 30, size=4).tolist()
    assert draws != env.np_random.integers(1 << 30, size=4).tolist()


def test_it_is_a_gymnasium_environment_with_wrappers() -> None:
    env = gym.wrappers.TimeLimit(Guess(), 2)
    env.reset(seed=1, options=DEV_3)
    env.step(WRONG)
    assert env.step(WRONG)[3]
