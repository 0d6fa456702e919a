"""Options of `turngym leaderboard build | serve | token | season | reveal`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]
Word = Annotated[str, tyro.conf.Positional]


@dataclass(frozen=True, kw_only=True)
class BoardBuild:
    """Write the site: static pages of boards, entries, episodes and environments.

    Attributes:
        out: Folder of the site; pages of an earlier build that are still right stay.
        entries: Folder of entries; left out: the package's own.
        db: The index; left out: a file in the cache.
        suite_file: JSON file of a further suite, repeatable.
        no_transcripts: Leave the pages of episodes out.
    """

    out: str
    entries: str | None = None
    db: str | None = None
    suite_file: Repeated = ()
    no_transcripts: bool = False


@dataclass(frozen=True, kw_only=True)
class BoardServe:
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
        cpu_s: Processor seconds of a replay.
        wall_s: Seconds of a replay.
        memory_mib: Memory of a replay.
    """

    home: str
    host: str = "127.0.0.1"
    port: int = 8080
    suite_file: Repeated = ()
    uploads_per_day: int = 10
    requests_per_minute: int = 120
    steps_per_minute: int = 1200
    trust_proxy: bool = False
    cpu_s: int = 900
    wall_s: float = 1800.0
    memory_mib: int = 4096


@dataclass(frozen=True, kw_only=True)
class BoardToken:
    """Make an account of the server and print its token, once; the server keeps a hash.

    Attributes:
        name: Name of the account.
        home: Folder of the server.
        revoke: Take the account's tokens back instead.
    """

    name: Word
    home: str
    revoke: bool = False


@dataclass(frozen=True, kw_only=True)
class BoardSeason:
    """Open a sealed season: draw a secret, publish its commitment, keep the worlds to the server.

    Attributes:
        name: Name of the season; its suite is NAME-v1.
        home: Folder of the server.
        suite: Suite whose worlds and settings the season has, with worlds and tasks of its own.
        session_s: Seconds after which an episode without a step is over.
        tell_rewards: Tell players rewards, verdicts and measures.
    """

    name: Word
    home: str
    suite: str = "micro-v1"
    session_s: float = 3600.0
    tell_rewards: bool = False


@dataclass(frozen=True, kw_only=True)
class BoardReveal:
    """End a season: publish its secret, check it against the commitment, replay every entry.

    Attributes:
        name: Name of the season.
        home: Folder of the server.
    """

    name: Word
    home: str
