"""A world of a fixed number of turns that answers each, and an engine that throws dice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from turngym.agents.engines.base import Completion, Request
from turngym.agents.rendering.plain import Renderer
from turngym.envs.core.env import Episode, Outcome, TextEnv
from turngym.envs.core.tasks import Task

LETTERS = "abcdef."


class Numbers:
    def sizes(self) -> Mapping[str, int | None]:
        return {"train": 50, "dev": 0, "test": 0}

    def task(self, split: str, index: int) -> Task[int]:
        return Task(f"{split}/{index}", split, index, index)

    def index_of(self, split: str, task_id: str) -> int | None:
        return None


class Walk(TextEnv[list[str], int]):
    """Solved after ``turns`` actions; the reward counts the letters ``a`` of the last one."""

    instructions = "Walk."
    stop = ("!",)
    steps = 0

    def __init__(self, turns: int) -> None:
        super().__init__(source=Numbers(), max_turns=turns + 1, reward_range=(0.0, 10.0))
        self.turns = turns

    def begin(self, task: Task[int], random: Any) -> tuple[list[str], str]:
        return [], f"t{task.index}:"

    def play(self, episode: Episode[list[str]], action: str) -> Outcome:
        type(self).steps += 1
        episode.state.append(action)
        if len(episode.state) == self.turns:
            return Outcome.solved("", {"outcome": float(action.count("a"))})
        return Outcome.move(f"<{''.join(episode.state)}>")


class WalkRenderer:
    """Every character is a token."""

    eos_id = 3
    pad_id = 0

    def open(self, instructions: str, observation: str) -> list[int]:
        return [ord(c) for c in instructions + observation]

    def observe(self, observation: str, action: Sequence[int] = ()) -> list[int]:
        return [ord(c) for c in observation]

    def write(self, action: str) -> list[int]:
        return [ord(c) for c in action]

    write_ended: Any = Renderer.write_ended

    def text(self, act_ids: Sequence[int]) -> str:
        return "".join(chr(i) for i in act_ids)

    action = text


class DiceEngine:
    """Samples ``1 .. width`` letters from the request's seed alone; entropies are random too."""

    version = 1
    max_context = 10_000
    vocabulary = 7

    def __init__(self, width: int = 3, delays: bool = False, rise: float = 1.0) -> None:
        self.width = width
        self.delays = delays
        self.rise = rise
        self.requests = 0
        self.top: list[int] = []

    async def generate(self, request: Request) -> Completion:
        self.requests += 1
        self.top.append(request.sampling.top_logprobs)
        rng = np.random.default_rng(request.seed)
        for _ in range(request.seed % 5 if self.delays else 0):
            await asyncio.sleep(0)
        n = min(int(rng.integers(1, self.width + 1)), request.sampling.max_tokens)
        ids = np.array([ord(LETTERS[i]) for i in rng.integers(len(LETTERS), size=n)], np.int64)
        k = request.sampling.top_logprobs
        return Completion(
            ids=ids,
            logprobs=-rng.random(n).astype(np.float32) - np.float32(0.1),
            entropies=(self.rise * rng.random(n)).astype(np.float32),
            stop="length",
            top_logprobs=np.full((n, k), np.log(1 / 7), np.float32) if k else None,
        )

    def release(self, cache: int | None) -> None:
        pass
