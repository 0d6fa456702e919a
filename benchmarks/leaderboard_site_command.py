"""`turngym leaderboard build | serve | token | season | reveal`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ..algos.progress import reporter
from ..envs.errors import TurngymError
from ..leaderboard.entries_io.files import write_entry
from ..leaderboard.ranking.board import REFERENCES
from ..leaderboard.ranking.index import entries_folder, entry_folders, index_path, read_index
from ..leaderboard.schema.limits import ReplayLimits
from ..leaderboard.schema.suite import Suite
from ..leaderboard.suites import load_suite
from ..leaderboard.verification.checks import known_suites
from .leaderboard_site_options import BoardBuild, BoardReveal, BoardSeason, BoardServe, BoardToken
from .suite_play import reference_manifest, scripted_episodes


def run_site(action: BoardBuild | BoardServe | BoardToken | BoardSeason | BoardReveal) -> None:
    """Do what was asked for."""
    if isinstance(action, BoardBuild):
        build(action)
    elif isinstance(action, BoardServe):
        serve(action)
    elif isinstance(action, BoardToken):
        token(action)
    elif isinstance(action, BoardSeason):
        season(action)
    else:
        reveal(action)


def build(action: BoardBuild) -> None:
    """Write the site."""
    from ..leaderboard.site import SiteSettings, build_site

    index = read_index(_path(action.db) if action.db else index_path())
    settings = SiteSettings(
        entries=_path(action.entries) if action.entries else entries_folder(),
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
    from ..leaderboard.server import ServerSettings, serve_forever

    serve_forever(
        ServerSettings(
            home=_path(action.home),
            suite_files=tuple(_path(word) for word in action.suite_file),
            uploads_per_day=action.uploads_per_day,
            requests_per_minute=action.requests_per_minute,
            steps_per_minute=action.steps_per_minute,
            trust_proxy=action.trust_proxy,
            replay=ReplayLimits(
                cpu_s=action.cpu_s, wall_s=action.wall_s, memory_mib=action.memory_mib
            ),
        ),
        action.host,
        action.port,
    )


def token(action: BoardToken) -> None:
    """Make or revoke an account's token."""
    from ..leaderboard.server import ServerSettings, new_token, revoke_tokens

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
    from ..leaderboard.server import ServerSettings
    from ..leaderboard.server.publishing import prepare
    from ..leaderboard.suites.sealed import SeasonTerms, open_season, suite_file

    settings = ServerSettings(home=_path(action.home))
    terms = SeasonTerms(session_s=action.session_s, tell_rewards=action.tell_rewards)
    prepare(settings)
    with reporter().bar("making the season's worlds") as bar:
        public = open_season(
            settings.seasons,
            action.name,
            load_suite(action.suite),
            terms,
            lambda done, total: bar.update(done / total, f"{done} of {total}"),
        )
    _references(settings.entries, load_suite(suite_file(settings.seasons, public.name)))
    console = Console()
    console.print(f"season {public.name} is open on the server of {settings.home}", highlight=False)
    console.print(f"commitment: {public.commitment}", highlight=False, soft_wrap=True)


def _references(entries: Path, suite: Suite) -> None:
    """Make the rows of expert, random and null on a season's suite."""
    report = reporter()
    for name in REFERENCES:
        with report.bar(f"{name} on {suite.id}") as bar:
            episodes = list(scripted_episodes(name, suite, 0, bar))
        write_entry(entries / suite.id / name, reference_manifest(name, suite), episodes)


def reveal(action: BoardReveal) -> None:
    """End a season and replay everything.

    Raises:
        TurngymError: An entry of the season does not replay.
    """
    from ..leaderboard.server import ServerSettings, reveal_and_replay

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


def _path(word: str) -> Path:
    return Path(word).expanduser()
