"""Vector environments: native, sync and async agree; calls go in batches; faults stay apart."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from helpers.guess_worlds import (
    AskingGuess,
    FaultyGuess,
    FragileGuess,
    Guess,
    GuessError,
    SessionGuess,
    guess,
)

from turngym.envs.core.errors import BadValueError, EpisodeError, UnknownNameError
from turngym.envs.core.registration import EnvironmentSpec, register_environment
from turngym.envs.wrappers.vector import TextVectorEnv

register_environment(
    EnvironmentSpec(
        id="TestVector-v0",
        entry_point="helpers.guess_worlds:SessionGuess",
        summary="test",
        hidden=True,
    )
)
ASYNC = {"vectorization_mode": "async", "vector_kwargs": {"shared_memory": False}}


def script(turn: int, n: int) -> tuple[str, ...]:
    """A mixture of sessions, verdicts, nonsense and endings."""
    kinds = [guess(0), guess(150), "junk", guess(100 + 3 * turn)]
    return tuple(kinds[(turn + i) % 4] for i in range(n))


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return (value.dtype.kind, value.tolist()) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("other", [{"vectorization_mode": "sync"}, ASYNC], ids=["sync", "async"])
def test_native_equals_gymnasiums(other: dict[str, Any]) -> None:
    native = gym.make_vec("TestVector-v0", num_envs=4, max_turns=3)
    theirs = gym.make_vec("TestVector-v0", num_envs=4, max_turns=3, **other)
    assert isinstance(native, TextVectorEnv)
    assert native.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert native.observation_space == theirs.observation_space
    try:
        options = {"split": "train"}
        mine, own = native.reset(seed=5, options=options), theirs.reset(seed=5, options=options)
        assert (mine[0], plain(mine[1])) == (own[0], plain(own[1]))
        ended = 0
        for turn in range(12):
            actions = script(turn, 4)
            mine, own = native.step(actions), theirs.step(actions)
            for a, b in zip(mine[:4], own[:4], strict=True):
                assert plain(np.asarray(a)) == plain(np.asarray(b))
            assert plain(mine[4]) == plain(own[4])
            assert mine[0] in native.observation_space
            ended += int((mine[2] | mine[3]).sum())
        assert ended >= 12
    finally:
        native.close()
        theirs.close()


def test_shapes_and_infos() -> None:
    env = TextVectorEnv(Guess(max_turns=2), 3)
    observations, infos = env.reset(seed=1, options={"split": "dev", "task": [0, 1, 2]})
    assert isinstance(observations, tuple)
    assert infos["task_id"].tolist() == ["dev/0", "dev/1", "dev/2"]
    assert (infos["_task_id"].all(), infos["metrics"]) == (True, {})
    out = env.step([guess(300), guess(300), ""])
    _, rewards, terminated, truncated, infos = out
    assert (rewards.dtype, rewards.tolist()) == (np.float64, [1.0, 0.0, 0.0])
    assert (terminated.tolist(), truncated.tolist()) == ([True, False, False], [False] * 3)
    assert infos["valid_action"].tolist() == [True, True, False]
    assert infos["metrics"]["success"].tolist() == [1.0, 0.0, 0.0]
    assert infos["metrics"]["_success"].tolist() == [True, False, False]
    assert infos["reward_terms"]["_outcome"].tolist() == [True, False, False]
    assert infos["verdict"].tolist() == [1, 1, None]
    rewards[:] = 9
    assert env.step([""] * 3)[1].tolist() == [0.0] * 3


def test_the_step_after_the_end_resets_and_ignores_the_action() -> None:
    env = TextVectorEnv(Guess(max_turns=9), 2)
    env.reset(seed=1, options={"split": "dev", "task": [0, 1]})
    env.step([guess(300), ""])
    observations, rewards, terminated, _, infos = env.step([guess(300), guess(303)])
    assert observations[0].startswith("Game ")
    assert (rewards.tolist(), terminated.tolist()) == ([0.0, 1.0], [False, True])
    assert infos["turn"].tolist() == [0, 2]
    assert infos["split"].tolist() == ["dev", "dev"], "an automatic reset stays in the split"
    assert infos["status"].tolist() == ["running", "solved"]


def test_seeds_and_masks() -> None:
    env = TextVectorEnv(Guess(), 3)
    one, _ = env.reset(seed=7)
    assert one == env.reset(seed=[7, 8, 9])[0]
    assert one[0] == Guess().reset(seed=7)[0]
    assert len(set(one)) == 3
    env.step(["", "", ""])
    mask = np.array([False, True, False])
    two, infos = env.reset(seed=[1, 8, 2], options={"reset_mask": mask})
    assert two[1] == one[1]
    assert two[0] != one[0]
    assert infos["_turn"].tolist() == [False, True, False]
    assert [e.episode.turn for e in env.envs] == [1, 0, 1]


def test_equal_calls_go_in_one_batch() -> None:
    env = TextVectorEnv(AskingGuess(), 8)
    env.reset(seed=1)
    oracle = env.envs[0].oracle  # type: ignore[attr-defined]
    env.step([guess(100)] * 6 + ["junk"] * 2)
    assert oracle.batches == [6, 6]


def test_different_servers_are_asked_apart() -> None:
    env = TextVectorEnv(AskingGuess(), 4)
    env.envs[3].oracle = AskingGuess().oracle  # type: ignore[attr-defined]
    env.reset(seed=1)
    env.step([guess(100)] * 4)
    oracles = [e.oracle.batches for e in env.envs]  # type: ignore[attr-defined]
    assert (oracles[0], oracles[3]) == ([3, 3], [1, 1])


def statuses(env: TextVectorEnv, actions: list[str]) -> list[str]:
    return env.step(actions)[4]["status"].tolist()


def test_one_faulty_answer_or_world_hurts_only_its_copy() -> None:
    asking = TextVectorEnv(AskingGuess(), 3)
    asking.reset(seed=1)
    assert statuses(asking, [guess(100), guess(666), "junk"]) == ["running", "env_error", "running"]
    faulty = TextVectorEnv(FaultyGuess(max_turns=2), 3)
    faulty.reset(seed=1)
    faulty.step([guess(400)] * 3)
    out = faulty.step([guess(400), guess(13), guess(777)])
    assert out[4]["status"].tolist() == ["truncated", "env_error", "env_error"]
    assert (out[2].any(), out[3].all(), out[1].any()) == (False, True, False)
    assert out[4]["metrics"]["_success"].tolist() == [True, False, False]
    assert statuses(faulty, [guess(400)] * 3) == ["running"] * 3


def test_a_batch_that_fails_ends_those_who_asked() -> None:
    env = TextVectorEnv(AskingGuess(), 3)
    env.reset(seed=1)
    assert statuses(env, [guess(100), guess(13), "junk"]) == ["env_error", "env_error", "running"]


def test_bad_input_is_refused_before_anything_moves() -> None:
    env = TextVectorEnv(Guess(), 2)
    with pytest.raises(EpisodeError, match="call reset"):
        env.step(["", ""])
    with pytest.raises(EpisodeError, match="first reset must be of all"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=1)
    wrong: Any
    for wrong in (["a"], ["a"] * 3, "ab", None, 5, {"a", "b"}, {"a": 1, "b": 2}, np.array("a")):
        with pytest.raises(BadValueError, match="with one text for each of 2 copies"):
            env.step(wrong)
    with pytest.raises(TypeError, match="action is a int"):
        env.step(["", 3])  # type: ignore[list-item]
    assert [e.episode.turn for e in env.envs] == [0, 0]
    with pytest.raises(BadValueError, match="seed has 3 entries; expected 2"):
        env.reset(seed=[1, 2, 3])
    for wrong in ("x", "12", {}, {1, 2}, 1.5):
        with pytest.raises(BadValueError, match=r"seed is .*; expected an integer from 0, or a li"):
            env.reset(seed=wrong)
    for wrong in ("dev", ["split"], 1):
        with pytest.raises(BadValueError, match=r"options are .*; expected a dictionary"):
            env.reset(options=wrong)
    for mask in ([True], np.zeros(2, dtype=bool), np.ones(2)):
        with pytest.raises(BadValueError, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(UnknownNameError, match="reset option 'taks'"):
        env.reset(options={"taks": 1})


@pytest.mark.parametrize(
    ("options", "refused"),
    [({"split": "nope"}, UnknownNameError), ({"task": [0, 10**12]}, BadValueError)],
)
def test_after_a_reset_that_failed_nothing_is_played(
    options: dict[str, Any], refused: type[Exception]
) -> None:
    env = TextVectorEnv(Guess(max_turns=1), 2)
    env.reset(seed=1)
    env.step([guess(0)] * 2)  # both end, so the next step resets them
    with pytest.raises(refused):
        env.reset(options=options)
    with pytest.raises(EpisodeError, match="the last reset or step failed"):
        env.step([guess(0)] * 2)
    with pytest.raises(EpisodeError, match="and so must one after"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=1)
    for turns in ([1, 1], [0, 0], [1, 1]):
        assert env.step([guess(0)] * 2)[4]["turn"].tolist() == turns


@pytest.mark.parametrize("processes", [1, 2])
def test_after_a_step_that_failed_nothing_is_played(processes: int) -> None:
    """The other copies have moved, and nobody has seen where to."""
    env = TextVectorEnv(FragileGuess(), 4, processes)
    try:
        env.reset(seed=1)
        with pytest.raises(GuessError):
            env.step(["", "", guess(900), ""])
        with pytest.raises(EpisodeError, match="the last reset or step failed; call reset first"):
            env.step([""] * 4)
        with pytest.raises(EpisodeError, match="and so must one after a reset or step that failed"):
            env.reset(options={"reset_mask": np.array([False, False, True, False])})
        env.reset(seed=1)
        assert env.step([""] * 4)[4]["turn"].tolist() == [1] * 4
    finally:
        env.close()


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_a_bad_number_of_copies_is_refused(count: Any) -> None:
    with pytest.raises(BadValueError, match="num_envs"):
        TextVectorEnv(Guess(), count)


def test_only_bare_worlds_are_copied() -> None:
    with pytest.raises(BadValueError, match="not a bare TextEnv"):
        TextVectorEnv(gym.wrappers.TimeLimit(Guess(), 3), 2)  # type: ignore[arg-type]


def test_copies_leave_the_given_world_alone() -> None:
    world = SessionGuess()
    world.reset(seed=1)
    digest = world.digest()
    env = TextVectorEnv(world, 2)
    env.reset(seed=3)
    env.step(["", ""])
    assert world.digest() == digest


def test_render_and_gymnasiums_vector_wrappers() -> None:
    env = gym.make_vec("TestVector-v0", num_envs=1, max_turns=1)
    stats = gym.wrappers.vector.RecordEpisodeStatistics(env)
    stats.reset(seed=1)
    infos = stats.step(("",))[4]
    assert infos["episode"]["l"].tolist() == [1]
    shown = TextVectorEnv(Guess(render_mode="ansi"), 2)
    shown.reset(seed=1)
    assert all(text.startswith("Guess my number") for text in shown.render())


def test_texts_in_shared_memory_are_refused_with_what_works_instead() -> None:
    with pytest.raises(BadValueError, match=r'vector_kwargs=\{"shared_memory": False\}'):
        gym.make_vec("TestVector-v0", num_envs=2, vectorization_mode="async")


@pytest.mark.parametrize("processes", [1, 2])
def test_what_an_environment_tells_of_its_own_is_not_lost(processes: int) -> None:
    """PaperCrawler's info says what its actions found, in gymnasium's own form here too."""
    native = gym.make_vec("PaperCrawler-v0", num_envs=3, size="micro", processes=processes)
    theirs = gym.make_vec("PaperCrawler-v0", num_envs=3, size="micro", vectorization_mode="sync")
    try:
        mine, own = native.reset(seed=3), theirs.reset(seed=3)
        assert repr(mine[1]["crawl"]) == repr(own[1]["crawl"])
        for _ in range(3):
            actions = ("[Search] papers about birds", "[Stop]", "junk")
            told, said = native.step(actions)[4], theirs.step(actions)[4]
            assert told["_crawl"].tolist() == said["_crawl"].tolist()
            assert repr(told["crawl"]) == repr(said["crawl"])
    finally:
        native.close()
        theirs.close()


@pytest.mark.parametrize("processes", [1, 2])
def test_calls_and_attributes_are_gymnasiums(processes: int) -> None:
    native = gym.make_vec("TestVector-v0", num_envs=3, processes=processes)
    theirs = gym.make_vec("TestVector-v0", num_envs=3, vectorization_mode="sync")
    assert isinstance(native, TextVectorEnv)
    try:
        for envs in (native, theirs):
            envs.reset(seed=4)
            envs.step([guess(0), guess(150), "junk"])
            envs.set_attr("max_turns", [2, 5, 3])  # type: ignore[attr-defined]
            envs.set_attr("mark", "same")  # type: ignore[attr-defined]
        for name, args in (
            ("max_turns", ()),
            ("mark", ()),
            ("state_digest", ()),
            ("read", (guess(7),)),
            ("has_wrapper_attr", ("grammar",)),
        ):
            own, other = native.call(name, *args), theirs.call(name, *args)  # type: ignore[attr-defined]
            assert own == other
            assert type(own) is tuple
        assert native.get_attr("max_turns") == (2, 5, 3)
        assert native.call("read", action=guess(8)) == (8,) * 3
        *_, truncated, _ = native.step(["junk"] * 3)
        assert truncated.tolist() == [True, False, False]
    finally:
        native.close()
        theirs.close()


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_set_after_an_end_holds_in_the_next_episode(processes: int) -> None:
    """Processes begin the next episode ahead, of an environment without it."""
    envs = TextVectorEnv(Guess(max_turns=1), 2, processes)
    try:
        envs.reset(seed=1)
        envs.step(["junk"] * 2)
        time.sleep(0.2)  # time to begin ahead
        envs.set_attr("max_turns", 2)
        envs.step([""] * 2)
        *_, truncated, _ = envs.step(["junk"] * 2)
        assert envs.get_attr("max_turns") == (2, 2)
        assert not truncated.any()
    finally:
        envs.close()


@pytest.mark.parametrize("processes", [1, 2])
def test_calls_that_are_refused(processes: int) -> None:
    envs = TextVectorEnv(Guess(), 3, processes)
    try:
        for name in ("reset", "step", "close"):
            with pytest.raises(BadValueError, match=f"Use {name} of the vector environment"):
                envs.call(name)
        with pytest.raises(AttributeError, match="no_such"):
            envs.get_attr("no_such")
        with pytest.raises(BadValueError, match="'mark' got 2 values; expected one for each of 3"):
            envs.set_attr("mark", (1, 2))
        if processes > 1:
            envs.set_attr("mark", 1)
            with pytest.raises(BadValueError, match="what call was given cannot be sent"):
                envs.call("read", iter(lambda: 1, 2))
            envs.set_attr("items", {}.keys)
            with pytest.raises(BadValueError, match=r"'items' gave is a .* cannot be sent"):
                envs.get_attr("items")
        envs.reset(seed=1)  # they go on
    finally:
        envs.close()
    with pytest.raises(EpisodeError) if processes > 1 else nullcontext():
        envs.get_attr("max_turns")
