"""The renderer for tokenizers with a chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ....envs.core.errors import BadValueError, UnknownNameError
from ..plain import Renderer, eos_of
from .calls import Calls, form_of, from_env_call, sample_call, to_env_call, written_call
from .proof import prove
from .template import THINK, THOUGHT, Around, ChatTemplate, Role

Observations = Literal["messages", "inline"]
OBSERVATIONS = ("messages", "inline")
ROLES = ("auto", "user", "tool")


class ChatRenderer(Renderer):
    """For tokenizers with a chat template.

    The first user message holds instructions and observation. With ``observations="messages"``
    every later observation is a message of its own, whose surroundings were read off the template
    by rendering sample dialogues; with ``"inline"`` the assistant's message simply goes on, as in
    Search-R1 (arXiv 2503.09516).

    What the model wrote stays as it was sampled, thoughts included. That this is what the template
    would have rendered is proved when the renderer is made.

    Args:
        tokenizer: A transformers tokenizer with a chat template.
        observations: How observations after the first are shown.
        tools: JSON Schemas of tools, handed to the template.
        system: Put the instructions into a system message of their own.
        role: Role of later observations; ``"auto"`` takes ``"user"`` where ids then only grow, else
            ``"tool"`` (templates of Qwen3's kind keep thoughts across tool messages alone).

    Attributes:
        role: The role of later observations.

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
        role: Role | Literal["auto"] = "auto",
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise BadValueError(
                "render: the tokenizer has no chat template; use style='plain', or a tokenizer "
                "of a chat model."
            )
        if observations not in OBSERVATIONS:
            raise UnknownNameError("observations style", observations, OBSERVATIONS, "render")
        if role not in ROLES:
            raise UnknownNameError("role of observations", role, ROLES, "render")
        self._inline = observations == "inline"
        self._tools = tuple(tools)
        roles: tuple[Role, ...] = ("user", "tool") if role == "auto" else (role,)
        refusal: BadValueError | None = None
        for one in roles[:1] if self._inline else roles:
            try:
                self._settle(tokenizer, ChatTemplate(tokenizer, tools, system=system, role=one))
                break
            except BadValueError as fault:
                refusal = refusal or fault
        else:
            assert refusal is not None
            raise refusal

    def _settle(self, tokenizer: Any, template: ChatTemplate) -> None:
        template.look()
        around = None if self._inline else template.around()
        eos_id = around.eos_id if around else end_of_message(tokenizer)
        super().__init__(tokenizer, eos_id, template.marks(around))
        self._template, self._around = template, around
        self.role: Role = template.role
        # inside one long message only the first action stands behind the prompt
        self._opened = template.head
        self._head = "" if self._inline else self._opened
        self._calls: Calls = self._form_of_calls()
        if around is not None:
            prove(self, template, self._tools, around.eos_id)

    def _form_of_calls(self) -> Calls:
        """Return how this model writes calls.

        The environment's own way where there are no tools.
        """
        if not self._tools or self._head:  # templates that open thoughts write Hermes' calls
            return "tags"
        return form_of(written_call(self._template, *sample_call(self._tools)))

    @property
    def thinks_before_calls(self) -> bool:
        """Whether an action may have a thought of its own before its call.

        Not where the whole message is the call, or :meth:`write` puts a thought there anyway.
        """
        return self._calls == "tags" and not self._head

    def open(self, instructions: str, observation: str) -> list[int]:
        """Return the ids of the first prompt, up to where the assistant begins to write."""
        text = self._template.opening(instructions, self._spelled.hide(observation))
        return self._spelled.encode(text, self._template.encode)

    def observe(self, observation: str, action: Sequence[int] = ()) -> list[int]:
        """The ids after an action: its message's end, the observation, a new assistant turn."""
        shown = self._spelled.hide(observation)
        if self._around is None:
            return self._spelled.encode(shown, self._text.encode)
        text = self._around.before + shown + self._around.after
        ids = self._spelled.encode(text, self._template.encode)
        closed = len(action) > 0 and int(action[-1]) == self.eos_id
        return ids[ids.index(self.eos_id) + 1 :] if closed else ids

    def write(self, action: str) -> list[int]:
        """Return the ids of an action of the environment as this model would have written it.

        A call takes the template's form, and a thought that the prompt opens is closed first.
        """
        text = from_env_call(action, self._calls)
        return super().write(self._template.thinking(text) if self._head else text)

    def action(self, act_ids: Sequence[int]) -> str:
        """What the environment reads: text with the thought's opening, a call in its own form.

        Inside one long message that is where the action closes a thought that it did not open.
        """
        text = self.text(act_ids)
        closes = self._inline and THOUGHT in text.partition(THINK)[0]
        return (self._opened if closes else self._head) + to_env_call(text, self._calls)


def end_of_message(tokenizer: Any) -> int:
    """Return the id that ends an assistant's message in the chat template, else the end-of-text id.

    Raises:
        BadValueError: The tokenizer has no end-of-text token.
    """
    eos = eos_of(tokenizer)
    if not getattr(tokenizer, "chat_template", None):
        return eos
    for role in ("user", "tool"):
        template = ChatTemplate(tokenizer, role=role)
        try:
            template.look()
            return template.around().eos_id
        except BadValueError:
            continue
    return eos


__all__ = ["Around", "ChatRenderer", "Observations", "end_of_message"]
