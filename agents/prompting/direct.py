"""Direct answering: the question, and at once the answer."""

from __future__ import annotations

from dataclasses import dataclass

from .episode import Dialect, PromptedEpisode
from .examples import ANSWER_FORM, DIRECT, shown
from .parsing import short_answer, spoken
from .tags import finish

INTRO = f"Answer the question at once. {ANSWER_FORM} Write nothing else."


@dataclass(frozen=True, kw_only=True)
class Direct:
    """Answers from the model's memory, without reasoning or searching.

    The baseline that the others are measured against: one model call, no search.

    Attributes:
        dialect: See :class:`~turngym.agents.prompting.episode.Agent`.
    """

    dialect: Dialect = "chat"

    async def __call__(self, episode: PromptedEpisode) -> None:
        """One prompt, one answer."""
        if self.dialect == "tags":
            await finish(episode)
            return
        talk = shown(INTRO, DIRECT, f"Question: {episode.question}")
        reply = await episode.ask(talk, ("</answer>",))
        await episode.answer(short_answer(spoken(reply)))
