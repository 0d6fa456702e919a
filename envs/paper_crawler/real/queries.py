"""Files of queries as a source of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...rows import claim, json_rows, unreadable
from ...search_qa.data import called
from ...tasks import Task
from ..papers import Request
from .layout import query_files
from .rows import QueryRow, RowRules, read_row

Stamp = tuple[int, int]


class RequestFiles:
    """Tasks of query files, a file per split; their ids are the rows' ``qid``.

    Copies and forks share it; a pickle carries paths and reads them again.

    Args:
        files: The file of each split.
        rules: How rows become tasks.

    Attributes:
        left_out: Rows without answers per split, which became no task.
        repeated: Answers per split that were dropped as repetitions of another one of their row.

    Raises:
        DataError: A file that does not hold what it should, an id used twice, or no query.
    """

    def __init__(self, files: Mapping[str, Path], rules: RowRules) -> None:
        self._files = {split: (path, _stamp(path)) for split, path in files.items()}
        self._rules = rules
        self._rows: dict[str, list[QueryRow]] = {}
        self._places: dict[str, dict[str, int]] = {}
        self.left_out: dict[str, int] = {}
        self.repeated: dict[str, int] = {}
        ids: dict[str, str] = {}
        for split, (path, stamp) in self._files.items():
            rows = _read(path, stamp, rules)
            for where, row in rows:
                claim(ids, row.qid, where)
            kept = [row for _, row in rows if row.request.answers]
            if not kept:
                raise DataError(f"{path}: holds no query; expected one JSON object per line.")
            self._rows[split] = kept
            self._places[split] = {row.qid: i for i, row in enumerate(kept)}
            self.left_out[split] = len(rows) - len(kept)
            self.repeated[split] = sum(row.repeated for row in kept)

    def __deepcopy__(self, memo: Mapping[int, Any]) -> RequestFiles:
        return self

    def __reduce__(self) -> Any:
        return _again, (self._files, self._rules)

    def sizes(self) -> Mapping[str, int | None]:
        """Tasks per split."""
        return {split: len(rows) for split, rows in self._rows.items()}

    def task(self, split: str, index: int) -> Task[Request]:
        """The request at ``index``."""
        row = self._rows[split][index]
        return Task(row.qid, split, index, row.request, called(self._files[split][0]))

    def index_of(self, split: str, task_id: str) -> int | None:
        """Place of the task with this id."""
        return self._places[split].get(task_id)


def open_queries(data: Any, rules: RowRules | None = None) -> RequestFiles:
    """The queries in files or folders; see :func:`~.layout.query_files`.

    Raises:
        UnknownNameError: A split that does not exist.
        BadValueError: Something else than paths.
        DataError: Files that are missing or do not hold what they should.
    """
    return RequestFiles(query_files(data), RowRules() if rules is None else rules)


def _again(files: Mapping[str, tuple[Path, Stamp]], rules: RowRules) -> RequestFiles:
    """The queries of a pickle.

    Raises:
        DataError: A file has changed since.
    """
    for path, stamp in files.values():
        if _stamp(path) != stamp:
            raise DataError(f"{path}: the queries have changed since they were pickled.")
    return RequestFiles({split: path for split, (path, _) in files.items()}, rules)


def _stamp(path: Path) -> Stamp:
    try:
        stat = path.stat()
    except OSError as error:
        raise unreadable(path, error) from None
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=8)
def _read(
    path: Path,
    stamp: Stamp,  # noqa: ARG001 - part of the key
    rules: RowRules,
) -> tuple[tuple[str, QueryRow], ...]:
    """(place, row) of a file; read once per process."""
    return tuple((where, read_row(row, where, rules)) for where, row in json_rows(path))
