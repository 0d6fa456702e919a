"""Lottery-v0: free letters draw a lot, then the doors of Password-v0 earn the rest.

What it asks for: telling what luck brought from what was earned. Most of the return is settled by
the free letters and cannot be learned, so chains that drew other lots are hardly comparable, while
the branches of a tree behind the free letters share their lot and differ by the doors alone.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..core.digest import digest_of
from ..core.env import Episode
from ..core.settings import check_integer, check_number
from .common import check_size
from .password import CodedDoors, Doors, make_code

MAX_FREE = 6


class Lottery(CodedDoors):
    """Write free letters that draw a lot, then a password; the lot is most of the reward.

    The reward is ``(1 - luck) * share + luck * lot``: the share of doors that were opened, and a
    number from 0 to 1 that depends on the task and on the free letters alone. Every task deals the
    same lots, evenly spaced, to all strings of free letters in an order of its own. An episode in
    which a free letter cannot be read draws 0. It is solved when all doors were opened; the metric
    ``right`` is the share of them.

    The difficulty is ``luck``. Control: ``luck=0``, where the free letters have no effect and
    equality is the right answer.

    Args:
        size: ``"micro"``, or ``"full"``, which states the rules.
        free: Number of free letters.
        doors: Number of doors behind them.
        luck: Share of the reward that the lot decides.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: A number is out of range.
    """

    def __init__(
        self,
        *,
        size: str = "micro",
        free: int = 3,
        doors: int = 3,
        luck: float = 0.8,
        render_mode: str | None = None,
    ) -> None:
        self.free = check_integer("free", free, "Lottery", min=1, max=MAX_FREE)
        self.luck = check_number("luck", luck, "Lottery", min=0.0, max=1.0)
        rules = (
            f"The first {free} letters (a, b or c) draw a lot. Then there are {doors} doors, each "
            "of which takes one letter; the password is always the same. After the last door you "
            "are told what it came to. Write one letter and nothing else.\n"
        )
        super().__init__(
            make_code(doors, "Lottery", free),
            "" if check_size(size, "Lottery") else rules,
            render_mode=render_mode,
        )

    def lot(self, episode: Episode[Doors]) -> float:
        """Return the lot that the free letters drew, from 0 to 1; 0 unless all can be read."""
        written = episode.state.written[: self.free]
        if not all(written):
            return 0.0
        lots = deal_lots(episode.task.payload, len(self.letters) ** self.free)
        return float(lots[self._number(written)])

    def pay(self, episode: Episode[Doors]) -> dict[str, float]:
        """Return the doors' part and the lot's."""
        earned = (1.0 - self.luck) * self.share(episode)
        return {"outcome": earned, "luck": self.luck * self.lot(episode)}

    def best_letter(self, episode: Episode[Doors]) -> str:
        """Return the next letter of the best lot, then that of the code."""
        at = len(episode.state.written)
        if at >= self.free:
            return super().best_letter(episode)
        lots = deal_lots(episode.task.payload, len(self.letters) ** self.free)
        rest = len(self.letters) ** (self.free - at)
        first = self._number(episode.state.written) * rest
        best = int(lots[first : first + rest].argmax())
        return self.letters[best * len(self.letters) // rest]

    def _number(self, written: list[str]) -> int:
        number = 0
        for letter in written:
            number = number * len(self.letters) + max(self.letters.find(letter), 0)
        return number


@lru_cache(maxsize=4096)
def deal_lots(signs: str, count: int) -> npt.NDArray[np.float64]:
    """Return a task's lots ``[count]``: the numbers from 0 to 1, evenly spaced, shuffled."""
    seed = int(digest_of(("lots", signs)), 16)
    return np.random.default_rng(seed).permutation(count) / (count - 1)
