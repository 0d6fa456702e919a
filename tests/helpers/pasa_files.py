"""Small files in PaSa's layout, made for tests."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.envs.paper_crawler.papers import make_title_key

PAPERS: dict[str, tuple[str, str, dict[str, list[str]]]] = {
    "2105.90001": (
        "GripLedger: Gated Recall for\nTactile Policies",
        "A memory of touches with gates.",
        {
            "1 Introduction": ["Slip-Aware Memory Transformers", "A Paper Nobody Has"],
            "2 Related Work 2.1 Tactile sensing": [
                "slip aware memory TRANSFORMERS",
                "GripLedger: Gated Recall for Tactile Policies",
                "Slip-Aware Memory Transformers",
            ],
        },
    ),
    "2203.90417": (
        "Slip-Aware Memory Transformers",
        "Transformers that remember slips.",
        {"1 Introduction": ["GripLedger: Gated Recall for Tactile Policies"]},
    ),
    "2306.00002": ("A Survey of Tactile Memory", "We survey.", {}),
    "cs/0309040": ("Early Memory of Robots", "", {"1 Introduction": ["???", "1984"]}),
    "2401.00009": ("Only a Title of Tactile Memory", "", {}),
}
"""Title, abstract and sections by id; the last one has no member in the zip."""
UNZIPPED = "2401.00009"


def record(paper_id: str) -> dict[str, Any]:
    title, abstract, sections = PAPERS[paper_id]
    return {"title": title, "abstract": abstract, "sections": sections, "source": "test"}


def members() -> dict[str, bytes]:
    """The content of each member of the zip."""
    return {
        make_title_key(PAPERS[i][0]): json.dumps(record(i)).encode()
        for i in PAPERS
        if i != UNZIPPED
    }


def row(qid: str, **changes: Any) -> dict[str, Any]:
    return {
        "qid": qid,
        "question": "Which works study gated memory for tactile grasp prediction?",
        "answer": [PAPERS["2105.90001"][0], "Slip-Aware Memory Transformers"],
        "answer_arxiv_id": ["2105.90001", "2203.90417"],
        "source_meta": {"published_time": "20230614"},
        **changes,
    }


def write_rows(path: Path, rows: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(given) + "\n" for given in rows), encoding="utf-8")
    return path


def write_zip(path: Path, content: Mapping[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in content.items():
            out.writestr(name, data)
    return path


def write_database(folder: Path, content: Mapping[str, bytes] | None = None) -> Path:
    """``id2paper.json`` and the zip."""
    write_zip(folder / "cs_paper_2nd.zip", members() if content is None else content)
    titles = {paper_id: title for paper_id, (title, _, _) in PAPERS.items()}
    (folder / "id2paper.json").write_text(json.dumps(titles), encoding="utf-8")
    return folder


def write_layout(folder: Path) -> Path:
    """PaSa's folder ``data`` below ``folder``: all queries and the database."""
    data = folder / "data"
    for split in ("train", "dev", "test"):
        rows = [row(f"AutoScholarQuery_{split}_{n}") for n in range(3)]
        write_rows(data / "AutoScholarQuery" / f"{split}.jsonl", rows)
    write_rows(
        data / "RealScholarQuery" / "test.jsonl",
        [
            row(
                "RealScholarQuery_0",
                answer=["A Survey of Tactile Memory", "Only a Title of Tactile Memory", "Unknown"],
                answer_arxiv_id=["2306.00002", UNZIPPED, "2012.00001"],
                source_meta={"published_time": "20241001"},
            )
        ],
    )
    write_database(data / "paper_database")
    return folder
