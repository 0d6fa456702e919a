"""A world on the disk, as JSON lines: writing it, and reading it back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import BadValueError, DataError
from ...tasks import SPLITS
from ..papers import Paper, Request
from .requests import GeneratedRequests
from .world import FORMAT

PAPERS, WORLD = "papers.jsonl", "world.json"


class Exported(NamedTuple):
    """A world that was read from files.

    Attributes:
        papers: In the order of the file.
        requests: (id, request) by split.
        facts: What ``world.json`` says: format, parameters, seed, digests.
    """

    papers: list[Paper]
    requests: dict[str, list[tuple[str, Request]]]
    facts: dict[str, Any]


def queries_file(split: str) -> str:
    """Name of the file with the requests of a split."""
    return f"queries_{split}.jsonl"


def request_row(task_id: str, request: Request) -> dict[str, Any]:
    """A request as a row of AutoScholarQuery, with all answers and the source beside it."""
    return {
        "qid": task_id,
        "question": request.text,
        "answer": list(request.titles),
        "answer_arxiv_id": list(request.answers),
        "source_meta": {"published_time": f"{request.date:08d}"},
        "oracle_arxiv_id": list(request.oracle),
        "source_paper": request.source,
    }


def write_requests(source: GeneratedRequests, split: str, path: Path) -> None:
    """The requests of a split, one row a line."""
    count = source.sizes()[split] or 0
    tasks = (source.task(split, index) for index in range(count))
    _write_lines(path, (request_row(task.id, task.payload) for task in tasks))


def export_world(source: GeneratedRequests, folder: str | Path) -> Path:
    """Write a world and its requests.

    Args:
        source: The requests, with their world.
        folder: Where to; made when absent.

    Returns:
        The path of ``world.json``.

    Raises:
        BadValueError: The folder holds a world already.
    """
    folder, world = Path(folder), source.world
    target = folder / WORLD
    if target.exists():
        raise BadValueError(f"{target}: there is a world already; name an empty folder.")
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(folder / PAPERS, (_paper_row(world.paper(i)) for i in range(len(world))))
    for split in SPLITS:
        write_requests(source, split, folder / queries_file(split))
    facts = {
        "format": FORMAT,
        "seed": world.seed,
        "parameters": asdict(world.parameters),
        "labels": source.labels,
        "sha256": {name: _sha256(folder / name) for name in _names()},
    }
    target.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return target


def import_world(folder: str | Path) -> Exported:
    """Read what :func:`export_world` wrote.

    Raises:
        DataError: A file is missing or damaged, or of another format.
    """
    folder = Path(folder)
    facts = _facts(folder / WORLD)
    for name in _names():
        if not (folder / name).is_file():
            raise DataError(f"{folder / name}: no such file; export the world again.")
        if _sha256(folder / name) != facts["sha256"].get(name):
            raise DataError(
                f"{folder / name}: SHA-256 differs from what {WORLD} says; export the world again."
            )
    return Exported(
        papers=list(_read(folder / PAPERS, _paper)),
        requests={split: list(_read(folder / queries_file(split), _request)) for split in SPLITS},
        facts=facts,
    )


def _names() -> Sequence[str]:
    return (PAPERS, *map(queries_file, SPLITS))


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise DataError(f"{path}: cannot be read; expected an exported world.") from None
    except ValueError as fault:
        raise DataError(f"{path}: not JSON ({fault}); export the world again.") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        came = facts.get("format") if isinstance(facts, dict) else facts
        raise DataError(f"{path}: format is {came!r}; expected {FORMAT}.")
    if not isinstance(facts.get("sha256"), dict):
        raise DataError(f"{path}: no 'sha256' object; export the world again.")
    return facts


def _paper_row(paper: Paper) -> dict[str, Any]:
    return {
        "paper_id": paper.id,
        "title": paper.title,
        "abstract": paper.abstract,
        "date": f"{paper.date:08d}",
        "topic": paper.topic,
        "methods": list(paper.methods),
        "kind": paper.kind,
        "sections": {heading: list(cited) for heading, cited in paper.sections.items()},
    }


def _paper(row: Mapping[str, Any]) -> Paper:
    return Paper(
        id=_text(row, "paper_id"),
        title=_text(row, "title"),
        abstract=_text(row, "abstract"),
        date=int(_text(row, "date")),
        sections={heading: tuple(cited) for heading, cited in row["sections"].items()},
        topic=_text(row, "topic"),
        methods=tuple(row["methods"]),
        kind=_text(row, "kind"),
    )


def _request(row: Mapping[str, Any]) -> tuple[str, Request]:
    return _text(row, "qid"), Request(
        text=_text(row, "question"),
        date=int(_text(row["source_meta"], "published_time")),
        answers=tuple(row["answer_arxiv_id"]),
        oracle=tuple(row["oracle_arxiv_id"]),
        source=_text(row, "source_paper"),
        titles=tuple(row["answer"]),
    )


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row[key]
    if not isinstance(value, str):
        raise TypeError(f"{key!r} is {value!r}; expected a string")
    return value


def _read(path: Path, made: Any) -> Iterable[Any]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield made(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as fault:
                raise DataError(
                    f"{path}, line {number}: {fault!r}; expected a row as export_world writes it."
                ) from None


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
