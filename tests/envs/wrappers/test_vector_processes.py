"""Vector environments over processes: equal to one process, and nothing is left of them."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers.guess_worlds import FragileGuess, Guess, GuessError, SessionGuess, guess

from turngym.envs.core.env import TextEnv
from turngym.envs.core.errors import BadValueError, EnvFault, EpisodeError, UnknownNameError
from turngym.envs.core.registration import make_env
from turngym.envs.wrappers import vector_processes
from turngym.envs.wrappers.vector import TextVectorEnv
from turngym.envs.wrappers.vector_copies import Copies, ResetOrder
from turngym.envs.wrappers.vector_processes import _pack_error, _restore_error


def made(env_id: str, **settings: Any) -> TextEnv[Any, Any]:
    env = gym.make(env_id, **settings)
    assert isinstance(env, TextEnv)
    return env


def exact(value: Any) -> Any:
    """Arrays as their kind and their values with their classes, dictionaries in their order."""
    if isinstance(value, dict):
        return [(key, exact(inner)) for key, inner in value.items()]
    if isinstance(value, np.ndarray):
        return value.dtype, [(type(entry), entry) for entry in value.tolist()]
    return value


def pids(env: TextVectorEnv) -> list[int]:
    return [worker.process.pid for worker in env._copies._workers]  # type: ignore[union-attr]


def wait_until_gone(processes: Sequence[int]) -> None:
    """Wait until no such process is there, not even one that nobody has waited for."""
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in processes):
        assert time.monotonic() < until, f"{processes} are still there"
        time.sleep(0.02)


@contextmanager
def over(env: TextEnv[Any, Any], num_envs: int, processes: int) -> Iterator[TextVectorEnv]:
    envs = TextVectorEnv(env, num_envs, processes)
    try:
        yield envs
    finally:
        envs.close()


def play_expert(env: TextEnv[Any, Any]) -> Callable[[TextVectorEnv, Sequence[str]], list[str]]:
    """Actions of an expert that errs, one of six of them nonsense."""
    expert, turn = env.expert(0.3, seed=1), 0

    def act(envs: TextVectorEnv, observations: Sequence[str]) -> list[str]:
        nonlocal turn
        turn += 1
        actions = []
        for i, (copy, seen) in enumerate(zip(envs.envs, observations, strict=True)):
            ended = copy.episode.status != "running"
            said = "" if ended else expert(copy, seen, {})
            actions.append("hm" if (turn + i) % 6 == 0 else said)
        return actions

    return act


WORLDS: dict[str, Callable[[], TextEnv[Any, Any]]] = {
    "SearchQA": lambda: made("SearchQA-v0", size="micro", max_turns=3),
    "MathWord": lambda: made("MathWord-v0", size="micro", max_turns=3),
    "ScienceWorld": lambda: made("ScienceWorld-v0", size="micro", max_turns=4),
}


@pytest.mark.parametrize("world", WORLDS)
def test_copies_in_processes_equal_those_in_one(world: str) -> None:
    """Five copies in two processes: observations, rewards, ends and infos, through many resets."""
    env = WORLDS[world]()
    act, one = play_expert(env), TextVectorEnv(env, 5)
    with over(env, 5, 2) as two:
        assert (two.observation_space, two.action_space) == (
            one.observation_space,
            one.action_space,
        )
        assert two.metadata == one.metadata
        ended = 0
        for seed, options in (
            (7, {}),
            ([4, 8, 1, 9, 3], {"split": "dev", "task": [3, 0, 2, 0, 1]}),
        ):
            mine, theirs = (e.reset(seed=seed, options=options) for e in (one, two))  # type: ignore[arg-type]
            assert mine[0] == theirs[0]
            assert exact(mine[1]) == exact(theirs[1])
            for _ in range(9):
                actions = act(one, mine[0])
                mine, theirs = one.step(actions), two.step(actions)
                assert mine[0] == theirs[0]
                for a, b in zip(mine[1:], theirs[1:], strict=True):
                    assert exact(a) == exact(b)
                ended += int((mine[2] | mine[3]).sum())
        assert ended >= 10


def test_sessions_masks_and_transcripts_over_uneven_shares() -> None:
    """A mask that leaves a process out; the split goes on in all; after close nothing is left."""
    env = SessionGuess(max_turns=3)
    env.render_mode = "ansi"
    one, two = TextVectorEnv(env, 5), TextVectorEnv(env, 5, 2)
    processes = pids(two)
    for envs in (one, two):
        with pytest.raises(EpisodeError, match="call reset first"):
            envs.step([""] * 5)
    assert one.reset(seed=1)[0] == two.reset(seed=1)[0]
    sessions = 0
    for turn in range(8):
        if turn == 3:
            mask = np.array([True, False, True, False, False])
            options = {"split": "test", "reset_mask": mask}
            mine, theirs = (e.reset(seed=50, options=options) for e in (one, two))
            assert mine[0] == theirs[0]
            assert exact(mine[1]) == exact(theirs[1])
            assert mine[1]["_turn"].tolist() == mask.tolist()
        kinds = [guess(0), guess(150), "junk", guess(100 + 3 * turn)]
        actions = np.array([kinds[(turn + i) % 4] for i in range(5)])
        mine, theirs = one.step(actions), two.step(actions)  # type: ignore[arg-type]
        assert mine[0] == theirs[0]
        for a, b in zip(mine[1:], theirs[1:], strict=True):
            assert exact(a) == exact(b)
        sessions += int((mine[4]["parent_session"] == 0).sum())
        assert one.render() == two.render()
    assert sessions > 5
    assert mine[4]["split"].tolist() == ["test"] * 5, "those that the mask left out, too"
    with pytest.raises(AttributeError, match="in 2 other processes"):
        two.envs  # noqa: B018
    two.close()
    wait_until_gone(processes)
    two.close()
    with pytest.raises(EpisodeError, match="it was closed; make a new one"):
        two.reset(seed=1)


def test_errors_come_here_as_they_are_and_a_death_ends_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_processes, "_BROKEN_S", 60.0)  # on a busy machine too
    with over(FragileGuess(), 4, 2) as envs:
        with pytest.raises(UnknownNameError, match="reset option 'taks'") as unknown:
            envs.reset(options={"taks": 1})
        assert unknown.value.name == "taks"
        with pytest.raises(BadValueError, match="reset was given cannot be sent"):
            envs.reset(options={"task": [0, 1, 2, threading.Lock()]})
        with pytest.raises(ModuleNotFoundError, match="nowhere"):
            envs.reset(options={"task": [0, 1, 2, Elsewhere()]})
        envs.reset(seed=1, options={"task": [5, 6, 7, 8]})
        with pytest.raises(TypeError, match="action is a int; expected text"):
            envs.step(["", "", "", 3])  # type: ignore[list-item]
        assert envs.step([""] * 4)[4]["turn"].tolist() == [1] * 4, "nothing had moved"
        with pytest.raises(GuessError, match="nine hundred") as raised:
            envs.step(["", "", guess(900), ""])
        assert str(raised.value) == "nine hundred is not 121"
        assert raised.value.secret == 121
        assert "the process of copies 2 to 3" in raised.value.__notes__[0]
        assert "in judge" in raised.value.__notes__[0]
        envs.reset(seed=1)
        processes, workers = pids(envs), envs._copies._workers[:]  # type: ignore[union-attr]
        os.kill(processes[1], signal.SIGKILL)
        with pytest.raises(EnvFault, match=r"of copies 2 to 3 was killed by SIGKILL \(as when mem"):
            envs.step([""] * 4)
        wait_until_gone(processes)
        assert workers[0].process.returncode == 0, "it ends by itself when its socket closes"
        with pytest.raises(EpisodeError, match=r"2 to 3 was killed.*; make a new one"):
            envs.reset(seed=1)


def test_an_interrupted_step_ends_the_processes_soon() -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with over(FragileGuess(), 2, 2) as envs:
        envs.reset(seed=1)
        processes, before = pids(envs), signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                envs.step([guess(901), ""])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        wait_until_gone(processes)
        with pytest.raises(EpisodeError, match="a step was interrupted"):
            envs.step(["", ""])


def test_nothing_is_left_without_close() -> None:
    dropped = TextVectorEnv(Guess(), 2, 2)
    processes = pids(dropped)
    del dropped
    gc.collect()
    wait_until_gone(processes)


SCRIPT = """
from helpers.guess_worlds import Guess
from turngym.envs import TextVectorEnv

class Mine(Guess):
    instructions = "Of a script."

envs = TextVectorEnv(Mine(), 2, 2)
envs.reset(seed=1)
print(*[worker.process.pid for worker in envs._copies._workers], flush=True)
"""


def test_they_end_with_a_script_that_has_no_guard(tmp_path: Path) -> None:
    """Its classes are sent along, its main module is not run again."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    paths = os.pathsep.join(path for path in sys.path if path)
    ran = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    processes = [int(pid) for pid in ran.stdout.split()]
    assert len(processes) == 2
    wait_until_gone(processes)


KILLED = """
from helpers.guess_worlds import FragileGuess, guess
from turngym.envs import TextVectorEnv

envs = TextVectorEnv(FragileGuess(), 2, 2)
envs.reset(seed=1)
print(*[worker.process.pid for worker in envs._copies._workers], flush=True)
envs.step([guess(901), guess(901)])
"""


def test_a_killed_parent_ends_them_in_the_middle_of_a_step() -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    parent = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    time.sleep(0.5)  # until the step has begun
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert len(workers) == 2
    wait_until_gone(workers)


class Unlucky(Guess):
    """Cannot begin one episode in ten."""

    def begin(self, task: Any, random: Any) -> Any:
        state, text = super().begin(task, random)
        if text.split()[1].endswith("7:"):
            raise EnvFault(f"an unlucky {text}")
        return state, text


@pytest.mark.parametrize("stops", [False, True], ids=["all", "some"])
def test_episodes_begun_ahead_are_those_of_the_next_step(stops: bool) -> None:
    """Nobody sees them before; a reset, a transcript and an error are what they are without."""
    env = Unlucky(max_turns=2, render_mode="ansi")
    plain, ahead = Copies(env, 4), Copies(env, 4)
    calm = [None] * 4
    generator = np.random.default_rng(3)

    def outcome(act: Callable[[], Any]) -> Any:
        try:
            return act()
        except EnvFault as fault:
            return str(fault)

    def reset(seeds: Sequence[Any], mask: Sequence[bool], options: dict[str, Any]) -> bool:
        order = ResetOrder(seeds=seeds, tasks=calm, mask=mask, options=options)
        mine, theirs = (outcome(partial(c.reset, order)) for c in (plain, ahead))
        assert mine == theirs
        return not isinstance(mine, str)

    begun = resets = faults = 0
    for _ in range(12):
        if not reset([int(x) for x in generator.integers(1000, size=4)], [True] * 4, {}):
            continue
        for turn in range(12):
            actions = [guess(int(x)) for x in generator.integers(100, 280, size=4)]
            mine, theirs = (outcome(partial(c.step, actions)) for c in (plain, ahead))
            assert mine == theirs
            if isinstance(mine, str):
                faults += 1
                break
            polls = iter([False, True])
            ahead.begin_ahead(lambda: stops and next(polls))  # noqa: B023
            begun += len(ahead._ahead)
            assert plain.render() == ahead.render()
            if turn % 4 == 3:
                resets += 1
                if not reset(calm, [False, True, True, False], {"split": "dev"}):
                    break
    assert min(begun, 4 * resets, 4 * faults) >= 20


class Elsewhere:
    """Cannot be made again in another process."""

    def __reduce__(self) -> Any:
        return make_env, ("helpers.nowhere:Nothing",)


def test_what_cannot_be_done_is_refused_with_a_reason() -> None:
    with pytest.raises(BadValueError, match="processes is 3, but num_envs is 2; expected at least"):
        TextVectorEnv(Guess(), 2, 3)
    for processes in (0, True, 1.5):
        with pytest.raises(BadValueError, match="processes is"):
            TextVectorEnv(Guess(), 2, processes)  # type: ignore[arg-type]
    env = Guess()
    env.grammar = threading.Lock()  # type: ignore[assignment]
    with pytest.raises(BadValueError, match=r"Guess cannot be pickled.*lock.*Leave processes out"):
        TextVectorEnv(env, 2, 2)
    env.grammar = Elsewhere()  # type: ignore[assignment]
    TextVectorEnv(env, 2).close()
    with pytest.raises(BadValueError, match=r"cannot be made again in another process.*nowhere"):
        TextVectorEnv(env, 2, 2)


def test_copies_in_other_processes_are_neither_pickled_nor_copied() -> None:
    with closing(TextVectorEnv(Guess(), 2, 2)) as envs:
        for take in (pickle.dumps, deepcopy):
            with pytest.raises(
                BadValueError, match=r"cannot be pickled or copied.*leave processes"
            ):
                take(envs)
        envs.reset(seed=0)  # they are as they were


def test_errors_of_every_kind_come_back() -> None:
    unknown = UnknownNameError("split", "tset", ["test"])
    missing = FileNotFoundError(2, "No such file", "here")
    bytes_ = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")
    for error in (unknown, missing, bytes_, KeyError("k"), GuessError(3, "two")):
        back = _restore_error(_pack_error(error))
        assert (type(back), str(back)) == (type(error), str(error))
    assert _restore_error(_pack_error(missing)).filename == "here"  # type: ignore[attr-defined]

    class OfThisFunctionError(Exception):
        pass

    back = _restore_error(_pack_error(OfThisFunctionError("local")))
    assert type(back) is RuntimeError
    assert str(back).endswith("OfThisFunctionError: local")
