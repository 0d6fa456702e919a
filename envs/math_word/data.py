r"""Problems that a user has, as DeepScaleR and its like write them.

One JSON object per problem: ``problem`` (or ``question``), ``answer`` (text or a number) and, where
there is one, ``solution``; ``id`` may be left out, such a row is called by its file and its number
from 0. A file ends in ``.json`` (a list of objects) or ``.jsonl`` (an object per line).

``data`` is one file, which is the train split, or ``{split: file}``.

An answer that is no plain number (``\sqrt{2}``, ``x+1``) needs ``grader="math-verify"``. Without it
such rows are refused, or left out with ``skip_unreadable=True``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import BadValueError, DataError, UnknownNameError
from ..core.fork import Shared
from ..core.tasks import SPLITS, Task
from ..utils.file_rows import (
    Rows,
    as_object,
    check_text,
    claim_id,
    clean,
    get_text,
    open_file,
    parse_json_value,
    read_rows,
    row_id,
    strip_byte_order_mark,
)
from .grading import Grader
from .problem import Problem

ENDINGS = (".json", ".jsonl")
Data = str | Path | Mapping[str, str | Path]
"""What the setting ``data`` takes."""


class GivenProblems(Shared):
    """Problems that somebody has, per split.

    Args:
        splits: (id, problem) rows by split, ids unique in all of them.
        left_out: Rows that were left out because nothing here can grade them.
    """

    def __init__(
        self, splits: Mapping[str, Sequence[tuple[str, Problem]]], left_out: int = 0
    ) -> None:
        self._splits = {split: tuple(rows) for split, rows in splits.items()}
        self._places = {
            split: {row_id: i for i, (row_id, _) in enumerate(rows)}
            for split, rows in self._splits.items()
        }
        self.left_out = left_out

    def sizes(self) -> Mapping[str, int | None]:
        """Tasks per split."""
        return {split: len(rows) for split, rows in self._splits.items()}

    def task(self, split: str, index: int) -> Task[Problem]:
        """The problem at ``index``."""
        row_id, problem = self._splits[split][index]
        return Task(row_id, split, index, problem)

    def index_of(self, split: str, task_id: str) -> int | None:
        """Place of the task with this id."""
        return self._places[split].get(task_id)


def load_problems(data: Data, grader: Grader, skip_unreadable: bool = False) -> GivenProblems:
    """The problems of every split that ``data`` has.

    Raises:
        UnknownNameError: A split or a file ending that does not exist.
        BadValueError: Something else than files.
        DataError: A file that does not hold what it should; says file and line or row.
    """
    ids: dict[str, str] = {}
    splits: dict[str, list[tuple[str, Problem]]] = {}
    left_out = 0
    for split, path in _check_files(data).items():
        splits[split] = []
        for number, (where, row) in enumerate(_read_rows(path)):
            named = row_id(row, where) if row.get("id") is not None else f"{path.stem}/{number}"
            claim_id(ids, named, where)
            problem = _parse_problem(row, where)
            if grader.can_grade(problem.answer):
                splits[split].append((named, problem))
            elif skip_unreadable:
                left_out += 1
            else:
                raise DataError(
                    f"{where}: the answer {problem.answer!r} is no number that can be graded "
                    "here. Use grader='math-verify' for LaTeX answers (it needs the extra "
                    "turngym[math]), or leave such rows out with skip_unreadable=True."
                )
        if not splits[split]:
            raise DataError(f"{path}: holds no problem that can be graded; expected one or more.")
    return GivenProblems(splits, left_out)


def _check_files(data: Data) -> dict[str, Path]:
    if isinstance(data, (str, Path)):
        return {SPLITS[0]: Path(data)}
    if not isinstance(data, Mapping) or not data:
        raise BadValueError(
            f"MathWord: data is {data!r}; expected a file, or {{split: file}} with one or more."
        )
    for split, path in data.items():
        if split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS, "MathWord: data")
        if not isinstance(path, (str, Path)):
            raise BadValueError(f"MathWord: data of {split} is {path!r}; expected a file.")
    return {split: Path(data[split]) for split in SPLITS if split in data}


def _read_rows(path: Path) -> Rows:
    if path.suffix == ".jsonl":
        yield from read_rows(path)
        return
    if path.suffix != ".json":
        raise UnknownNameError("file ending", path.suffix, ENDINGS, str(path))
    with open_file(path) as file:
        text = strip_byte_order_mark(file.read())
    rows = parse_json_value(text, str(path), "a list of objects", lines=True)
    if not isinstance(rows, list):
        raise DataError(f"{path}: a {type(rows).__name__}; expected a list of objects.")
    for number, row in enumerate(rows):
        where = f"{path}, row {number}"
        yield where, as_object(row, where)


def _parse_problem(row: Mapping[str, Any], where: str) -> Problem:
    column = "problem" if row.get("problem") is not None else "question"
    if row.get(column) is None:
        raise DataError(
            f"{where}: no problem; expected a column problem or question. Columns: "
            f"{', '.join(map(str, row)) or 'none'}."
        )
    solution = row.get("solution")
    return Problem(
        text=get_text(row, column, where).strip(),
        answer=_parse_answer(row, where),
        solution="" if solution is None else _parse_solution(solution, where),
    )


def _parse_answer(row: Mapping[str, Any], where: str) -> str:
    given = row.get("answer")
    if given is None:
        raise DataError(
            f"{where}: no answer. Columns: {', '.join(map(str, row)) or 'none'}; expected answer."
        )
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return str(given)
    return check_text(given, "answer", where).strip()


def _parse_solution(given: object, where: str) -> str:
    if not isinstance(given, str):
        raise DataError(f"{where}: solution is {given!r}; expected text.")
    return clean(given)
