"""Hindsight instructions: a language model says what a trajectory was good for."""

from __future__ import annotations

from ...envs.errors import BadValueError
from ...envs.randomness import derive_seed
from ..prompting.text_model import Message, TextModel
from .trajectory import Attempt

PROMPT = (
    "An agent acted in a text environment. Its whole trajectory is shown below. Write the task "
    "that it carried out, as one or two sentences addressed to an agent that has not begun yet. "
    "Name what has to be reached, not the single steps, and write nothing else.\n\n"
    "Rules and beginning:\n{beginning}\n\nTrajectory:\n{moves}\n\nTask:"
)
"""Asks for an instruction."""


class Relabeller:
    """Asks a text model for the instruction that fits what was done.

    Args:
        model: Writes.
        max_tokens: Most tokens of an instruction.
        chat: Ask in a message; else as a text that the model goes on with.
        seed: Of its sampling.

    Raises:
        BadValueError: ``max_tokens`` is not positive, or a text for a model that only chats.
    """

    def __init__(
        self, model: TextModel, *, max_tokens: int = 128, chat: bool = True, seed: int = 0
    ) -> None:
        if max_tokens < 1:
            raise BadValueError(f"Relabeller: max_tokens is {max_tokens}; expected at least 1.")
        if not (chat or model.continues):
            raise BadValueError("Relabeller: this model only answers dialogues; set chat.")
        self._model = model
        self._max_tokens = max_tokens
        self._chat = chat
        self._seed = seed

    async def __call__(self, attempt: Attempt) -> str:
        """The instruction; the world's own first prompt where the model writes nothing."""
        trajectory = attempt.trajectory
        moves = "\n".join(f"Agent: {m.action}\nAnswer: {m.observation}" for m in trajectory.moves)
        text = PROMPT.format(beginning=trajectory.instruction.strip(), moves=moves)
        done = await self._model.complete(
            [Message("user", text)] if self._chat else text,
            stop=() if self._chat else ("\n\n",),
            max_tokens=self._max_tokens,
            seed=derive_seed(self._seed),
        )
        said = done.text.strip()
        return f"{said}\n" if said else trajectory.instruction
