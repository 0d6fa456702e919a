"""Options of `turngym submit` and `turngym leaderboard`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from ...agents.engines.factory import EngineSettings
from .model_options import Sampler

Repeated = tyro.conf.UseAppendAction[tuple[str, ...]]
Sources = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
Word = Annotated[str, tyro.conf.Positional]
Entries = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="ENTRY")]


@dataclass(frozen=True, kw_only=True)
class CardOptions:
    """What the entry says about itself; declared, not checked.

    Attributes:
        description: What it is.
        model: Name of the model; left out: the source's.
        parameters: Number of weights.
        base: The model that it was made from.
        recipe: How it was trained or prompted; left out: the run's recipe.
        data: What it was trained on.
        limitations: Known weaknesses.
        link: Address of weights, code or paper, repeatable.
        hardware: What it ran on.
        readme: Markdown file that goes along as README.md.
    """

    description: str = ""
    model: str | None = None
    parameters: int = 0
    base: str = ""
    recipe: str | None = None
    data: str = ""
    limitations: str = ""
    link: Repeated = ()
    hardware: str = ""
    readme: str | None = None


Card = Annotated[CardOptions, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class SubmitCommand:
    """Play a suite and pack what was done as an entry: actions and hashes, never a score.

    Attributes:
        sources: A run directory, a model folder, a scripted agent (expert, random, null), or a
            .jsonl file of transcripts that RecordEpisodes wrote with the suite's seeds. Several
            are the training runs of one entry on the board of algorithms.
        name: Name of the entry.
        organisation: Who submits it.
        licence: Of the model or method.
        out: New folder for the entry.
        suite: Suite to play; `turngym leaderboard suites` lists them.
        board: agents: any model; algorithms: same start, same budget, at least 3 training runs.
        card: What the entry says about itself.
        date: As 2026-01-31; left out: today.
        reproduces: Name of the entry that this one reproduces.
        budget_tokens: Sampled tokens that the track allows a run; left out: the run's own limit.
        budget_calls: Actions in environments that the track allows a run; likewise.
        fill_missing: Count episodes that are in no transcript as errors.
        key: File of a signing key (`turngym leaderboard key`).
        temperature: Of a model's sampling; 0 is greedy.
        max_tokens: Most tokens of a model's action.
        sampler: What samples a model's actions.
    """

    sources: Sources
    name: str
    organisation: str
    licence: str
    out: str
    suite: str = "micro-v1"
    board: Literal["agents", "algorithms"] = "agents"
    card: Card = field(default_factory=CardOptions)
    date: str | None = None
    reproduces: str = ""
    budget_tokens: int | None = None
    budget_calls: int | None = None
    fill_missing: bool = False
    key: str | None = None
    temperature: float = 0.0
    max_tokens: int = 64
    sampler: Sampler = field(default_factory=EngineSettings)


@dataclass(frozen=True, kw_only=True)
class BoundOptions:
    """Limits of the process that replays an entry.

    Attributes:
        cpu_s: Processor seconds.
        wall_s: Seconds from start to verdict.
        memory_mib: Memory in mebibytes.
    """

    cpu_s: int = 900
    wall_s: float = 1800.0
    memory_mib: int = 4096


Bounds = Annotated[BoundOptions, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class BoardVerify:
    """Replay entries step by step and recompute every score; refuse with the first difference.

    Attributes:
        entries: Folders, or zip or tar archives.
        suite_file: JSON file of a further suite, repeatable.
        json: File for the verdicts, one JSON object per line.
        bounds: Limits of each replay.
    """

    entries: Entries
    suite_file: Repeated = ()
    json: str | None = None
    bounds: Bounds = field(default_factory=BoundOptions)


@dataclass(frozen=True, kw_only=True)
class BoardReference:
    """Make the rows that every board shows: expert, random, null.

    Attributes:
        suite: Suite to play.
        out: Folder of entries; left out: the package's own.
        only: One of expert, random, null, repeatable; left out: all.
        overwrite: Replace entries that are there.
    """

    suite: str = "micro-v1"
    out: str | None = None
    only: Repeated = ()
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class BoardIndex:
    """Rebuild the index from the folder of entries; unchanged entries keep their verdict.

    Attributes:
        entries: Folder of entries; left out: the package's own.
        db: The index; left out: a file in the cache.
        fresh: Replay every entry again.
        suite_file: JSON file of a further suite, repeatable.
        bounds: Limits of each replay.
    """

    entries: str | None = None
    db: str | None = None
    fresh: bool = False
    suite_file: Repeated = ()
    bounds: Bounds = field(default_factory=BoundOptions)


@dataclass(frozen=True, kw_only=True)
class BoardTable:
    """Show the boards of the index.

    Attributes:
        db: The index; left out: a file in the cache.
        suite: Only boards of this suite.
        board: Only boards of this kind.
        json: File for the rows.
    """

    db: str | None = None
    suite: str | None = None
    board: Literal["agents", "algorithms"] | None = None
    json: str | None = None


@dataclass(frozen=True, kw_only=True)
class BoardSuites:
    """List the suites, or check that the installed worlds are still those of some.

    Attributes:
        check: Suites to check, by id or JSON file; every task's digest is computed anew.
    """

    check: Repeated = ()


@dataclass(frozen=True, kw_only=True)
class BoardKey:
    """Make a key that signs entries.

    Attributes:
        file: New file for the private key; keep it to yourself.
    """

    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]


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
    bounds: Bounds = field(default_factory=BoundOptions)


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
        show_rewards: Tell players rewards, verdicts and measures.
    """

    name: Word
    home: str
    suite: str = "micro-v1"
    session_s: float = 3600.0
    show_rewards: bool = False


@dataclass(frozen=True, kw_only=True)
class BoardReveal:
    """End a season: publish its secret, check it against the commitment, replay every entry.

    Attributes:
        name: Name of the season.
        home: Folder of the server.
    """

    name: Word
    home: str


@dataclass(frozen=True, kw_only=True)
class LeaderboardCommand:
    """Verify, index and show entries; make and serve the site; hold sealed seasons."""

    action: Annotated[
        Annotated[BoardVerify, tyro.conf.subcommand("verify")]
        | Annotated[BoardReference, tyro.conf.subcommand("reference")]
        | Annotated[BoardIndex, tyro.conf.subcommand("index")]
        | Annotated[BoardTable, tyro.conf.subcommand("table")]
        | Annotated[BoardSuites, tyro.conf.subcommand("suites")]
        | Annotated[BoardKey, tyro.conf.subcommand("key")]
        | Annotated[BoardBuild, tyro.conf.subcommand("build")]
        | Annotated[BoardServe, tyro.conf.subcommand("serve")]
        | Annotated[BoardToken, tyro.conf.subcommand("token")]
        | Annotated[BoardSeason, tyro.conf.subcommand("season")]
        | Annotated[BoardReveal, tyro.conf.subcommand("reveal")],
        tyro.conf.arg(name=""),
    ] = field()
