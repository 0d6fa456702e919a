"""Play a suite with any policy and convert the recorded episodes to those of an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...envs.core.env import Policy, TextEnv
from ...envs.core.errors import ContextFullError, TurngymError
from ...envs.wrappers.record import RecordEpisodes, Transcript
from ..schema.base import OnProgress
from ..schema.entry import Episode, ErrorKind
from ..schema.suite import Cell, Slot, Suite
from ..suites.digests import make_cell_env

MakePolicy = Callable[[TextEnv[Any, Any], int], Policy]
"""Function that makes the policy of one episode from the environment and the episode's seed."""


class AgentStopped(TurngymError):
    """Raised by a policy that cannot continue; the episode is an error and counts as 0."""

    def __init__(self, kind: ErrorKind, why: str) -> None:
        super().__init__(why)
        self.kind: ErrorKind = kind


def play_suite(
    suite: Suite, make: MakePolicy, *, run: int = 0, on_progress: OnProgress | None = None
) -> Iterator[Episode]:
    """Play every episode of one run, in the suite's order.

    Args:
        suite: The suite.
        make: Makes the policy of each episode.
        run: Place of the run in the manifest.
        on_progress: Called with the number of finished episodes and of all.
    """
    total = sum(1 for _ in suite.slots())
    done = 0
    for cell in suite.cells:
        recorder = RecordEpisodes(make_cell_env(cell), None)
        for slot in cell.slots():
            yield play_slot(recorder, suite, cell, slot, make, run)
            done += 1
            if on_progress is not None:
                on_progress(done, total)
        recorder.close()


def play_slot(
    recorder: RecordEpisodes, suite: Suite, cell: Cell, slot: Slot, make: MakePolicy, run: int = 0
) -> Episode:
    """Play one episode.

    An agent that raises :class:`AgentStopped` or :class:`ContextFullError`, or a failing
    environment, ends the episode with an error. Other exceptions of the agent propagate.

    Args:
        recorder: A recorder around an environment of the cell.
        suite: The suite, which determines the seed.
        cell: The slot's cell.
        slot: The episode to play.
        make: Makes the policy.
        run: Place of the run in the manifest.
    """
    observation, info = start_slot(recorder, suite, cell, slot)
    env = recorder.inner
    policy = make(env, suite.seed_of(slot))
    stopped: AgentStopped | None = None
    while info["status"] == "running":
        try:
            action = storable(policy(env, observation, info))
        except AgentStopped as stop:
            stopped = stop
            break
        except ContextFullError as full:
            stopped = AgentStopped("context_full", str(full))
            break
        observation, _, _, _, info = recorder.step(action)
    return make_episode(recorder.transcript, suite, slot, run, stopped)


def start_slot(
    recorder: RecordEpisodes, suite: Suite, cell: Cell, slot: Slot
) -> tuple[str, dict[str, Any]]:
    """Reset the environment to an episode of the suite."""
    options = {"split": cell.split, "task": slot.task}
    return recorder.reset(seed=suite.seed_of(slot), options=options)


def make_failed_episodes(
    suite: Suite, slots: Iterable[Slot], stopped: AgentStopped, run: int = 0
) -> Iterator[Episode]:
    """Return episodes in which the agent failed before its first action; each counts as 0."""
    cells = suite.by_key()
    recorders: dict[str, RecordEpisodes] = {}
    for slot in slots:
        cell = cells[slot.env]
        if slot.env not in recorders:
            recorders[slot.env] = RecordEpisodes(make_cell_env(cell), None)
        start_slot(recorders[slot.env], suite, cell, slot)
        yield make_episode(recorders[slot.env].transcript, suite, slot, run, stopped)


def make_episode(
    transcript: Transcript, suite: Suite, slot: Slot, run: int, stopped: AgentStopped | None = None
) -> Episode:
    """Convert a recorded episode to an entry's episode: actions and hashes.

    It ends, with an error of the agent, before an action that no entry may hold: one that is not
    valid UTF-8, or too long. To the environment such an action is only unreadable.

    Args:
        transcript: The recording; an action that broke the environment is dropped.
        suite: The suite.
        slot: The episode's slot.
        run: Place of the run in the manifest.
        stopped: Error that ended an unfinished episode; abandoned by default.
    """
    cell = suite.by_key()[slot.env]
    error: ErrorKind | None = None
    why, steps = "", transcript.steps
    if transcript.status == "env_error":
        error, why, steps = "env_error", transcript.observation, steps[:-1]
    elif transcript.status == "running":
        stopped = stopped or AgentStopped("agent_error", "the episode was abandoned")
        error, why = stopped.kind, str(stopped)
    for turn, step in enumerate(steps):
        if unfit := _unfit(step.action, suite.max_action_chars):
            error, why, steps = "agent_error", f"action {turn + 1} {unfit}", steps[:turn]
            break
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


def _unfit(action: str, max_chars: int) -> str:
    """Return why no entry may hold an action; empty for any other."""
    if len(action) > max_chars:
        return f"has {len(action)} characters; an entry holds at most {max_chars}"
    return "" if storable(action) == action else "contains a lone surrogate, which is not UTF-8"


def storable(action: str) -> str:
    """Return the action as valid UTF-8: lone surrogates become question marks."""
    return action.encode("utf-8", "replace").decode("utf-8")


def one_line(text: str) -> str:
    """Return a short text without control characters."""
    return "".join(c if c >= " " and c != "\x7f" else " " for c in storable(text))[:400]
