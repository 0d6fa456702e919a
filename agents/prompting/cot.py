"""Chain of thought: reasoning, then the answer; no search (arXiv 2201.11903)."""

from __future__ import annotations

from dataclasses import dataclass

from .episode import Dialect, Game
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

    async def __call__(self, game: Game) -> None:
        """Think, then answer."""
        if self.dialect == "tags":
            await game.act(await forced(game, "answer", before=await thought(game)))
            return
        talk = shown(INTRO, COT, f"Question: {game.question}")
        said = await game.ask(talk, ("</answer>",))
        await game.answer(short_answer(spoken(said)))
