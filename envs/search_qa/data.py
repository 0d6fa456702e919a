"""Questions and passages that a user has, in the published formats.

Questions (``data``), one row each. The ending says how a file is read: ``.jsonl`` (an object per
line), ``.json`` (a list of objects), ``.csv`` (columns; several answers of a cell are separated by
``|`` or are a JSON list) or ``.parquet``.

* The question stands in ``question``; in Search-R1's rows else in ``extra_info.question``, or after
  "Question:" in the last user message of ``prompt``.
* Its accepted answers stand in ``golden_answers`` (FlashRAG), ``answers`` or ``answer``, a text or
  a list, or in Search-R1's ``reward_model.ground_truth`` (the same, or ``{"target": ...}``).
* ``id`` may be left out; such a row is called by its file and its number from 0.
* ``data_source`` (Search-R1) names the data set of a row, in files of several.

``data`` is one file, which is the train split; a folder as FlashRAG has it, whose ``train``,
``dev`` and ``test`` files are the splits; or ``{split: ...}``. What a split is made of is a file, a
folder (its file of that split), several of these in a list, or ``{data set: file or folder}``:

    data={"train": {"nq": "nq.parquet", "hotpotqa": "hotpotqa"}, "test": "bamboogle/test.jsonl"}

The data sets of a split are mixed, see :mod:`turngym.envs.core.interleave`: in proportion to
their sizes, or in train by ``weights``. The task ids of a mixture are ``data set/id``; what a
weighted mixture asks again is ``data set/id#2``, ``#3`` and so on. Several data sets at once:
a file without ``data_source`` is called like itself, or like its folder if its own name is that of
a split.

Passages (``corpus``): JSON lines with ``id`` and ``contents``, whose first line is the title; or
with ``id``, ``title`` and ``text``.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..core.errors import BadValueError, DataError, MissingExtraError, UnknownNameError
from ..core.interleave import check_weights
from ..core.tasks import SPLITS
from ..tools.retrieval.base import Corpus
from ..tools.retrieval.bm25 import Bm25
from ..utils.file_rows import (
    Rows,
    as_object,
    check_text,
    claim_id,
    clean,
    get_contents,
    get_text,
    make_read_error,
    open_file,
    parse_json_value,
    read_rows,
    row_id,
    strip_byte_order_mark,
)
from .questions import Question
from .source import QuestionSets
from .text import end_with_question_mark

_BLOCK_BYTES = 1 << 22
_TRAIN = SPLITS[0]
Place = str | Path
Places = Place | Sequence[Place] | Mapping[str, Place]
Data = Places | Mapping[str, Places]
"""What the setting ``data`` takes."""
QUESTION_COLUMNS = ("question", "extra_info", "prompt")
"""Where a question may stand, the first that holds one counts."""
ANSWER_COLUMNS = ("golden_answers", "answers", "answer")
"""Where its accepted answers may stand, before Search-R1's ``reward_model``."""
_OTHER_COLUMNS = ("id", "data_source", "reward_model")
_BATCH = 1024


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One row.

    Attributes:
        id: The row's own id; empty without one.
        source: The data set that the row names; empty without one.
        question: The question.
        where: File and line or row.
    """

    id: str
    source: str
    question: Question
    where: str


def load_questions(
    data: Data, weights: Mapping[str, float] | None = None, where: str = "SearchQA"
) -> dict[str, QuestionSets]:
    """The questions of every split that ``data`` has.

    Args:
        data: File, folder, or ``{split: ...}``; see the head of this module.
        weights: Share of each data set of the train split; None for their sizes.
        where: The environment that asks, for errors.

    Raises:
        UnknownNameError: A split, a file ending or a weighted data set that does not exist.
        BadValueError: Something else than files, or weights that do not fit.
        DataError: A file that does not hold what it should; says file and line or row.
        MissingExtraError: A parquet file without pyarrow.
    """
    splits = _find_splits(data, where)
    if weights is not None and _TRAIN not in splits:
        raise BadValueError(
            f"{where}: weights={weights!r} mixes the train split, and data has none; expected "
            'data={"train": {name: file, ...}}.'
        )
    found = {}
    for split in SPLITS:
        if split in splits:
            sets = _load_sets(splits[split], split, where)
            shares = check_weights(weights, list(sets), where) if split == _TRAIN else None
            found[split] = QuestionSets(sets, shares)
    return found


def load_corpus_index(path: str | Path) -> Bm25:
    """BM25 over a passage file; the index is cached by the file's content.

    Raises:
        DataError: A file that does not hold what it should; says file and line.
    """
    path = Path(path).expanduser().resolve()
    try:
        stat = path.stat()
    except OSError as error:
        raise make_read_error(path, error) from None
    return _load_index(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _load_index(path: Path, changed_ns: int, size: int) -> Bm25:  # noqa: ARG001 - part of the key
    digest = _hash_file(path)
    corpus, reload = _read_corpus(path), (_build_index, (path, digest))
    try:
        return Bm25(corpus, name=f"corpus-{digest}", reload=reload)
    except BadValueError:
        raise DataError(f"{path}: no passage holds a word; expected text to search.") from None


def _build_index(path: Path, digest: str) -> Bm25:
    """The index of a pickled environment.

    Raises:
        DataError: The file has changed since.
    """
    if _hash_file(path) != digest:
        raise DataError(f"{path}: the passages have changed since this environment was pickled.")
    return load_corpus_index(path)


def _read_corpus(path: Path) -> Corpus:
    ids: dict[str, str] = {}
    titles: list[str] = []
    texts: list[str] = []
    for where, row in read_rows(path):
        claim_id(ids, row_id(row, where), where)
        title, text = get_contents(row, where)
        titles.append(title)
        texts.append(text)
    if not ids:
        raise DataError(
            f"{path}: holds no passage; expected JSON lines with id and contents, or id, title and "
            "text."
        )
    return Corpus(ids=list(ids), titles=titles, texts=texts)


def _find_splits(data: Data, where: str) -> dict[str, Any]:
    """What each split is made of."""
    if isinstance(data, Mapping):
        if not data:
            raise DataError(f"{where} data: no file was named; expected {{split: file}}.")
        for split in data:
            if split not in SPLITS:
                raise UnknownNameError("split", split, SPLITS, f"{where} data")
        return dict(data)
    if not isinstance(data, (str, Path)) or not Path(data).expanduser().is_dir():
        return {_TRAIN: data}
    folder = Path(data).expanduser().absolute()
    found = {split: files[0] for split in SPLITS if (files := _find_split_files(folder, split))}
    if not found:
        raise DataError(
            f"{folder}: holds no {'.jsonl, '.join(SPLITS)}.jsonl; expected a file per split (it "
            f"may also end with {', '.join(READERS)})."
        )
    return found


def _load_sets(places: Places, split: str, where: str) -> dict[str, list[tuple[str, Question]]]:
    """(id, question) rows of every data set of a split."""
    sets: dict[str, list[tuple[str, Question]]] = {}
    ids: dict[str, str] = {}
    single = isinstance(places, (str, Path))
    for given, file in _list_named_files(places, split, where):
        for number, row in enumerate(_load_rows(file, where)):
            name = given or row.source or dataset_name(file)
            rows = sets.setdefault(name, [])
            if single and not row.source:
                named = row.id or f"{file.stem}/{number}"
            else:
                named = f"{name}/{row.id or len(rows)}"
            claim_id(ids, named, row.where)
            rows.append((named, row.question))
    return sets


def _list_named_files(places: Any, split: str, where: str) -> Iterator[tuple[str, Path]]:
    """(name that the user gave or "", file) of what a split is made of."""
    if isinstance(places, (str, Path)):
        yield "", _check_file(places, split, where)
    elif isinstance(places, Mapping) and places:
        for name, place in places.items():
            if not isinstance(name, str) or not name or "/" in name:
                raise BadValueError(
                    f"{where} data: a data set of {split} is called {name!r}; expected a word "
                    "without '/'."
                )
            yield name, _check_file(place, split, where)
    elif isinstance(places, (list, tuple)) and places:
        files = [_check_file(place, split, where) for place in places]
        names = [dataset_name(file) for file in files]
        for file, name in zip(files, names, strict=True):
            if names.count(name) > 1:
                raise BadValueError(
                    f"{where} data: two files of {split} are called {name!r}, one of them {file}; "
                    "name them: {name: file, other name: other file}."
                )
        yield from (("", file) for file in files)
    else:
        raise BadValueError(
            f"{where} data: {split} is {places!r}; expected a file, a folder, a list of these, or "
            "{data set: file}."
        )


def _check_file(place: Any, split: str, where: str) -> Path:
    """The file of a place: itself, or that of the split in a folder."""
    if not isinstance(place, (str, Path)):
        raise BadValueError(
            f"{where} data: {split} has {place!r}; expected the path of a file or a folder."
        )
    path = Path(place).expanduser().absolute()
    if not path.is_dir():
        return path
    files = _find_split_files(path, split)
    if not files:
        raise DataError(f"{path}: holds no {split}.jsonl; expected a file of that split.")
    return files[0]


def _find_split_files(folder: Path, split: str) -> list[Path]:
    """The file of a split in a folder, in a list; an empty one where there is none."""
    files = [file for ending in READERS if (file := folder / f"{split}{ending}").is_file()]
    if len(files) > 1:
        raise DataError(
            f"{folder}: holds {' and '.join(file.name for file in files)}; expected one file per "
            "split. Name the one that is meant: {split: file}."
        )
    return files


def dataset_name(file: Path) -> str:
    """The name of a file's data set: its own, or its folder's if its own is that of a split."""
    folder = file.parent.name
    return folder if file.stem in SPLITS and folder else file.stem


def _load_rows(path: Path, where: str) -> tuple[QuestionRow, ...]:
    if path.suffix not in READERS:
        raise UnknownNameError("file ending", path.suffix, READERS, f"{where} data {path}")
    try:
        stat = path.stat()
    except OSError as error:
        raise make_read_error(path, error) from None
    return _load_cached_rows(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=16)
def _load_cached_rows(path: Path, changed_ns: int, size: int) -> tuple[QuestionRow, ...]:  # noqa: ARG001
    return tuple(read_questions(path))


def _hash_file(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def read_questions(path: Path) -> Iterator[QuestionRow]:
    """The questions of a file in its order.

    Raises:
        UnknownNameError: An unknown file ending.
        DataError: A file that does not hold what it should; says file and line or row.
        MissingExtraError: A parquet file without pyarrow.
    """
    where = ""
    for where, row in read_question_rows(path, "questions"):
        text = end_with_question_mark(_read_question_text(row, where))
        yield QuestionRow(
            id=row_id(row, where) if row.get("id") is not None else "",
            source=_read_source(row, where),
            question=Question(text=text, answers=_read_answers(row, where)),
            where=where,
        )
    if not where:
        raise DataError(f"{path}: holds no question; expected one row each.")


def _read_source(row: Mapping[str, Any], where: str) -> str:
    """The row's data set; "/" separates parts of names elsewhere and becomes "_"."""
    given = row.get("data_source")
    if given is None or given == "":
        return ""
    return check_text(given, "data_source", where).strip().replace("/", "_")


def _read_question_text(row: Mapping[str, Any], where: str) -> str:
    if row.get("question") is not None:
        return get_text(row, "question", where)
    extra = row.get("extra_info")
    if isinstance(extra, Mapping) and extra.get("question") is not None:
        return get_text(extra, "question", where)
    prompt = row.get("prompt")
    for message in reversed(prompt if isinstance(prompt, list) else []):
        if isinstance(message, Mapping) and message.get("role") == "user":
            content = get_text(message, "content", where)
            return check_text(content.rpartition("Question:")[2], "question", where)
    raise DataError(
        f"{where}: no question; expected a column question, extra_info.question, or a prompt with "
        f"a user message. Columns: {', '.join(map(str, row))}."
    )


def _read_answers(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    given = next((row[c] for c in ANSWER_COLUMNS if row.get(c) is not None), None)
    if given is None:
        model = row.get("reward_model")
        given = model.get("ground_truth") if isinstance(model, Mapping) else None
        if isinstance(given, Mapping):
            given = given.get("target")
    if given is None:
        raise DataError(
            f"{where}: no answers; expected {', '.join(ANSWER_COLUMNS)} or "
            f"reward_model.ground_truth. Columns: {', '.join(map(str, row))}."
        )
    answers: list[str] = []
    for answer in given if isinstance(given, list) else [given]:
        if isinstance(answer, bool) or not isinstance(answer, (str, int, float)):
            raise DataError(f"{where}: answer {answer!r} is not text.")
        if isinstance(answer, float):
            if not math.isfinite(answer):
                raise DataError(f"{where}: answer {answer!r} is no number; expected text.")
            # a table with a gap makes 42.0 of 42, which EM would read as 420
            answer = int(answer) if answer.is_integer() else answer
        if text := clean(str(answer)).strip():
            answers.append(text)
    if not answers:
        raise DataError(f"{where}: no answers; expected at least one that is not empty.")
    return tuple(dict.fromkeys(answers))


def read_question_rows(path: Path, where: str) -> Rows:
    """(place, row) of a file, by its ending.

    Args:
        path: The file.
        where: Who asks, for errors.

    Raises:
        UnknownNameError: An ending that does not exist.
        DataError: A file that does not hold what it should; says file and line or row.
        MissingExtraError: A parquet file without pyarrow.
    """
    if path.suffix not in READERS:
        raise UnknownNameError("file ending", path.suffix, READERS, f"{where} {path}")
    return READERS[path.suffix](path)


def _read_list_rows(path: Path) -> Rows:
    with open_file(path) as file:
        text = strip_byte_order_mark(file.read())
    expected = "a list of objects. One object per line is a .jsonl file"
    items = parse_json_value(text, str(path), expected, lines=True)
    if not isinstance(items, list):
        raise DataError(f"{path}: a {type(items).__name__}; expected a list of objects.")
    for number, item in enumerate(items):
        where = f"{path}: item {number}"
        yield where, as_object(item, where)


def _read_csv_rows(path: Path) -> Rows:
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            names = list(reader.fieldnames or ())
            _check_columns(names, f"{path}:1", "a first line that names the columns")
            if len(set(names)) != len(names):
                raise DataError(f"{path}:1: columns {names}; expected names of their own.")
            for row in reader:
                line = reader.line_num
                yield f"{path}:{line}", _parse_csv_row(row, f"{path}:{line}")
    except OSError as error:
        raise make_read_error(path, error) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason}); save it as UTF-8.") from None
    except csv.Error as error:
        raise DataError(
            f"{path}: after line {line}: not CSV ({error}); expected cells separated by commas, "
            'those that hold a comma, a quote or a line break within double quotes ("" for ").'
        ) from None


def _parse_csv_row(row: Mapping[Any, Any], where: str) -> Mapping[str, Any]:
    if None in row or None in row.values():
        cells = sum(v is not None for k, v in row.items() if k is not None)
        cells += len(row.get(None, ()))
        named = sum(k is not None for k in row)
        raise DataError(
            f"{where}: {cells} cells; expected {named}, one per column. A cell that holds a comma "
            "stands within double quotes."
        )
    return {k: _parse_list_cell(v, where) if k in ANSWER_COLUMNS else v for k, v in row.items()}


def _parse_list_cell(cell: str, where: str) -> list[Any]:
    """The answers of a cell: a JSON list, or texts separated by ``|``."""
    if not cell.lstrip().startswith("["):
        return cell.split("|")
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits
        raise DataError(
            f"{where}: the answers {cell[:80]!r} begin like a JSON list and are none "
            f'({str(error)[:80]}); expected ["one", "two"] or one|two.'
        ) from None


def _read_parquet_rows(path: Path) -> Rows:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError("Reading parquet files", "pyarrow", "data") from None
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _check_columns(names, str(path), "a parquet file")
            known = (*QUESTION_COLUMNS, *ANSWER_COLUMNS, *_OTHER_COLUMNS)
            wanted = [name for name in names if name in known]
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                for row in batch.to_pylist():
                    yield f"{path}: row {number}", row
                    number += 1
    except (OSError, pyarrow.ArrowException) as error:
        raise make_read_error(path, error) from None


READERS = {
    ".jsonl": read_rows,
    ".parquet": _read_parquet_rows,
    ".csv": _read_csv_rows,
    ".json": _read_list_rows,
}
"""How a file is read, by its ending."""


def _check_columns(names: Iterable[str], where: str, what: str) -> None:
    """Refuse a file without a column of questions or one of answers."""
    given = list(names)
    for kind, known in (
        ("questions", QUESTION_COLUMNS),
        ("answers", (*ANSWER_COLUMNS, "reward_model")),
    ):
        if not any(name in given for name in known):
            raise DataError(
                f"{where}: no column of {kind}; expected {what} with one of {', '.join(known)}. "
                f"Columns: {', '.join(given) or 'none'}. Rename the one that holds the {kind}."
            )
