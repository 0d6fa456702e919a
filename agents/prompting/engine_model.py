"""A local engine as a text model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...envs.core.errors import BadValueError
from ..engines.base import Engine, Request, Sampling, sample
from ..rendering.factory import PlainRenderer, Renderer, Style, make_renderer
from .text_model import Completed, Ending, Prompt, flat

_ENDINGS: dict[str, Ending] = {"stop": "stop", "eos": "end", "length": "length"}


class EngineModel:
    """Text to ids, an engine, and back.

    A dialogue goes through the tokenizer's chat template; where a template takes back what it
    showed (it drops earlier thoughts), later messages go on inside the assistant's first one. A
    tokenizer without a template gets the messages one after the other.

    Args:
        engine: Samples.
        tokenizer: The engine's tokenizer.
        style: As for :func:`~turngym.agents.rendering.factory.make_renderer`.
    """

    continues = True

    def __init__(self, engine: Engine, tokenizer: Any, style: Style = "auto") -> None:
        self._engine = engine
        self._plain = PlainRenderer(tokenizer)
        self._talk, self._inline = _renderer(tokenizer, style)

    @property
    def chats(self) -> bool:
        """Whether dialogues go through a chat template."""
        return not isinstance(self._talk, PlainRenderer)

    async def complete(
        self,
        prompt: Prompt,
        *,
        stop: Sequence[str] = (),
        max_tokens: int,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Completed:
        """See :class:`~turngym.agents.prompting.text_model.TextModel`."""
        ids = self._ids(prompt)
        sampling = Sampling(max_tokens=max_tokens, temperature=temperature, stop=tuple(stop))
        done = await sample(self._engine, Request(ids=ids, sampling=sampling, seed=seed))
        self._engine.release(done.cache)
        return Completed(
            text=self._talk.text(done.written),
            prompt_tokens=len(ids),
            completion_tokens=len(done.ids),
            stop_reason=_ENDINGS[done.stop],
        )

    async def close(self) -> None:
        """Nothing to give back: the engine belongs to who made it."""

    def _ids(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return self._plain.open("", prompt)
        if not self.chats:
            return self._plain.open("", flat(prompt))
        ids = self._talk.open("", prompt[0].content)
        for reply, seen in zip(prompt[1::2], prompt[2::2], strict=True):
            wrote = self._talk.write(reply.content)
            shown = f"\n\n{seen.content}\n\n" if self._inline else seen.content
            ids += wrote + self._talk.observe(shown, wrote)
        return ids


def _renderer(tokenizer: Any, style: Style) -> tuple[Renderer, bool]:
    """Return the renderer of dialogues, and whether it writes later messages inside the first."""
    try:
        return make_renderer(tokenizer, style), False
    except BadValueError:
        if style == "plain" or not getattr(tokenizer, "chat_template", None):
            raise
        return make_renderer(tokenizer, "chat", observations="inline"), True
