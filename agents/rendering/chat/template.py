"""A tokenizer's chat template, called in one way, and what stands around an observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ....envs.core.errors import BadValueError, MissingExtraError

Role = Literal["user", "tool"]
Message = dict[str, Any]
RULES = "rules "  # stands for instructions in sample dialogues
THINK, THOUGHT = "<think>", "</think>"
SHOWN = 'seen "this"\nand that'  # an observation with signs that a template might escape


class Around(NamedTuple):
    """What stands between an action and the next place to write."""

    before: str  # end of the assistant's message, header of the next one
    after: str  # end of that message, header of the assistant's
    eos_id: int


class ChatTemplate:
    """The chat template of a tokenizer.

    Args:
        tokenizer: A transformers tokenizer with a chat template.
        tools: JSON Schemas of tools, handed to the template.
        system: Put the instructions into a system message of their own.
        role: Role of observations after the first.

    Attributes:
        opens_thought: Whether the prompt already opens the thought that the model goes on with.
    """

    def __init__(
        self,
        tokenizer: Any,
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        system: bool = False,
        role: Role = "user",
    ) -> None:
        self._tokenizer = tokenizer
        self._tools = [dict(t) for t in tools]
        self._system = system
        self.role: Role = role
        self.opens_thought = False

    def look(self) -> None:
        """Find out whether the prompt opens a thought.

        Raises:
            BadValueError: The template refuses a first prompt.
        """
        self.opens_thought = self.opening(RULES, "first").rstrip().endswith(THINK)

    @property
    def head(self) -> str:
        """What the prompt has written of the assistant's message already."""
        first = self.opening(RULES, "first")
        return first[first.rindex(THINK) :] if self.opens_thought else ""

    def thinking(self, action: str, thought: str = "") -> str:
        """Return an action behind a thought, as a model writes it after the prompt."""
        opened = "" if self.opens_thought else f"{THINK}\n"
        return f"{opened}{thought}\n{THOUGHT}\n\n{action}"

    def render(self, messages: Sequence[Message], *, go_on: bool = True) -> str:
        """Return the text of messages; with ``go_on`` up to where the assistant writes next.

        Raises:
            BadValueError: The template refuses them.
            MissingExtraError: Jinja2 is not installed.
        """
        # Templates are programs of their own: they raise jinja2's errors and Python's.
        try:
            import jinja2  # only chat templates need it
        except ImportError as fault:
            raise MissingExtraError("a chat template", "jinja2", "train", fault) from fault

        try:
            return self._tokenizer.apply_chat_template(
                list(messages),
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
        """Return the ids of a rendered text; special tokens that it spells become themselves."""
        return [int(i) for i in self._tokenizer.encode(text, add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids for messages, special tokens spelled out."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def first_messages(self, instructions: str, observation: str) -> list[Message]:
        """Return the messages of the first prompt."""
        if self._system and instructions:
            return [
                {"role": "system", "content": instructions},
                {"role": "user", "content": observation},
            ]
        return [{"role": "user", "content": instructions + observation}]

    def opening(self, instructions: str, observation: str) -> str:
        """Text of the first prompt."""
        return self.render(self.first_messages(instructions, observation))

    def said(self, action: str) -> Message:
        """Return the assistant's message of what a model wrote after the prompt."""
        return {"role": "assistant", "content": self.head + action}

    def seen(self, observation: str) -> Message:
        """Return the message of an observation after the first."""
        return {"role": self.role, "content": observation}

    def around(self) -> Around:
        """Read the surroundings of an observation off a rendered dialogue.

        Raises:
            BadValueError: They cannot be read off, or an action could not end; says why.
        """
        messages = self.first_messages(RULES, "first")
        first = self.render(messages)
        action = self.thinking("reply", "hm") if self.opens_thought else "reply"
        second = self.render([*messages, self.said(action), self.seen(SHOWN)])
        if not second.startswith(first + action):
            raise BadValueError(
                "render: this chat template rewrites what came before when the dialogue goes on "
                f"(first prompt {first[-80:]!r}; the dialogue has "
                f"{second[max(0, len(first) - 80) : len(first) + 5]!r} there), so ids would not "
                "only grow. Use style='inline' or 'plain' (--render)."
            )
        rest = second[len(first) + len(action) :]
        if rest.count(SHOWN) != 1:
            raise BadValueError(
                "render: this chat template does not show an observation once and unchanged. "
                "Use style='inline' or 'plain' (--render)."
            )
        before, after = rest.split(SHOWN)
        ids = self.encode(before)
        special = set(self._tokenizer.all_special_ids) | {
            int(i) for i in getattr(self._tokenizer, "added_tokens_decoder", {})
        }
        ends = [i for i in ids if i in special]
        if not ends:
            raise BadValueError(
                "render: this chat template ends an assistant's message without a special token, "
                "so the model cannot end its turn. Use style='inline' or 'plain' (--render)."
            )
        return Around(before, after, ends[0])

    def marks(self, around: Around | None) -> str:
        """Return what stands around an observation: of the first one, without ``around``, after it.

        Raises:
            BadValueError: The template refuses a first prompt.
        """
        if around is not None:
            return around.before + around.after
        return self.opening(RULES, SHOWN).rpartition(SHOWN)[2]

    def written(self, message: Message) -> str:
        """Return what a model writes after the first prompt for the template to read this message.

        Read off a dialogue that goes on, as templates may show the last message in another way.

        Raises:
            BadValueError: The template refuses the message, or rewrites what is around it.
        """
        before, after, _ = self.around()
        messages = self.first_messages(RULES, "first")
        first, end = self.render(messages), before + SHOWN + after
        whole = self.render([*messages, message, self.seen(SHOWN)])
        if not (whole.startswith(first) and whole.endswith(end)):
            raise BadValueError("render: the chat template rewrites what is around a tool call.")
        return whole[len(first) : len(whole) - len(end)]
