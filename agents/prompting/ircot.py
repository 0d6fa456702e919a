"""IRCoT: one sentence of reasoning, one retrieval with it, and so on (arXiv 2212.10509)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...envs.core.errors import BadValueError
from . import tags
from .episode import Dialect, PromptedEpisode, each_passage
from .examples import ANTHEM, MARROWICK, VINT, shown
from .parsing import concludes, first_sentence, spoken
from .rag import read_and_answer

INTRO = (
    "You reason about a question, one sentence at a time, with the help of passages. Write the "
    "next sentence only: one fact that leads on to the answer. When you know the answer, write "
    "'So the answer is: ...' instead."
)

SENTENCE_TOKENS = 160
"""Maximum tokens of a sentence, where the limits allow more."""


@dataclass(frozen=True, kw_only=True)
class Ircot:
    """Interleaves chain of thought and retrieval.

    The question is searched first. Then, round by round, the model writes the next sentence of its
    reasoning from all passages so far, and that sentence is the next query. It ends when a sentence
    says "answer is", comes again or is empty, or when only the turn of the answer is left; a reader
    then answers from all passages.

    Paper: Trivedi et al., arXiv 2212.10509.

    Differs from the paper: the environment's turn limit (4 searches by default) stands for its
    limits of 8 steps and 15 paragraphs; an example of our own; the reader is prompted without
    examples. In the dialect ``"tags"`` the "sentence" is the query that a small model writes in
    ``<search>`` (forced in the first round and whenever it writes neither tag), the question itself
    is not searched, and its own ``<answer>`` ends the rounds.

    Attributes:
        dialect: See :class:`~turngym.agents.prompting.episode.Agent`.
        rounds: Maximum number of searches; the environment's turn limit may allow fewer.
        keep: Maximum number of distinct passages that the prompts show, the first ones found.
    """

    dialect: Dialect = "chat"
    rounds: int = 8
    keep: int = 15

    def __post_init__(self) -> None:
        for name in ("rounds", "keep"):
            if getattr(self, name) < 1:
                raise BadValueError(f"Ircot.{name} is {getattr(self, name)}; expected at least 1.")

    async def __call__(self, episode: PromptedEpisode) -> None:
        """Alternate, then read."""
        if self.dialect == "tags":
            await self._tags(episode)
            return
        found: list[str] = []
        chain: list[str] = []
        query = episode.question
        while episode.searches_left and episode.usage.tool_calls < self.rounds:
            self._collect(found, await episode.search(query))
            query = await self._sentence(episode, found, chain)
            if not query or query in chain:
                break
            chain.append(query)
            if concludes(query):
                break
        await read_and_answer(episode, "\n".join(found))

    async def _sentence(self, episode: PromptedEpisode, found: list[str], chain: list[str]) -> str:
        talk = shown(INTRO, EXAMPLES, _task("\n".join(found), episode.question, chain))
        reply = spoken(await episode.ask(talk, (), SENTENCE_TOKENS))
        return first_sentence(reply.removeprefix(f"Sentence {len(chain) + 1}:"))

    def _collect(self, found: list[str], text: str) -> None:
        """Add new passages, their numbers in the result left out."""
        for passage in each_passage(text):
            if passage not in found and len(found) < self.keep:
                found.append(passage)

    async def _tags(self, episode: PromptedEpisode) -> None:
        asked: list[str] = []
        action = await tags.forced(episode, "search")
        while episode.searches_left and len(asked) < self.rounds:
            query = tags.query_of(action)
            if query is None or query in asked:
                break
            asked.append(query)
            await episode.act(action)
            if not episode.searches_left or len(asked) == self.rounds:
                break
            action = await tags.free(episode)
            if tags.answers(action):
                break
            if tags.query_of(action) is None:
                action = await tags.forced(episode, "search")
        await tags.finish(episode)


def _task(found: str, question: str, chain: Sequence[str]) -> str:
    done = "".join(f"Sentence {i}: {s}\n" for i, s in enumerate(chain, start=1))
    return f"Passages:\n{found or 'none'}\n\nQuestion: {question}\n{done}Sentence {len(chain) + 1}:"


_BORN, _COMPOSED = (
    "The painter Orla Vint was born in Marrowick.",
    "The anthem of Marrowick was composed by Teo Brandt.",
)
EXAMPLES = (
    (_task(VINT, ANTHEM, ()), _BORN),
    (_task(f"{VINT}\n{MARROWICK}", ANTHEM, (_BORN,)), _COMPOSED),
    (_task(f"{VINT}\n{MARROWICK}", ANTHEM, (_BORN, _COMPOSED)), "So the answer is: Teo Brandt."),
)
