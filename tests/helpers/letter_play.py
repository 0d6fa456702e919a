"""Play diagnostic environments letter by letter, and know exactly what a uniform policy does."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

import turngym.envs  # noqa: F401 - registers


def make(name: str, **settings: Any) -> Any:
    return gym.make(f"{name}-v0", **settings).unwrapped


def begin(env: Any, task: int = 0, split: str = "train", seed: int = 0) -> Any:
    env.reset(seed=seed, options={"split": split, "task": task})
    return env


def play(env: Any, letters: str, task: int = 0, seed: int = 0) -> tuple[float, str]:
    """Return and status after these letters, or at the end if it comes before."""
    begin(env, task, seed=seed)
    for letter in letters:
        if env.episode.status != "running":
            break
        env.step(letter)
    return env.episode.total_reward, env.episode.status


def texts(env: Any, letters: str) -> list[str]:
    """What is observed after each of the letters, from the present state."""
    twin = env.fork()
    return [twin.step(letter)[0] for letter in letters]


def uniform_success(env: Any, turns: int | None = None, known: Any = None) -> float:
    """Probability that uniform letters solve the episode from here: every state is met once."""
    known = {} if known is None else known
    left = env.max_turns - env.episode.turn if turns is None else turns
    key = env.state_digest(), left
    if key not in known:
        known[key] = 0.0
        for letter in env.letters:
            twin = env.fork()
            twin.step(letter)
            status = twin.episode.status
            then = uniform_success(twin, left - 1, known) if status == "running" else 0.0
            known[key] += (1.0 if status == "solved" else then) / len(env.letters)
    return known[key]
