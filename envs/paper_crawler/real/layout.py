"""Where PaSa's files lie: the names in its folder ``data``, and how a place is understood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import BadValueError, DataError, UnknownNameError
from ...core.tasks import SPLITS

ID_TO_PAPER = "id2paper.json"
PAPER_ZIP = "cs_paper_2nd.zip"
DATABASE = "paper_database"
AUTO, REAL = "AutoScholarQuery", "RealScholarQuery"


@dataclass(frozen=True, slots=True)
class Part:
    """A file of PaSa's layout.

    Attributes:
        path: Below the folder ``data``.
        kind: ``"queries"``, ``"titles"``, ``"papers"`` or ``"examples"``.
        gives: What it is good for.
        needed: False for what PaperCrawler-v0 does not read.
    """

    path: str
    kind: str
    gives: str
    needed: bool = True


LAYOUT = (
    Part(f"{AUTO}/train.jsonl", "queries", "33,551 queries to train on"),
    Part(f"{AUTO}/dev.jsonl", "queries", "1,000 queries to choose by"),
    Part(f"{AUTO}/test.jsonl", "queries", "1,000 queries to report"),
    Part(f"{REAL}/test.jsonl", "queries", "50 queries of researchers, to report"),
    Part(f"{DATABASE}/{ID_TO_PAPER}", "titles", "titles by id: local search, citations"),
    Part(f"{DATABASE}/{PAPER_ZIP}", "papers", "abstracts and sections: [Expand]"),
    Part("sft_crawler/train.jsonl", "examples", "sessions to imitate", needed=False),
    Part("sft_selector/train.jsonl", "examples", "verdicts to imitate", needed=False),
    Part("sft_selector/test.jsonl", "examples", "verdicts to score a selector", needed=False),
)
"""What PaSa's folder ``data`` holds."""


def find_data_folder(folder: Path) -> Path:
    """PaSa's folder ``data``, given itself or the folder around it."""
    inner = folder / "data"
    return inner if not _any_part(folder) and _any_part(inner) else folder


def _any_part(folder: Path) -> bool:
    return any((folder / part.path).is_file() for part in LAYOUT)


def find_query_files(data: Any) -> dict[str, Path]:
    """The file of each split.

    Args:
        data: A file, which is the train split; a folder with ``train.jsonl``, ``dev.jsonl``,
            ``test.jsonl`` or some of them; PaSa's folder, whose AutoScholarQuery is meant (else its
            RealScholarQuery); or ``{split: file or such a folder}``.

    Raises:
        UnknownNameError: A split that does not exist.
        BadValueError: No path.
        DataError: A folder without such files.
    """
    if isinstance(data, Mapping):
        if not data:
            raise BadValueError("PaperCrawler data: no file was named; expected {split: file}.")
        for split in data:
            if split not in SPLITS:
                raise UnknownNameError("split", split, SPLITS, "PaperCrawler data")
        return {split: _find_split_file(data[split], split) for split in SPLITS if split in data}
    path = _check_path(data, "data")
    return _find_splits(path) if path.is_dir() else {SPLITS[0]: path}


def _find_split_file(place: Any, split: str) -> Path:
    path = _check_path(place, split)
    if not path.is_dir():
        return path
    files = _find_splits(path)
    if split not in files:
        raise DataError(f"{path}: holds no {split}.jsonl; expected the queries of that split.")
    return files[split]


def _find_splits(folder: Path) -> dict[str, Path]:
    inside = find_data_folder(folder)
    for place in (folder, inside / AUTO, inside / REAL):
        found = {s: file for s in SPLITS if (file := place / f"{s}.jsonl").is_file()}
        if found:
            return found
    raise DataError(
        f"{folder}: holds no {'.jsonl, '.join(SPLITS)}.jsonl and no {AUTO} with them; expected "
        "PaSa's queries. `turngym papers check` says what a folder holds."
    )


@dataclass(frozen=True, slots=True)
class DatabaseFiles:
    """The two files of the paper database."""

    titles: Path
    papers: Path


def find_database_files(papers: Any) -> DatabaseFiles:
    """``id2paper.json`` and the zip in a folder, or in PaSa's folder around it.

    The zip is called ``cs_paper_2nd.zip``, or is the only one of the folder.

    Raises:
        BadValueError: No path.
        DataError: A file is missing, or it is not clear which zip is meant.
    """
    folder = _check_path(papers, "papers")
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; expected one with {ID_TO_PAPER} and a zip.")
    places = (folder, folder / DATABASE, folder / "data" / DATABASE)
    place = next((p for p in places if (p / ID_TO_PAPER).is_file()), None)
    if place is None:
        raise DataError(
            f"{folder}: holds no {ID_TO_PAPER}, the titles by id; expected PaSa's {DATABASE}. "
            "`turngym papers check` says what a folder holds."
        )
    return DatabaseFiles(place / ID_TO_PAPER, find_zip(place))


def find_zip(folder: Path) -> Path:
    """The zip of papers in a folder.

    Raises:
        DataError: There is none, or several of other names.
    """
    if (named := folder / PAPER_ZIP).is_file():
        return named
    zips = sorted(folder.glob("*.zip"))
    if len(zips) != 1:
        came = ", ".join(path.name for path in zips) or "none"
        raise DataError(
            f"{folder}: holds no {PAPER_ZIP} with the papers; expected that, or a single zip. "
            f"Zips: {came}."
        )
    return zips[0]


def _check_path(given: Any, what: str) -> Path:
    if not isinstance(given, (str, Path)) or not str(given):
        raise BadValueError(
            f"PaperCrawler {what}: is {given!r}; expected the path of a file or a folder."
        )
    return Path(given).expanduser().absolute()
