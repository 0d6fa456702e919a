"""What the diagnostic environments share: listed tasks, letters as actions, an expert."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ..core.env import TextEnv
from ..core.errors import UnknownNameError
from ..core.noisy_expert import NoisyExpert
from ..core.tasks import SPLITS, Task, parse_index

S = TypeVar("S")
P = TypeVar("P")

SIZES = ("micro", "full")
_SHARES = (0.6, 0.8)  # train below the first, dev below the second, test above


class ListedTasks(Generic[P]):
    """All contents of an environment, shuffled once and cut into train, dev and test.

    Args:
        payloads: The contents, all different.
        seed: Of the shuffle; part of the environment's version.
    """

    def __init__(self, payloads: Sequence[P], seed: int = 0) -> None:
        order = np.random.default_rng(seed).permutation(len(payloads))
        cuts = [0, *(int(share * len(payloads)) for share in _SHARES), len(payloads)]
        self._tasks = {
            split: [payloads[i] for i in order[low:high]]
            for split, low, high in zip(SPLITS, cuts, cuts[1:], strict=False)
        }

    def sizes(self) -> Mapping[str, int | None]:
        """Return the number of tasks per split."""
        return {split: len(tasks) for split, tasks in self._tasks.items()}

    def task(self, split: str, index: int) -> Task[P]:
        """Return the task at ``index`` of ``split``."""
        return Task(f"{split}/{index}", split, index, self._tasks[split][index])

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the index of a task id."""
        return parse_index(split, task_id, len(self._tasks[split]))


def read_letter(action: str, letters: str) -> str | None:
    """Return the letter that an action ends with; what precedes it is reasoning.

    So one token is an action, and a model that knows nothing acts at all. None when the action
    ends otherwise.
    """
    last = action.strip()[-1:]
    return last if last and last in letters else None


def ask_for_letter(letters: str) -> str:
    """Return the observation after an unreadable action."""
    return f"\nwrite one of {' '.join(letters)}:"


def check_size(size: str, where: str) -> bool:
    """Return True for the micro size.

    Raises:
        UnknownNameError: No such size.
    """
    if size not in SIZES:
        raise UnknownNameError("size", size, SIZES, where)
    return size == "micro"


class LetterEnv(TextEnv[S, P]):
    """An environment whose actions are single letters."""

    letters: str

    def legal_actions(self) -> list[str]:
        """Return the letters."""
        return list(self.letters)


class LetterExpert(NoisyExpert):
    """Writes the best letter, or by mistake any other.

    Args:
        best: The best letter at the environment's present state.
        letters: All letters.
        mistakes: Probability per action of another letter.
        seed: Seed of the mistakes.
    """

    def __init__(
        self, best: Callable[[Any], str], letters: str, mistakes: float, seed: int
    ) -> None:
        super().__init__(mistakes, seed)
        self._best = best
        self._letters = letters

    def choose_action(self, env: Any) -> str:
        """Return the next action of the episode in ``env``."""
        best = self._best(env)
        if self.draw_mistake():
            others = [letter for letter in self._letters if letter != best]
            return others[int(self._rng.integers(len(others)))]
        return best
