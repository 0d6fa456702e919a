"""The proof that ids only grow: sample dialogues, rendered by the template and by appending.

A renderer appends to what was sampled; a model was trained on what its template renders. Both must
be the same ids, for every turn of every sample: plain talk, thoughts, tool calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ....envs.core.errors import BadValueError
from .calls import call_message, sample_call, written_call
from .template import RULES, THINK, ChatTemplate, Message

_SEEN = ("first", 'second, "quoted"', "third\nline", "fourth")
_WINDOW = 12
_THOUGHT = "let me look"


class Growing(Protocol):
    """The part of a renderer that is proved."""

    def open(self, instructions: str, observation: str) -> list[int]:
        """Return the ids of the first prompt."""
        ...

    def observe(self, observation: str, action: Sequence[int] = ()) -> list[int]:
        """Return the ids after an action."""
        ...


class Said(NamedTuple):
    """One action of a sample: what the model wrote, and the message that a template makes of it."""

    text: str
    message: Message


class Sample(NamedTuple):
    """A dialogue: first prompt, then actions with observations after them."""

    name: str
    turns: tuple[Said, ...]


def samples(template: ChatTemplate, tools: Sequence[Mapping[str, Any]]) -> list[Sample]:
    """Return the dialogues that a template is tried on."""

    def say(text: str) -> Said:
        return Said(text, template.said(text))

    thoughts = [say(template.thinking(f"reply {i}", f"let me see {i}")) for i in range(3)]
    found = [Sample("thoughts", tuple(thoughts))]
    if not template.opens_thought:
        plain = [say(text) for text in ("reply", "again", "once more")]
        found.insert(0, Sample("plain turns", tuple(plain)))
        found.append(Sample("thoughts now and then", (thoughts[0], plain[0], thoughts[1])))
    if tools:
        found += _with_calls(template, tools)
    return found


def _with_calls(template: ChatTemplate, tools: Sequence[Mapping[str, Any]]) -> list[Sample]:
    name, arguments = sample_call(tools)

    def call(thought: str) -> Said | None:
        written = written_call(template, name, arguments, thought)
        before = template.head + template.thinking("", thought) if thought else ""
        return None if written is None else Said(written, call_message(name, arguments, before))

    found = []
    plain, thinking = None if template.opens_thought else call(""), call(_THOUGHT)
    if plain:
        found.append(Sample("tool calls", (plain, Said("reply", template.said("reply")), plain)))
    if thinking and _THOUGHT in thinking.text:
        found.append(Sample("thoughts before tool calls", (thinking, thinking)))
    return found


def prove(
    renderer: Growing, template: ChatTemplate, tools: Sequence[Mapping[str, Any]], eos_id: int
) -> None:
    """Compare growing ids with the template's own, after every turn of every sample.

    Args:
        renderer: Appends ids.
        template: Renders whole dialogues.
        tools: The environment's tools.
        eos_id: Ends an assistant's message.

    Raises:
        BadValueError: They differ; says in which dialogue, where first, and shows both texts.
    """
    for sample in samples(template, tools):
        messages = template.first_messages(RULES, _SEEN[0])
        grown = renderer.open(RULES, _SEEN[0])
        _same(grown, template.encode(template.render(messages)), template, sample.name)
        for said, shown in zip(sample.turns, _SEEN[1:], strict=False):
            act = template.encode(said.text)
            more = renderer.observe(shown, act)
            end = more.index(eos_id)
            if more[end + 1 :] != renderer.observe(shown, [*act, eos_id]):
                raise BadValueError("render: this chat template's end of message is ambiguous.")
            grown = grown + act + more
            messages = [*messages, said.message, template.seen(shown)]
            whole = template.encode(template.render(messages))
            _same(grown, whole, template, sample.name)


def _same(grown: list[int], whole: list[int], template: ChatTemplate, name: str) -> None:
    if grown == whole:
        return
    pairs = zip(grown, whole, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(grown), len(whole)))
    near = slice(max(0, at - _WINDOW), at + _WINDOW)
    ours, theirs = template.decode(grown[near]), template.decode(whole[near])
    why = "rewrites what came before"
    if THINK in ours and THINK not in theirs:
        why = "rewrites what came before: it drops thoughts of earlier turns"
    raise BadValueError(
        f"render: this chat template {why}, so ids do not only grow. In the sample dialogue "
        f"{name!r} (role {template.role!r} for observations) they differ first at position {at}: "
        f"what was written is {ours!r}, the template renders {theirs!r}. What is trained would not "
        "be what the model is used to. Use style='inline' or 'plain' (--render), or a "
        "template that keeps earlier messages as they were."
    )
