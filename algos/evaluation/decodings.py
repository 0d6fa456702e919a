"""The rollout of evaluations: each task sampled at the runner's temperature, and greedily."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...envs.core.errors import EnvFault
from ..core.forest import Group, Tree
from ..core.protocols import Start, Unforked
from ..rollouts import EpisodeRunner, play_out


@dataclass(frozen=True, kw_only=True)
class Decodings(Unforked):
    """Two chains from one start, played concurrently: one sampled, one greedy.

    Both go through the engine in one batch. The sampled chain is the one that it would be without
    the other; as long as both say the same, the environment is stepped once.

    Attributes:
        n: 2 plays both, 1 the sampled one only.
    """

    n: int = 2

    async def __call__(self, runner: EpisodeRunner, start: Start) -> Group:
        """Play a whole episode each way; the sampled tree is the first."""
        try:
            handle = await runner.open(start)
        except EnvFault:
            return Group(start.uid, str(start.task), faults=self.n)
        ways = [runner, runner.with_temperature(0.0)][: self.n]
        copies = runner.copies(handle, len(ways))
        plays = (play_out(way, s, Tree()) for way, s in zip(ways, copies, strict=True))
        return Group(start.uid, handle.task_id, list(await asyncio.gather(*plays)))
