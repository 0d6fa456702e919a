"""The open seasons of a server: suites and environments, made once."""

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
from ..suites.digests import make_cell_env
from ..suites.sealed import Season, is_revealed, read_season, season_names, suite_file


class PlayedSeason:
    """A season with its secret suite.

    Args:
        root: The server's folder of seasons.
        name: Name of the season.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.public: Season = read_season(root, name)
        path = suite_file(root, name)
        self.suite: Suite = parse_form(Suite, path.read_bytes(), path.name)
        self.cells = self.suite.by_key()
        self.total = sum(len(cell.tasks) * cell.trials for cell in self.suite.cells)
        self._envs: dict[str, TextEnv[Any, Any]] = {}
        self._lock = threading.Lock()

    def prototype(self, cell: Cell) -> TextEnv[Any, Any]:
        """Return the environment of a cell, which is only used for making copies."""
        with self._lock:
            if cell.key not in self._envs:
                self._envs[cell.key] = make_cell_env(cell)
            return self._envs[cell.key]

    def recorder(self, cell: Cell) -> RecordEpisodes:
        """Return a recorder around a new copy of the environment; read-only data is shared."""
        twin = self.prototype(cell).fork()
        twin.spec = self.prototype(cell).spec
        return RecordEpisodes(twin, None)

    def cell_for(self, env: str) -> Cell:
        """Return the cell of this key, or the only cell of this environment.

        Raises:
            UnknownNameError: There is none, or several.
        """
        if env in self.cells:
            return self.cells[env]
        found = [cell for cell in self.suite.cells if cell.env_id == env]
        if len(found) != 1:
            raise UnknownNameError("environment", env, self.cells, f"season {self.public.name}")
        return found[0]

    def describe(self) -> dict[str, Any]:
        """Return the public description, with the rules of every environment."""
        cells = []
        for cell, shown in zip(self.suite.cells, self.public.cells, strict=True):
            env = self.prototype(cell)
            rules = {
                "instructions": env.instructions,
                "stop": list(env.stop),
                "tools": [dict(tool) for tool in env.tools],
                "max_chars": min(env.action_space.max_chars, self.suite.max_action_chars),
            }
            cells.append(shown.model_dump() | rules)
        return self.public.model_dump() | {"cells": cells}


class Seasons:
    """All seasons of a server.

    Args:
        root: Folder of seasons.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._played = functools.cache(lambda name: PlayedSeason(root, name))

    def open_names(self) -> list[str]:
        """Return the names of the open seasons."""
        return [name for name in season_names(self.root) if not is_revealed(self.root, name)]

    def find(self, name: str) -> PlayedSeason:
        """Return an open season; ``current`` names the only one.

        Raises:
            UnknownNameError: There is none, several, or it is over.
        """
        names = self.open_names()
        if name == "current" and len(names) == 1:
            name = names[0]
        if name not in names:
            raise UnknownNameError("open season", name, names)
        return self._played(name)
