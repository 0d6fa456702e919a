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

The data sets of a split are mixed, see :mod:`turngym.envs.search_qa.mixture`: in proportion to
their sizes, or in train by ``weights``. The task ids of a mixture are ``data set/id``; what a
weighted mixture asks again is ``data set/id#2``, ``#3`` and so on. Several data sets at once:
a file without ``data_source`` is called like itself, or like its folder if its own name is that of
a split.

Passages (``corpus``): JSON lines with ``id`` and ``contents``, whose first line is the title; or
with ``id``, ``title`` and ``text``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import BadValueError, DataError, UnknownNameError
from ..retrieval import Bm25, Corpus
from ..rows import claim, json_rows, row_contents, row_id, unreadable
from ..tasks import SPLITS
from .mixture import checked_weights
from .questions import Question
from .rows import READERS
from .source import QuestionSets
from .written import Written, read_questions

_BLOCK_BYTES = 1 << 22
_TRAIN = SPLITS[0]
Place = str | Path
Places = Place | Sequence[Place] | Mapping[str, Place]
Data = Places | Mapping[str, Places]
"""What the setting ``data`` takes."""


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
    splits = _splits(data, where)
    if weights is not None and _TRAIN not in splits:
        raise BadValueError(
            f"{where}: weights={weights!r} mixes the train split, and data has none; expected "
            'data={"train": {name: file, ...}}.'
        )
    found = {}
    for split in SPLITS:
        if split in splits:
            sets = _sets(splits[split], split, where)
            shares = checked_weights(weights, list(sets), where) if split == _TRAIN else None
            found[split] = QuestionSets(sets, shares)
    return found


def load_corpus_index(path: str | Path) -> Bm25:
    """BM25 over a passage file; the index is cached by the file's content.

    Raises:
        DataError: A file that does not hold what it should; says file and line.
    """
    path = Path(path).resolve()
    try:
        stat = path.stat()
    except OSError as error:
        raise unreadable(path, error) from None
    return _index(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _index(path: Path, changed_ns: int, size: int) -> Bm25:  # noqa: ARG001 - part of the key
    digest = _digest(path)
    return Bm25(_corpus(path), name=f"corpus-{digest}", reload=(_same_index, (path, digest)))


def _same_index(path: Path, digest: str) -> Bm25:
    """The index of a pickled environment.

    Raises:
        DataError: The file has changed since.
    """
    if _digest(path) != digest:
        raise DataError(f"{path}: the passages have changed since this environment was pickled.")
    return load_corpus_index(path)


def _corpus(path: Path) -> Corpus:
    ids: dict[str, str] = {}
    titles: list[str] = []
    texts: list[str] = []
    for where, row in json_rows(path):
        claim(ids, row_id(row, where), where)
        title, text = row_contents(row, where)
        titles.append(title)
        texts.append(text)
    if not ids:
        raise DataError(
            f"{path}: holds no passage; expected JSON lines with id and contents, or id, title and "
            "text."
        )
    return Corpus(ids=list(ids), titles=titles, texts=texts)


def _splits(data: Data, where: str) -> dict[str, Any]:
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
    found = {split: files[0] for split in SPLITS if (files := _files_of(folder, split))}
    if not found:
        raise DataError(
            f"{folder}: holds no {'.jsonl, '.join(SPLITS)}.jsonl; expected a file per split (it "
            f"may also end with {', '.join(READERS)})."
        )
    return found


def _sets(places: Places, split: str, where: str) -> dict[str, list[tuple[str, Question]]]:
    """(id, question) rows of every data set of a split."""
    sets: dict[str, list[tuple[str, Question]]] = {}
    ids: dict[str, str] = {}
    single = isinstance(places, (str, Path))
    for given, file in _named_files(places, split, where):
        for number, row in enumerate(_file_rows(file, where)):
            name = given or row.source or called(file)
            rows = sets.setdefault(name, [])
            if single and not row.source:
                named = row.id or f"{file.stem}/{number}"
            else:
                named = f"{name}/{row.id or len(rows)}"
            claim(ids, named, row.where)
            rows.append((named, row.question))
    return sets


def _named_files(places: Any, split: str, where: str) -> Iterator[tuple[str, Path]]:
    """(name that the user gave or "", file) of what a split is made of."""
    if isinstance(places, (str, Path)):
        yield "", _file(places, split, where)
    elif isinstance(places, Mapping) and places:
        for name, place in places.items():
            if not isinstance(name, str) or not name or "/" in name:
                raise BadValueError(
                    f"{where} data: a data set of {split} is called {name!r}; expected a word "
                    "without '/'."
                )
            yield name, _file(place, split, where)
    elif isinstance(places, (list, tuple)) and places:
        files = [_file(place, split, where) for place in places]
        names = [called(file) for file in files]
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


def _file(place: Any, split: str, where: str) -> Path:
    """The file of a place: itself, or that of the split in a folder."""
    if not isinstance(place, (str, Path)):
        raise BadValueError(
            f"{where} data: {split} has {place!r}; expected the path of a file or a folder."
        )
    path = Path(place).expanduser().absolute()
    if not path.is_dir():
        return path
    files = _files_of(path, split)
    if not files:
        raise DataError(f"{path}: holds no {split}.jsonl; expected a file of that split.")
    return files[0]


def _files_of(folder: Path, split: str) -> list[Path]:
    """The file of a split in a folder, in a list; an empty one where there is none."""
    files = [file for ending in READERS if (file := folder / f"{split}{ending}").is_file()]
    if len(files) > 1:
        raise DataError(
            f"{folder}: holds {' and '.join(file.name for file in files)}; expected one file per "
            "split. Name the one that is meant: {split: file}."
        )
    return files


def called(file: Path) -> str:
    """The name of a file's data set: its own, or its folder's if its own is that of a split."""
    folder = file.parent.name
    return folder if file.stem in SPLITS and folder else file.stem


def _file_rows(path: Path, where: str) -> tuple[Written, ...]:
    if path.suffix not in READERS:
        raise UnknownNameError("file ending", path.suffix, READERS, f"{where} data {path}")
    try:
        stat = path.stat()
    except OSError as error:
        raise unreadable(path, error) from None
    return _remembered(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=16)
def _remembered(path: Path, changed_ns: int, size: int) -> tuple[Written, ...]:  # noqa: ARG001
    return tuple(read_questions(path))


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
