"""Chain of thought: reasoning, then the answer; no search (arXiv 2201.11903)."""

from __future__ import annotations

from dataclasses import dataclass

from .episode import Dialect, PromptedEpisode
from .examples import ANSWER_FORM, COT, shown
from .parsing import short_answer, spoken
from .tags import forced, thought

INTRO = (
    "Answer the question. Reason step by step in a few short sentences first, then answer. "
    f"{ANSWER_FORM}"
)


@dataclass(frozen=True, kw_only=True)
class Cot:
    """Reasons step by step from the model's memory, then answers.

    Paper: Wei et al., arXiv 2201.11903.

    Differs from the paper: two examples of our own instead of eight, instructions in words before
    them, and the answer stands in a tag. In the dialect ``"tags"`` there are no examples: a
    ``<think>`` block is opened and, after it, the answer.

    Attributes:
        dialect: See :class:`~turngym.agents.prompting.episode.Agent`.
    """

    dialect: Dialect = "chat"

    async def __call__(self, episode: PromptedEpisode) -> None:
        """Think, then answer."""
        if self.dialect == "tags":
            await episode.act(await forced(episode, "answer", before=await thought(episode)))
            return
        talk = shown(INTRO, COT, f"Question: {episode.question}")
        reply = await episode.ask(talk, ("</answer>",))
        await episode.answer(short_answer(spoken(reply)))
