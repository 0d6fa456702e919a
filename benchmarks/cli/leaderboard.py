"""`turngym leaderboard`: entries, boards and suites; the site, its server and sealed seasons."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ...algos.runs.progress import reporter
from ...envs.core.errors import DataError, TurngymError, UnknownNameError
from ...leaderboard.entries_io.files import write_entry
from ...leaderboard.entries_io.signing import new_key
from ...leaderboard.ranking.board import REFERENCES, make_boards
from ...leaderboard.ranking.index import (
    entries_folder,
    entry_folders,
    index_path,
    read_index,
    rebuild,
)
from ...leaderboard.schema.limits import ReplayLimits
from ...leaderboard.schema.result import Verdict
from ...leaderboard.schema.suite import Suite
from ...leaderboard.suites.digests import find_drifts
from ...leaderboard.suites.files import known_suites, load_suite, suite_ids
from ...leaderboard.verification.sandbox import verify, verify_queue
from .leaderboard_options import (
    BoardBuild,
    BoardIndex,
    BoardKey,
    BoardReference,
    BoardReveal,
    BoardSeason,
    BoardServe,
    BoardSuites,
    BoardTable,
    BoardToken,
    BoardVerify,
    BoundOptions,
    LeaderboardCommand,
)
from .leaderboard_tables import board_table, scores_table, suites_table
from .suite_play import reference_manifest, scripted_episodes


def check(action: BoardVerify) -> None:
    """Verify entries one after the other.

    Raises:
        DataError: An entry or a file is missing.
        TurngymError: An entry was refused.
    """
    console = Console()
    files = _suite_files(action.suite_file)
    entries = [_path(word) for word in action.entries]
    if not entries:
        raise DataError("name an entry: a folder, or a zip or tar archive of one.")
    verdicts: list[Verdict] = []
    missing: list[DataError] = []
    with reporter().bar("replaying") as bar:
        queue = verify_queue(
            entries,
            suites=files,
            replay=_limits(action.bounds),
            tell=lambda done, total: bar.update(done / total, f"{done} of {total}"),
        )
        for entry, outcome in queue:
            if isinstance(outcome, DataError):
                missing.append(outcome)
            else:
                verdicts.append(outcome)
                _show(console, entry, outcome)
    if action.json is not None:
        lines = "".join(verdict.model_dump_json() + "\n" for verdict in verdicts)
        _path(action.json).write_text(lines, encoding="utf-8")
    if missing:
        raise missing[0]
    if refused := sum(not verdict.accepted for verdict in verdicts):
        raise TurngymError(f"{refused} of {len(verdicts)} entries refused.")


def reference(action: BoardReference) -> None:
    """Make the reference rows.

    Raises:
        UnknownNameError: There is no such row or suite.
        DataError: An entry is there already.
    """
    suite = load_suite(action.suite)
    root = _folder(action.out)
    for name in action.only:
        if name not in REFERENCES:
            raise UnknownNameError("reference row", name, REFERENCES)
    chosen = [name for name in REFERENCES if not action.only or name in action.only]
    folders = [root / suite.id / name for name in chosen]
    for folder in folders:
        if folder.exists() and not action.overwrite:
            raise DataError(f"{folder}: exists; --overwrite replaces it.")
    for name, folder in zip(chosen, folders, strict=True):
        _write_reference(name, suite, folder)
        Console().print(f"wrote {folder}", highlight=False)


def index(action: BoardIndex) -> None:
    """Rebuild the index."""
    root, database = _folder(action.entries), _database(action.db)
    files = _suite_files(action.suite_file)
    limits = _limits(action.bounds)
    console = Console()
    with reporter().bar("indexing") as bar:
        found = rebuild(
            root,
            database,
            lambda folder: verify(folder, suites=files, replay=limits),
            fresh=action.fresh,
            tell=lambda name, place, count: bar.update(place / count, name),
        )
    for one in found:
        if one.verdict.refusal is not None:
            console.print(
                f"[red]refused[/] {one.entry_id}: {escape(one.verdict.refusal.message)}",
                highlight=False,
            )
    taken = sum(one.verdict.accepted for one in found)
    console.print(f"{taken} of {len(found)} entries are in {database}", highlight=False)


def table(action: BoardTable) -> None:
    """Show the boards.

    Raises:
        UnknownNameError: No board of that suite.
        DataError: There is no index yet.
    """
    found = make_boards(read_index(_database(action.db)))
    if action.suite is not None and action.suite not in {board.suite for board in found}:
        raise UnknownNameError("suite on a board", action.suite, {board.suite for board in found})
    chosen = [
        board
        for board in found
        if action.suite in (None, board.suite) and action.board in (None, board.board)
    ]
    console = Console()
    for board in chosen:
        console.print(board_table(board))
        if board.missing_references:
            console.print(
                f"missing: {', '.join(board.missing_references)}; make them with `turngym "
                f"leaderboard reference --suite {board.suite}`",
                highlight=False,
            )
    if not chosen:
        console.print("no entry is on such a board.")
    if action.json is not None:
        data = [board.model_dump() for board in chosen]
        text = json.dumps(data, indent=2) + "\n"
        _path(action.json).write_text(text, encoding="utf-8")


def suites(action: BoardSuites) -> None:
    """List or check suites.

    Raises:
        TurngymError: A suite is no longer that of the installed worlds.
    """
    console = Console()
    if not action.check:
        console.print(suites_table([load_suite(name) for name in suite_ids()]))
        return
    drifted = 0
    for name in action.check:
        suite = load_suite(name)
        count = 0
        for drift in find_drifts(suite):
            count += 1
            task = "" if drift.task is None else f" task {drift.task}"
            console.print(f"{suite.id} {drift.env}{task}: {escape(drift.what)}", highlight=False)
        tasks = sum(len(cell.tasks) for cell in suite.cells)
        console.print(f"{suite.id}: {count} of {tasks} tasks differ", highlight=False)
        drifted += count
    if drifted:
        raise TurngymError(
            f"{drifted} tasks are others than the suites say: a world changed without a new "
            "version of its id."
        )


def key(action: BoardKey) -> None:
    """Make a signing key."""
    path = _path(action.file)
    public = new_key(path)
    console = Console()
    console.print(f"private key: {path} (readable by you alone)", highlight=False)
    console.print(f"public key: {public}", highlight=False, soft_wrap=True)


def build(action: BoardBuild) -> None:
    """Write the site."""
    from ...leaderboard.site import SiteSettings, build_site

    index = read_index(_database(action.db))
    settings = SiteSettings(
        entries=_folder(action.entries),
        suites=known_suites([_path(word) for word in action.suite_file]),
        out=_path(action.out),
        transcripts=not action.no_transcripts,
    )
    there = {one.entry_id for one in index}
    if left := [name for name, _ in entry_folders(settings.entries) if name not in there]:
        Console().print(
            f"not in the index, so not on the site: {', '.join(left)}; replay them with "
            "`turngym leaderboard index`",
            highlight=False,
        )
    with reporter().bar("writing") as bar:
        count = build_site(
            index, settings, lambda what, place, parts: bar.update(place / parts, what)
        )
    Console().print(f"wrote {count} files; open {settings.out / 'index.html'}", highlight=False)


def serve(action: BoardServe) -> None:
    """Run the server until it is stopped."""
    from ...leaderboard.server import ServerSettings, serve_forever

    serve_forever(
        ServerSettings(
            home=_path(action.home),
            suite_files=tuple(_path(word) for word in action.suite_file),
            uploads_per_day=action.uploads_per_day,
            requests_per_minute=action.requests_per_minute,
            steps_per_minute=action.steps_per_minute,
            trust_proxy=action.trust_proxy,
            replay=_limits(action.bounds),
        ),
        action.host,
        action.port,
    )


def token(action: BoardToken) -> None:
    """Make or revoke an account's token."""
    from ...leaderboard.server import ServerSettings, new_token, revoke_tokens

    settings = ServerSettings(home=_path(action.home))
    console = Console()
    if action.revoke:
        count = revoke_tokens(settings, action.name)
        console.print(f"{count} tokens of {escape(action.name)} revoked", highlight=False)
        return
    made = new_token(settings, action.name)
    console.print(f"token of {escape(action.name)}, shown this once:", highlight=False)
    console.print(made, highlight=False, soft_wrap=True)


def season(action: BoardSeason) -> None:
    """Open a season."""
    from ...leaderboard.server import ServerSettings
    from ...leaderboard.server.publishing import prepare
    from ...leaderboard.suites.sealed import SeasonTerms, open_season, suite_file

    settings = ServerSettings(home=_path(action.home))
    terms = SeasonTerms(session_s=action.session_s, show_rewards=action.show_rewards)
    prepare(settings)
    with reporter().bar("making the season's worlds") as bar:
        public = open_season(
            settings.seasons,
            action.name,
            load_suite(action.suite),
            terms,
            lambda done, total: bar.update(done / total, f"{done} of {total}"),
        )
    suite = load_suite(suite_file(settings.seasons, public.name))
    for name in REFERENCES:
        _write_reference(name, suite, settings.entries / suite.id / name)
    console = Console()
    console.print(f"season {public.name} is open on the server of {settings.home}", highlight=False)
    console.print(f"commitment: {public.commitment}", highlight=False, soft_wrap=True)


def reveal(action: BoardReveal) -> None:
    """End a season and replay everything.

    Raises:
        TurngymError: An entry of the season does not replay.
    """
    from ...leaderboard.server import ServerSettings, reveal_and_replay

    settings = ServerSettings(home=_path(action.home))
    console = Console()
    with reporter().bar("replaying") as bar:
        outcome = reveal_and_replay(
            settings, action.name, lambda what, place, count: bar.update(place / count, what)
        )
    console.print(
        f"season {outcome.name}: the secret fits the commitment; published in {outcome.folder}",
        highlight=False,
        soft_wrap=True,
    )
    for entry_id, refusal in outcome.refused:
        console.print(f"[red]refused[/] {entry_id}: {escape(refusal)}", highlight=False)
    console.print(f"{outcome.accepted} entries replayed", highlight=False)
    if outcome.refused:
        raise TurngymError(f"{len(outcome.refused)} entries of the season do not replay.")


def _write_reference(name: str, suite: Suite, folder: Path) -> None:
    """Play a reference row; an older one in the folder is replaced when it is whole."""
    with reporter().bar(f"{name} on {suite.id}") as bar:
        episodes = list(scripted_episodes(name, suite, 0, bar))
    if folder.exists():
        shutil.rmtree(folder)
    write_entry(folder, reference_manifest(name, suite), episodes)


def _show(console: Console, entry: Path, verdict: Verdict) -> None:
    if verdict.scores is not None and verdict.manifest is not None:
        console.print(
            f"[green]accepted[/] {escape(str(entry))}: {verdict.replayed} episodes replayed in "
            f"{verdict.seconds:.1f} s",
            highlight=False,
        )
        console.print(scores_table(verdict.manifest.name, verdict.scores))
        return
    assert verdict.refusal is not None
    refusal = verdict.refusal
    console.print(
        f"[red]refused[/] {escape(str(entry))} ({refusal.reason}): {escape(refusal.message)}",
        highlight=False,
        soft_wrap=True,
    )
    for label, value in (("expected", refusal.expected), ("got", refusal.got)):
        if value:
            console.print(f"  {label}: {escape(value)}", highlight=False, soft_wrap=True)


def _limits(bounds: BoundOptions) -> ReplayLimits:
    return ReplayLimits(cpu_s=bounds.cpu_s, wall_s=bounds.wall_s, memory_mib=bounds.memory_mib)


def _suite_files(words: Sequence[str]) -> list[Path]:
    paths = [_path(word) for word in words]
    for path in paths:
        load_suite(path)
    return paths


def _path(word: str) -> Path:
    return Path(word).expanduser()


def _folder(word: str | None) -> Path:
    return _path(word) if word else entries_folder()


def _database(word: str | None) -> Path:
    return _path(word) if word else index_path()


_ACTIONS: dict[type, Callable[[Any], None]] = {
    BoardVerify: check,
    BoardReference: reference,
    BoardIndex: index,
    BoardTable: table,
    BoardSuites: suites,
    BoardKey: key,
    BoardBuild: build,
    BoardServe: serve,
    BoardToken: token,
    BoardSeason: season,
    BoardReveal: reveal,
}


def run(command: LeaderboardCommand) -> None:
    """Do what was asked for."""
    _ACTIONS[type(command.action)](command.action)
