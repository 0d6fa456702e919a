"""Corridor, Keys and Aliases: late rewards, states that come again, rooms that look the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.letter_play import begin, make, play, texts, uniform_success
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError
from turngym.envs.diagnostic.rooms import KEYS


@given(st.integers(0, 6), st.text("abc", min_size=6, max_size=6), st.integers(0, 99))
def test_only_the_first_letter_of_a_corridor_counts(delay: int, walked: str, task: int) -> None:
    env = make("Corridor", delay=delay)
    observation, _ = begin(env, task).reset(seed=0, options={"split": "train", "task": task})
    right = "abc"[int(observation[0]) - 1]
    for letter in "abc":
        total, status = play(env, letter + walked[:delay], task)
        assert (total, status) == ((1.0, "solved") if letter == right else (0.0, "failed"))
        assert env.episode.turn == delay + 1
        assert env.metrics(env.episode) == {"right": total}


def test_a_corridor_pays_at_its_end_alone() -> None:
    env = begin(make("Corridor", delay=3))
    steps = [env.step(letter) for letter in (env.episode.state.right, "?", "b", "c")]
    assert [step[1] for step in steps] == [0, 0, 0, 1]
    assert [step[4]["verdict"] for step in steps] == [1, 0, 0, 0]
    assert [step[4]["valid_action"] for step in steps] == [True, False, True, True]
    assert env.max_turns == 4


@pytest.mark.parametrize("delay", [0, 5, 64])
def test_a_corridor_is_as_hard_at_any_length(delay: int) -> None:
    assert uniform_success(begin(make("Corridor", delay=delay))) == pytest.approx(1 / 3)


def chance(rooms: int, *, dead_ends: bool) -> float:
    """Success of uniform letters within three turns a room, by the chain's transition matrix."""
    states = 2 * rooms + 1  # rooms, their dead ends, the end
    step = np.zeros((states, states))
    step[-1, -1] = 1.0
    for room in range(rooms):
        end = room + 1 == rooms
        step[room, -1 if end else room + 1] += 1 / 3
        step[room, max(room - 1, 0)] += 1 / 3
        step[room, rooms + room if dead_ends else room] += 1 / 3
        step[rooms + room, room] = 1.0
    return float(np.linalg.matrix_power(step, 3 * rooms)[0, -1])


@pytest.mark.parametrize("rooms", [1, 3, 4])
def test_success_of_random_letters_in_rooms(rooms: int) -> None:
    keys = uniform_success(begin(make("Keys", rooms=rooms)))
    assert keys == pytest.approx(chance(rooms, dead_ends=True))
    for aliases in (1, 3):
        env = begin(make("Aliases", rooms=rooms, aliases=aliases))
        assert uniform_success(env) == pytest.approx(chance(rooms, dead_ends=False))
    strict = uniform_success(begin(make("Keys", rooms=rooms, revisits=False)))
    assert strict == pytest.approx(3.0**-rooms)


def test_keys_lead_on_back_and_astray() -> None:
    env = begin(make("Keys"))  # its keys are b, a, c, a
    assert texts(env, "bca") == ["\n2:", "\n-:", "\n2:"]
    assert texts(env, "bb") == ["\n2:", "\n1:"]
    assert texts(env, "c") == ["\n1:"]  # there is nothing behind the first room
    assert texts(env, "?") == ["\nwrite one of a b c:"]
    assert play(env, "baca") == (1.0, "solved")
    assert play(env, "bac" + "c" * 9)[1] == "truncated"


@given(st.text("abc", max_size=11), st.text("abc", max_size=11))
def test_a_room_is_the_same_state_however_it_was_reached(one: str, two: str) -> None:
    found = []
    for letters in (one, two):
        env = make("Keys")
        if play(env, letters)[1] == "running":
            found.append((env.episode.state, env.state_digest(), env.digest()))
    if len(found) == 2:
        (here, digest, whole), (there, other, history) = found
        assert (here == there) == (digest == other)
        assert (one == two) == (whole == history)


@given(st.text("abc", min_size=4, max_size=4))
def test_without_revisits_a_wrong_letter_ends_it_and_no_state_comes_again(letters: str) -> None:
    env = begin(make("Keys", revisits=False))
    seen = [env.state_digest()]
    for letter in letters:
        if env.episode.status == "running":
            env.step(letter)
            seen.append(env.state_digest())
    wrong = next((i for i, key in enumerate(KEYS[:4]) if letters[i] != key), None)
    assert len(set(seen)) == len(seen) == (5 if wrong is None else wrong + 2)
    assert env.episode.status == ("solved" if wrong is None else "failed")


@pytest.mark.parametrize("aliases", [1, 2, 3])
def test_neighbours_that_look_the_same_need_different_letters(aliases: int) -> None:
    env = begin(make("Aliases", rooms=9, aliases=aliases))
    names = [env.name_room(room) for room in range(9)]
    for room in range(8):
        alike = room // aliases == (room + 1) // aliases
        assert (names[room] == names[room + 1]) == alike
    for name in set(names):
        keys = [KEYS[room] for room in range(9) if names[room] == name]
        assert len(set(keys)) == len(keys) <= aliases


def test_aliases_tell_the_name_and_not_the_room() -> None:
    env = begin(make("Aliases"))
    assert texts(env, "bacacb") == ["\n1:", "\n1:", "\n2:", "\n2:", "\n2:", "\n"]
    assert texts(env, "ba" + "a" + "b") == ["\n1:", "\n1:", "\n1:", "\n1:"]
    start = env.state_digest()
    env.step("b")
    assert env.episode.observation == "\n1:"
    assert env.state_digest() != start
    env.step("b")  # back
    assert env.state_digest() == start
    env.step("a")  # nowhere
    assert env.state_digest() == start


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("Corridor", {"delay": -1}),
        ("Corridor", {"delay": 65}),
        ("Keys", {"rooms": 0}),
        ("Keys", {"rooms": 10}),
        ("Aliases", {"aliases": 4}),
        ("Aliases", {"rooms": True}),
    ],
)
def test_numbers_out_of_range_are_refused(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadValueError, match=f"{name}: {next(iter(wrong))} is"):
        make(name, **wrong)
