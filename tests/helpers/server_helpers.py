"""Helpers of the server's tests: a tiny season's base suite, a server's place, zips, waiting."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from turngym.envs.core.registration import registered_environments
from turngym.leaderboard.schema.suite import Cell, Suite
from turngym.leaderboard.server import ServerSettings
from turngym.leaderboard.server.app import make_app
from turngym.leaderboard.suites.digests import with_digests
from turngym.leaderboard.suites.sealed import is_generated


def sealed_base() -> Suite:
    """Two worlds that are generated from a seed, and one of listed tasks, which is left out."""
    cells = (
        Cell(
            key="Password-v0",
            env_id="Password-v0",
            settings={"size": "micro"},
            tasks=(0,),
            max_turns=1,
            digests=("0" * 32,),
        ),
        Cell(
            key="WebShop-v0",
            env_id="WebShop-v0",
            settings={"size": "micro"},
            tasks=(0, 1),
            trials=2,
            max_turns=1,
            digests=("0" * 32,) * 2,
        ),
        Cell(
            key="MathWord-v0",
            env_id="MathWord-v0",
            settings={"size": "micro"},
            tasks=(0, 1),
            max_turns=1,
            digests=("0" * 32,) * 2,
        ),
    )
    return with_digests(Suite(name="base", version=1, description="for tests", cells=cells))


def make_generated_suite() -> Suite:
    """A task of every environment of the package that makes its world from a seed."""
    cells = (
        Cell(
            key=row.id,
            env_id=row.id,
            settings={"size": "micro"},
            tasks=(0,),
            max_turns=1,
            digests=("0" * 32,),
        )
        for row in registered_environments()
        if row.builtin and row.leaderboard
    )
    made = tuple(cell for cell in cells if is_generated(cell))
    return with_digests(Suite(name="generated", version=1, description="for tests", cells=made))


@dataclass
class Place:
    """A server's settings, and what a test does with it."""

    settings: ServerSettings
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def changed(self, **fields: Any) -> Place:
        return Place(replace(self.settings, **fields), self.token)

    def client(self, background: bool = False) -> TestClient:
        return TestClient(make_app(self.settings, background=background))


def zipped(folder: Path, target: Path) -> bytes:
    return Path(shutil.make_archive(str(target), "zip", folder)).read_bytes()


def wait_for(client: TestClient, name: str, seconds: float = 120.0) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        told = client.get(f"/api/submissions/{name}").json()
        if told["state"] not in ("queued", "verifying"):
            return told
        time.sleep(0.05)
    raise AssertionError(f"{name} is still {told}")
