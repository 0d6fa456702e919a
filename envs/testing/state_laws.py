"""Laws about state: seeds, copies, forks, pickles, other processes, the caller's random numbers."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import check_env

from ..core.env import TextEnv
from ..core.errors import TurngymError
from ..core.fork import fork
from .harness import FIRST_SEED, Lab, LawViolation, describe_difference

_ALLOWED_WARNINGS = ("No render fps was declared",)
_SEEDS = tuple(range(FIRST_SEED, FIRST_SEED + 3))
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_STREAMS = 3
"""Other random streams that an action is tried with."""


def gymnasium_check(lab: Lab) -> None:
    """Gymnasium's own check_env passes and warns of nothing but the missing render fps."""
    text_env = lab.inner(lab.make())
    allowed = _ALLOWED_WARNINGS if text_env.spec else (*_ALLOWED_WARNINGS, "not having a spec")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(text_env)
        except (AssertionError, gym.error.Error, TurngymError) as error:
            raise LawViolation(f"check_env: {error}") from error
    bad = [str(w.message) for w in caught if not any(part in str(w.message) for part in allowed)]
    if bad:
        raise LawViolation(f"check_env warns: {bad[0]}")


def same_seed_same_episode(lab: Lab) -> None:
    """Two copies and one copy played twice give equal episodes for equal seeds and actions."""
    one, two = lab.make(), lab.make()
    for seed in _SEEDS:
        first = lab.play(one, seed, lab.mixed(seed), digests=True)
        moves = [step.action for step in first.steps]
        for env, who in ((two, "another copy"), (one, "the same copy, reset again")):
            if found := describe_difference(
                first, lab.play(env, seed, lab.same_moves(moves), digests=True)
            ):
                raise LawViolation(f"seed {seed}, {who}: {found}")


def other_seed_other_episode(lab: Lab) -> None:
    """Ten seeds do not all start with the same task and the same text."""
    starts = set()
    for seed in range(10):
        observation, info = lab.env.reset(seed=seed)
        starts.add((info["task_id"], observation))
    if len(starts) < 2:
        raise LawViolation(f"seeds 0 to 9 all start with {next(iter(starts))!r}")


def episode_is_task_and_seed(lab: Lab) -> None:
    """An episode that was reset without a seed starts again from its task and its own seed."""
    lab.env.reset(seed=5)
    for _ in range(3):
        first = lab.play(lab.env, None, lab.mixed(3), digests=True)
        episode = lab.text_env.episode
        options = {"split": episode.task.split, "task": episode.task.id}
        moves = [step.action for step in first.steps]
        again = lab.play(
            lab.make(), episode.random.seed, lab.same_moves(moves), options, digests=True
        )
        if found := describe_difference(first, again):
            raise LawViolation(f"task {episode.task.id!r}, seed {episode.random.seed}: {found}")


def copies_do_not_touch(lab: Lab) -> None:
    """Copies stepped in turns give the episodes that each gives alone."""
    alone = [lab.play(lab.make(), seed, lab.mixed(seed), digests=True) for seed in _SEEDS]
    copies = [lab.make() for _ in _SEEDS]
    for env, seed, play in zip(copies, _SEEDS, alone, strict=True):
        env.reset(seed=seed)
        if lab.inner(env).episode.observation != play.observation:
            raise LawViolation(f"seed {seed}: another copy's reset changed the first observation")
    for turn in range(max(len(play.steps) for play in alone)):
        for env, seed, play in zip(copies, _SEEDS, alone, strict=True):
            if turn >= len(play.steps):
                continue
            observation, reward, *_ = env.step(play.steps[turn].action)
            want = play.steps[turn]
            if (observation, reward, lab.digests(env)) != (
                want.observation,
                want.reward,
                want.digest,
            ):
                raise LawViolation(
                    f"seed {seed}, turn {turn + 1}: {observation!r} among other copies, "
                    f"{want.observation!r} alone"
                )


def fork_then_act_equals_act(lab: Lab) -> None:
    """At every turn a fork answers as the original does, and neither moves the other.

    Two forks give the same answer to a few of the legal actions too.
    """
    _forks_agree(lab, lambda env: env)
    for seed, moves in lab.moving_episodes(2):
        env = lab.make()
        env.reset(seed=seed)
        for turn, move in enumerate(moves, start=1):
            for action in lab.candidates(env, move, (seed, turn)):
                one, two = fork(env), fork(env)
                first, second = one.step(action), two.step(action)
                if first != second or lab.digests(one) != lab.digests(two):
                    raise LawViolation(
                        f"turn {turn}: one fork answers {action!r} with {first!r}, another with "
                        f"{second!r}; what an action brings is drawn from episode.random, and what "
                        "changes lies in the state"
                    )
            env.step(move)


def fork_through_wrappers(lab: Lab) -> None:
    """The same with gymnasium's wrappers, and the environment's own, around it."""
    _forks_agree(
        lab,
        lambda env: gym.wrappers.OrderEnforcing(gym.wrappers.TimeLimit(env, 1_000_000)),
    )


def _forks_agree(lab: Lab, wrap: Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]) -> None:
    for seed, moves in lab.moving_episodes(2):
        env = wrap(lab.make())
        env.reset(seed=seed)
        for turn, move in enumerate(moves, start=1):
            before = lab.digests(env)
            twin, spare = fork(env), fork(env)
            if lab.inner(twin) is lab.inner(env) or twin is env:
                raise LawViolation(f"turn {turn}: the fork is the original itself")
            ahead = twin.step(move)
            if lab.digests(env) != before:
                raise LawViolation(f"turn {turn}: a step of the fork changed the original's state")
            here = env.step(move)
            if ahead != here or lab.digests(twin) != lab.digests(env):
                raise LawViolation(
                    f"turn {turn}: the fork answers {ahead!r}, the original {here!r}"
                )
            if lab.digests(spare) != before:
                raise LawViolation(f"turn {turn}: a step of the original changed the fork's state")
        if lab.inner(fork(env)).np_random is lab.inner(env).np_random:
            raise LawViolation("the fork draws from the original's generator")


def luck_is_declared(lab: Lab) -> None:
    """Without ``chance``, an action brings the same with every random stream, ``noise`` aside.

    With it, a generator in the state is started anew by the environment's own ``redraw``.
    """
    if lab.text_env.chance:
        _check_own_streams(lab)
        return
    for seed, moves in lab.moving_episodes(2):
        env = lab.make()
        env.reset(seed=seed)
        for turn, move in enumerate(moves, start=1):
            for action in lab.candidates(env, move, (seed, turn)):
                _check_luck(lab, env, turn, action)
            env.step(move)


def _check_own_streams(lab: Lab) -> None:
    env = lab.make()
    env.reset(seed=FIRST_SEED)
    inner = lab.inner(env)
    if type(inner).redraw is not TextEnv.redraw:
        return
    for name, value in getattr(inner.episode.state, "__dict__", {}).items():
        if isinstance(value, _GENERATORS):
            raise LawViolation(
                f"the state holds a generator, {name!r}, which redraw() does not start anew, so "
                "that rollouts give all forks one luck; draw from episode.random, or override "
                "redraw() and random_position()"
            )


def _check_luck(lab: Lab, env: gym.Env[Any, Any], turn: int, action: str) -> None:
    before = lab.inner(env).state_digest()
    original = fork(env)
    here, state = _without_noise(original.step(action)), lab.inner(original).state_digest()
    for key in range(_STREAMS):
        twin = fork(env)
        inner = lab.inner(twin)
        inner.redraw(key)
        has_stream = inner.state_digest() != before  # in its state, which then differs
        there = _without_noise(twin.step(action))
        if there != here or not (has_stream or inner.state_digest() == state):
            other = "another state" if there == here else repr(there)
            raise LawViolation(
                f"turn {turn}: {action!r} brings {here!r}, and with another random stream {other}; "
                "where what an action brings is drawn, set chance = True, or rollouts give all "
                "forks of a state one luck"
            )


def _without_noise(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    observation, _, terminated, truncated, info = answer
    terms = {name: value for name, value in info["reward_terms"].items() if name != "noise"}
    return observation, terms, terminated, truncated


def pickles_mid_episode(lab: Lab) -> None:
    """A pickled copy goes on as the original does."""
    for seed, moves in lab.moving_episodes(1):
        env = lab.make()
        env.reset(seed=seed)
        for turn, move in enumerate(moves, start=1):
            try:
                twin = pickle.loads(pickle.dumps(env))
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                raise LawViolation(f"turn {turn}: cannot be pickled: {error}") from error
            ahead, here = twin.step(move), env.step(move)
            if ahead != here or lab.digests(twin) != lab.digests(env):
                raise LawViolation(
                    f"turn {turn}: the pickled copy answers {ahead!r}, the original {here!r}"
                )


def random_state_untouched(lab: Lab) -> None:
    """Making, resetting and stepping leave the caller's random and numpy.random where they were."""
    python, legacy = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    lab.play(lab.make(), 3, lab.mixed(3), digests=True)
    lab.make().reset()
    if random.getstate() != python:
        raise LawViolation("Python's global random state moved; draw from the episode's generator")
    if pickle.dumps(np.random.get_state()) != legacy:  # noqa: NPY002
        raise LawViolation("numpy's global random state moved; draw from the episode's generator")


_CHILD = """
import pickle, sys
paths, job = pickle.load(sys.stdin.buffer)
sys.path[:] = paths
import cloudpickle
make, seeds, moves = cloudpickle.loads(job)
digests = []
def note(env):
    digests.append(f"{env.digest()}:{env.state_digest()}")
for seed, actions in zip(seeds, moves):
    env = make()
    env.reset(seed=seed)
    note(env.unwrapped)
    for action in actions:
        env.step(action)
        note(env.unwrapped)
sys.stdout.write("\\nDIGESTS " + " ".join(digests))
"""


def same_in_another_process(lab: Lab) -> None:
    """Another interpreter with another hash seed gives the same digests."""
    plays = [lab.play(lab.make(), seed, lab.mixed(seed), digests=True) for seed in _SEEDS]
    moves = [[step.action for step in play.steps] for play in plays]
    want = [d for play in plays for d in (play.digest, *(s.digest for s in play.steps))]
    job = pickle.dumps((sys.path, cloudpickle.dumps((lab.make_alone, _SEEDS, moves))))
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=job,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": other},
    )
    if done.returncode:
        raise LawViolation(f"another process failed: {done.stderr.decode(errors='replace')[-500:]}")
    found = done.stdout.decode().rpartition("DIGESTS ")[2].split()
    if found != want:
        places = [
            (seed, turn)
            for seed, acts in zip(_SEEDS, moves, strict=True)
            for turn in range(len(acts) + 1)
        ]
        here = zip(places, want, found, strict=False)
        seed, turn = next((place for place, a, b in here if a != b), places[-1])
        when = f"after turn {turn}" if turn else "at the start"
        raise LawViolation(
            f"seed {seed}, {when}: state or texts differ in another process, which has its own "
            "hash seed: order a set before it is used, use no hash() or id(), and keep nothing in "
            "a class or a module that changes"
        )
