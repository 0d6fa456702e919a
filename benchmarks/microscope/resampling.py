"""Bias and variance of a credit: keep one turn, sample all the rest of its group again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import numpy as np

from ...agents.engines.base import Completion
from ...agents.scripted import text_env
from ...algos.core.checks import check_minimum
from ...algos.core.forest import Group, Tree
from ...algos.core.protocols import Rollout
from ...algos.rollouts import Chains, EpisodeHandle, EpisodeRunner, play_out, seed_at
from ...envs.core.errors import BadValueError
from .truth import MeasuredGroup, RecordingRunner, trained_turns

_AGAIN, _WHICH = -14, -15


@dataclass(frozen=True, kw_only=True)
class ResampleSettings:
    """How many times anchor turns are seen again.

    Attributes:
        times: M, how often the rest of an anchor's group is sampled again.
        anchors: Anchor turns per group.
    """

    times: int = 8
    anchors: int = 1

    def __post_init__(self) -> None:
        check_minimum(self, times=2, anchors=1)


def check_resampled(rollout: Rollout) -> None:
    """Refuse rollouts whose groups are not independent chains.

    Raises:
        BadValueError: A turn of a tree or of a session has no "rest of the group" of its own.
    """
    if not isinstance(rollout, Chains) or rollout.limit_tokens or rollout.limit_calls:
        raise BadValueError(
            f"credit: --resample keeps one turn and samples the rest of its group again, which "
            f"needs independent chains without a limit; got {rollout}. Leave --resample out, or "
            "this recipe."
        )


async def resample_group(
    runner: RecordingRunner,
    rollout: Rollout,
    measured: MeasuredGroup,
    settings: ResampleSettings,
    random: bool,
) -> MeasuredGroup:
    """Return the group with its anchors, each ``times`` times in another group.

    An anchor keeps its history and its action. Its future and the other chains are sampled again.

    Args:
        runner: Has played the group.
        rollout: The chains.
        measured: The group.
        settings: How often.
        random: Whether transitions are random; then each time has other luck.
    """
    check_resampled(rollout)
    assert isinstance(rollout, Chains)
    start, group = measured.start, measured.group
    places = trained_turns(group)
    rng = np.random.default_rng(seed_at(start.seed, _WHICH))
    count = min(settings.anchors, len(places))
    chosen = [places[i] for i in sorted(rng.choice(len(places), size=count, replace=False))]
    plain = runner.plain()
    opened = await plain.open(start)
    found = []
    for tree, turn in chosen:
        before = runner.position(group.trees[tree].turns[turn])
        again = [
            _again(plain, (opened, before), group, (tree, turn, m), random)
            for m in range(settings.times)
        ]
        found.append(((tree, turn), await asyncio.gather(*again)))
    plain.leave(opened)
    return replace(measured, resampled=found)


async def _again(
    runner: EpisodeRunner,
    handles: tuple[EpisodeHandle, EpisodeHandle],
    group: Group,
    place: tuple[int, int, int],
    random: bool,
) -> Group:
    """Play the group anew around one turn: (tree, turn) and which time, with its two handles."""
    tree, at, _ = place
    opened, before = handles
    turn = group.trees[tree].turns[at]
    kept = Tree(group.trees[tree].turns[:at])

    def fork(handle: EpisodeHandle, chain: int) -> EpisodeHandle:
        twin = handle.fork(chain, redraw=False)
        twin.place = (_AGAIN, *place, chain)
        if random:
            text_env(twin.env).redraw(seed_at(twin.seed, *twin.place))
        return twin

    async def go_on() -> Tree:
        handle = fork(before, tree)
        done = Completion(
            ids=turn.act_ids, logprobs=turn.logprobs, entropies=turn.entropies, stop=turn.stop
        )
        result = await runner.act(handle, done)
        runner.append(handle, kept, result)
        return await play_out(runner, handle, kept)

    trees = [
        go_on() if chain == tree else play_out(runner, fork(opened, chain), Tree())
        for chain in range(len(group.trees))
    ]
    return replace(group, trees=list(await asyncio.gather(*trees)))
