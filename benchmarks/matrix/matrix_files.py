"""Results of a matrix as files: its folder, one packed file, or several parts of one suite.

A packed file is JSON lines without the paths of a machine. The first line holds the format and the
suite; then follow the columns, the searches for learning rates and the cells, each as
``{"kind": ..., "result": ...}``. A name that ends in ``.gz`` is compressed. The same results always
give the same bytes.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...envs.core.digest import digest_of
from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...envs.utils.disk_errors import extend_name
from ...leaderboard.schema.base import Form, parse_form
from .cell import CellResult, ColumnResult, SearchResult
from .layout import Layout, vouched
from .suite import NamedStart, Suite

FORMAT = 1
LARGE = 1_000_000
"""Bytes above which a file must be compressed."""
_FOLDER = re.compile(r"(?<![\w:/.])/(?:[\w.+-]+/)+")
"""The folders of an absolute path."""


class MatrixFiles(NamedTuple):
    """The stored results of a matrix, in the suite's order.

    Attributes:
        suite: The suite.
        cells: Result of each cell that has one, by key.
        columns: Start of each column that has one, by name.
        searches: The searches for learning rates, by row and column.
        left_out: Number of finished cells that were computed for an older version of the suite and
            are not the same in this one.
        only: What was asked for, run by run, as ``--only`` names it; nothing, or a run that asked
            for nothing in particular, means every cell.
    """

    suite: Suite
    cells: dict[str, CellResult]
    columns: dict[str, ColumnResult]
    searches: dict[tuple[str, str], SearchResult]
    left_out: int = 0
    only: tuple[tuple[str, ...], ...] = ()

    def asked_for(self) -> frozenset[str]:
        """Return the keys of the cells that the recorded runs asked for."""
        if not all(self.only):
            return frozenset(cell.key for cell in self.suite.cells)
        wanted = [self.suite.only(words) for words in self.only or ((),)]
        return frozenset(cell.key for cells in wanted for cell in cells)

    def chosen(self) -> frozenset[str]:
        """Return the keys of the cells that were asked for, and of those that are there anyway."""
        return self.asked_for() | self.cells.keys()

    def in_order(self) -> MatrixFiles:
        """Return the same in the suite's order."""
        suite = self.suite
        rows, names = [r.label for r in suite.recipes], [e.name for e in suite.envs]
        pairs = [(row, name) for name in names for row in rows]
        return MatrixFiles(
            suite=suite,
            cells={c.key: self.cells[c.key] for c in suite.cells if c.key in self.cells},
            columns={name: self.columns[name] for name in names if name in self.columns},
            searches={pair: self.searches[pair] for pair in pairs if pair in self.searches},
            left_out=self.left_out,
            only=self.only,
        )

    def adopted(self, suite: Suite) -> MatrixFiles:
        """Return what belongs to another suite too: results that depend on nothing else there."""
        wanted = {cell.key: suite.cell_digest(cell) for cell in suite.cells}
        columns = {column.name: suite.column_digest(column.name) for column in suite.envs}
        rows = {row.label for row in suite.recipes}
        kept = {k: cell for k, cell in self.cells.items() if wanted.get(k) == cell.digest}
        ended = sum(cell.state == "finished" for k, cell in self.cells.items() if k not in kept)
        return MatrixFiles(
            suite=suite,
            cells=kept,
            columns={n: one for n, one in self.columns.items() if columns.get(n) == one.digest},
            searches={
                (row, name): one
                for (row, name), one in self.searches.items()
                if row in rows and name in columns and one.digest == suite.search_digest(row, name)
            },
            left_out=self.left_out + ended,
        ).in_order()


def read_parts(parts: Sequence[Path]) -> MatrixFiles:
    """Read matrix folders and packed files of one suite, and merge them.

    Parts of older versions of the suite give the results that are the same in the newest one.

    Raises:
        DataError: There is no matrix, no result, a damaged file, or parts that contradict each
            other.
    """
    return merge_read_parts({part: read_part(part) for part in parts})


def merge_read_parts(found: Mapping[Path, MatrixFiles]) -> MatrixFiles:
    """Merge parts of one suite that were read already, by their paths; see :func:`read_parts`.

    Raises:
        DataError: No result, or parts that contradict each other.
    """
    parts = list(found)
    whole = merge_parts(list(found.values()), [str(part) for part in parts])
    if not whole.cells:
        where = ", ".join(str(part) for part in parts)
        raise DataError(f"{where} has no result of a cell yet; fill the matrix first.")
    check_columns(whole.columns, whole.cells)
    return whole


def read_part(part: Path) -> MatrixFiles:
    """Read the folder of a matrix, or a packed file.

    Raises:
        DataError: Neither is there, or a damaged file.
    """
    return read_packed(part) if part.is_file() else read_folder(part)


def write_packed(results: MatrixFiles, path: Path) -> Path:
    """Write results as one file; readers see either the old file or the complete new one.

    Raises:
        BadValueError: More than a megabyte without compression.
    """
    return write_lines(_lines(results), path)


def write_lines(lines: Iterable[Any], path: Path) -> Path:
    """Write JSON lines as one file, compressed where its name ends in ``.gz``.

    Raises:
        BadValueError: More than a megabyte without compression.
    """
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    data = text.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, compresslevel=9, mtime=0)
    elif len(data) > LARGE:
        raise BadValueError(
            f"{path}: the results take {len(data):,} bytes; give a name that ends in .gz."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(extend_name(path.name, f".{os.urandom(4).hex()}.part"))
    try:
        part.write_bytes(data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


def read_packed(path: Path) -> MatrixFiles:
    """Read what :func:`write_packed` wrote.

    Raises:
        DataError: Not such a file, a damaged line, or a result of another suite.
    """
    lines = read_lines(path)
    head = _object(lines[0] if lines else "", f"{path}, line 1")
    if head.get("format") != FORMAT or "suite" not in head:
        raise DataError(
            f"{path}: line 1 has format {head.get('format')!r}; expected packed results of format "
            f"{FORMAT}, as `turngym bench --pack` writes them."
        )
    suite = parse_form(Suite, json.dumps(head["suite"]), f"{path}, line 1")
    found: dict[str, list[Any]] = {"column": [], "search": [], "cell": []}
    kinds: Mapping[str, type[Form]] = {
        "column": ColumnResult,
        "search": SearchResult,
        "cell": CellResult,
    }
    for number, line in enumerate(lines[1:], start=2):
        where = f"{path}, line {number}"
        item = _object(line, where)
        if item.get("kind") not in kinds or "result" not in item:
            raise DataError(f"{where}: kind {item.get('kind')!r}; expected one of {list(kinds)}.")
        result: Any = parse_form(kinds[item["kind"]], json.dumps(item["result"]), where)
        digest = _digest_in(suite, result, where)
        result = vouched(result, digest, lambda: digest_of(head["suite"]))
        if result.digest != digest:
            raise DataError(f"{where}: belongs to another suite than line 1.")
        found[item["kind"]].append(result)
    return MatrixFiles(
        suite=suite,
        cells={result.cell.key: result for result in found["cell"]},
        columns={result.column: result for result in found["column"]},
        searches={(result.recipe, result.column): result for result in found["search"]},
        only=_choices(head, suite, f"{path}, line 1"),
    ).in_order()


def read_folder(folder: Path) -> MatrixFiles:
    """Read the folder of a matrix.

    Raises:
        DataError: There is no matrix, or a damaged file.
    """
    layout = Layout(folder)
    if not folder.exists():
        raise DataError(f"{folder} does not exist; give the folder of a matrix, or a packed file.")
    if not layout.suite_file.exists():
        raise DataError(
            f"{folder} has no suite.json; give the folder of a matrix, or a packed file."
        )
    suite = Suite.read(layout.suite_file)
    rows, names = [r.label for r in suite.recipes], [e.name for e in suite.envs]
    return MatrixFiles(
        suite=suite,
        cells={c.key: r for c in suite.cells if (r := layout.cell(suite, c)) is not None},
        columns={name: r for name in names if (r := layout.column(suite, name)) is not None},
        searches={
            (row, name): r
            for row in rows
            for name in names
            if suite.lr_search and (r := layout.search(suite, row, name)) is not None
        },
        only=layout.choices(),
    )


def merge_parts(parts: Sequence[MatrixFiles], names: Sequence[str]) -> MatrixFiles:
    """Merge results of one suite that were computed in parts.

    The newest version of the suite counts; of older ones what is the same in it is kept.

    Args:
        parts: The results.
        names: Where each comes from, for errors.

    Raises:
        DataError: Parts of different suites, other starts of a column, or two different results of
            a cell.
    """
    suite = max((part.suite for part in parts), key=lambda one: one.version)
    fitted = [_fitted(part, suite, name) for part, name in zip(parts, names, strict=True)]
    first = fitted[0]
    cells, columns, searches = dict(first.cells), dict(first.columns), dict(first.searches)
    for part, name in zip(fitted[1:], names[1:], strict=True):
        for key, column in part.columns.items():
            old = columns.get(key)
            if old and old.start_digest and column.start_digest not in ("", old.start_digest):
                raise DataError(
                    f"{name}: column {key!r} starts from another model than in {names[0]} (made on "
                    "another machine, it may differ by rounding). Fill one part from a copy of the "
                    "other's columns and starting models."
                )
            if old is None or old.state != "finished":
                columns[key] = column
        for key, cell in part.cells.items():
            cells[key] = _better(cells.get(key), cell, f"{name}: cell {key!r}")
        for pair, search in part.searches.items():
            known = searches.get(pair)
            if known is None or known.state != "finished":
                searches[pair] = search
    left_out = sum(part.left_out for part in fitted)
    chosen = [part.only for part in fitted]
    only = tuple(dict.fromkeys(one for some in chosen for one in some)) if all(chosen) else ()
    return MatrixFiles(suite, cells, columns, searches, left_out, only).in_order()


def check_columns(columns: Mapping[str, ColumnResult], cells: Mapping[str, CellResult]) -> None:
    """Check that all finished cells of a column have its starting model and evaluation tasks.

    Raises:
        DataError: Cells of other starts, as where files of two machines were copied together; cells
            of other tasks, as where an environment has changed in between.
    """
    starts = {name: column.start_digest for name, column in columns.items()}
    tasks = {name: column.tasks_digest for name, column in columns.items()}
    for key, cell in cells.items():
        own, name = cell.start_digest, cell.cell.column
        if own and own != (starts.get(name) or own):
            raise DataError(
                f"cell {key!r} was trained from another starting model ({own[:19]}) than column "
                f"{name!r} has or its other cells ({starts[name][:19]}); expected one model for "
                "all of them. Remove the files of cells from one of the two models, and fill them "
                "again."
            )
        starts[name] = own or starts.get(name, "")
        played = cell.tasks_digest
        if played and played != (tasks.get(name) or played):
            raise DataError(
                f"cell {key!r} was scored on other evaluation tasks ({played[:12]}) than column "
                f"{name!r} or its other cells ({tasks[name][:12]}): the environment's code or data "
                "were others. Remove the files of cells from one of the two, and fill them again."
            )
        tasks[name] = played or tasks.get(name, "")


def _fitted(part: MatrixFiles, suite: Suite, name: str) -> MatrixFiles:
    """Return what a part has of a suite, of which it may be an older version."""
    own = part.suite
    if own.digest == suite.digest:
        return part
    if own.differs_in_seeds(suite):
        raise DataError(
            f"{name} holds suite {own.name!r} with another number of seeds than another part, "
            f"{len(own.seeds)} and {len(suite.seeds)}: only parts of one suite can be merged. Take "
            "the one into the folder of the other: bench --suite NAME --seeds N --reuse FOLDER."
        )
    if own.name != suite.name or own.version == suite.version:
        raise DataError(
            f"{name} holds suite {own.name!r} version {own.version} ({own.digest[:12]}), another "
            f"part {suite.name!r} version {suite.version} ({suite.digest[:12]}): only parts of one "
            "suite can be merged, and what has changed needs a new version."
        )
    return part.adopted(suite)


def _choices(head: Mapping[str, Any], suite: Suite, where: str) -> tuple[tuple[str, ...], ...]:
    """Return what was asked for, as the first line of a packed file says it."""
    try:
        found = tuple(tuple(words) for words in head.get("only", []))
        for words in found:
            suite.only(words)
    except (TypeError, AttributeError, BadValueError, UnknownNameError) as error:
        raise DataError(f"{where}: only: {error}") from error
    return found


def _digest_in(suite: Suite, result: CellResult | ColumnResult | SearchResult, where: str) -> str:
    """Return the digest that a result has to have in a suite."""
    try:
        if isinstance(result, CellResult):
            return suite.cell_digest(result.cell)
        if isinstance(result, ColumnResult):
            return suite.column_digest(result.column)
        return suite.search_digest(result.recipe, result.column)
    except UnknownNameError as error:
        raise DataError(f"{where}: {error}") from error


def _better(old: CellResult | None, new: CellResult, where: str) -> CellResult:
    if old is None:
        return new
    if old.state != "finished":  # what failed in one part was not merely stopped
        return old if old.state == "failed" and new.state != "finished" else new
    if new.state == "finished" and (old.training, old.tries) != (new.training, new.tries):
        raise DataError(f"{where} is finished in another part too, with other results; keep one.")
    return old


def _lines(results: MatrixFiles) -> Iterator[dict[str, Any]]:
    suite = results.suite
    choice = {"only": results.only} if results.only and all(results.only) else {}
    yield {"format": FORMAT, "suite": _plain(suite), **choice}
    for name, column in results.columns.items():
        given = suite.column(name).start
        start = column.start if isinstance(given, NamedStart) and given.name == column.start else ""
        kept = column.model_copy(update={"start": start, "reason": hide_paths(column.reason)})
        yield {"kind": "column", "result": _plain(kept)}
    for search in results.searches.values():
        kept = search.model_copy(update={"reason": hide_paths(search.reason)})
        yield {"kind": "search", "result": _plain(kept)}
    for cell in results.cells.values():
        texts = {"reason": hide_paths(cell.reason), "trace": hide_paths(cell.trace)}
        yield {"kind": "cell", "result": _plain(cell.model_copy(update=texts))}


def _plain(form: Form) -> dict[str, Any]:
    return form.model_dump(mode="json", by_alias=True)


def hide_paths(text: str) -> str:
    """Return a text without the folders of absolute paths in it."""
    return _FOLDER.sub("", text)


def read_lines(path: Path) -> list[str]:
    """Read what :func:`write_lines` wrote, line by line.

    Raises:
        DataError: No such file, or a damaged one.
    """
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file.") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}); it was cut or damaged.") from error


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}); the file was cut or damaged.") from error
    if not isinstance(found, dict):
        raise DataError(f"{where}: expected a JSON object.")
    return found
