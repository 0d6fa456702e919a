"""Fuzz every environment: seeded, resumed where it was stopped; ``make attacks`` runs it.

Every round plays one episode of one environment: a few of the expert's actions, then actions that
are legal, hostile, mutated or all of it spliced together. Round ``r`` draws from ``(seed, r)``
alone, so a run that was stopped goes on with the next round and finds the same things.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from turngym.envs import TextEnv, all_ids

CASES = Path(__file__).parent / "cases" / "payloads.json"
SLOW_S = 0.5
"""Processor seconds of a step that is reported; the law of cost allows 0.1 at best of three."""
LONG_SHARE = 1 / 200
"""Share of the actions that have 100,000 characters; they cost what hundreds of others cost."""


@dataclass
class Figures:
    """What a fuzz has done so far; written to the state file after every round.

    Attributes:
        seed: Seed of the whole run.
        rounds: Episodes.
        steps: Steps by environment.
        seconds: Processor seconds by environment.
        slowest_s: Slowest step by environment, in processor seconds.
        findings: What broke, each with the round that shows it again.
    """

    seed: int = 0
    rounds: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    slowest_s: dict[str, float] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Steps in all environments."""
        return sum(self.steps.values())

    def write(self, path: Path) -> None:
        """Write the state; a reader sees the old or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(asdict(self)))
        part.replace(path)


def read_figures(path: Path | None, seed: int) -> Figures:
    """The state of an earlier run, or a new one.

    Raises:
        SystemExit: The earlier run has another seed.
    """
    if path is None or not path.exists():
        return Figures(seed)
    found = Figures(**json.loads(path.read_text()))
    if found.seed != seed:
        raise SystemExit(f"{path}: is of seed {found.seed}, not {seed}; remove it to begin anew.")
    return found


@cache
def read_texts() -> list[Any]:
    """The texts of the cases, the repeated ones as ``[unit, characters]``."""
    return [row["text"] for row in json.loads(CASES.read_text(encoding="utf-8"))]


class Actions:
    """Draws actions."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        texts = read_texts()
        self.texts = [text for text in texts if isinstance(text, str)]
        self.units = [text for text in texts if not isinstance(text, str)]

    def pick(self, among: list[Any]) -> Any:
        return among[int(self.random.integers(len(among)))]

    def draw(self, env: TextEnv[Any, Any], said: list[str]) -> str:
        """An action for this state; ``said`` are earlier ones."""
        if self.random.random() < LONG_SHARE:
            unit, length = self.pick(self.units)
            return unit * (length // len(unit))
        kind = int(self.random.integers(5))
        legal = list(env.legal_actions() or ())
        base = self.pick(legal or self.texts)
        if kind == 0:
            return base
        if kind == 1:
            return self.pick(self.texts)
        if kind == 2:
            return self.mutated(base)
        if kind == 3:
            return self.mutated(self.pick(said or self.texts))
        return self.mutated(base + self.pick(self.texts) + self.pick(said or self.texts))

    def mutated(self, text: str) -> str:
        """Some characters changed, removed, doubled or moved."""
        signs = list(text[:2000])
        for _ in range(int(self.random.integers(1, 6))):
            at = int(self.random.integers(len(signs) + 1))
            change = int(self.random.integers(5))
            if change == 0:
                signs.insert(at, self.pick(list("<>[]{}()\"'\\/,.:;=+-*0987aZ \n\t\0é")))
            elif change == 1:
                signs.insert(at, chr(int(self.random.integers(1, 0x11000))))
            elif change == 2:
                del signs[at : at + int(self.random.integers(1, 9))]
            elif change == 3:
                signs[at:at] = signs[: int(self.random.integers(1, 30))]
            else:
                signs = signs[at:] + signs[:at]
        return "".join(signs)


def take_step(env: TextEnv[Any, Any], action: str) -> tuple[float, bool, str]:
    """One step: its processor seconds, whether the episode is over, and what is wrong with it."""
    begun = time.process_time()
    try:
        observation, reward, terminated, truncated, info = env.step(action)
    except Exception as fault:  # noqa: BLE001 - this is what is looked for
        return time.process_time() - begun, True, f"raised {fault!r}"
    spent = time.process_time() - begun
    wrong = ""
    if info["status"] == "env_error":
        wrong = f"broke: {observation}"
    elif not math.isfinite(reward) or not all(map(math.isfinite, info["metrics"].values())):
        wrong = f"paid {reward}, metrics {info['metrics']}"
    elif terminated and truncated:
        wrong = "was terminated and truncated"
    elif spent > SLOW_S:
        wrong = f"took {spent:.2f} s"
    return spent, terminated or truncated, wrong


def play_round(env: TextEnv[Any, Any], seed: tuple[int, int]) -> Iterator[tuple[float, str, str]]:
    """One episode: of every step the seconds, the action, and what was wrong."""
    random = np.random.default_rng(seed)
    actions = Actions(random)
    _, info = env.reset(seed=int(random.integers(2**31)))
    try:
        expert = env.expert(mistakes=0.0, seed=0)
    except NotImplementedError:
        expert = None
    guided = int(random.integers(4)) if expert is not None else 0
    said: list[str] = []
    over = False
    while not over:
        if expert is not None and len(said) < guided:
            action = expert(env, env.episode.observation, info)
        else:
            action = actions.draw(env, said)
        spent, over, wrong = take_step(env, action)
        yield spent, action, wrong
        said.append(action[:500])


Envs = dict[str, TextEnv[Any, Any]]


def fuzz(
    figures: Figures, steps: int, state: Path | None = None, envs: Envs | None = None
) -> Figures:
    """Go on until ``steps`` steps are done in all; the state is kept after every round.

    Args:
        figures: Where to go on.
        steps: Steps in all, the earlier ones counted.
        state: File of the state; None keeps none.
        envs: The environments by name; those that are missing are made.
    """
    names = all_ids(hidden=True)
    envs = {} if envs is None else envs
    while figures.total < steps:
        name = min(names, key=lambda n: (figures.steps.get(n, 0), n))  # equal shares of steps
        if name not in envs:
            inner = gym.make(name).unwrapped
            assert isinstance(inner, TextEnv)
            envs[name] = inner
        seed = (figures.seed, figures.rounds)
        taken = list(play_round(envs[name], seed))
        if any(wrong.startswith("took") for _, _, wrong in taken):
            taken = list(play_round(envs[name], seed))  # slow again, or was memory collected?
        for spent, action, wrong in taken:
            figures.steps[name] = figures.steps.get(name, 0) + 1
            figures.seconds[name] = figures.seconds.get(name, 0.0) + spent
            figures.slowest_s[name] = max(figures.slowest_s.get(name, 0.0), spent)
            if wrong:
                where = f"{name}, round {figures.rounds}: {wrong[:300]} at {action[:120]!a}"
                figures.findings.append(where)
        figures.rounds += 1
        if state is not None and figures.rounds % 20 == 0:
            figures.write(state)
    if state is not None:
        figures.write(state)
    return figures


def describe(figures: Figures) -> str:
    """A table of the figures, and the findings."""
    lines = [
        f"{figures.total:,} steps, {figures.rounds:,} episodes, {len(figures.steps)} environments, "
        f"{sum(figures.seconds.values()):.0f} s of one processor, seed {figures.seed}, "
        f"{len(figures.findings)} findings",
        "",
        "| Environment | Steps | ms a step | Slowest (ms) |",
        "|---|---:|---:|---:|",
    ]
    for name, steps in sorted(figures.steps.items()):
        mean = 1000 * figures.seconds[name] / steps
        lines.append(f"| {name} | {steps:,} | {mean:.2f} | {1000 * figures.slowest_s[name]:.0f} |")
    return "\n".join([*lines, *(f"- {finding}" for finding in figures.findings)])


def main() -> int:
    """Run from the command line; 1 where something was found."""
    parser = argparse.ArgumentParser(description="Fuzz every environment.")
    parser.add_argument("--steps", type=int, default=1_000_000, help="in all, earlier ones counted")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, default=Path("build/attacks/fuzz.json"))
    given = parser.parse_args()
    figures = fuzz(read_figures(given.state, given.seed), given.steps, given.state)
    print(describe(figures))
    return 1 if figures.findings else 0


if __name__ == "__main__":
    sys.exit(main())
