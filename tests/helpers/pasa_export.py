"""A generated world in the layout of PaSa's own files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from turngym.envs.core.errors import BadValueError
from turngym.envs.core.tasks import SPLITS
from turngym.envs.paper_crawler.papers import Paper, Request, make_title_key
from turngym.envs.paper_crawler.world.requests import GeneratedRequests
from turngym.envs.paper_crawler.world.world import World

DATABASE = "paper_database"
IDS, ARCHIVE = "id2paper.json", "cs_paper_2nd.zip"
QUERIES = "AutoScholarQuery"
_STAMP = (2025, 1, 1, 0, 0, 0)


def export_pasa(source: GeneratedRequests, folder: str | Path) -> Path:
    """Write a world as ``paper_database`` and ``AutoScholarQuery``; cited papers by their titles.

    Args:
        source: The requests, with their world.
        folder: Where to; made when absent.

    Returns:
        The folder.

    Raises:
        BadValueError: The folder holds a paper database already.
    """
    folder, world = Path(folder), source.world
    database = folder / DATABASE
    if (database / ARCHIVE).exists():
        raise BadValueError(f"{database / ARCHIVE} exists already; name an empty folder.")
    database.mkdir(parents=True, exist_ok=True)
    (folder / QUERIES).mkdir(exist_ok=True)
    papers = [world.paper(row) for row in range(len(world))]
    names = {paper.id: paper.title for paper in papers}
    (database / IDS).write_text(json.dumps(names, ensure_ascii=False), encoding="utf-8")
    with zipfile.ZipFile(database / ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for paper in papers:
            # a fixed time stamp: the same world gives the same bytes
            member = zipfile.ZipInfo(make_title_key(paper.title), _STAMP)
            archive.writestr(member, _member(world, paper), zipfile.ZIP_DEFLATED)
    for split in SPLITS:
        write_requests(source, split, folder / QUERIES / f"{split}.jsonl")
    return folder


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
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for task in tasks:
            file.write(json.dumps(request_row(task.id, task.payload), ensure_ascii=False) + "\n")


def _member(world: World, paper: Paper) -> str:
    titles = {
        heading: [world.paper(world.rows[cited]).title for cited in section]
        for heading, section in paper.sections.items()
    }
    row = {
        "title": paper.title,
        "abstract": paper.abstract,
        "sections": titles,
        "source": "turngym",
    }
    return json.dumps(row, ensure_ascii=False)
