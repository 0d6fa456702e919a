"""A world that does what the action says, and an engine and renderer whose tokens are letters."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from turngym.agents.engines.base import Completion, Request
from turngym.envs.core.env import Episode, Outcome, SessionSwitch, TextEnv
from turngym.envs.core.errors import EnvFault
from turngym.envs.core.tasks import Task

EOS = 3


class Numbers:
    def sizes(self) -> Mapping[str, int | None]:
        return {"train": 50, "dev": 0, "test": 0}

    def task(self, split: str, index: int) -> Task[int]:
        return Task(f"{split}/{index}", split, index, index)

    def index_of(self, split: str, task_id: str) -> int | None:
        return None


@dataclass
class Said:
    words: list[str] = field(default_factory=list)


class Talk(TextEnv[Said, int]):
    """``s`` solves, ``f`` fails, ``b`` breaks, ``r`` opens a room, ``h`` goes home; tasks over 9
    cannot begin."""

    instructions = "Say."
    stop = (".",)
    resets = 0

    def __init__(self, max_turns: int = 6, barrier: threading.Barrier | None = None) -> None:
        super().__init__(source=Numbers(), max_turns=max_turns)
        self.barrier = barrier
        self.blocking = barrier is not None

    def begin(self, task: Task[int], random: Any) -> tuple[Said, str]:
        type(self).resets += 1
        if task.index > 9:
            raise EnvFault("no connection")
        return Said(), f"t{task.index}:"

    def play(self, episode: Episode[Said], action: str) -> Outcome:
        if self.barrier is not None:
            self.barrier.wait(timeout=20)
        world = episode.state
        world.words.append(action)
        word = action.rstrip(".")
        if word == "b":
            raise EnvFault("broken")
        if word == "s":
            return Outcome.solved("", {"outcome": 1.0}, verdict=1)
        if word == "f":
            return Outcome.failed("", {"outcome": -0.5, "style": 0.25}, verdict=-1)
        if word == "r":
            session = 1 + max(episode.session, sum(w == "r." for w in world.words[:-1]))
            return Outcome.move("room:", session=SessionSwitch(session, episode.session))
        if word == "h":
            return Outcome.move("home:", session=SessionSwitch(0, None))
        return Outcome.move(f"[{word}]", {"talk": 0.125})

    def metrics(self, episode: Episode[Said]) -> Mapping[str, float]:
        return {"words": float(len(episode.state.words))}


class LetterRenderer:
    """A token per character."""

    eos_id = EOS
    pad_id = 0

    def open(self, instructions: str, observation: str) -> list[int]:
        return self.observe(instructions + observation)

    def observe(self, observation: str, action: Sequence[int] = ()) -> list[int]:
        return [ord(c) for c in observation]

    def text(self, act_ids: Sequence[int]) -> str:
        return "".join(chr(i) for i in act_ids if i != EOS)

    action = text


class ScriptEngine:
    """Answers by a script, or with words drawn from the request's seed; keeps books of caches.

    Args:
        script: Actions in the order in which they are asked for; None draws words.
        delays: Seed of random waits, so that requests overtake each other.
        words: What is drawn from.
    """

    def __init__(
        self,
        script: Sequence[str] | None = None,
        delays: int = 0,
        max_context: int = 400,
        words: Sequence[str] = ("s.", "f.", "x.", "yy.", "z."),
    ) -> None:
        self.words = words
        self.script = list(script) if script is not None else None
        self.waits = np.random.default_rng(delays)
        self.max_context = max_context
        self.version = 7
        self.vocabulary = 128
        self.requests: list[Request] = []
        self.alive: set[int] = set()
        self.handles = 0

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        if request.cache is not None:
            assert request.cache in self.alive
        if self.script is not None:
            text = self.script.pop(0)
        else:
            rng = np.random.default_rng(request.seed)
            text = self.words[rng.integers(len(self.words))]
            for _ in range(int(self.waits.integers(4))):
                await asyncio.sleep(0)
        ids = np.array([ord(c) for c in text][: request.sampling.max_tokens], np.int64)
        self.handles += 1
        self.alive.add(self.handles)
        return Completion(
            ids=ids,
            logprobs=np.full(len(ids), -0.5, np.float32),
            entropies=np.full(len(ids), 0.75, np.float32),
            stop="stop" if chr(ids[-1]) == "." else "length",
            cache=self.handles,
        )

    def release(self, cache: int | None) -> None:
        self.alive.remove(cache)  # pyright: ignore[reportArgumentType]
