"""Folders, limits and quotas of a server."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from ...envs.core.errors import BadValueError
from ..schema.limits import ReadLimits, ReplayLimits


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How a server runs.

    Attributes:
        home: Folder of everything that it keeps.
        suite_files: Files of further suites than the package's.
        uploads_per_day: Uploads that one account may send in a day.
        waiting: Uploads that one account may have in the queue.
        requests_per_minute: Requests that one account or address may send in a minute.
        steps_per_minute: Steps of sealed episodes that one account may take in a minute.
        open_episodes: Sealed episodes that one account may have running.
        live_worlds: Running episodes that are kept in memory; others are replayed when needed.
        trust_proxy: Take the caller's address from X-Forwarded-For.
        read: Bounds on what is read of an upload.
        replay: Bounds on the process that replays.
        attempts: How often a verification that the server did not survive is begun again.
        build_s: Seconds that writing the site may take.

    Raises:
        BadValueError: A number below 1.
    """

    home: Path
    suite_files: tuple[Path, ...] = ()
    uploads_per_day: int = 10
    waiting: int = 5
    requests_per_minute: int = 120
    steps_per_minute: int = 1200
    open_episodes: int = 64
    live_worlds: int = 256
    trust_proxy: bool = False
    read: ReadLimits = field(default_factory=ReadLimits)
    replay: ReplayLimits = field(default_factory=ReplayLimits)
    attempts: int = 2
    build_s: float = 3600.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, int | float) and not isinstance(value, bool) and not value >= 1:
                raise BadValueError(
                    f"ServerSettings: {one.name} is {value!r}; expected at least 1."
                )

    @property
    def database(self) -> Path:
        """Accounts, submissions and sealed episodes."""
        return self.home / "server.sqlite"

    @property
    def index(self) -> Path:
        """The index of entries."""
        return self.home / "index.sqlite"

    @property
    def entries(self) -> Path:
        """Accepted entries."""
        return self.home / "entries"

    @property
    def uploads(self) -> Path:
        """What waits for verification."""
        return self.home / "uploads"

    @property
    def seasons(self) -> Path:
        """Sealed seasons."""
        return self.home / "seasons"

    @property
    def site(self) -> Path:
        """The static pages."""
        return self.home / "site"
