"""The open season of a server: its suite and its worlds, made once."""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any

from ...envs.core.env import TextEnv
from ...envs.core.errors import UnknownNameError
from ...envs.wrappers.record import RecordEpisodes
from ..schema.base import parse_form
from ..schema.suite import Cell, Suite
from ..suites.digests import make_world
from ..suites.sealed import Season, is_revealed, read_season, season_names, suite_file


class PlayedSeason:
    """A season with its secret suite.

    Args:
        root: The server's folder of seasons.
        name: Of the season.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.public: Season = read_season(root, name)
        path = suite_file(root, name)
        self.suite: Suite = parse_form(Suite, path.read_bytes(), path.name)
        self.cells = self.suite.by_key()
        self.total = sum(len(cell.tasks) * cell.trials for cell in self.suite.cells)
        self._worlds: dict[str, TextEnv[Any, Any]] = {}
        self._lock = threading.Lock()

    def prototype(self, cell: Cell) -> TextEnv[Any, Any]:
        """The world of a cell, to be copied; it never plays itself."""
        with self._lock:
            if cell.key not in self._worlds:
                self._worlds[cell.key] = make_world(cell)
            return self._worlds[cell.key]

    def recorder(self, cell: Cell) -> RecordEpisodes:
        """Return a recorder around an environment of its own; read-only data is shared."""
        twin = self.prototype(cell).fork()
        twin.spec = self.prototype(cell).spec
        return RecordEpisodes(twin, None)

    def cell_for(self, env: str) -> Cell:
        """The cell of this key, or the only one of this environment.

        Raises:
            UnknownNameError: There is none, or several.
        """
        if env in self.cells:
            return self.cells[env]
        found = [cell for cell in self.suite.cells if cell.env_id == env]
        if len(found) != 1:
            raise UnknownNameError("environment", env, self.cells, f"season {self.public.name}")
        return found[0]

    def described(self) -> dict[str, Any]:
        """What everybody may know, with the rules of every world."""
        worlds = []
        for cell, shown in zip(self.suite.cells, self.public.cells, strict=True):
            world = self.prototype(cell)
            rules = {
                "instructions": world.instructions,
                "stop": list(world.stop),
                "tools": [dict(tool) for tool in world.tools],
                "max_chars": min(world.action_space.max_chars, self.suite.max_action_chars),
            }
            worlds.append(shown.model_dump() | rules)
        return self.public.model_dump() | {"cells": worlds}


class Seasons:
    """All seasons of a server.

    Args:
        root: Folder of seasons.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._played = functools.cache(lambda name: PlayedSeason(root, name))

    def open_names(self) -> list[str]:
        """Seasons that can be played."""
        return [name for name in season_names(self.root) if not is_revealed(self.root, name)]

    def find(self, name: str) -> PlayedSeason:
        """An open season; ``current`` is the only one.

        Raises:
            UnknownNameError: There is none, several, or it is over.
        """
        names = self.open_names()
        if name == "current" and len(names) == 1:
            name = names[0]
        if name not in names:
            raise UnknownNameError("open season", name, names)
        return self._played(name)
