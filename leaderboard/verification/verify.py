"""Verify one entry in this process; :mod:`.sandbox` does it in a process with limits."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...envs.core.digest import digest_of
from ...envs.core.env import TextEnv
from ...envs.core.errors import TurngymError
from ...envs.wrappers.record import get_versions
from ..entries_io.files import EntryFiles
from ..entries_io.signing import entry_digest, is_valid
from ..ranking.scoring import score_entry
from ..schema.base import OnProgress
from ..schema.entry import Manifest
from ..schema.limits import ReadLimits
from ..schema.result import EpisodeResult, Refused, Verdict, refused
from ..schema.suite import Cell, Slot, Suite
from ..suites.digests import make_cell_env
from ..suites.files import known_suites
from .checks import check_coverage, check_manifest, check_runs, check_slot, find_suite
from .replay import replay_episode


@dataclass
class _Findings:
    """What is known of an entry so far, also when it is refused."""

    manifest: Manifest | None = None
    digest: str = ""
    signed_by: str = ""
    results: list[EpisodeResult] = field(default_factory=list)
    actions: dict[tuple[int, Slot], str] = field(default_factory=dict)

    def run_actions(self) -> tuple[str, ...]:
        """Return the hash of all actions of each run, whatever order they were written in."""
        runs = sorted({run for run, _ in self.actions})
        return tuple(
            digest_of(sorted((slot, h) for (own, slot), h in self.actions.items() if own == run))
            for run in runs
        )


def verify_folder(
    root: Path,
    suites: Mapping[str, Suite] | None = None,
    limits: ReadLimits | None = None,
    on_progress: OnProgress | None = None,
) -> Verdict:
    """Replay every episode of an entry in fresh environments and recompute every score.

    Args:
        root: The entry's folder.
        suites: Suites by id; None takes the package's.
        limits: Limits on what is read.
        on_progress: Called with the number of replayed episodes and of all.

    Returns:
        The verdict. An invalid entry gives a refusal, never an exception.
    """
    begun = time.monotonic()
    found = _Findings()
    refusal = scores = None
    try:
        suite = _check_and_replay(
            root, found, known_suites() if suites is None else suites, limits, on_progress
        )
        assert found.manifest is not None
        scores = score_entry(suite, found.results, len(found.manifest.runs))
    except Refused as error:
        refusal = error.refusal
    return Verdict(
        accepted=refusal is None,
        refusal=refusal,
        manifest=found.manifest,
        entry_digest=found.digest,
        signed_by=found.signed_by,
        scores=scores,
        episodes=tuple(found.results) if refusal is None else (),
        run_actions=found.run_actions() if refusal is None else (),
        replayed=len(found.results),
        seconds=time.monotonic() - begun,
        verifier=dict(get_versions()),
    )


def _check_and_replay(
    root: Path,
    found: _Findings,
    suites: Mapping[str, Suite],
    limits: ReadLimits | None,
    on_progress: OnProgress | None,
) -> Suite:
    """Run all checks, the cheap ones first.

    Raises:
        Refused: The first that fails.
    """
    files = EntryFiles(root, limits)
    found.digest = entry_digest(files.canonical)
    manifest = found.manifest = files.manifest()
    found.signed_by = _signer(files)
    suite = find_suite(manifest, suites)
    check_manifest(manifest, suite)
    total = check_coverage(files.episodes(), suite, len(manifest.runs))
    cells = suite.by_key()
    make_env = functools.cache(lambda key: _make_env(cells[key]))
    for episode in files.episodes():
        check_slot(episode, suite, cells, len(manifest.runs))
        env, cell = make_env(episode.env), cells[episode.env]
        found.results.append(replay_episode(env, cell, episode, suite.max_action_chars))
        slot = Slot(episode.env, episode.task, episode.trial)
        found.actions[episode.run, slot] = digest_of(episode.actions)
        if on_progress is not None:
            on_progress(len(found.results), total)
    check_runs(manifest, found.run_actions())
    places = {slot: place for place, slot in enumerate(suite.slots())}
    found.results.sort(key=lambda r: (r.run, places[Slot(r.env, r.task, r.trial)]))
    return suite


def _make_env(cell: Cell) -> TextEnv[Any, Any]:
    try:
        return make_cell_env(cell)
    except TurngymError as error:  # no fault of the entry's, and other entries may not need it
        raise refused(
            "environment_broken", f"{cell.key}: its environment cannot be made here: {error}"
        ) from error


def _signer(files: EntryFiles) -> str:
    signature = files.signature()
    if signature is None:
        return ""
    if not is_valid(signature, files.canonical):
        raise refused(
            "signature",
            "the signature does not match the files; sign the entry again after the last change.",
            got=signature.fingerprint,
        )
    return signature.fingerprint
