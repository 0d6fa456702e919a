"""Text in, text out: what a prompting agent needs of a model, wherever the model runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

Role = Literal["user", "assistant"]
Ending = Literal["stop", "end", "length"]


class Message(NamedTuple):
    """One message of a dialogue; the first is the user's, then the roles alternate."""

    role: Role
    content: str


Prompt = str | Sequence[Message]
"""A text that the model continues, or a dialogue that it answers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """What a model wrote.

    Attributes:
        text: Its words; a stop string that ended them stands at their end.
        prompt_tokens: Tokens that the model read; None where a server does not say.
        completion_tokens: Tokens that it wrote; None where a server does not say.
        stop_reason: A stop string, the model's own end, or the length limit.
    """

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    stop_reason: Ending


class TextModel(Protocol):
    """A language model that completes texts or answers dialogues."""

    @property
    def continues(self) -> bool:
        """Whether it takes a plain text to continue; else dialogues only."""
        ...

    async def complete(
        self,
        prompt: Prompt,
        *,
        stop: Sequence[str] = (),
        max_tokens: int,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Completed:
        """Write until a stop string, the model's own end, or ``max_tokens`` tokens.

        Raises:
            ContextFullError: The prompt leaves no room to write.
            EndpointError: A server refuses, or does not answer.
        """
        ...

    async def close(self) -> None:
        """Give connections back; a later :meth:`complete` opens new ones."""
        ...


def flat(messages: Sequence[Message]) -> str:
    """Return a dialogue as one text, for models that know no messages."""
    return "\n\n".join(message.content.strip("\n") for message in messages) + "\n"


def restored(text: str, stop: Sequence[str], before: str = "") -> str:
    """``text`` with the stop string that a server cut off, where it can be told.

    A server that says only "stop" leaves open whether a stop string or the model's own end came.
    A closing mark (``</search>``, ``<|end_x|>``) is put back when its opening mark stands open.

    Args:
        text: What the server sent.
        stop: The stop strings that it was given.
        before: The end of the prompt, where it is the beginning of the same text.
    """
    if any(text.endswith(mark) for mark in stop):
        return text
    whole = before + text
    best, found = -1, ""
    for mark in stop:
        opening = _opening(mark)
        at = whole.rfind(opening) if opening else -1
        if at > max(best, whole.rfind(mark)):
            best, found = at, mark
    return text + found


def _opening(mark: str) -> str:
    """Return the mark that ``mark`` closes; empty when it closes none."""
    if mark.startswith("</"):
        return "<" + mark[2:]
    if mark.startswith("<|end_"):
        return "<|begin_" + mark[len("<|end_") :]
    return ""
