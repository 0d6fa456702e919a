"""ReAct: thoughts, actions and observations in turn (arXiv 2210.03629)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from . import tags
from .episode import Dialect, PromptedEpisode
from .examples import FORM, REACT, shown
from .parsing import short_answer, spoken
from .text_model import Message

STOPS = ("Observation:",)
PATIENCE = 2
"""Unreadable replies in an episode before it is told to finish."""
_ACTION = re.compile(
    r"(?:^|\n)\W*action\s*\d*\s*:?\W*?(search|finish|answer)\b\s*([\[(:])\s*", re.IGNORECASE
)
_BARE = re.compile(r"\b(search|finish)\s*([\[(])\s*", re.IGNORECASE)
_CLOSES = {"]": "[", ")": "("}
INTRO = (
    "Answer the question by thinking and searching in turn. Each time, write a line 'Thought:' and "
    "then a line 'Action:'. There are two actions: Search[query] looks passages up and shows them "
    f"to you as an observation; Finish[answer] ends the task. {FORM} Write one thought and one "
    "action, then wait for the observation."
)
UNREADABLE = "The action could not be read. Write Action: Search[query] or Action: Finish[answer]."
LAST = "No search is left. Write one last line, Action: Finish[your answer]."


class Step(NamedTuple):
    """An action that was read."""

    kind: Literal["search", "finish"]
    content: str


@dataclass(frozen=True, kw_only=True)
class React:
    """Writes a thought and an action, sees an observation, and so on until it finishes.

    Paper: Yao et al., arXiv 2210.03629.

    Differs from the paper: two examples of our own instead of six; one search over passages in
    place of a page's first sentences, so there is no Lookup; the dialogue goes to chat models as
    messages. Broken lines are read leniently (missing brackets, other case); what cannot be read
    costs a model call but no turn of the environment, and the third such reply must finish. In the
    dialect ``"tags"`` thoughts and actions are the environment's own: free text, ``<search>``,
    ``<answer>``; a broken one is answered by the environment and costs a turn.

    Attributes:
        dialect: See :class:`~turngym.agents.prompting.episode.Agent`.
    """

    dialect: Dialect = "chat"

    async def __call__(self, episode: PromptedEpisode) -> None:
        """Alternate until the answer."""
        if self.dialect == "tags":
            while not episode.over and episode.searches_left:
                await episode.act(await tags.free(episode))
            if not episode.over:
                await tags.finish(episode)
            return
        talk = shown(INTRO, REACT, f"Question: {episode.question}")
        broken = 0
        while episode.searches_left and broken <= PATIENCE:
            reply = await self._ask(episode, talk)
            step = read_step(reply)
            if step is None:
                broken += 1
                talk += self._exchange(reply, UNREADABLE)
            elif step.kind == "finish":
                await episode.answer(step.content)
                return
            else:
                talk += self._exchange(reply, await episode.search(step.content))
        seen = talk.pop().content
        talk.append(Message("user", f"{seen}\n{LAST}"))
        reply = await self._ask(episode, talk)
        step = read_step(reply)
        if step is not None and step.kind == "finish":
            await episode.answer(step.content)
        else:
            first = _ACTION.search(reply)
            await episode.answer(short_answer(reply[: first.start()] if first else reply))

    async def _ask(self, episode: PromptedEpisode, talk: list[Message]) -> str:
        reply = spoken(await episode.ask(talk, STOPS))
        reply = reply.split("Observation:", 1)[0].strip()
        first = _ACTION.search(reply)  # what it wrote after that, it wrote without an observation
        return reply[: _content(reply, first)[1]].strip() if first else reply

    def _exchange(self, reply: str, observation: str) -> list[Message]:
        return [
            Message("assistant", reply or "Thought:"),
            Message("user", f"Observation: {observation or 'nothing found'}"),
        ]


def read_step(text: str) -> Step | None:
    """Return the first action in a reply; None when there is none, or a search for nothing."""
    found = _ACTION.search(text) or _BARE.search(text)
    if found is None:
        return None
    content = _content(text, found)[0].strip("\"'“”").strip()
    if found[1].lower() != "search":
        return Step("finish", content)
    return Step("search", content) if content else None


def _content(text: str, found: re.Match[str]) -> tuple[str, int]:
    """Return what stands in an action, and where the action ends.

    That is at the bracket that closes the action's own, not one that was opened inside; at the
    line's end where there is none.
    """
    line = text[found.end() :].partition("\n")[0]
    opened = [found[2]]
    for place, letter in enumerate(line):
        if letter in _CLOSES.values():
            opened.append(letter)
        elif letter in _CLOSES:
            if _CLOSES[letter] in opened:
                while opened.pop() != _CLOSES[letter]:
                    pass
            elif len(opened) == 1:
                opened.clear()
            if not opened:
                return line[:place].strip(), found.end() + place + 1
    return line.strip(), found.end() + len(line)
