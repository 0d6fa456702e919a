"""Plays a suite with a scripted agent or a model, and packs the episodes for an entry."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from ..agents.scripted import scripted
from ..algos.progress import Bar
from ..envs.api import Policy, TextEnv
from ..envs.errors import ContextFullError
from ..leaderboard.entry import Episode, Manifest, ModelCard
from ..leaderboard.packing import manifest_for
from ..leaderboard.recording import AgentStopped, play_slot, play_suite
from ..leaderboard.suite import Cell, Slot, Suite
from ..leaderboard.suite_digests import make_world

if TYPE_CHECKING:
    from ..algos.forest import Tree
    from ..algos.token_agent import TokenAgent

Played = tuple[tuple[str, ...], AgentStopped | None]

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
    return manifest_for(
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
    """A language model on every episode of a suite; those of a world play at the same time.

    Args:
        agent: The model.
        suite: What to play.
        run: Place of the run in the entry.
        bar: Told how far it is.
    """
    total = sum(len(cell.tasks) * cell.trials for cell in suite.cells)
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        bar.update(done / total, f"{done} of {total}")

    for cell in suite.cells:
        world = make_world(cell)
        slots = [Slot(cell.key, task, i) for task in cell.tasks for i in range(cell.trials)]
        played = asyncio.run(_play(agent, suite, cell, slots, world, tick))
        for slot, (actions, stopped) in zip(slots, played, strict=True):

            def make(
                world: Any,  # noqa: ARG001 - the form of a maker
                seed: int,  # noqa: ARG001
                actions: tuple[str, ...] = actions,
                stopped: AgentStopped | None = stopped,
            ) -> Policy:
                return _Again(actions, stopped)

            yield play_slot(world, suite, cell, slot, make, run)
        world.close()


async def _play(
    agent: TokenAgent,
    suite: Suite,
    cell: Cell,
    slots: list[Slot],
    world: TextEnv[Any, Any],
    tick: Any,
) -> list[Played]:
    from ..algos.contracts import Start
    from ..algos.rollouts import Chains

    player = agent.runner(world)
    rollout = Chains(n=1)

    async def one(slot: Slot) -> Played:
        uid = f"{slot.env}/{slot.task}/{slot.trial}"
        start = Start(cell.split, slot.task, suite.seed_of(slot), uid)
        try:
            group = await rollout(player, start)
        except ContextFullError as full:
            return (), AgentStopped("context_full", str(full))
        finally:
            tick()
        if not group.trees:
            return (), AgentStopped("env_error", "the environment broke at its start")
        return _actions(group.trees[0])

    return await asyncio.gather(*(one(slot) for slot in slots))


def _actions(tree: Tree) -> Played:
    """The actions of a chain, and what stopped the agent before its end."""
    actions = tuple(turn.action for turn in tree.turns)
    last = tree.turns[-1]
    if last.overflow:
        return actions, AgentStopped("context_full", "no room for another action")
    if last.status == "env_error":
        return actions[:-1], AgentStopped("env_error", "the environment broke")
    return actions, None


class _Again:
    """Says what the model said; then stops as it did."""

    def __init__(self, actions: tuple[str, ...], stopped: AgentStopped | None) -> None:
        self._actions = iter(actions)
        self._stopped = stopped or AgentStopped("agent_error", "the model gave no action")

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:  # noqa: ARG002
        action = next(self._actions, None)
        if action is None:
            raise self._stopped
        return action
