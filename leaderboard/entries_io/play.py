"""Plays a suite with any policy and makes the recorded episodes those of an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...envs.core.env import Policy, TextEnv
from ...envs.core.errors import ContextFullError, DataError, TurngymError
from ...envs.wrappers.record import RecordEpisodes, Transcript
from ..schema.entry import Episode, ErrorKind
from ..schema.suite import Cell, Slot, Suite
from ..suites.digests import make_world

MakePolicy = Callable[[TextEnv[Any, Any], int], Policy]
"""Makes the policy of one episode from the environment and the episode's seed."""
Tick = Callable[[int, int], None]


class AgentStopped(TurngymError):
    """Raised by a policy that cannot continue; the episode is an error and counts as 0."""

    def __init__(self, kind: ErrorKind, why: str) -> None:
        super().__init__(why)
        self.kind: ErrorKind = kind


def play_suite(
    suite: Suite, make: MakePolicy, *, run: int = 0, tell: Tick | None = None
) -> Iterator[Episode]:
    """Play every episode of one run, in the suite's order.

    Args:
        suite: What to play.
        make: Makes the policy; called anew for each episode.
        run: Place of the run in the manifest.
        tell: Called with the number of finished episodes and of all.
    """
    total = sum(1 for _ in suite.slots())
    done = 0
    for cell in suite.cells:
        recorder = RecordEpisodes(make_world(cell), None)
        for slot in cell.slots():
            yield play_slot(recorder, suite, cell, slot, make, run)
            done += 1
            if tell is not None:
                tell(done, total)
        recorder.close()


def play_slot(
    recorder: RecordEpisodes, suite: Suite, cell: Cell, slot: Slot, make: MakePolicy, run: int = 0
) -> Episode:
    """Play one episode.

    An agent that raises :class:`AgentStopped` or says that its context is full, and an environment
    that breaks, end it with an error. Any other exception of the agent goes up.

    Args:
        recorder: A recorder around an environment of the cell.
        suite: Says the seed.
        cell: The slot's cell.
        slot: Which episode.
        make: Makes the policy.
        run: Place of the run in the manifest.
    """
    observation, info = start_slot(recorder, suite, cell, slot)
    world = recorder.inner
    policy = make(world, suite.seed_of(slot))
    stopped: AgentStopped | None = None
    while info["status"] == "running":
        try:
            action = storable(policy(world, observation, info))
        except AgentStopped as stop:
            stopped = stop
            break
        except ContextFullError as full:
            stopped = AgentStopped("context_full", str(full))
            break
        observation, _, _, _, info = recorder.step(action)
    return episode_of(recorder.transcript, cell, slot, run, stopped)


def start_slot(
    recorder: RecordEpisodes, suite: Suite, cell: Cell, slot: Slot
) -> tuple[str, dict[str, Any]]:
    """Reset the environment to an episode of the suite."""
    options = {"split": cell.split, "task": slot.task}
    return recorder.reset(seed=suite.seed_of(slot), options=options)


def unplayed(
    suite: Suite, slots: Iterable[Slot], stopped: AgentStopped, run: int = 0
) -> Iterator[Episode]:
    """Return episodes in which the agent failed before its first action; each counts as 0."""
    cells = suite.by_key()
    recorders: dict[str, RecordEpisodes] = {}
    for slot in slots:
        cell = cells[slot.env]
        if slot.env not in recorders:
            recorders[slot.env] = RecordEpisodes(make_world(cell), None)
        start_slot(recorders[slot.env], suite, cell, slot)
        yield episode_of(recorders[slot.env].transcript, cell, slot, run, stopped)


def episode_of(
    transcript: Transcript, cell: Cell, slot: Slot, run: int, stopped: AgentStopped | None = None
) -> Episode:
    """Return what an entry holds of a recorded episode: actions and hashes.

    Args:
        transcript: The episode; the action that broke the environment is left out.
        cell: The suite's cell.
        slot: Which episode it is.
        run: Place of the run in the manifest.
        stopped: What ended an unfinished episode; given up when left out.

    Raises:
        DataError: An action that an entry cannot hold.
    """
    error: ErrorKind | None = None
    why, steps = "", transcript.steps
    if transcript.status == "env_error":
        error, why, steps = "env_error", transcript.observation, steps[:-1]
    elif transcript.status == "running":
        stopped = stopped or AgentStopped("agent_error", "the episode was given up")
        error, why = stopped.kind, str(stopped)
    if any(storable(step.action) != step.action for step in steps):
        raise DataError(
            f"transcript of {transcript.task_id}: an action holds a lone surrogate, which an entry "
            "cannot; have the agent write valid UTF-8."
        )
    return Episode(
        env=cell.key,
        task=slot.task,
        task_id=transcript.task_id,
        task_digest=cell.digest_of_task(slot.task),
        run=run,
        trial=slot.trial,
        seed=transcript.seed,
        actions=tuple(step.action for step in steps),
        chain=(transcript.chain, *(step.chain for step in steps)),
        error=error,
        why=one_line(why),
    )


def storable(action: str) -> str:
    """Return the action as JSON in UTF-8 can hold it: lone surrogates become question marks."""
    return action.encode("utf-8", "replace").decode("utf-8")


def one_line(text: str) -> str:
    """Return a short text without control characters."""
    return "".join(c if c >= " " and c != "\x7f" else " " for c in storable(text))[:400]
