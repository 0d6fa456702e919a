"""Plays a suite with any policy and keeps what an entry holds: actions and hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...envs.api import Policy, TextEnv
from ...envs.errors import ContextFullError, TurngymError
from ...envs.record import link
from ..schema.entry import Episode, ErrorKind
from ..schema.suite import Cell, Slot, Suite
from ..suites.digests import make_world

MakePolicy = Callable[[TextEnv[Any, Any], int], Policy]
"""Makes the policy of one episode from the world and the episode's seed."""
Tick = Callable[[int, int], None]


class AgentStopped(TurngymError):
    """Raised by a policy that cannot go on; the episode is packed as an error and counts as 0."""

    def __init__(self, kind: ErrorKind, why: str) -> None:
        super().__init__(why)
        self.kind: ErrorKind = kind


def play_suite(
    suite: Suite, make: MakePolicy, *, run: int = 0, tell: Tick | None = None
) -> Iterator[Episode]:
    """Every episode of one run, in the suite's order.

    Args:
        suite: What to play.
        make: Makes the policy; called anew for each episode.
        run: Place of the run in the manifest.
        tell: Told the episodes that are done, and how many there are.
    """
    total = sum(len(cell.tasks) * cell.trials for cell in suite.cells)
    done = 0
    for cell in suite.cells:
        world = make_world(cell)
        for task in cell.tasks:
            for trial in range(cell.trials):
                slot = Slot(cell.key, task, trial)
                yield play_slot(world, suite, cell, slot, make, run)
                done += 1
                if tell is not None:
                    tell(done, total)
        world.close()


def play_slot(
    world: TextEnv[Any, Any], suite: Suite, cell: Cell, slot: Slot, make: MakePolicy, run: int = 0
) -> Episode:
    """One episode.

    An agent that raises :class:`AgentStopped` or says that its context is full, and a world that
    breaks, end it with an error. Any other exception of the agent goes up.

    Args:
        world: An environment of the cell.
        suite: Says the seed.
        cell: The slot's cell.
        slot: Which episode.
        make: Makes the policy.
        run: Place of the run in the manifest.
    """
    seed = suite.seed_of(slot)
    observation, info = world.reset(seed=seed, options={"split": cell.split, "task": slot.task})
    chain = [link("", world.instructions, observation)]
    actions: list[str] = []
    error: ErrorKind | None = None
    why = ""
    policy = make(world, seed)
    while info["status"] == "running":
        try:
            action = storable(policy(world, observation, info))
        except AgentStopped as stop:
            error, why = stop.kind, str(stop)
            break
        except ContextFullError as full:
            error, why = "context_full", str(full)
            break
        observation, _, _, _, info = world.step(action)
        if info["status"] == "env_error":
            error, why = "env_error", observation
            break
        actions.append(action)
        chain.append(link(chain[-1], action, observation))
    return Episode(
        env=cell.key,
        task=slot.task,
        task_id=info["task_id"],
        task_digest=cell.digest_of_task(slot.task),
        run=run,
        trial=slot.trial,
        seed=seed,
        actions=tuple(actions),
        chain=tuple(chain),
        error=error,
        why=one_line(why),
    )


def unplayed(
    suite: Suite, slots: Iterable[Slot], stopped: AgentStopped, run: int = 0
) -> Iterator[Episode]:
    """Episodes in which the agent failed before its first action; each counts as 0."""
    cells = suite.by_key()
    worlds: dict[str, TextEnv[Any, Any]] = {}

    def fail(env: Any, observation: str, info: Any) -> str:  # noqa: ARG001 - a policy's form
        raise stopped

    def make(world: Any, seed: int) -> Policy:  # noqa: ARG001 - the form of a maker
        return fail

    for slot in slots:
        cell = cells[slot.env]
        if slot.env not in worlds:
            worlds[slot.env] = make_world(cell)
        yield play_slot(worlds[slot.env], suite, cell, slot, make, run)


def storable(action: str) -> str:
    """The action as JSON in UTF-8 can hold it: lone surrogates become question marks."""
    return action.encode("utf-8", "replace").decode("utf-8")


def one_line(text: str) -> str:
    """A short text without control characters."""
    return "".join(c if c >= " " and c != "\x7f" else " " for c in storable(text))[:400]
