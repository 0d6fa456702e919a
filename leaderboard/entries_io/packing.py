"""Make entries: the manifest, and episodes from transcripts."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from ...envs.core.errors import BadValueError, DataError
from ...envs.core.tasks import Task, find_task
from ...envs.wrappers.record import Transcript, get_versions
from ..schema.base import make_form
from ..schema.entry import Episode, Manifest, PlayedEnv, SuiteRef, find_blank
from ..schema.suite import Cell, Slot, Suite
from ..suites.digests import make_cell_env
from .play import AgentStopped, make_episode, make_failed_episodes


def make_manifest(suite: Suite, **fields: Any) -> Manifest:
    """Make a manifest; suite, environments, versions and today's date are filled in.

    Args:
        suite: The suite that was played.
        **fields: The other fields of :class:`Manifest`.

    Raises:
        BadValueError: A field is missing, unknown or invalid; names the first.
    """
    filled_in: dict[str, Any] = {
        "suite": SuiteRef(name=suite.name, version=suite.version, digest=suite.digest),
        "environments": tuple(
            PlayedEnv(key=cell.key, env_id=cell.env_id, digest=cell.digest) for cell in suite.cells
        ),
        "versions": dict(get_versions()),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }
    made = make_form(Manifest, "entry", **(filled_in | fields))
    if blank := find_blank(made):
        got = getattr(made, blank)
        raise BadValueError(f"entry: {blank} is {got!r}; expected something that can be read.")
    return made


def collect_episodes(
    transcripts: Iterable[Transcript], suite: Suite, *, run: int = 0, fill: bool = False
) -> list[Episode]:
    """Collect a suite's episodes from transcripts of :class:`~turngym.envs.RecordEpisodes`.

    An abandoned episode, or one with an action that no entry may hold, is packed with the error
    ``agent_error`` and counts as 0. Episodes of other
    environments, settings (apart from the render mode) or seeds are skipped.

    Args:
        transcripts: Transcripts in any order.
        suite: What was played.
        run: Place of the run in the manifest.
        fill: Whether missing episodes are packed as errors, which count as 0.

    Raises:
        DataError: An episode is missing (unless ``fill``), two complete ones have the same slot,
            or a task differs from the suite's.
    """
    cells = suite.by_key()
    slots = {(slot.env, suite.seed_of(slot)): slot for slot in suite.slots()}
    source_of = functools.cache(lambda key: make_cell_env(cells[key]).source)
    found: dict[Slot, Episode] = {}
    for transcript in transcripts:
        for cell in cells.values():
            slot = slots.get((cell.key, transcript.seed))
            if slot is not None and _belongs_to(transcript, cell):
                task = find_task(source_of(cell.key), cell.split, slot.task, cell.key)
                _check_task(transcript, slot, task)
                _store(found, slot, make_episode(transcript, suite, slot, run))
    missing = [slot for slot in suite.slots() if slot not in found]
    if missing and not fill:
        first = missing[0]
        raise DataError(
            f"{len(missing)} of {len(found) + len(missing)} episodes of {suite.id} are in no "
            f"transcript; the first is {first.env} task {first.task} trial {first.trial} with seed "
            f"{suite.seed_of(first)}. Play them with the suite's seeds and settings, or have them "
            "counted as errors."
        )
    lost = AgentStopped("agent_error", "no transcript of the episode")
    filled = make_failed_episodes(suite, missing, lost, run)
    found.update(zip(missing, filled, strict=True))
    return [found[slot] for slot in suite.slots()]


def _belongs_to(transcript: Transcript, cell: Cell) -> bool:
    return (
        transcript.env_id == cell.env_id
        and _without_rendering(transcript.kwargs) == _without_rendering(cell.settings)
        and transcript.split == cell.split
    )


def _without_rendering(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a replay depends on."""
    return {name: value for name, value in settings.items() if name != "render_mode"}


def _check_task(transcript: Transcript, slot: Slot, task: Task[Any]) -> None:
    """Check that an episode with a slot's seed plays the slot's task.

    Raises:
        DataError: It plays another one, or one with other content.
    """
    where = f"{slot.env} task {slot.task} trial {slot.trial}: the episode with this seed"
    if transcript.task_id != task.id:
        raise DataError(
            f"{where} plays the task {transcript.task_id!r}; expected {task.id!r}. Reset with "
            f"options={{'split': {task.split!r}, 'task': {slot.task}}}."
        )
    if transcript.task_digest != task.digest:
        raise DataError(
            f"{where} plays other content under the id {task.id!r}: its task has the digest "
            f"{transcript.task_digest}; expected {task.digest}. Play it with the environments of "
            "this version."
        )


def _store(found: dict[Slot, Episode], slot: Slot, episode: Episode) -> None:
    """Store an episode; complete ones replace failed ones, two different complete ones conflict."""
    old = found.get(slot)
    if old is None or (old.error is not None and episode.error is None):
        found[slot] = episode
    elif episode.error is None and old != episode:
        raise DataError(
            f"{episode.name}: two complete episodes are recorded with this seed; an entry contains "
            "one. Submit only the final attempt."
        )
