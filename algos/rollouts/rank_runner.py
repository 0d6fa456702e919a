"""A runner whose groups are played by all processes of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.forest import Group
from ..core.protocols import Rollout, Start
from ..runs.process_group import Channel
from . import EpisodeRunner


class RankRunner(EpisodeRunner):
    """Plays this process's share of the groups, then has all of them.

    Every process must ask for the same groups in the same order.

    Args:
        ranks: The processes.
        given: What :class:`~turngym.algos.rollouts.EpisodeRunner` takes.
    """

    def __init__(self, ranks: Channel, *given: Any) -> None:
        super().__init__(*given)
        self.ranks = ranks

    async def groups(
        self, rollout: Rollout, starts: Sequence[Start], tick: Callable[[], None] = lambda: None
    ) -> list[Group]:
        """One group per start; ``tick`` is called for this process's own."""
        mine = await super().groups(rollout, self.ranks.mine(starts), tick)
        played = self.ranks.in_order(mine)
        self.fault = next((f for f in self.ranks.everyone(self.fault) if f), "")
        return played
