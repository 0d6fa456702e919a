"""Plays a suite with a scripted agent or a model, and packs the episodes for an entry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...agents.scripted import scripted
from ...algos.runs.progress import Bar
from ...envs.core.env import Policy, TextEnv
from ...envs.core.errors import ContextFullError, EnvFault
from ...envs.wrappers.record import RecordEpisodes
from ...leaderboard.entries_io.packing import make_manifest
from ...leaderboard.entries_io.play import (
    AgentStopped,
    make_episode,
    make_failed_episodes,
    play_suite,
)
from ...leaderboard.schema.entry import Episode, Manifest, ModelCard
from ...leaderboard.schema.suite import Cell, Slot, Suite
from ...leaderboard.suites.digests import make_cell_env

if TYPE_CHECKING:
    from ...algos.evaluation.lm_agent import TokenAgent

_DESCRIPTIONS = {
    "expert": "The worlds' own scripted experts, which read the hidden state: about the best "
    "that can be reached.",
    "random": "A legal action at random where the world lists them, else random words in the "
    "form of an action.",
    "null": "Says nothing, every turn.",
}


def reference_manifest(name: str, suite: Suite) -> Manifest:
    """The description of a reference row.

    Args:
        name: expert, random or null.
        suite: What it plays.
    """
    return make_manifest(
        suite,
        name=name,
        organisation="turngym",
        board="agents",
        description=_DESCRIPTIONS[name],
        card=ModelCard(model=name, recipe="scripted"),
        licence="Apache-2.0",
        reference=name,
    )


def scripted_episodes(name: str, suite: Suite, run: int, bar: Bar) -> Iterator[Episode]:
    """A scripted agent on every episode of a suite.

    Args:
        name: expert, random or null.
        suite: What to play.
        run: Place of the run in the entry.
        bar: Told how far it is.
    """

    def make(world: TextEnv[Any, Any], seed: int) -> Policy:
        return scripted(name, seed, world)

    yield from play_suite(
        suite, make, run=run, tell=lambda n, count: bar.update(n / count, f"{n} of {count}")
    )


def model_episodes(agent: TokenAgent, suite: Suite, run: int, bar: Bar) -> Iterator[Episode]:
    """Play every episode of a suite with a language model; those of a cell play at the same time.

    Args:
        agent: The model.
        suite: What to play.
        run: Place of the run in the entry.
        bar: Told how far it is.
    """
    total = sum(1 for _ in suite.slots())
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        bar.update(done / total, f"{done} of {total}")

    for cell in suite.cells:
        recorder = RecordEpisodes(make_cell_env(cell), None)
        yield from asyncio.run(_play_cell(agent, suite, cell, recorder, run, tick))
        recorder.close()


async def _play_cell(
    agent: TokenAgent,
    suite: Suite,
    cell: Cell,
    recorder: RecordEpisodes,
    run: int,
    tick: Callable[[], None],
) -> list[Episode]:
    from ...algos.core.forest import Tree
    from ...algos.core.protocols import Start
    from ...algos.rollouts import play_out

    runner = agent.runner(recorder)

    async def play(slot: Slot) -> Episode:
        uid = f"{slot.env}/{slot.task}/{slot.trial}"
        start = Start(cell.split, slot.task, suite.seed_of(slot), uid)
        try:
            # A fork of the start samples what the first chain of a group would.
            handle = (await runner.open(start)).fork(0)
            tree = await play_out(runner, handle, Tree())
        except ContextFullError as full:
            return lost(slot, AgentStopped("context_full", str(full)))
        except EnvFault:
            return lost(slot, AgentStopped("env_error", "the environment broke at its start"))
        finally:
            tick()
        stopped = None
        if tree.turns[-1].overflow:
            stopped = AgentStopped("context_full", "no room for another action")
        assert isinstance(handle.env, RecordEpisodes)
        return make_episode(handle.env.transcript, cell, slot, run, stopped)

    def lost(slot: Slot, stopped: AgentStopped) -> Episode:
        return next(make_failed_episodes(suite, [slot], stopped, run))

    return await asyncio.gather(*(play(slot) for slot in cell.slots()))
