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
        home: Folder of all data.
        suite_files: Files of suites that are not part of the package.
        uploads_per_day: Maximum uploads per account and day.
        waiting: Maximum uploads per account in the queue; those that are being received count.
        upload_s: Seconds that an upload may take to arrive.
        requests_per_minute: Maximum requests per account or address and minute.
        steps_per_minute: Maximum steps of sealed episodes per account and minute.
        open_episodes: Maximum running sealed episodes per account.
        live_envs: Maximum running episodes of an account in memory; others are replayed when
            needed.
        step_workers: Maximum processes that step sealed episodes, one per account; the longest
            unused one makes room for another account.
        step_s: Seconds that a step may take, with the replay before it.
        account_queue: Maximum steps of one account that wait for its process.
        trust_proxy: Take the caller's address from X-Forwarded-For.
        read: Limits on what is read of an upload.
        replay: Resource limits of the process that replays.
        attempts: Maximum attempts of a verification during which the server stops.
        build_s: Time limit of writing the site.

    Raises:
        BadValueError: A number is below 1.
    """

    home: Path
    suite_files: tuple[Path, ...] = ()
    uploads_per_day: int = 10
    waiting: int = 5
    upload_s: float = 300.0
    requests_per_minute: int = 120
    steps_per_minute: int = 1200
    open_episodes: int = 64
    live_envs: int = 64
    step_workers: int = 16
    step_s: float = 60.0
    account_queue: int = 4
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
        """File of accounts, submissions and sealed episodes."""
        return self.home / "server.sqlite"

    @property
    def index(self) -> Path:
        """File of the index of entries."""
        return self.home / "index.sqlite"

    @property
    def entries(self) -> Path:
        """Folder of accepted entries."""
        return self.home / "entries"

    @property
    def uploads(self) -> Path:
        """Folder of uploads that wait for verification."""
        return self.home / "uploads"

    @property
    def seasons(self) -> Path:
        """Folder of sealed seasons."""
        return self.home / "seasons"

    @property
    def site(self) -> Path:
        """Folder of the static pages."""
        return self.home / "site"
