"""A local engine as a text model: what the model is shown, with and without a chat template."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.small_models import CHATML, LLAMA3, NO_END, THINKING, byte_level

from turngym.agents.engines.base import Completion, Request
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.prompting import EngineModel, Message
from turngym.envs.core.errors import BadValueError

TALK = [Message("user", "first"), Message("assistant", "reply"), Message("user", "second")]


class EchoEngine:
    """Notes what it is asked and says the same ids each time."""

    version, max_context, vocabulary = 0, 4096, 420

    def __init__(self, ids: Sequence[int], stop: Any = "eos") -> None:
        self.ids = np.asarray(ids)
        self.stop = stop
        self.requests: list[Request] = []
        self.released: list[int | None] = []

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        floats = np.zeros(len(self.ids), np.float32)
        return Completion(
            ids=self.ids, logprobs=floats, entropies=floats, stop=self.stop, cache=len(self.ids)
        )

    def release(self, cache: int | None) -> None:
        self.released.append(cache)


def asked(template: str | None, prompt: Any, **settings: Any) -> tuple[str, Any, EchoEngine]:
    tokenizer = byte_level(template)
    engine = EchoEngine([*tokenizer.encode("said"), tokenizer.eos_token_id])
    model = EngineModel(engine, tokenizer, **settings)
    done = asyncio.run(model.complete(prompt, stop=("x",), max_tokens=9, seed=4))
    asyncio.run(model.close())
    return tokenizer.decode(engine.requests[0].ids), done, engine


def test_a_text_goes_in_as_it_is_whatever_the_template() -> None:
    for template in (None, CHATML):
        shown, done, engine = asked(template, "Question: a\n<answer>")
        assert shown == "Question: a\n<answer>"
        assert done.text == "said"  # without the end-of-text token
        assert done.stop_reason == "end"
        assert done.prompt_tokens == len(engine.requests[0].ids)
        assert done.completion_tokens == len(engine.ids)
        assert engine.released == [len(engine.ids)]
        (request,) = engine.requests
        assert request.seed == 4
        assert request.sampling.stop == ("x",)
        assert request.sampling.max_tokens == 9


def test_another_end_of_text_token_is_no_text_either() -> None:
    tokenizer = byte_level(None)
    other = tokenizer.encode("!")
    engine = EchoEngine([*tokenizer.encode("said"), *other])
    done = asyncio.run(EngineModel(engine, tokenizer).complete("x", max_tokens=9))
    assert done.text == "said"


@pytest.mark.parametrize("template", [CHATML, LLAMA3, THINKING])
def test_a_dialogue_goes_through_the_template(template: str) -> None:
    shown, _, _ = asked(template, TALK)
    messages = [m._asdict() for m in TALK]
    tokenizer = byte_level(template)
    want = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    if template != THINKING:
        assert shown == want
    for word in ("first", "reply", "second"):
        assert shown.count(word) == 1


def test_a_template_that_cannot_grow_goes_on_inside() -> None:
    shown, _, _ = asked(NO_END, TALK)
    assert shown == "user: first\nassistant: reply\n\nsecond\n\n"


def test_without_a_template_the_messages_follow_one_another() -> None:
    shown, _, _ = asked(None, TALK)
    assert shown == "first\n\nreply\n\nsecond\n"
    assert not EngineModel(EchoEngine([3]), byte_level()).chats
    assert EngineModel(EchoEngine([3]), byte_level(CHATML)).chats
    shown, _, _ = asked(CHATML, TALK, style="plain")
    assert shown == "first\n\nreply\n\nsecond\n"
    with pytest.raises(BadValueError, match="no chat template"):
        EngineModel(EchoEngine([3]), byte_level(), style="chat")


def test_a_real_engine_writes_the_same_again_and_stops(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    model = EngineModel(
        TransformersEngine(load_model(tiny_model, device="cpu"), tokenizer), tokenizer
    )

    async def three() -> list[Any]:
        return [
            await model.complete(p, max_tokens=5, temperature=1.0, seed=s)
            for p, s in (("a", 1), ("a", 1), (TALK, 2))
        ]

    one, two, other = asyncio.run(three())
    assert one == two
    assert one.completion_tokens <= 5
    assert other.prompt_tokens > one.prompt_tokens
    with pytest.raises(BadValueError, match="context"):
        asyncio.run(model.complete("word " * 600, max_tokens=5))
