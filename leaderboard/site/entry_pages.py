"""The pages of one entry: description, scores, and every episode.

The episodes of an entry in an environment are one page and one compressed file beside it, from
which a script of the site shows one task at a time: as a page per task they took fifty times the
bytes. Texts that come again, as the first observation of every trial does, are stored once.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...envs.core.digest import digest_of
from ...envs.utils.untrusted_text import plain
from ...envs.wrappers.record import RecordEpisodes, Transcript
from ..entries_io.files import EntryFiles
from ..ranking.board import reference_of
from ..ranking.index import Indexed
from ..schema.entry import Episode
from ..schema.result import EpisodeResult, Verdict
from ..schema.suite import Cell, Suite
from ..suites.digests import make_cell_env
from .board_pages import Placed
from .rendering import HERE, Folder, Renderer
from .settings import SiteSettings

_STAMP = "stamp.txt"
_FORMAT = 1
"""Of the files of episodes; written into every stamp."""
_DATA = "episodes.js"
_OWN = ("return", "turns")
"""Metrics that stand elsewhere beside the episode."""


@dataclass(frozen=True)
class ShownEpisode:
    """An episode of a page: the entry's record and its replay."""

    episode: Episode
    transcript: Transcript
    total: float

    @property
    def status(self) -> str:
        """Return the final status, or the error that stopped the agent."""
        return self.episode.error or self.transcript.status


def write_entry_pages(
    renderer: Renderer, folder: Folder, one: Indexed, placed: Placed, settings: SiteSettings
) -> None:
    """Write the entry's page, and one per environment with its episodes.

    Transcripts of an unchanged entry are not written again. If the suite is not public, as that of
    a sealed season, the pages do not reveal the tasks.
    """
    verdict = one.verdict
    suite = settings.suites.get(one.manifest.suite.id)
    linked = settings.transcripts and suite is not None
    if suite is not None and settings.transcripts:
        _write_transcripts(renderer, folder, one, suite, settings)
    home = f"entries/{one.entry_id}"
    standing = [
        (path, board, row)
        for path, board in placed
        for row in board.rows
        if row.entry_id == one.entry_id
    ]
    page = renderer.text(
        "entry.html",
        depth=3,
        here="boards",
        one=one,
        manifest=one.manifest,
        scores=one.scores,
        verdict=verdict,
        standing=standing,
        reference=reference_of(one),
        tasks=_tasks(verdict.episodes),
        failed=[episode for episode in verdict.episodes if episode.failed],
        linked=linked,
        known=suite is not None,
    )
    folder.write(f"{home}/index.html", page)


def _write_transcripts(
    renderer: Renderer, folder: Folder, one: Indexed, suite: Suite, settings: SiteSettings
) -> None:
    verdict, home = one.verdict, f"entries/{one.entry_id}"
    stamp = _stamp(verdict, settings.uploads)
    old = folder.root / home / _STAMP
    if old.is_file() and old.read_text(encoding="utf-8") == stamp:
        folder.keep(home)
        return
    files = EntryFiles(settings.entries / one.entry_id)
    for cell in suite.cells:
        recorder = RecordEpisodes(make_cell_env(cell), None)
        shown = {
            task: [_replay(recorder, cell, episode) for episode in episodes]
            for task, episodes in _group_by_task(files.episodes(), cell.key).items()
        }
        text = renderer.text(
            "episodes.html",
            depth=4,
            here="boards",
            name=one.manifest.name,
            cell=cell,
            rules=recorder.inner.instructions,
            tasks=sorted(shown),
        )
        folder.write(f"{home}/{cell.key}/index.html", text)
        folder.write(f"{home}/{cell.key}/{_DATA}", pack_episodes(shown))
        recorder.close()
    folder.write(f"{home}/{_STAMP}", stamp)


def pack_episodes(shown: Mapping[int, Sequence[ShownEpisode]]) -> str:
    """Return the script that holds episodes: JSON, compressed, and nothing that could run.

    As a script it is read without a server too, where a page may fetch no file.
    :func:`unpack_episodes` is its inverse.
    """
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(plain(text), len(texts))

    tasks = {str(task): [_row(one, number) for one in listed] for task, listed in shown.items()}
    data = {"format": _FORMAT, "texts": list(texts), "tasks": tasks}
    raw = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    packed = base64.b64encode(gzip.compress(raw, compresslevel=9, mtime=0)).decode()
    return f'globalThis.packedEpisodes = "{packed}";\n'


def unpack_episodes(script: str) -> dict[str, Any]:
    """Return what :func:`pack_episodes` packed: texts, and the episodes of each task."""
    return json.loads(gzip.decompress(base64.b64decode(script.split('"')[1])))


def _row(one: ShownEpisode, number: Callable[[str], int]) -> dict[str, Any]:
    """Return an episode with the numbers of its texts."""
    script, end = one.transcript, one.transcript.observation
    return {
        "trial": one.episode.trial,
        "run": one.episode.run,
        "seed": one.episode.seed,
        "status": one.status,
        "return": round(one.total, 6),
        "metrics": [[k, float(f"{v:.3g}")] for k, v in script.metrics.items() if k not in _OWN],
        "error": one.episode.error or "",
        "why": plain(one.episode.why or "") if one.episode.error else "",
        "turns": [
            [
                number(turn.observation),
                number(turn.action),
                turn.session,
                int(turn.valid),
                round(turn.reward, 6),
                [[key, round(value, 6)] for key, value in turn.terms.items() if value],
            ]
            for turn in script.steps
        ],
        "end": number(end) if end.strip() else None,
    }


def _replay(recorder: RecordEpisodes, cell: Cell, episode: Episode) -> ShownEpisode:
    """Replay an episode of a verified entry to get its observations."""
    recorder.reset(seed=episode.seed, options={"split": cell.split, "task": episode.task})
    for action in episode.actions:
        recorder.step(action)
    return ShownEpisode(episode, recorder.transcript, recorder.inner.episode.total_reward)


def _group_by_task(episodes: Iterator[Episode], env: str) -> dict[int, list[Episode]]:
    """Return the episodes of one cell by task; runs and trials in order."""
    found: dict[int, list[Episode]] = {}
    for episode in episodes:
        if episode.env == env:
            found.setdefault(episode.task, []).append(episode)
    for listed in found.values():
        listed.sort(key=lambda episode: (episode.run, episode.trial))
    return dict(sorted(found.items()))


def _stamp(verdict: Verdict, uploads: bool) -> str:
    """Return the hash of what transcripts depend on: entry, environments' code, templates."""
    files = (HERE / "templates" / name for name in ("base.html", "episodes.html"))
    templates = [file.read_text(encoding="utf-8") for file in files]
    return digest_of(
        (_FORMAT, verdict.entry_digest, sorted(verdict.verifier.items()), uploads, templates)
    )


def _tasks(episodes: tuple[EpisodeResult, ...]) -> dict[str, dict[int, list[EpisodeResult]]]:
    """Return the results by environment and task."""
    found: dict[str, dict[int, list[EpisodeResult]]] = {}
    for episode in episodes:
        found.setdefault(episode.env, {}).setdefault(episode.task, []).append(episode)
    return found
