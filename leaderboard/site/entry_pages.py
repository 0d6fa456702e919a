"""The pages of one entry: description, scores, and every episode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...envs.core.digest import digest_of
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
    """Write the entry's page, and one per task with its transcripts.

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
        for task, episodes in _group_by_task(files.episodes(), cell.key).items():
            text = renderer.text(
                "task.html",
                depth=4,
                here="boards",
                name=one.manifest.name,
                entry_id=one.entry_id,
                cell=cell,
                task=task,
                rules=recorder.inner.instructions,
                tasks=cell.tasks,
                episodes=[_replay(recorder, cell, episode) for episode in episodes],
            )
            folder.write(f"{home}/{cell.key}/{task}.html", text)
        recorder.close()
    folder.write(f"{home}/{_STAMP}", stamp)


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
    templates = [(HERE / "templates" / name).read_text() for name in ("base.html", "task.html")]
    return digest_of((verdict.entry_digest, sorted(verdict.verifier.items()), uploads, templates))


def _tasks(episodes: tuple[EpisodeResult, ...]) -> dict[str, dict[int, list[EpisodeResult]]]:
    """Return the results by environment and task."""
    found: dict[str, dict[int, list[EpisodeResult]]] = {}
    for episode in episodes:
        found.setdefault(episode.env, {}).setdefault(episode.task, []).append(episode)
    return found
