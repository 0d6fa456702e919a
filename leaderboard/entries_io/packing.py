"""Makes entries: the description around recorded episodes, and episodes from transcripts."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from ...envs.core.errors import DataError
from ...envs.wrappers.record import Transcript, get_versions
from ..schema.base import make_form
from ..schema.entry import Episode, Manifest, PlayedEnv, SuiteRef
from ..schema.suite import Cell, Slot, Suite
from .play import AgentStopped, episode_of, unplayed


def manifest_for(suite: Suite, **fields: Any) -> Manifest:
    """A description; the suite, the worlds, the versions and today's date are filled in.

    Args:
        suite: What was played.
        fields: The other fields of :class:`Manifest`.

    Raises:
        BadValueError: A field is missing, unknown or of the wrong value; names the first.
    """
    filled_in: dict[str, Any] = {
        "suite": SuiteRef(name=suite.name, version=suite.version, digest=suite.digest),
        "environments": tuple(
            PlayedEnv(key=cell.key, env_id=cell.env_id, digest=cell.digest) for cell in suite.cells
        ),
        "versions": dict(get_versions()),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }
    return make_form(Manifest, "entry", **(filled_in | fields))


def episodes_from(
    transcripts: Iterable[Transcript], suite: Suite, *, run: int = 0, fill: bool = False
) -> list[Episode]:
    """The suite's episodes out of transcripts that :class:`~turngym.envs.RecordEpisodes` wrote.

    An episode that was given up is packed with the error ``agent_error`` and counts as 0. Those of
    other worlds, settings or seeds are left out.

    Args:
        transcripts: Any order.
        suite: What was played.
        run: Place of the run in the manifest.
        fill: Pack episodes that are missing as errors; they count as 0.

    Raises:
        DataError: An episode is missing (unless ``fill``), there are two whole ones of the same
            slot, or a task is another than the suite's.
    """
    cells = suite.by_key()
    slots = {(slot.env, suite.seed_of(slot)): slot for slot in suite.slots()}
    found: dict[Slot, Episode] = {}
    for transcript in transcripts:
        for cell in cells.values():
            slot = slots.get((cell.key, transcript.seed))
            if slot is not None and _is_of(transcript, cell):
                _keep(found, slot, episode_of(transcript, cell, slot, run))
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
    filled = unplayed(suite, missing, lost, run)
    found.update(zip(missing, filled, strict=True))
    return [found[slot] for slot in suite.slots()]


def _is_of(transcript: Transcript, cell: Cell) -> bool:
    settings: Mapping[str, Any] = transcript.kwargs
    return (
        transcript.env_id == cell.env_id
        and dict(settings) == cell.settings
        and transcript.split == cell.split
    )


def _keep(found: dict[Slot, Episode], slot: Slot, episode: Episode) -> None:
    """Whole episodes replace broken ones; two different whole ones are a choice not ours."""
    old = found.get(slot)
    if old is None or (old.error is not None and episode.error is None):
        found[slot] = episode
    elif episode.error is None and old != episode:
        raise DataError(
            f"{episode.name}: two whole episodes are recorded with this seed, and an entry holds "
            "one. Record only what the agent finally did."
        )
