"""Retrieval-augmented generation: search the question once, answer from the passages."""

from __future__ import annotations

from dataclasses import dataclass

from .episode import Dialect, PromptedEpisode
from .examples import ANSWER_FORM, ANTHEM, DUN, LIGHT, MARROWICK, SKERRY, VINT, shown
from .parsing import short_answer, spoken
from .tags import finish

INTRO = (
    "Answer the question with the help of the passages. They may be incomplete; where they do not "
    f"settle the question, give your best guess. {ANSWER_FORM}"
)


@dataclass(frozen=True, kw_only=True)
class Rag:
    """Searches for the question as it stands, once, and answers from what was found.

    Paper: Lewis et al., arXiv 2005.11401.

    Differs from the paper: nothing is trained, the passages stand together in one prompt instead of
    one answer being marginalised over them, and the environment's search engine retrieves (its
    default is BM25 with 3 passages).

    Attributes:
        dialect: See :class:`~turngym.agents.prompting.episode.Agent`.
    """

    dialect: Dialect = "chat"

    async def __call__(self, episode: PromptedEpisode) -> None:
        """One search, one answer."""
        found = await episode.search(episode.question) if episode.searches_left else ""
        if self.dialect == "tags":
            await finish(episode)
        else:
            await read_and_answer(episode, found)


async def read_and_answer(episode: PromptedEpisode, found: str) -> None:
    """The reader: answer the question from passages (chat dialect)."""
    reply = await episode.ask(
        shown(INTRO, EXAMPLES, _task(found, episode.question)), ("</answer>",)
    )
    await episode.answer(short_answer(spoken(reply)))


def _task(found: str, question: str) -> str:
    return f"Passages:\n{found or 'none'}\n\nQuestion: {question}"


EXAMPLES = (
    (_task(f"{VINT}\n{MARROWICK}", ANTHEM), "<answer> Teo Brandt </answer>"),
    (_task(f"{SKERRY}\n{DUN}", LIGHT), "<answer> Skerry Point </answer>"),
)
