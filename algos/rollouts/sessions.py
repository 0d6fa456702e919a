"""Sessions drawn from an episode: the rollout of PaSa."""

from __future__ import annotations

import asyncio
import copy
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from ...envs.core.errors import EnvFault, UnknownNameError
from ...envs.wrappers.session_window import AsSessions
from ..core.checks import check_minimum
from ..core.forest import Edge, Group, Tree
from ..core.protocols import Start, Unforked
from .budget import GroupBudget, extract_turns
from .episode_runner import EpisodeHandle, EpisodeRunner
from .seeds import seed_at

T = TypeVar("T")
QUEUES = ("sampled", "full")
SAMPLERS = ("random", "score")


@dataclass(frozen=True, kw_only=True)
class Sessions(Unforked):
    """The first session of each episode, then some of those that it requested, layer by layer.

    PaSa (arXiv 2501.10120, section 4 and table 12) never crawls whole episodes in training: per
    step and device 4 search sessions, 6 sessions drawn at random from what they found, 6 more from
    what those found. Here the draw is per episode, 1.5 on average, which is the same in the mean.

    An environment without sessions of its own is cut into windows of turns (:class:`AsSessions`).
    There at most one session waits at a time and leaving it out would end the episode, so all are
    played.

    Attributes:
        n: Episodes per group, each a tree; they begin in forks of one start.
        per_layer: Sessions drawn per layer and episode; of a fraction, its share of episodes draws
            one more.
        layers: Layers of drawn sessions below the first one.
        queue: What counts as seen before by a session. ``"sampled"``: what the drawn sessions did;
            they run one after another and nothing else is played (as PaSa; it sees an almost empty
            queue, so novelty is over-estimated). ``"full"``: the whole episode is played by the
            environment's own schedule and the sessions are drawn from it; the others are paid for
            and counted as pruned, and their rewards are in no return.
        sampler: ``"random"`` (the paper), or ``"score"``: those that the environment scores highest
            come first (PaSa's released code).
        window: Turns per session in an environment without its own.
        carry: Newest turns that such a session is shown.
        limit_tokens: Most tokens that a group may sample, passed by at most one turn. Its episodes
            are then played one after another; a session that is cut off is dropped (and counted),
            in an environment without its own the whole episode. None for no limit.
        limit_calls: Most actions that a group may take, likewise.

    Raises:
        BadValueError: A number out of range.
        UnknownNameError: No such queue or sampler.
    """

    n: int = 1
    per_layer: float = 1.5
    layers: int = 2
    queue: Literal["sampled", "full"] = "sampled"
    sampler: Literal["random", "score"] = "random"
    window: int = 2
    carry: int = 1
    limit_tokens: int | None = None
    limit_calls: int | None = None

    def __post_init__(self) -> None:
        check_minimum(self, n=1, per_layer=0, layers=0, window=1, carry=1)
        for name, known in (("queue", QUEUES), ("sampler", SAMPLERS)):
            if getattr(self, name) not in known:
                raise UnknownNameError(name, getattr(self, name), known, "Sessions")
        GroupBudget(self.limit_tokens, self.limit_calls)

    async def __call__(self, runner: EpisodeRunner, start: Start) -> Group:
        """Play ``n`` episodes; trees come in their order."""
        own = runner.env.get_wrapper_attr("sessions")
        if not own:
            runner = copy.copy(runner)
            runner.env = AsSessions(runner.env, self.window, self.carry)
        try:
            handle = await runner.open(start)
        except EnvFault:
            return Group(start.uid, str(start.task), faults=self.n)
        handles = [handle.fork(i) for i in range(self.n)]
        play = self._crawl if self.queue == "full" else self._draw_as_played
        grow = play if own else _whole
        budget = GroupBudget(self.limit_tokens, self.limit_calls)
        if budget.off:
            played = await asyncio.gather(*(grow(runner, s, budget) for s in handles))
        else:
            played = [await grow(runner, s, budget) for s in handles]
        group = Group(start.uid, handle.task_id)
        for whole, kept in played:
            if kept.turns:
                group.trees.append(kept)
            group.pruned_tokens += _tokens(whole) - _tokens(kept)
            group.pruned_turns += len(whole.turns) - len(kept.turns)
        return group

    async def _draw_as_played(
        self, runner: EpisodeRunner, handle: EpisodeHandle, budget: GroupBudget
    ) -> tuple[Tree, Tree]:
        """Play the first session and then only drawn ones, in one environment."""
        tree, kept = Tree(), 0
        if await _play_session(runner, handle, tree, budget):
            kept = len(tree.turns)
            async for _ in self._further(runner, handle, tree, budget):
                kept = len(tree.turns)
        runner.leave(handle)
        return tree, tree if kept == len(tree.turns) else extract_turns(tree, range(kept))

    async def _further(
        self, runner: EpisodeRunner, handle: EpisodeHandle, tree: Tree, budget: GroupBudget
    ) -> AsyncIterator[None]:
        """Play drawn sessions layer by layer, until one is cut off; yields after each whole one."""
        for layer in range(1, self.layers + 1):
            if handle.done:
                return
            pool = [o for o in handle.env.get_wrapper_attr("waiting")() if o.layer == layer]
            scores = [o.score for o in pool]
            for opening in self._draw(handle, layer, pool, scores):
                if not handle.done and runner.switch(handle, opening.key):
                    if not await _play_session(runner, handle, tree, budget):
                        return
                    yield

    async def _crawl(
        self, runner: EpisodeRunner, handle: EpisodeHandle, budget: GroupBudget
    ) -> tuple[Tree, Tree]:
        """Play the whole episode and cut the sessions that were not drawn."""
        tree, scores = Tree(), {}
        known: dict[str, float] = {}
        while not handle.done and budget.left:
            if not handle.now.ids:  # nobody has acted in this session
                key = handle.env.get_wrapper_attr("session_key")()
                scores[len(tree.turns)] = known.get(key, 0.0)
            budget.spend(len((await runner.turn(handle, tree)).act_ids))
            known |= {o.key: o.score for o in handle.env.get_wrapper_attr("asked")()}
        heads = [tree.chain(i)[0] for i in range(len(tree.turns))]
        cut = {heads[-1]} if heads and not handle.done and handle.now.ids else set[int]()
        runner.leave(handle)
        kept, newest = {0} - cut, {0}
        for layer in range(1, self.layers + 1):
            pool = [
                head
                for head in scores
                if head not in cut
                and tree.turns[head].edge is Edge.SPAWN
                and heads[tree.turns[head].parent] in newest
            ]
            newest = set(self._draw(handle, layer, pool, [scores[head] for head in pool]))
            kept |= newest
        return tree, extract_turns(tree, [i for i, head in enumerate(heads) if head in kept])

    def _draw(
        self, handle: EpisodeHandle, layer: int, pool: Sequence[T], scores: Sequence[float]
    ) -> list[T]:
        """Draw some of ``pool``; the seed is the handle's place and the layer."""
        rng = np.random.default_rng(seed_at(handle.seed, *handle.place, -layer))
        whole = math.floor(self.per_layer)
        count = min(whole + int(rng.random() < self.per_layer - whole), len(pool))
        if self.sampler == "score":
            order = sorted(range(len(pool)), key=lambda i: -scores[i])
        else:
            order = [int(i) for i in rng.permutation(len(pool))]
        return [pool[i] for i in order[:count]]


async def _whole(
    runner: EpisodeRunner, handle: EpisodeHandle, budget: GroupBudget
) -> tuple[Tree, Tree]:
    tree = Tree()
    while not handle.done and budget.left:
        budget.spend(len((await runner.turn(handle, tree)).act_ids))
    whole = handle.done
    runner.leave(handle)
    return tree, tree if whole else Tree()


async def _play_session(
    runner: EpisodeRunner, handle: EpisodeHandle, tree: Tree, budget: GroupBudget
) -> bool:
    """Take turns until the session ends: the next observation belongs to another one.

    Returns:
        False if the budget stopped it before that.
    """
    session = handle.session
    while not handle.done and handle.session == session:
        if not budget.left:
            return False
        budget.spend(len((await runner.turn(handle, tree)).act_ids))
    return True


def _tokens(tree: Tree) -> int:
    return sum(len(turn.act_ids) for turn in tree.turns)
