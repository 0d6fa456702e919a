"""Direct answering: the question, and at once the answer."""

from __future__ import annotations

from dataclasses import dataclass

from .examples import ANSWER_FORM
from .game import Dialect, Game
from .reading import short_answer, spoken
from .tags import finish
from .text_model import Message


@dataclass(frozen=True, kw_only=True)
class Direct:
    """Answers from the model's memory, without reasoning or searching.

    The baseline that the others are measured against: one model call, no search.

    Attributes:
        dialect: See :class:`~turngym.agents.prompting.game.Agent`.
    """

    dialect: Dialect = "chat"

    async def __call__(self, game: Game) -> None:
        """One prompt, one answer."""
        if self.dialect == "tags":
            await finish(game)
            return
        prompt = f"Answer the question. {ANSWER_FORM} Write nothing else.\n\nQuestion: "
        said = await game.ask([Message("user", prompt + game.question)], ("</answer>",))
        await game.answer(short_answer(spoken(said)))
