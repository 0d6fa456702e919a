"""AsSessions: the same episode, seen through contexts that start anew."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.guess_worlds import Guess, SessionGuess, guess
from hypothesis import given
from hypothesis import strategies as st

import turngym.envs  # noqa: F401 - registers
from turngym.envs import RecordEpisodes, check_text_env, fork, read_transcripts, replay
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.wrappers.session_window import SEPARATOR, AsSessions

ACTIONS = st.lists(st.sampled_from([guess(n) for n in (100, 103, 130, 199)] + ["?"]), max_size=12)


def start(env: Any, task: int = 1) -> tuple[str, Any]:
    return env.reset(seed=3, options={"split": "train", "task": task})


@given(ACTIONS, st.integers(1, 5), st.integers(1, 3), st.integers(0, 20))
def test_only_what_is_seen_differs(actions: list[str], window: int, carry: int, task: int) -> None:
    bare, cut = Guess(), AsSessions(Guess(), window, carry)
    first, info = start(bare, task)
    assert start(cut, task) == (first, info)
    newest: list[str] = []
    for turn, action in enumerate(actions, start=1):
        plain, *rest, want = bare.step(action)
        observation, *same, info = cut.step(action)
        assert same == rest
        newest = [*newest, action + plain][-carry:]
        opens = want["status"] == "running" and turn % window == 0
        assert observation == (f"{first}{SEPARATOR}{''.join(newest)}" if opens else plain)
        number = turn // window if want["status"] == "running" else (turn - 1) // window
        assert info == want | {"session": number, "parent_session": number - 1 if number else None}
        assert [o.observation for o in cut.asked()] == ([observation] if opens else [])
        assert cut.waiting() == list(cut.asked()) or cut.waiting() == cut.asked()
        if want["status"] != "running":
            break


@given(ACTIONS, ACTIONS, st.integers(1, 4))
def test_copies_go_on_as_the_original(before: list[str], after: list[str], window: int) -> None:
    env: Any = gym.wrappers.OrderEnforcing(AsSessions(Guess(), window))
    start(env, 19)  # its number is not guessed
    for action in before[:3]:
        env.step(action)
    copies = [fork(env), pickle.loads(pickle.dumps(env))]
    for action in after[:5]:
        here = env.step(action)
        for copy in copies:
            assert copy.step(action) == here
            assert copy.get_wrapper_attr("asked")() == env.get_wrapper_attr("asked")()


def test_it_keeps_every_law_of_worlds() -> None:
    def make(**settings: Any) -> Any:
        return AsSessions(Guess(**settings), 2)

    check_text_env(make, tasks_checked=6)


def test_the_session_that_was_opened_is_the_one_that_waits() -> None:
    env = AsSessions(Guess(), 2)
    start(env)
    assert (env.waiting(), env.session_key()) == ((), "")
    env.step(guess(150))
    assert env.waiting() == ()
    observation, *_, info = env.step(guess(160))
    (opening,) = env.waiting()
    assert opening == env.asked()[0]
    assert (opening.key, opening.observation, opening.layer) == ("window 1", observation, 1)
    assert env.open_session(opening.key)[0] == observation
    assert env.open_session(opening.key)[1]["session"] == info["session"] == 1
    with pytest.raises(UnknownNameError, match="window 1"):
        env.open_session("window 2")
    env.step(guess(170))
    assert env.waiting() == env.asked() == ()
    assert env.session_key() == "window 1"


def test_a_new_episode_begins_in_the_first_session() -> None:
    env = AsSessions(Guess(), 1)
    start(env)
    env.step(guess(150))
    first, info = start(env, 2)
    assert (info["session"], env.waiting(), env.asked()) == (0, (), ())
    assert env.step(guess(150))[0].startswith(first + SEPARATOR)


def test_recorded_episodes_replay_without_it(tmp_path: Path) -> None:
    file = tmp_path / "episodes.jsonl"
    env = AsSessions(RecordEpisodes(gym.make("Password-v0", doors=5), file), 2)
    env.reset(seed=1)
    for letter in "bbacc":
        env.step(letter)
    (episode,) = read_transcripts(file)
    assert [step.session for step in episode.steps] == [0] * 5
    report = replay(episode)
    assert (report.same, report.turns) == (True, 5)
    with pytest.raises(BadValueError, match="goes inside AsSessions"):
        RecordEpisodes(AsSessions(gym.make("Password-v0"), 2), file)


def test_worlds_with_sessions_of_their_own_are_refused() -> None:
    with pytest.raises(BadValueError, match="Spawn-v0 opens sessions of its own"):
        AsSessions(gym.make("Spawn-v0"), 2)
    with pytest.raises(BadValueError, match="opens sessions of its own"):
        AsSessions(AsSessions(Guess(), 2), 2)
    env = AsSessions(SessionGuess(), 5)
    start(env)
    with pytest.raises(BadValueError, match="opened session 1 of its own"):
        env.step(guess(0))


@pytest.mark.parametrize("settings", [{"window": 0}, {"window": True}, {"window": 2, "carry": 0}])
def test_numbers_of_turns_are_checked(settings: Any) -> None:
    with pytest.raises(
        BadValueError, match=r"(window|carry) is .*; expected an integer of at least 1"
    ):
        AsSessions(Guess(), **settings)


def test_other_environments_are_refused() -> None:
    with pytest.raises(BadValueError, match="not a TextEnv"):
        AsSessions(gym.make("CartPole-v1"), 2)  # pyright: ignore
