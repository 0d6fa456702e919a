"""Verifies one entry in this process; :mod:`.sandbox` does it in one with limits."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...envs.wrappers.record import get_versions
from ..entries_io.files import EntryFiles
from ..entries_io.signing import entry_digest, is_valid
from ..ranking.scoring import entry_scores
from ..schema.entry import Manifest
from ..schema.limits import ReadLimits
from ..schema.result import EpisodeResult, Refused, Verdict, refused
from ..schema.suite import Slot, Suite
from ..suites.digests import make_world
from ..suites.files import known_suites
from .checks import check_coverage, check_manifest, check_slot, suite_of
from .replay import replay_episode

Tick = Callable[[int, int], None]


@dataclass
class _Findings:
    """What is known of an entry so far; a refusal keeps it."""

    manifest: Manifest | None = None
    digest: str = ""
    signed_by: str = ""
    results: list[EpisodeResult] = field(default_factory=list)


def verify_folder(
    root: Path,
    suites: Mapping[str, Suite] | None = None,
    limits: ReadLimits | None = None,
    tell: Tick | None = None,
) -> Verdict:
    """Replay every episode of an entry in fresh environments and recompute every score.

    Args:
        root: The entry's folder.
        suites: Suites by id; the package's when None.
        limits: Bounds on what is read.
        tell: Told the episodes that were replayed, and how many there are.

    Returns:
        The verdict. Whatever is wrong with the entry is a refusal, never an exception.
    """
    begun = time.monotonic()
    found = _Findings()
    refusal = scores = None
    try:
        suite = _checked(root, found, known_suites() if suites is None else suites, limits, tell)
        assert found.manifest is not None
        scores = entry_scores(suite, found.results, len(found.manifest.runs))
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
        replayed=len(found.results),
        seconds=time.monotonic() - begun,
        verifier=dict(get_versions()),
    )


def _checked(
    root: Path,
    found: _Findings,
    suites: Mapping[str, Suite],
    limits: ReadLimits | None,
    tell: Tick | None,
) -> Suite:
    """All checks, the cheap ones first.

    Raises:
        Refused: The first that fails.
    """
    files = EntryFiles(root, limits)
    found.digest = entry_digest(files.canonical)
    manifest = found.manifest = files.manifest()
    found.signed_by = _signer(files)
    suite = suite_of(manifest, suites)
    check_manifest(manifest, suite)
    total = check_coverage(files.episodes(), suite, len(manifest.runs))
    cells = suite.by_key()
    make_env = functools.cache(lambda key: make_world(cells[key]))
    for episode in files.episodes():
        check_slot(episode, suite, cells, len(manifest.runs))
        env, cell = make_env(episode.env), cells[episode.env]
        found.results.append(replay_episode(env, cell, episode, suite.max_action_chars))
        if tell is not None:
            tell(len(found.results), total)
    places = {slot: place for place, slot in enumerate(suite.slots())}
    found.results.sort(key=lambda r: (r.run, places[Slot(r.env, r.task, r.trial)]))
    return suite


def _signer(files: EntryFiles) -> str:
    signature = files.signature()
    if signature is None:
        return ""
    if not is_valid(signature, files.canonical):
        raise refused(
            "signature",
            "the signature does not fit the files: they, or it, were changed after signing.",
            got=signature.fingerprint,
        )
    return signature.fingerprint
