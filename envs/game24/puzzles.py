"""Which puzzles there are: all that can be solved, or those of a file."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from ..core.errors import BadValueError, DataError, UnknownNameError
from ..core.fork import Shared
from ..core.tasks import SPLITS, Task
from ..utils.disk_cache import cache_arrays, source_digest
from .arithmetic import is_plainly_reachable, is_reachable, make_numbers

SIZES = ("full", "micro")
HIGHEST = {"full": 13, "micro": 9}
TEST_ROWS = (900, 1000)
"""Rows of a file that are the test split, counted from 0: those that papers report."""
_SHARES = (0.8, 0.9)  # train below the first, dev below the second, test above
_COLUMN = "puzzles"


@dataclass(frozen=True, slots=True)
class Puzzle:
    """Four numbers in ascending order that can make 24."""

    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.numbers))


class Puzzles(Shared):
    """Puzzles per split; the id of a task is its split and its numbers.

    Args:
        splits: The puzzles of train, dev and test; none of them twice.
    """

    def __init__(self, splits: Mapping[str, Sequence[Puzzle]]) -> None:
        self._splits = {split: tuple(splits[split]) for split in SPLITS}
        self._places = {
            split: {f"{split}/{puzzle}".replace(" ", "-"): i for i, puzzle in enumerate(puzzles)}
            for split, puzzles in self._splits.items()
        }

    def sizes(self) -> Mapping[str, int | None]:
        """Number of puzzles per split."""
        return {split: len(puzzles) for split, puzzles in self._splits.items()}

    def task(self, split: str, index: int) -> Task[Puzzle]:
        """The puzzle at ``index`` of ``split``."""
        puzzle = self._splits[split][index]
        return Task(f"{split}/{puzzle}".replace(" ", "-"), split, index, puzzle)

    def index_of(self, split: str, task_id: str) -> int | None:
        """Place of the task with this id."""
        return self._places[split].get(task_id)


@lru_cache(maxsize=len(SIZES))
def load_generated_puzzles(size: str) -> Puzzles:
    """All puzzles of a size in a fixed random order, cut into the splits.

    Full are the 1,362 sets of four numbers from 1 to 13 that can make 24. Micro are those up to 9
    that need no division, no negative number and none above 99 on the way.

    Raises:
        UnknownNameError: No such size.
    """
    check_size(size)
    made_by = source_digest(Path(__file__).parent, "arithmetic.py", "puzzles.py")
    stored = cache_arrays(f"game24-{size}-{made_by}", lambda: {"numbers": _list_all(size)})
    rows = [Puzzle(tuple(row)) for row in stored["numbers"].tolist()]
    order = np.random.default_rng(0).permutation(len(rows))
    cuts = [0, *(int(share * len(rows)) for share in _SHARES), len(rows)]
    return Puzzles(
        {
            split: [rows[i] for i in order[low:high]]
            for split, low, high in zip(SPLITS, cuts, cuts[1:], strict=False)
        }
    )


def check_size(size: str) -> None:
    """Refuse a size that does not exist.

    Raises:
        UnknownNameError: It does not.
    """
    if size not in SIZES:
        raise UnknownNameError("size", size, SIZES, "Game24")


@lru_cache(maxsize=1)
def _load_common_puzzles() -> frozenset[tuple[int, ...]]:
    """The full puzzles, to look a file's up among them: solving all of them takes seconds."""
    source = load_generated_puzzles("full")
    splits = source.sizes().items()
    return frozenset(
        source.task(name, i).payload.numbers for name, n in splits for i in range(n or 0)
    )


def _is_solvable(numbers: tuple[int, ...]) -> bool:
    if numbers[0] >= 1 and numbers[-1] <= HIGHEST["full"]:
        return numbers in _load_common_puzzles()
    return is_reachable(make_numbers(numbers))


def _list_all(size: str) -> np.ndarray:
    solved = is_plainly_reachable if size == "micro" else is_reachable
    sets = combinations_with_replacement(range(1, HIGHEST[size] + 1), 4)
    return np.array([four for four in sets if solved(make_numbers(four))], dtype=np.int8)


def read_puzzles(path: str | os.PathLike[str]) -> Puzzles:
    """The puzzles of a CSV file with a column ``Puzzles`` that holds four numbers each.

    That is the form of the list of 1,362 puzzles, easiest first, that the literature uses. Its
    rows 900 to 999 are the test split, those before are train, those after are dev.

    Raises:
        BadValueError: No such file, or no path.
        DataError: The file, or a line of it, is not of this form; names file and line.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise BadValueError(
            f"Game24: puzzles is a {type(path).__name__}; expected the path of a CSV file."
        )
    file = Path(path)
    if not file.is_file():
        raise BadValueError(f"Game24: there is no file {str(file)!r}; expected a CSV of puzzles.")
    lines: dict[Puzzle, int] = {}
    for line, puzzle in _read_rows(file):
        if puzzle in lines:
            raise DataError(
                f"{file}, line {line}: {puzzle} stands in line {lines[puzzle]} already; expected "
                "every puzzle once, or the splits would share it."
            )
        lines[puzzle] = line
    if not lines:
        raise DataError(f"{file}: holds no puzzle; expected rows under the column 'Puzzles'.")
    puzzles, (first, end) = list(lines), TEST_ROWS
    parts = (puzzles[:first], puzzles[end:], puzzles[first:end])
    return Puzzles(dict(zip(SPLITS, parts, strict=True)))


def _read_rows(file: Path) -> Iterator[tuple[int, Puzzle]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle)
            header = [name.strip().lower() for name in next(reader, [])]
            if _COLUMN not in header:
                raise DataError(
                    f"{file}, line 1: the columns are {', '.join(header) or 'none'}; expected one "
                    "named 'Puzzles'."
                )
            column = header.index(_COLUMN)
            for row in reader:
                if row:
                    cell = row[column] if column < len(row) else ""
                    yield reader.line_num, _parse_puzzle(cell, f"{file}, line {reader.line_num}")
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file}: is no CSV file in UTF-8: {error}") from error


def _parse_puzzle(cell: str, where: str) -> Puzzle:
    parts = cell.split()
    if len(parts) != 4 or not all(p.isascii() and p.isdigit() and len(p) < 4 for p in parts):
        raise DataError(
            f"{where}: the puzzle is {cell!r}; expected four whole numbers with blanks between, "
            "as in '1 1 4 6'."
        )
    numbers = tuple(sorted(map(int, parts)))
    if not _is_solvable(numbers):
        raise DataError(f"{where}: {cell!r} cannot make 24; expected puzzles with a solution.")
    return Puzzle(numbers)
