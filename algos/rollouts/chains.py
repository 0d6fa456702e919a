"""Independent chains: the rollout of GRPO and PPO."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...envs.core.errors import EnvFault
from ..core.checks import check_minimum
from ..core.forest import Group, Tree
from ..core.protocols import Start, Unforked
from .budget import GroupBudget, Line, finished_episodes, keep_episodes, play_lines
from .episode_runner import EpisodeHandle, EpisodeRunner


@dataclass(frozen=True, kw_only=True)
class Chains(Unforked):
    """``n`` chains from one start, played concurrently; every chain is a tree of its own.

    The environment is reset once and forked ``n`` times, so the chains share its randomness and
    differ only in what the model samples; as long as two sample the same, they are played as one.

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
        check_minimum(self, n=1)
        GroupBudget(self.limit_tokens, self.limit_calls)

    async def __call__(self, runner: EpisodeRunner, start: Start) -> Group:
        """Play ``n`` whole episodes; trees come in the order of the chains."""
        try:
            handle = await runner.open(start)
        except EnvFault:
            return Group(start.uid, str(start.task), faults=self.n)
        budget = GroupBudget(self.limit_tokens, self.limit_calls)
        if budget.off:
            copies = runner.copies(handle, self.n)
            trees = await asyncio.gather(*(play_out(runner, s, Tree()) for s in copies))
            return Group(start.uid, handle.task_id, list(trees))
        lines = [Line(handle.fork(i), Tree()) for i in range(self.n)]
        await play_lines(runner, lines, budget)
        group = Group(start.uid, handle.task_id, [line.tree for line in lines])
        return keep_episodes(group, [finished_episodes(tree) for tree in group.trees])


async def play_out(runner: EpisodeRunner, handle: EpisodeHandle, tree: Tree) -> Tree:
    """Take turns at the tip until the episode ends."""
    while not handle.done:
        await runner.turn(handle, tree)
    return tree
