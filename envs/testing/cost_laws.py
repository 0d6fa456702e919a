"""Laws about cost: the longest action, of whatever kind, takes little processor time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym

from .harness import Lab, LawViolation

MAX_STEP_S = 0.1
"""Processor seconds that one step of this process may take, the best of three tries."""
SLOWEST_S = 1.0
"""What it may take where a quarter of the action takes about a quarter of the time."""
_LINEAR = 8.0
"""Times as long as a quarter of it: between 4, in proportion, and 16, by its square."""
LONG = 100_000
"""Characters of the actions; the most that an entry of the leaderboard may hold."""
_TRIES = 3
AT_START = "at the start"
_UNITS: Mapping[str, str] = {
    "one letter": "a",
    "blanks": " ",
    "blanks and line ends": " \n",
    "digits": "1",
    "digits and commas": "1,",
    "open parentheses": "(",
    "open brackets": "[",
    "open thoughts": "<think>",
    "open JSON objects": '{"a":',
    "unknown tags": "<x>",
    "full stops": ". ",
    "emphasis": "*_`",
    "combined letters": "e\u0301",
    "sums": "1 + ",
}
_FILLINGS = (" ", "1,")


def long_actions_take_little_time(lab: Lab) -> None:
    """Any action of 100,000 characters takes under 0.1 s of processor time.

    A slow processor may take up to 1 s where the time grows in proportion to the length.

    Tried are a dozen kinds that cost a parser with backtracking quadratic time, at the start of an
    episode and after the expert's first action; at the start also inside the tags that end an
    action.
    """
    for place, env in _places(lab):
        length = min(LONG, lab.inner(env).action_space.max_chars)
        stop = lab.inner(env).stop if place == AT_START else ()
        for kind, action in _nasty_actions(stop, length):
            if (spent := _measure(lab, env, action, MAX_STEP_S)) < MAX_STEP_S:
                continue
            quarter = dict(_nasty_actions(stop, length // 4))[kind]
            if spent < min(SLOWEST_S, _LINEAR * _measure(lab, env, quarter, 0.0)):
                continue
            raise LawViolation(
                f"{place}, an action of {length:,} characters ({kind}) takes {spent:.2f} s of "
                f"processor time; expected less than {MAX_STEP_S:g} s, or {SLOWEST_S:g} s on a "
                "slow processor: read it in linear time"
            )


def _places(lab: Lab) -> Iterator[tuple[str, gym.Env[Any, Any]]]:
    env = lab.make()
    observation, info = env.reset(seed=1)
    yield AT_START, env
    if (expert := lab.expert(env, mistakes=0.0, seed=0)) is None:
        return
    _, _, terminated, truncated, _ = env.step(expert(env, observation, info))
    if not (terminated or truncated):
        yield "after one action", env


def _nasty_actions(stop: tuple[str, ...], length: int) -> Iterator[tuple[str, str]]:
    for kind, unit in _UNITS.items():
        yield kind, _repeat(unit, length)
    for closing in stop:
        if not closing.startswith("</"):
            continue
        opening = closing.replace("</", "<", 1)
        yield f"many {opening}", _repeat(opening, length)
        for filling in _FILLINGS:
            inside = _repeat(filling, max(0, length - len(opening) - len(closing)))
            yield f"{filling!r} in {opening}", f"{opening}{inside}{closing}"


def _repeat(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def _measure(lab: Lab, env: gym.Env[Any, Any], action: str, enough: float) -> float:
    """Return the processor seconds of one step of a copy, the least of up to three tries.

    A try under ``enough`` seconds is the last one.
    """
    best = float("inf")
    for _ in range(_TRIES):
        twin = lab.inner(env).fork()
        begun = time.process_time()
        info = twin.step(action)[4]
        best = min(best, time.process_time() - begun)
        if info["status"] == "env_error":
            raise LawViolation(
                f"the environment broke at {action[:40]!r}…: {twin.episode.observation}"
            )
        if best < enough:
            break
    return best
