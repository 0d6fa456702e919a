"""Laws about the identity of states: what a state digest leaves out, and what it tells apart."""

from __future__ import annotations

from typing import Any

from ..core.env import TextEnv
from .harness import FIRST_SEED, Lab, LawViolation

_SEEDS = tuple(range(FIRST_SEED, FIRST_SEED + 4))


def state_digest_leaves_history_out(lab: Lab) -> None:
    """The state digest depends on no turn counter, transcript, reward so far or random stream."""
    for env, turn, _ in _visits(lab):
        want = env.state_digest()
        twin = env.fork()
        if twin.state_digest() != want:
            raise LawViolation(f"turn {turn}: a fork has another state digest")
        episode = twin.episode
        for change, value in (
            ("turn", episode.turn + 1),
            ("steps", [*episode.steps, *episode.steps[-1:]]),
            ("total_reward", episode.total_reward + 1.0),
            ("invalid_actions", episode.invalid_actions + 1),
        ):
            setattr(episode, change, value)
            if twin.state_digest() != want:
                raise LawViolation(
                    f"turn {turn}: the state digest depends on the episode's {change}"
                )
        episode.random.generator.random()
        if twin.state_digest() != want:
            raise LawViolation(f"turn {turn}: the state digest depends on the random stream")


def equal_state_digests_go_on_alike(lab: Lab) -> None:
    """From states of equal digests an action leads to equal rewards, ends and states.

    They are compared at the same turn; actions that draw random numbers are not compared. The
    digest after the task's verdict is none of those before it.
    """
    known: dict[str, TextEnv[Any, Any]] = {}
    for env, turn, move in _visits(lab):
        digest = env.state_digest()
        before = known.setdefault(digest, env).fork()
        here = env.fork()
        before.episode.turn = here.episode.turn
        ends = [_act(twin, move) for twin in (before, here)]
        if None not in ends and ends[0] != ends[1]:
            raise LawViolation(
                f"turn {turn}: two states have the digest {digest}, but the action {move!r} leads "
                f"from one to reward, end and state {ends[0]}, from the other to {ends[1]}"
            )
        if here.episode.status in ("solved", "failed") and here.state_digest() in known:
            raise LawViolation(f"turn {turn}: the state after the end is one of those before it")


def _visits(lab: Lab) -> list[tuple[TextEnv[Any, Any], int, str]]:
    """Return forks at every turn of mixed episodes of one task, with turn and next action."""
    found = []
    task = lab.text_env.source.task("train", 0) if "train" in lab.text_env.source.sizes() else None
    options = None if task is None else {"split": "train", "task": 0}
    for seed in _SEEDS:
        act = lab.mixed(seed)
        env = lab.make()
        observation, info = env.reset(seed=_SEEDS[0], options=options)
        for turn in range(1, lab.inner(env).max_turns + 1):
            move = act(env, observation, dict(info))
            found.append((lab.inner(env).fork(), turn, move))
            observation, _, terminated, truncated, info = env.step(move)
            if terminated or truncated:
                break
    return found


def _act(env: TextEnv[Any, Any], move: str) -> tuple[Any, ...] | None:
    """Return reward, end and state digest after an action; None where it drew random numbers."""
    position = repr(env.episode.random.position)
    _, reward, _, _, _ = env.step(move)
    if repr(env.episode.random.position) != position:
        return None
    return reward, env.episode.status, env.state_digest()
