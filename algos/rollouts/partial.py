"""Partial rollouts: a step ends once enough groups are complete; the others go on in the next one.

The longest episodes then hold up no update. What they have so far stays as it was sampled: every
turn has its tokens' log-probabilities and the version of the weights that sampled it, and the turns
after an update are sampled by newer weights, in contexts that are read anew (as in Kimi k1.5,
arXiv 2501.12599, section 2.6.2, at turns instead of token segments). Truncated importance weights
correct for what is older than the weights that are trained.

The clock is the number of turns: all open episodes take one turn, then the complete groups are
counted. So what a step trains on is a function of seed and weights and not of the time that
anything took, and a run repeats and resumes to the bit. Several processes share the clock: each
plays and keeps the groups whose number falls to it, and all are told how many are complete.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...agents.engines.base import Completion
from ...agents.scripted import text_env
from ...envs.core.errors import BadValueError, DataError, EnvFault
from ..core.forest import Group, Tree, Turn
from ..core.forest_io import group_from_json, group_to_json
from ..core.protocols import Start, TaskSource
from ..core.recipe import Recipe
from .budget import GroupBudget
from .chains import Chains
from .collect import RolloutBatch
from .episode_runner import EpisodeHandle, EpisodeRunner
from .step_limits import Played

if TYPE_CHECKING:
    from ..runs.process_group import Channel  # needs torch, which settings do not


@dataclass(slots=True, eq=False)
class OpenGroup:
    """A group that was begun.

    Attributes:
        place: Its number among all groups of the run.
        start: Its task and seed.
        task_id: The environment's id of the task.
        handles: Its episodes.
        trees: What each of them has played.
        faults: Episodes that never began, as the environment is broken.
    """

    place: int
    start: Start
    task_id: str
    handles: list[EpisodeHandle]
    trees: list[Tree]
    faults: int = 0

    @property
    def complete(self) -> bool:
        """Whether all episodes are over."""
        return all(handle.done for handle in self.handles)

    @property
    def tokens(self) -> int:
        """Tokens that its episodes have sampled."""
        return sum(len(turn.act_ids) for tree in self.trees for turn in tree.turns)

    def closed(self) -> Group:
        """Return the group as rollouts do."""
        return Group(self.start.uid, self.task_id, self.trees, faults=self.faults)


@dataclass(frozen=True, slots=True)
class _Pause:
    """A group between two steps, as it is written down."""

    place: int
    start: Start
    task_id: str
    trees: tuple[tuple[Turn, ...], ...]
    digests: tuple[str, ...]


class PartialRollouts:
    """Plays steps that leave groups unfinished, and keeps these.

    Args:
        share: Share of ``groups_per_step`` that must be complete for a step to end.
        ranks: The processes that play; all of them must ask for the same in the same order.

    Attributes:
        warning: Why episodes were begun anew after the last resume; empty where none were.
    """

    def __init__(self, share: float, ranks: Channel | None = None) -> None:
        self._share = share
        if ranks is None:
            from ..runs import process_group

            ranks = process_group.Channel()
        self._ranks = ranks
        self._carried = 0  # by all processes
        self._open: list[OpenGroup] = []
        self._resumed: list[_Pause] = []
        self._pauses: dict[int, tuple[_Pause, ...]] = {}
        self.warning = ""

    async def play(
        self, recipe: Recipe, runner: EpisodeRunner, tasks: TaskSource, before: Played
    ) -> RolloutBatch:
        """Play the next step until enough groups are complete.

        Args:
            recipe: Its rollout is :class:`Chains`, see :func:`check_partial`.
            runner: Plays the turns.
            tasks: The tasks; new ones follow those that were begun.
            before: What the run has played until here.
        """
        rollout = recipe.rollout
        assert isinstance(rollout, Chains)
        for pause in self._resumed:
            self._open.append(await self._restored(runner, rollout, pause))
        self._resumed = []
        begun = before.total.groups + self._carried
        missing = recipe.groups_per_step - self._carried
        starts = tasks.starts_from(before.steps + 1, begun, 0, missing) if missing > 0 else []
        own = [one for one in enumerate(starts, start=begun) if self._is_own(one[0])]
        self._open += await asyncio.gather(*(_begin(runner, rollout, *one) for one in own))
        needed = max(1, math.ceil(self._share * recipe.groups_per_step))
        while not self._enough(needed):
            await asyncio.gather(
                *(
                    runner.turn(handle, tree)
                    for group in self._open
                    for handle, tree in zip(group.handles, group.trees, strict=True)
                    if not handle.done
                )
            )
        closed = [(group.place, group.closed()) for group in self._open if group.complete]
        self._open = [group for group in self._open if not group.complete]
        for group in self._open:
            for handle in group.handles:
                runner.forget_cache(handle)  # new weights come, and a resumed run has none
        step = before.steps + 1
        self._pauses = {step - 1: self._pauses.get(step - 1, ()), step: self._paused()}
        return self._together(runner, closed)

    def _is_own(self, place: int) -> bool:
        return place % self._ranks.world_size == self._ranks.rank

    def _enough(self, needed: int) -> bool:
        """Return whether so many groups are complete, or all."""
        mine = sum(group.complete for group in self._open), len(self._open)
        complete, everything = (sum(n) for n in zip(*self._ranks.everyone(mine), strict=True))
        return complete >= min(needed, everything)

    def _together(self, runner: EpisodeRunner, closed: list[tuple[int, Group]]) -> RolloutBatch:
        """Return the groups that are complete in all processes, in the order of their begin."""
        tokens = sum(group.tokens for group in self._open)
        mine = closed, len(self._open), tokens, runner.fault, self.warning
        parts = self._ranks.everyone(mine)
        done = sorted((one for part in parts for one in part[0]), key=lambda one: one[0])
        self._carried = sum(part[1] for part in parts)
        runner.fault = next((part[3] for part in parts if part[3]), runner.fault)
        self.warning = next((part[4] for part in parts if part[4]), "")
        return replace(
            RolloutBatch.whole([group for _, group in done]),
            carried=self._carried,
            carried_tokens=sum(part[2] for part in parts),
        )

    # ------------------------------------------------------------------ over a restart

    def state(self, step: int) -> dict[str, Any]:
        """Return the groups that were open after a step, as JSON data; every process must ask."""
        mine = [
            {
                "place": one.place,
                "start": asdict(one.start),
                "digests": list(one.digests),
                "group": group_to_json(_group_of(one)),
            }
            for one in self._pauses.get(step, ())
        ]
        rows = [row for part in self._ranks.everyone(mine) for row in part]
        return {"open_groups": sorted(rows, key=lambda row: row["place"])}

    def load(self, step: int, state: Mapping[str, Any]) -> None:
        """Take what :meth:`state` returned; its episodes are played back before the next step.

        Any number of processes may have written it.

        Raises:
            DataError: It is damaged.
        """
        try:
            rows = state["open_groups"]
            pauses = [_pause_of(row, at) for at, row in enumerate(rows)]
        except (KeyError, TypeError, ValueError) as fault:
            raise DataError(
                f"checkpoint: the groups that were open are damaged ({fault!r}). Delete the "
                "newest checkpoint to resume from the one before."
            ) from fault
        own = [pause for pause in pauses if self._is_own(pause.place)]
        self._carried = len(pauses)
        self._resumed, self._pauses = own, {step: tuple(own)}

    def _paused(self) -> tuple[_Pause, ...]:
        return tuple(
            _Pause(
                group.place,
                group.start,
                group.task_id,
                tuple(tuple(tree.turns) for tree in group.trees),
                tuple(text_env(handle.env).digest() for handle in group.handles),
            )
            for group in self._open
        )

    async def _restored(self, runner: EpisodeRunner, rollout: Chains, pause: _Pause) -> OpenGroup:
        """Take a group's recorded actions again; anew from the start where the world differs."""
        group = await _begin(runner, rollout, pause.place, pause.start)
        if not group.faults:
            played = zip(group.handles, group.trees, pause.trees, strict=True)
            for handle, tree, turns in played:
                for turn in turns:
                    if not handle.done:
                        await _take_again(runner, handle, tree, turn)
            if _same(group, pause):
                return group
        self.warning = (
            f"group {pause.start.uid}: the environment answered the recorded actions otherwise "
            "than before, so its episodes begin anew."
        )
        return await _begin(runner, rollout, pause.place, pause.start)


async def _begin(runner: EpisodeRunner, rollout: Chains, place: int, start: Start) -> OpenGroup:
    try:
        handle = await runner.open(start)
    except EnvFault:
        return OpenGroup(place, start, str(start.task), [], [], faults=rollout.n)
    handles = [handle.fork(i) for i in range(rollout.n)]
    return OpenGroup(place, start, handle.task_id, handles, [Tree() for _ in handles])


async def _take_again(runner: EpisodeRunner, handle: EpisodeHandle, tree: Tree, turn: Turn) -> None:
    """Take a recorded action: the turn is put down as it was sampled."""
    done = Completion(
        ids=turn.act_ids, logprobs=turn.logprobs, entropies=turn.entropies, stop=turn.stop
    )
    result = await runner.act(handle, done)
    runner.append(handle, tree, result._replace(version=turn.version))


def _same(group: OpenGroup, pause: _Pause) -> bool:
    """Return whether a group that was played back is where it was."""
    digests = tuple(text_env(handle.env).digest() for handle in group.handles)
    if digests != pause.digests:
        return False
    for tree, turns in zip(group.trees, pause.trees, strict=True):
        if len(tree.turns) != len(turns):
            return False
        for now, then in zip(tree.turns, turns, strict=True):
            same = np.array_equal(now.obs_ids, then.obs_ids) and now.status == then.status
            if not (same and np.array_equal(now.rewards, then.rewards)):
                return False
    return True


def _group_of(pause: _Pause) -> Group:
    group = Group(pause.start.uid, pause.task_id)
    for turns in pause.trees:
        tree = Tree()
        for turn in turns:
            tree.add(turn)
        group.trees.append(tree)
    return group


def _pause_of(row: Mapping[str, Any], at: int) -> _Pause:
    place = int(row.get("place", at))  # older checkpoints are of one process
    group = group_from_json(row["group"])
    trees = tuple(tuple(tree.turns) for tree in group.trees)
    digests = tuple(str(digest) for digest in row["digests"])
    if len(digests) != len(trees):
        raise ValueError(f"{len(digests)} digests for {len(trees)} episodes")
    return _Pause(place, Start(**row["start"]), group.task_id, trees, digests)


def check_partial(recipe: Recipe, share: float, why_no_importance: str | None) -> None:
    """Refuse recipes whose groups cannot go on under other weights.

    Args:
        recipe: The recipe.
        share: Share of the groups that ends a step.
        why_no_importance: Why truncated importance weights do not correct its gradient, if so.

    Raises:
        BadValueError: The message says why.
    """
    if not 0 < share <= 1:
        raise BadValueError(
            f"training: partial_rollouts is {share}; expected a share of the groups in (0, 1]."
        )
    rollout = recipe.rollout
    why = ""
    if type(rollout) is not Chains:
        why = (
            f"{type(rollout).__name__} decides by the whole tree where its next turn is attached, "
            "so its groups are played in one go. Use a recipe of chains, such as grpo"
        )
    elif not GroupBudget(rollout.limit_tokens, rollout.limit_calls).off:
        why = "its groups have limits of tokens or calls, which end them within a step"
    elif recipe.tokens_per_step is not None:
        why = "tokens_per_step ends its steps by sampled tokens. Use groups_per_step"
    elif recipe.filter is not None:
        why = f"{type(recipe.filter).__name__} plays a step in rounds until enough are accepted"
    elif recipe.tracker is not None:
        why = f"{type(recipe.tracker).__name__} chooses tasks by statistics of complete steps"
    elif why_no_importance:
        why = (
            f"older tokens must be weighed, and {why_no_importance.removesuffix(' Leave it out.')}"
        )
    if why:
        why = why.rstrip(".")
        raise BadValueError(
            f"recipe {recipe.name!r}: partial_rollouts is {share}, but {why}. Or leave "
            "partial_rollouts out."
        )
