"""Text to ids and back: the only file that knows chat templates.

A dialogue's ids only ever grow at the end. What was sampled stays as it was sampled; observations
are tokenised on their own and appended, nothing is decoded and tokenised again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..envs.errors import BadValueError, UnknownNameError
from .token_text import TokenText

Style = Literal["auto", "plain", "chat"]
Observations = Literal["messages", "inline"]
STYLES = ("auto", "plain", "chat")
OBSERVATIONS = ("messages", "inline")
_RULES = "rules "  # stands for instructions in sample dialogues


class Renderer(ABC):
    """Turns a dialogue into token ids that only grow.

    Attributes:
        eos_id: The id that ends an action: end of text, or a chat template's end of message.
        pad_id: The id that pads rows.
    """

    def __init__(self, tokenizer: Any, eos_id: int) -> None:
        self._text = TokenText(tokenizer)
        self.eos_id = eos_id
        self.pad_id = eos_id if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)
        self._ends = {eos_id, int(tokenizer.eos_token_id)}

    @abstractmethod
    def open(self, instructions: str, observation: str) -> list[int]:
        """Ids of the first prompt."""

    @abstractmethod
    def observe(self, observation: str, action: Sequence[int] = ()) -> list[int]:
        """Ids that are appended after an action.

        Args:
            observation: What the environment answered.
            action: Ids of the action before it. A chat message that the model closed itself (its
                last id is ``eos_id``) is not closed a second time.
        """

    def write(self, action: str) -> list[int]:
        """Ids of an action as a model would have written it, without an end-of-text token."""
        return self._text.encode(action)

    def text(self, act_ids: Sequence[int]) -> str:
        """Text of an action: exactly what the model wrote, a final end-of-text token left out."""
        ids = list(act_ids)
        if ids and int(ids[-1]) in self._ends:
            ids = ids[:-1]
        return self._text.decode(ids)


class PlainRenderer(Renderer):
    """For base models: the texts one after the other, each tokenised on its own.

    Args:
        tokenizer: Any transformers tokenizer; no special tokens are added.
    """

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer, _eos_of(tokenizer))
        self._tokenizer = tokenizer

    def open(self, instructions: str, observation: str) -> list[int]:
        """Ids of ``instructions + observation``."""
        text = instructions + observation
        return [int(i) for i in self._tokenizer.encode(text, add_special_tokens=False)]

    def observe(self, observation: str, action: Sequence[int] = ()) -> list[int]:  # noqa: ARG002
        """Ids of ``observation``."""
        return self._text.encode(observation)


class ChatRenderer(Renderer):
    """For tokenizers with a chat template.

    The first user message holds instructions and observation. With ``observations="messages"``
    every later observation is a message of its own, whose surroundings were read off the template
    by rendering sample dialogues; with ``"inline"`` the assistant's message simply goes on, as in
    Search-R1 (arXiv 2503.09516).

    Args:
        tokenizer: A transformers tokenizer with a chat template.
        observations: How observations after the first are shown.
        tools: JSON Schemas of tools, handed to the template.
        system: Put the instructions into a system message of their own.
        role: Role of later observations, ``"user"`` or ``"tool"``.

    Raises:
        BadValueError: The template cannot be used this way; the message says why.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        observations: Observations = "messages",
        tools: Sequence[Mapping[str, Any]] = (),
        system: bool = False,
        role: Literal["user", "tool"] = "user",
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise BadValueError(
                "render: the tokenizer has no chat template; use style='plain', or a tokenizer "
                "of a chat model."
            )
        if observations not in OBSERVATIONS:
            raise UnknownNameError("observations style", observations, OBSERVATIONS, "render")
        template = _Template(tokenizer, tuple(tools), system, role)
        self._template = template
        self._inline = observations == "inline"
        around = template.between_turns() if not self._inline else None
        super().__init__(tokenizer, around.eos_id if around else end_of_message(tokenizer))
        self._around = around
        template.render_open(_RULES, "observation")
        if around is not None:
            self._prove(around)

    def open(self, instructions: str, observation: str) -> list[int]:
        """Ids of the first prompt, up to where the assistant begins to write."""
        return self._template.encode(self._template.render_open(instructions, observation))

    def observe(self, observation: str, action: Sequence[int] = ()) -> list[int]:
        """Ids after an action: the end of its message, the observation, a new assistant turn."""
        if self._around is None:
            return self._text.encode(observation)
        ids = self._template.encode(self._around.before + observation + self._around.after)
        closed = len(action) > 0 and int(action[-1]) == self.eos_id
        return ids[ids.index(self.eos_id) + 1 :] if closed else ids

    def _prove(self, around: _Around) -> None:
        """Growing ids must equal the template's own rendering of a whole dialogue."""
        talk = self._template.dialogue(("first", "reply", "second", "again", "third"))
        whole = self._template.encode(talk)
        grown = self.open(_RULES, "first")
        for reply, seen in (("reply", "second"), ("again", "third")):
            act = self._text.encode(reply)
            open_way = self.observe(seen, act)
            end = open_way.index(around.eos_id)
            if open_way[end + 1 :] != self.observe(seen, [*act, around.eos_id]):
                raise BadValueError("render: this chat template's end of message is ambiguous.")
            grown += act + open_way
        if grown != whole:
            raise BadValueError(
                "render: with this chat template ids do not only grow (tokens merge across the "
                "borders of messages). Use observations='inline' or style='plain'."
            )


class _Around(NamedTuple):
    """What stands between an action and the next place to write."""

    before: str  # end of the assistant's message, header of the next one
    after: str  # end of that message, header of the assistant's
    eos_id: int


class _Template:
    """The chat template, called in one way."""

    def __init__(
        self, tokenizer: Any, tools: tuple[Mapping[str, Any], ...], system: bool, role: str
    ) -> None:
        self._tokenizer = tokenizer
        self._tools = [dict(t) for t in tools]
        self._system = system
        self._role = role

    def render(self, messages: list[dict[str, str]], *, go_on: bool = True) -> str:
        # Templates are programs of their own: they raise jinja2's errors and Python's.
        import jinja2  # only chat templates need it

        try:
            return self._tokenizer.apply_chat_template(
                messages,
                tools=self._tools or None,
                tokenize=False,
                add_generation_prompt=go_on,
            )
        except (jinja2.TemplateError, TypeError, ValueError, KeyError) as fault:
            roles = ", ".join(m["role"] for m in messages)
            raise BadValueError(
                f"render: the chat template refuses a dialogue of the roles {roles}: {fault}"
            ) from fault

    def encode(self, text: str) -> list[int]:
        return [int(i) for i in self._tokenizer.encode(text, add_special_tokens=False)]

    def render_open(self, instructions: str, observation: str) -> str:
        return self.render(self._opening(instructions, observation))

    def dialogue(self, texts: Sequence[str]) -> str:
        """Observation, action, observation, ... ending where the assistant writes next."""
        messages = self._opening(_RULES, texts[0])
        for i, text in enumerate(texts[1:]):
            messages.append({"role": self._role if i % 2 else "assistant", "content": text})
        return self.render(messages)

    def _opening(self, instructions: str, observation: str) -> list[dict[str, str]]:
        if self._system and instructions:
            return [
                {"role": "system", "content": instructions},
                {"role": "user", "content": observation},
            ]
        return [{"role": "user", "content": instructions + observation}]

    def between_turns(self) -> _Around:
        """Read the surroundings of an observation off a rendered dialogue."""
        first = self.dialogue(("first",))
        second = self.dialogue(("first", "reply", "second"))
        if not second.startswith(first + "reply"):
            raise BadValueError(
                "render: this chat template rewrites what came before when the dialogue goes on "
                f"(first prompt {first[-80:]!r}; the dialogue has "
                f"{second[max(0, len(first) - 80) : len(first) + 5]!r} there), so ids would not "
                "only grow. Use observations='inline' or style='plain'."
            )
        rest = second[len(first) + len("reply") :]
        if rest.count("second") != 1:
            raise BadValueError(
                "render: this chat template does not show an observation once and unchanged. "
                "Use observations='inline' or style='plain'."
            )
        before, after = rest.split("second")
        ids = self.encode(before)
        special = set(self._tokenizer.all_special_ids) | set(self._added())
        ends = [i for i in ids if i in special]
        if not ends:
            raise BadValueError(
                "render: this chat template ends an assistant's message without a special token, "
                "so the model cannot end its turn. Use observations='inline' or style='plain'."
            )
        return _Around(before, after, ends[0])

    def _added(self) -> list[int]:
        return [int(i) for i in getattr(self._tokenizer, "added_tokens_decoder", {})]


def _eos_of(tokenizer: Any) -> int:
    if tokenizer.eos_token_id is None:
        raise BadValueError(
            "render: the tokenizer has no end-of-text token, so an action could not end by "
            "itself; set tokenizer.eos_token."
        )
    return int(tokenizer.eos_token_id)


def end_of_message(tokenizer: Any) -> int:
    """The id that ends an assistant's message in the chat template, else the end-of-text id.

    Raises:
        BadValueError: The tokenizer has no end-of-text token.
    """
    eos = _eos_of(tokenizer)
    if not getattr(tokenizer, "chat_template", None):
        return eos
    try:
        return _Template(tokenizer, (), False, "user").between_turns().eos_id
    except BadValueError:
        return eos


def make_renderer(
    tokenizer: Any,
    style: Style = "auto",
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    observations: Observations = "messages",
    system: bool = False,
    role: Literal["user", "tool"] = "user",
) -> Renderer:
    """The renderer for a tokenizer.

    Args:
        tokenizer: Any transformers tokenizer.
        style: ``"plain"`` for base models, ``"chat"`` for the chat template; ``"auto"`` takes the
            template where there is one.
        tools: JSON Schemas of the world's tools (chat templates only).
        observations: See :class:`ChatRenderer`.
        system: See :class:`ChatRenderer`.
        role: See :class:`ChatRenderer`.

    Raises:
        UnknownNameError: No such style.
        BadValueError: The chat template cannot be used; the message says why.
    """
    if style not in STYLES:
        raise UnknownNameError("render style", style, STYLES)
    if style == "plain" or (style == "auto" and not getattr(tokenizer, "chat_template", None)):
        return PlainRenderer(tokenizer)
    return ChatRenderer(tokenizer, observations=observations, tools=tools, system=system, role=role)
