"""Independent chains: the rollout of GRPO and PPO."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...envs.errors import BadValueError, EnvFault
from ..contracts import Rollout, Start
from ..forest import Group, Tree
from .meter import Line, Meter, finished, kept, play_lines
from .player import Player, Seat


@dataclass(frozen=True, kw_only=True)
class Chains(Rollout):
    """``n`` chains from one start, played concurrently; every chain is a tree of its own.

    The environment is reset once and forked ``n`` times, so the chains share its randomness and
    differ only in what the model samples.

    Attributes:
        n: Chains per group.
        limit_tokens: Most tokens that a group may sample, passed by at most one turn; episodes
            that it cuts off are dropped (and counted). None for no limit.
        limit_calls: Most actions that a group may take, likewise.
    """

    n: int = 5
    limit_tokens: int | None = None
    limit_calls: int | None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise BadValueError(f"Chains.n is {self.n}; expected at least 1.")
        Meter(self.limit_tokens, self.limit_calls)

    @property
    def forks(self) -> bool:
        """Never."""
        return False

    @property
    def max_paths(self) -> int:
        """One path per chain."""
        return self.n

    async def __call__(self, player: Player, start: Start) -> Group:
        """Play ``n`` whole episodes; trees come in the order of the chains."""
        try:
            seat = await player.open(start)
        except EnvFault:
            return Group(start.uid, str(start.task), faults=self.n)
        seats = [seat.fork(i) for i in range(self.n)]
        meter = Meter(self.limit_tokens, self.limit_calls)
        if meter.off:
            trees = await asyncio.gather(*(play_out(player, s, Tree()) for s in seats))
            return Group(start.uid, seat.task_id, list(trees))
        lines = [Line(s, Tree()) for s in seats]
        await play_lines(player, lines, meter)
        group = Group(start.uid, seat.task_id, [line.tree for line in lines])
        return kept(group, [finished(tree) for tree in group.trees])


async def play_out(player: Player, seat: Seat, tree: Tree) -> Tree:
    """Take turns at the tip until the episode ends."""
    while not seat.done:
        await player.turn(seat, tree)
    return tree
