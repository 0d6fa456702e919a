"""A model that says what a test wrote down, and a small world to search in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

import turngym.envs  # noqa: F401 - registers
from turngym.agents.prompting import Agent, Completed, Limits, Message, Prompt, PromptedEpisode

PLACES = ("Aral", "Brno", "Cork", "Doha", "Erie")
QUESTION = "Which river flows past the town of Cork?"


class FakeModel:
    """Says ``replies`` one after the other, cut at the first stop string like a real one."""

    def __init__(self, *replies: str, continues: bool = True) -> None:
        self.replies = list(replies)
        self.continues = continues
        self.prompts: list[Prompt] = []
        self.asked: list[dict[str, Any]] = []
        self.closed = 0

    async def complete(
        self,
        prompt: Prompt,
        *,
        stop: Sequence[str] = (),
        max_tokens: int,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Completed:
        assert self.replies, f"asked once more than the test expected: {prompt}"
        if not isinstance(prompt, str):
            prompt = list(prompt)
            roles = [m.role for m in prompt]
            assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
            assert all(m.content.strip() for m in prompt)
        self.prompts.append(prompt)
        self.asked.append({"stop": tuple(stop), "max_tokens": max_tokens, "seed": seed})
        text = self.replies.pop(0)
        ends = [text.index(s) + len(s) for s in stop if s in text]
        return Completed(
            text=text[: min(ends)] if ends else text,
            prompt_tokens=10,
            completion_tokens=2,
            stop_reason="stop" if ends else "end",
        )

    async def close(self) -> None:
        self.closed += 1

    def last(self, i: int = -1) -> str:
        """The end of a prompt: its last message, or the text."""
        prompt = self.prompts[i]
        return prompt if isinstance(prompt, str) else prompt[-1].content


def write_world(folder: Path) -> dict[str, str]:
    """Settings of a world of five passages and one question per town."""
    corpus, questions = folder / "corpus.jsonl", folder / "questions.jsonl"
    corpus.write_text(
        "".join(
            json.dumps({"id": p, "contents": f'"{p}"\nThe town of {p} lies by the river R{i}.'})
            + "\n"
            for i, p in enumerate(PLACES)
        )
    )
    questions.write_text(
        "".join(
            json.dumps(
                {
                    "id": p,
                    "question": QUESTION.replace("Cork", p),
                    "golden_answers": [f"R{i}"],
                }
            )
            + "\n"
            for i, p in enumerate(PLACES)
        )
    )
    return {"data": str(questions), "corpus": str(corpus), "prompt": "none"}


def make_world(folder: Path, **settings: Any) -> gym.Env[Any, Any]:
    return gym.make("SearchQA-v0", **{**write_world(folder), "top_k": 2, **settings})


def play(
    agent: Agent, model: FakeModel, env: gym.Env[Any, Any], task: int = 2, **limits: Any
) -> PromptedEpisode:
    """One episode; every reply that was written down must have been asked for."""

    async def episode() -> PromptedEpisode:
        episode = await PromptedEpisode.open(
            env, model, limits=Limits(**limits), seed=5, options={"split": "train", "task": task}
        )
        await agent(episode)
        return episode

    episode = asyncio.run(episode())
    assert episode.over
    assert model.replies == []
    return episode


def actions(episode: PromptedEpisode) -> list[str]:
    return [e["action"] for e in episode.events if e["event"] == "step"]


def user(text: str) -> Message:
    return Message("user", text)
