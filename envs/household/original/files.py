"""ALFWorld's games from files: ``game.tw-pddl`` as downloaded, or many packed in one file."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...core.errors import BadValueError, DataError
from ...core.fork import Shared
from ...core.tasks import Task
from ..engine.game import Game
from .problem import compile_problem

FILE_NAME = "game.tw-pddl"
PACKED = (".json", ".json.gz")
UNUSED = ("movable", "Sliced")
"""Games whose path says so are skipped, as the original skips them."""
_PARTS_OF_A_SPLIT = 3
"""Kind of task, trial and file: parts of a path below the folder of a split."""
_TASK = re.compile(r'"task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class GameFile:
    """A game as its file has it.

    Attributes:
        path: Where it is below the folder: split, kind of task, trial, file.
        problem: Its PDDL problem.
        task: The line that names the task.
        refused: Why the original does not play it; empty where it does.
    """

    path: str
    problem: str
    task: str
    refused: str

    @property
    def split(self) -> str:
        """First part of the path."""
        return self.path.split("/", 1)[0]

    @property
    def kind(self) -> str:
        """The kind of task, as the path names it."""
        parts = self.path.split("/")
        return parts[-3].partition("-")[0] if len(parts) > 2 else ""

    def compile(self) -> Game:
        """Return the game; it is compiled now.

        Raises:
            DataError: The problem cannot be read.
        """
        return compile_problem(self.problem, self.task, self.path)


def read_game_files(place: str | Path) -> Iterator[GameFile]:
    """Yield all games of a folder or of one packed file, in the order of their paths.

    Args:
        place: A folder that holds ``game.tw-pddl`` files at any depth, or packed files; or such a
            file: a JSON list of objects with ``path``, ``pddl_problem`` and ``task``, gzipped
            or not.

    Raises:
        BadValueError: There is nothing there.
        DataError: A file is no game.
    """
    root = Path(place).expanduser()
    if root.is_file() and root.name.endswith(PACKED):
        yield from sorted(_read_packed(root), key=lambda game: game.path)
        return
    singles = sorted(root.rglob(FILE_NAME)) if root.is_dir() else []
    if singles:
        for path in singles:
            relative = path.relative_to(root)
            if len(relative.parts) == _PARTS_OF_A_SPLIT:  # the folder is a split
                relative = Path(root.resolve().name) / relative
            yield _read_single(path, relative.as_posix())
        return
    packs = sorted(p for p in root.glob("*") if p.name.endswith(PACKED)) if root.is_dir() else []
    games = [game for path in packs for game in _read_packed(path)]
    if not games:
        raise BadValueError(
            f"Household: games is {str(place)!r}, where no game is; expected a folder of "
            f"{FILE_NAME} files (as alfworld-download makes it) or of packed games (*.json.gz)."
        )
    yield from sorted(games, key=lambda game: game.path)


def _load(path: Path) -> Any:
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        return json.loads(data)
    except (OSError, EOFError, ValueError) as fault:
        raise DataError(f"{path}: cannot be read as JSON ({fault}).") from fault


def _read_packed(path: Path) -> Iterator[GameFile]:
    data = _load(path)
    if isinstance(data, dict):
        return  # of the shared texts, which we do not need
    if not isinstance(data, list):
        raise DataError(f"{path}: holds a {type(data).__name__}; expected a list of games.")
    for place, row in enumerate(data):
        where = f"{path}, game {place}"
        yield _make(row, where, str(row.get("path", "")) if isinstance(row, dict) else "")


def _read_single(path: Path, relative: str) -> GameFile:
    return _make(_load(path), str(path), relative)


def _make(row: Any, where: str, path: str) -> GameFile:
    if not isinstance(row, Mapping) or not isinstance(row.get("pddl_problem"), str) or not path:
        raise DataError(f"{where}: a game has 'pddl_problem' (and in a packed file 'path').")
    return GameFile(path, row["pddl_problem"], _find_task(row, where), _find_refusal(row, path))


def _find_task(row: Mapping[str, Any], where: str) -> str:
    task = row.get("task")
    if isinstance(task, str):
        return task
    found = _TASK.search(str(row.get("grammar", "")))
    if found is None:
        raise DataError(f"{where}: no task line, neither as 'task' nor in the 'grammar'.")
    return json.loads(found[1])


def _find_refusal(row: Mapping[str, Any], path: str) -> str:
    if any(word in path for word in UNUSED):
        return "a kind of task that the original skips"
    if not row.get("loadable", True):
        return "the original cannot load it: its goal cannot be reached"
    if not row.get("solvable", True):
        return "marked as not solvable"
    return ""


class GameFiles(Shared):
    """A source of tasks: the games of a folder, in the original's splits.

    Attributes:
        left_out: Paths of games that are not played, with the reason.

    Args:
        place: The folder or packed file.
        kinds: Kinds of tasks that are played.

    Raises:
        BadValueError: There is no game that can be played.
        DataError: A file is no game, or two games have one path.
    """

    def __init__(self, place: str, kinds: tuple[str, ...]) -> None:
        self._given = place, kinds
        self.left_out: dict[str, str] = {}
        self._games: dict[str, list[GameFile]] = {}
        self._compiled: dict[str, Game] = {}
        paths: set[str] = set()
        for game in read_game_files(place):
            if game.path in paths:
                raise DataError(
                    f"{place}: {game.path} comes twice; expected every game once, since its path "
                    "names it. Is a pack there beside a copy of it?"
                )
            paths.add(game.path)
            if game.refused:
                self.left_out[game.path] = game.refused
            elif game.kind in kinds:
                self._games.setdefault(game.split, []).append(game)
        if not self._games:
            raise BadValueError(
                f"Household: {place} has no game of {', '.join(kinds)} that can be played; "
                f"{len(self.left_out)} were left out."
            )
        self._places = {
            split: {_name(game): place for place, game in enumerate(games)}
            for split, games in self._games.items()
        }

    def __reduce__(self) -> Any:
        return load_game_files, self._given

    def sizes(self) -> Mapping[str, int | None]:
        """Return the number of games per split."""
        return {split: len(games) for split, games in self._games.items()}

    def task(self, split: str, index: int) -> Task[Game]:
        """Return the game at ``index``; its file is compiled once."""
        file = self._games[split][index]
        game = self._compiled.get(file.path)
        if game is None:
            game = self._compiled[file.path] = file.compile()
        return Task(_name(file), split, index, game, "alfworld")

    def index_of(self, split: str, task_id: str) -> int | None:
        """Return the index of a game's path, without the file's name."""
        return self._places[split].get(task_id)


def _name(game: GameFile) -> str:
    return game.path.removesuffix(f"/{FILE_NAME}")


@lru_cache(maxsize=4)
def load_game_files(place: str, kinds: tuple[str, ...]) -> GameFiles:
    """Return the games of a folder, one object per process.

    Raises:
        BadValueError: There is no game that can be played.
        DataError: A file is no game, or two games have one path.
    """
    return GameFiles(place, kinds)
