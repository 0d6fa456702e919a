"""Worlds that each break one law of the contract, with the law that must catch them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import gymnasium as gym
import numpy as np
from helpers.guess_worlds import Guess, Guessing, Secret, Secrets

from turngym.envs.core.env import Outcome
from turngym.envs.core.errors import EnvFault
from turngym.envs.core.randomness import EpisodeRandom
from turngym.envs.core.tasks import Task


class Reusing(Guess):
    """Gives the same info dictionary every time."""

    def _close(self, *args):
        *rest, info = super()._close(*args)
        vars(self).setdefault("shared", {}).update(info)
        return *rest, self.shared  # type: ignore[attr-defined]


class Untyped(Guess):
    def _close(self, *args):
        *rest, info = super()._close(*args)
        info["extra"] = 1
        return *rest, info


class Retyped(Guess):
    """A detail is an int after an even number of turns, and None after an odd one."""

    def details(self, episode):
        return {"last": None if episode.turn % 2 else episode.turn}


class LateMetrics(Guess):
    def _metrics(self, episode):
        return {"guesses": 1.0}


class Unmeasured(Guess):
    def metrics(self, episode):
        return {"guesses": float("nan") if episode.turn > 1 else 1.0}


class Unwritable(Guess):
    def debug_info(self, episode):
        return {"turn": np.float32(episode.turn)}


class Both(Guess):
    def _close(self, *args):
        text, reward, terminated, truncated, info = super()._close(*args)
        return text, reward, terminated or truncated, truncated, info


class Endless(Guess):
    def _settle(self, episode, outcome):
        episode.status = outcome.status
        return dict(outcome.terms), sum(outcome.terms.values())


class Overtime(Guess):
    """Its own limit lies one turn behind that of turns."""

    def _settle(self, episode, outcome):
        settled = super()._settle(episode, outcome)
        if episode.status == "truncated" and episode.turn == self.max_turns:
            episode.status = "running"
        return settled


class Patient(Guess):
    def _check_running(self, action):
        return self.episode


class Surrogate(Guess):
    def judge(self, episode, number):
        return super().judge(episode, number)._replace(observation="\ud800")


class Verbose(Guess):
    def judge(self, episode, number):
        said = "x" * (self.observation_space.max_chars + 1)
        return super().judge(episode, number)._replace(observation=said)


class Rich(Guess):
    def judge(self, episode, number):
        return super().judge(episode, number)._replace(terms={"a": 0.6, "b": 0.6})


class Loud(Guess):
    """Its noise is beyond the bound that it declares."""

    reward_noise = 0.01

    def judge(self, episode, number):
        outcome = super().judge(episode, number)
        return outcome._replace(terms={**outcome.terms, "noise": -0.02})


class Unnamed(Guess):
    def _close(self, *args):
        text, reward, *rest = super()._close(*args)
        return text, reward + 0.1, *rest


class Whimsical(Guess):
    def begin(self, task, random):
        world, text = super().begin(task, random)
        return world, f"{text}{id(world)}\n"


class Memoryful(Guess):
    """The same seed gives another episode the second time."""

    counter = 0

    def begin(self, task, random):
        Memoryful.counter += 1
        world, text = super().begin(task, random)
        return world, f"{text}Round {Memoryful.counter}.\n"


class Unseeded(Guess):
    def begin(self, task, random):
        return Guessing(task.payload), "Guess.\n"

    def reset(self, *, seed=None, options=None):
        options = {"split": "train", "task": 0, **(options or {})}
        return super().reset(seed=seed, options=options)


class OwnDraws(Guess):
    """The first text depends on the environment's generator, not on the episode's."""

    def begin(self, task, random):
        world, _ = super().begin(task, random)
        return world, f"Game {self.np_random.integers(1000)}.\n"


class Shared(Guess):
    """Guesses of all copies end in one list."""

    heard: list[int] = []  # noqa: RUF012

    def reset(self, *, seed=None, options=None):
        Shared.heard.clear()
        return super().reset(seed=seed, options=options)

    def judge(self, episode, number):
        Shared.heard.append(number)
        outcome = super().judge(episode, number)
        return outcome._replace(observation=f"{outcome.observation}{len(Shared.heard)}\n")


class ShallowFork(Guess):
    def fork_state(self, state):
        return state


class Hasty(Guess):
    """A first guess ends it and changes nothing, so that many mixed episodes are one action."""

    def judge(self, episode, number):
        if episode.turn == 1:
            return Outcome.failed("Too soon.\n", {"outcome": 0.0})
        return super().judge(episode, number)


class HastyFork(Hasty, ShallowFork):
    pass


class SelfFork(Guess):
    def fork(self):
        return self


class Counting(gym.Wrapper):
    """Adds a count to the texts, and gives its own counter to every fork."""

    def __init__(self, env: gym.Env, count: list[int] | None = None) -> None:
        super().__init__(env)
        self.count = [0] if count is None else count

    def reset(self, *, seed=None, options=None):
        self.count[0] = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.count[0] += 1
        text, *rest = super().step(action)
        return f"{text}{self.count[0]}", *rest

    def fork_wrapper(self, inner):
        return Counting(inner, self.count)


def badly_wrapped() -> gym.Env:
    return Counting(Guess())


class Unpicklable(Guess):
    def __init__(self) -> None:
        super().__init__()
        self.function = lambda x: x


class Forgetful(Guess):
    def __getstate__(self):
        return {**self.__dict__, "max_turns": 1}


class HastyForgetful(Hasty, Forgetful):
    pass


class PythonRandom(Guess):
    def judge(self, episode, number):
        random.random()  # noqa: TID251
        return super().judge(episode, number)


class NumpyRandom(Guess):
    def begin(self, task, random):
        np.random.rand()  # noqa: NPY002
        return super().begin(task, random)


class Hashing(Guess):
    def begin(self, task, random: EpisodeRandom):
        world, text = super().begin(task, random)
        return world, f"{text}{hash('text')}\n"


class Twins(Secrets):
    def task(self, split, index):
        task = super().task(split, index)
        return Task("same", split, index, task.payload)


class Leaky(Secrets):
    def task(self, split, index):
        return Task(f"{split}/{index}", split, index, Secret(100 + index, 100, 299))


class Lost(Secrets):
    def index_of(self, split, task_id):
        return 0


class Drifting(Secrets):
    made = 0

    def __init__(self) -> None:
        Drifting.made += 1
        self.number = Drifting.made

    def task(self, split, index):
        secret = super().task(split, index).payload
        return Task(
            f"{split}/{index}", split, index, Secret(secret.number, secret.low, self.number)
        )


def with_source(source: type) -> Callable[[], Guess]:
    class Sourced(Guess):
        def __init__(self) -> None:
            super().__init__()
            self.source = source()

        def begin(self, task, random):
            text = f"Game {random.generator.integers(1000)}.\n"
            return Guessing(Secret(task.payload.number, 100, 299)), text

    return Sourced


class Clocked(Guess):
    def identify_state(self, episode):
        return episode.state, episode.turn


class Blurred(Guess):
    """Takes all states of a task for one, though a first guess is worth less."""

    def judge(self, episode, number):
        early = not episode.state.asked
        outcome = super().judge(episode, number)
        return outcome._replace(terms={"outcome": 0.5}) if outcome.terms and early else outcome

    def identify_state(self, episode):
        return episode.task.id


class Telling(Guess):
    def begin(self, task, random):
        world, text = super().begin(task, random)
        return world, f"{text}Hint: {task.payload.number}.\n"


class Illegal(Guess):
    def legal_actions(self):
        return ["guess!"]


class Generous(Guess):
    def play(self, episode, action):
        if not action:
            return Outcome.move("Well.\n", {"politeness": 0.01})
        return super().play(episode, action)

    def judge(self, episode, number):
        outcome = super().judge(episode, number)
        return outcome._replace(terms={"outcome": 0.5}) if outcome.terms else outcome


class EasilyPleased(Guess):
    def play(self, episode, action):
        if action == "???":
            return Outcome.solved("Yes.\n", {"outcome": 0.0})
        return super().play(episode, action)


class Clumsy(Guess):
    def expert(self, mistakes=0.0, seed=0):
        return lambda env, observation, info: self.grammar.write("guess", "1")


class Thrifty(Guess):
    """Solves, but never with the highest return."""

    def judge(self, episode, number):
        outcome = super().judge(episode, number)
        return outcome._replace(terms={"outcome": 0.9}) if outcome.terms else outcome


class Backtracking(Guess):
    """Reads blanks by a pattern that takes quadratic time."""

    def play(self, episode, action):
        re.search(r"\s*\n+!", action[::8])
        return super().play(episode, action)


class Infinite(Guess):
    def judge(self, episode, number):
        return Outcome.move("", {"luck": float("inf")})


class Breaking(Guess):
    def judge(self, episode, number):
        raise EnvFault("the tool is broken")


class Undeclared(Guess):
    chance = False


class Unopened(Guess):
    has_gold = True

    def gold_answers(self, episode):
        return (str(episode.state.secret.number),)


class Unanswered(Guess):
    has_gold = True


BROKEN: list[tuple[str, Callable[[], gym.Env]]] = [
    ("gymnasium's own check", Reusing),
    ("info is complete and typed", Untyped),
    ("info is complete and typed", Retyped),
    ("info is complete and typed", LateMetrics),
    ("nothing breaks", Breaking),
    ("nothing breaks", Infinite),
    ("status follows the flags", Both),
    ("no episode outlasts the limit", Endless),
    ("no episode outlasts the limit", Overtime),
    ("nothing breaks", Unmeasured),
    ("debug info is JSON data", Unwritable),
    ("no step after the end", Patient),
    ("nothing breaks", Surrogate),
    ("texts are in the space", Verbose),
    ("rewards are named, finite and in range", Rich),
    ("rewards are named, finite and in range", Loud),
    ("rewards are named, finite and in range", Unnamed),
    ("same seed, same episode", Memoryful),
    ("other seed, other episode", Unseeded),
    ("an episode is its task and its seed", OwnDraws),
    ("copies do not touch", Shared),
    ("fork then act equals act", ShallowFork),
    ("fork then act equals act", HastyFork),
    ("fork then act equals act", SelfFork),
    ("fork then act equals act", badly_wrapped),
    ("luck is declared", Undeclared),
    ("accepted answers are given", Unopened),
    ("accepted answers are given", Unanswered),
    ("pickles mid-episode", Unpicklable),
    ("pickles mid-episode", Forgetful),
    ("pickles mid-episode", HastyForgetful),
    ("the caller's random state is untouched", PythonRandom),
    ("the caller's random state is untouched", NumpyRandom),
    ("the same in another process", Hashing),
    ("tasks are stable, splits disjoint", with_source(Twins)),
    ("tasks are stable, splits disjoint", with_source(Leaky)),
    ("tasks are stable, splits disjoint", with_source(Lost)),
    ("tasks are stable, splits disjoint", with_source(Drifting)),
    ("the state digest leaves history out", Clocked),
    ("equal state digests go on alike", Blurred),
    ("the answer is hidden", Telling),
    ("legal actions are valid", Illegal),
    ("null and garbage stay at the floor", Generous),
    ("null and garbage stay at the floor", EasilyPleased),
    ("long actions take little time", Backtracking),
    ("the expert reaches the top", Clumsy),
    ("the expert reaches the top", Thrifty),
]
