"""`turngym leaderboard serve`, `token`, `season` and `reveal`: the server, its sealed seasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from ...algos.runs.progress import reporter
from ...envs.core.errors import TurngymError
from ...envs.utils.disk_cache import make_folder
from ...envs.utils.serving import bind_socket
from ...leaderboard.ranking.board import REFERENCES
from ...leaderboard.schema.base import make_form
from ...leaderboard.schema.limits import ReplayLimits
from ...leaderboard.suites.files import load_suite
from .arguments import Repeated, home_there
from .references import write_reference
from .tables import escape, say

Name = Annotated[str, tyro.conf.Positional]
Bounds = Annotated[ReplayLimits, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Serve the site, take uploads, verify them in the background, and step sealed seasons.

    Attributes:
        home: Folder of the server: uploads, entries, index, site, accounts, secrets.
        host: Address to listen on; other machines reach it with 0.0.0.0, best behind a proxy that
            speaks TLS.
        port: Port to listen on.
        suite_file: JSON file of a further suite, repeatable.
        uploads_per_day: Uploads that one account may send in a day.
        requests_per_minute: Requests that one account or address may send in a minute.
        steps_per_minute: Steps of sealed episodes that one account may take in a minute.
        trust_proxy: Take the caller's address from the header X-Forwarded-For; only behind a proxy
            that sets it.
        bounds: Limits of each replay.
    """

    home: str
    host: str = "127.0.0.1"
    port: int = 8080
    suite_file: Repeated = ()
    uploads_per_day: int = 10
    requests_per_minute: int = 120
    steps_per_minute: int = 1200
    trust_proxy: bool = False
    bounds: Bounds = field(default_factory=ReplayLimits)


@dataclass(frozen=True, kw_only=True)
class Token:
    """Make an account of the server and print its token, once; the server keeps a hash.

    Attributes:
        name: Name of the account.
        home: Folder of the server.
        revoke: Take the account's tokens back instead.
    """

    name: Name
    home: str
    revoke: bool = False


@dataclass(frozen=True, kw_only=True)
class Season:
    """Open a sealed season: draw a secret, publish its commitment, keep its worlds on the server.

    Attributes:
        name: Name of the season; its suite is NAME-v1.
        home: Folder of the server.
        suite: Suite whose environments and settings the season has, with worlds and tasks of its
            own.
        session_s: Seconds after which an episode without a step is over.
        show_rewards: Show players rewards, verdicts and metrics.
    """

    name: Name
    home: str
    suite: str = "micro-v3"
    session_s: float = 3600.0
    show_rewards: bool = False


@dataclass(frozen=True, kw_only=True)
class Reveal:
    """End a season: publish its secret, check it against the commitment, replay every entry.

    Attributes:
        name: Name of the season.
        home: Folder of the server.
    """

    name: Name
    home: str


def run_server(action: Serve) -> None:
    """Run the server until it is stopped."""
    from ...leaderboard.server import ServerSettings, serve_forever

    settings = ServerSettings(
        home=make_folder(Path(action.home).expanduser()),
        suite_files=tuple(Path(word).expanduser() for word in action.suite_file),
        uploads_per_day=action.uploads_per_day,
        requests_per_minute=action.requests_per_minute,
        steps_per_minute=action.steps_per_minute,
        trust_proxy=action.trust_proxy,
        replay=action.bounds,
    )
    with bind_socket(action.host, action.port, "leaderboard serve") as bound:
        host, port = bound.getsockname()[:2]
        shown = f"\\[{host}]" if ":" in host else host
        line = f"Serving the leaderboard on http://{shown}:{port} – Ctrl-C ends it."
        serve_forever(settings, bound, lambda: say(line))


def issue_token(action: Token) -> None:
    """Make or revoke an account's token.

    Raises:
        DataError: A token shall be revoked, and there is no such folder.
    """
    from ...leaderboard.server import ServerSettings, new_token, revoke_tokens

    if action.revoke:
        settings = ServerSettings(home=home_there(Path(action.home).expanduser()))
        say(f"{revoke_tokens(settings, action.name)} tokens of {action.name} revoked")
        return
    settings = ServerSettings(home=make_folder(Path(action.home).expanduser()))
    made = new_token(settings, action.name)
    say(f"token of {action.name}, shown this once:")
    say(made)


def start_season(action: Season) -> None:
    """Open a season.

    Raises:
        BadValueError: Terms out of range.
    """
    from ...leaderboard.server import ServerSettings
    from ...leaderboard.server.publishing import prepare
    from ...leaderboard.suites.sealed import SeasonTerms, open_season, suite_file

    asked = {"session_s": action.session_s, "show_rewards": action.show_rewards}
    terms = make_form(SeasonTerms, f"season {action.name}", **asked)
    settings = ServerSettings(home=make_folder(Path(action.home).expanduser()))
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
        write_reference(name, suite, settings.entries / suite.id / name)
    say(f"season {public.name} is open on the server of {settings.home}")
    say(f"commitment: {public.commitment}")
    if public.left_out:
        say(f"left out, since their tasks are listed: {', '.join(public.left_out)}")


def end_season(action: Reveal) -> None:
    """End a season and replay everything.

    Raises:
        DataError: There is no such folder.
        TurngymError: An entry of the season does not replay.
    """
    from ...leaderboard.server import ServerSettings, reveal_and_replay

    settings = ServerSettings(home=home_there(Path(action.home).expanduser()))
    with reporter().bar("replaying") as bar:
        outcome = reveal_and_replay(
            settings, action.name, lambda what, place, count: bar.update(place / count, what)
        )
    say(f"season {outcome.name}: the secret fits the commitment; published in {outcome.folder}")
    for entry_id, refusal in outcome.refused:
        say(f"[red]refused[/] {escape(entry_id)}: {escape(refusal)}", markup=True)
    if outcome.unfinished:
        say(f"not finished, so without an entry: the passes of {', '.join(outcome.unfinished)}")
    if outcome.waiting:
        say(
            f"finished, but not verified yet: the passes of {', '.join(outcome.waiting)}; a "
            "running server verifies them, with the season over too"
        )
    say(f"{outcome.accepted} entries replayed")
    if outcome.refused:
        raise TurngymError(f"{len(outcome.refused)} entries of the season do not replay.")


RUNNERS: Mapping[type, Callable[[Any], None]] = {
    Serve: run_server,
    Token: issue_token,
    Season: start_season,
    Reveal: end_season,
}
