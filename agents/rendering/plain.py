"""What turns text into ids that only grow, and the renderer of base models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ...envs.core.errors import BadValueError
from .spelled_tokens import SpelledTokens
from .token_text import TokenText


class Renderer(ABC):
    """Turns a dialogue into token ids that only grow.

    Special tokens that an observation spells are characters: nobody but the template and the model
    opens or closes a message.

    Args:
        tokenizer: Any transformers tokenizer.
        eos_id: See below.
        around: What a template puts around an observation.

    Attributes:
        eos_id: The id that ends an action: end of text, or a chat template's end of message.
        pad_id: The id that pads rows.
    """

    def __init__(self, tokenizer: Any, eos_id: int, around: str = "") -> None:
        self._text = TokenText(tokenizer)
        self._ends = {eos_id, int(tokenizer.eos_token_id)}
        self._spelled_ends = [tokenizer.convert_ids_to_tokens(i) for i in sorted(self._ends)]
        self._spelled = SpelledTokens(tokenizer, self._text, around + "".join(self._spelled_ends))
        self.eos_id = eos_id
        self.pad_id = eos_id if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)

    @property
    def thinks_before_calls(self) -> bool:
        """Whether an action may have a thought of its own before its call."""
        return True

    @abstractmethod
    def open(self, instructions: str, observation: str) -> list[int]:
        """Return the ids of the first prompt."""

    def quote(self, text: str) -> str:
        """Return a text for :meth:`open`'s instructions whose special tokens are characters."""
        return self._spelled.hide(text)

    @abstractmethod
    def observe(self, observation: str, action: Sequence[int] = ()) -> list[int]:
        """Return the ids that are appended after an action.

        Args:
            observation: What the environment answered.
            action: Ids of the action before it. A chat message that the model closed itself (its
                last id is ``eos_id``) is not closed a second time.
        """

    def write(self, action: str) -> list[int]:
        """The ids of an action as a model would have written it, without an end-of-text token.

        One that the action spells is characters: the token would have ended the action.
        """
        return self._spelled.encode(
            self._spelled.hide(action, self._spelled_ends), self._text.encode
        )

    def write_ended(self, action: str, stop: tuple[str, ...]) -> list[int]:
        """The ids of an action with its end: end of text where no stop string ends what is written.

        A call that is a whole message ends as such, whatever the environment's own form ends with.
        """
        ids = self.write(action)
        return ids if self.text(ids).endswith(stop) else [*ids, self.eos_id]

    def text(self, act_ids: Sequence[int]) -> str:
        """Text of an action: exactly what the model wrote, a final end-of-text token left out."""
        ids = list(act_ids)
        if ids and int(ids[-1]) in self._ends:
            ids = ids[:-1]
        return self._text.decode(ids)

    def action(self, act_ids: Sequence[int]) -> str:
        """Return what the environment reads of an action: its text, with its own form of calls."""
        return self.text(act_ids)


class PlainRenderer(Renderer):
    """For base models: the texts one after the other, each tokenised on its own.

    A tokenizer that puts a begin-of-text token before every text (Gemma's, Llama's) has it before
    the first prompt too, once: such models have seen no text without it.

    Args:
        tokenizer: Any transformers tokenizer; no other special tokens are added.
    """

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer, eos_of(tokenizer))
        self._begin = begin_of_text(tokenizer)

    def open(self, instructions: str, observation: str) -> list[int]:
        """Return the ids of ``instructions + observation``, behind the begin-of-text token."""
        text = instructions + self._spelled.hide(observation)
        return [*self._begin, *self._spelled.encode(text, self._text.encode_first)]

    def observe(self, observation: str, action: Sequence[int] = ()) -> list[int]:  # noqa: ARG002
        """Return the ids of ``observation``."""
        return self._spelled.encode(self._spelled.hide(observation), self._text.encode)


def begin_of_text(tokenizer: Any) -> list[int]:
    """Return the begin-of-text id that a tokenizer puts before every text, or nothing."""
    bos = getattr(tokenizer, "bos_token_id", None)
    if bos is None:
        return []
    ids = tokenizer("a").input_ids
    return [int(bos)] if ids and int(ids[0]) == int(bos) else []


def eos_of(tokenizer: Any) -> int:
    """Return the end-of-text id.

    Raises:
        BadValueError: There is none.
    """
    if tokenizer.eos_token_id is None:
        raise BadValueError(
            "render: the tokenizer has no end-of-text token, so an action could not end by "
            "itself; set tokenizer.eos_token."
        )
    return int(tokenizer.eos_token_id)
