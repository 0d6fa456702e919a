import json
import zipfile
from pathlib import Path

import pytest
from helpers.pasa_export import export_pasa

from turngym.envs.core.errors import BadValueError
from turngym.envs.paper_crawler.papers import make_title_key
from turngym.envs.paper_crawler.world.parameters import world_parameters
from turngym.envs.paper_crawler.world.requests import GeneratedRequests, load_generated_requests


@pytest.fixture(scope="module")
def source() -> GeneratedRequests:
    small = world_parameters("micro", papers=300, train_requests=60, held_out_requests=10)
    return load_generated_requests(small, 3)


def test_rows_are_those_of_autoscholarquery(source: GeneratedRequests, tmp_path: Path) -> None:
    export_pasa(source, tmp_path)
    line = (tmp_path / "AutoScholarQuery" / "dev.jsonl").read_text().splitlines()[0]
    row, request = json.loads(line), source.task("dev", 0).payload
    assert row["question"] == request.text
    assert row["answer_arxiv_id"] == list(request.answers)
    assert row["answer"] == [source.world.paper(source.world.rows[i]).title
                             for i in request.answers]  # fmt: skip
    assert row["source_meta"] == {"published_time": str(request.date)}


def test_pasa_layout(source: GeneratedRequests, tmp_path: Path) -> None:
    world = source.world
    export_pasa(source, tmp_path / "pasa")
    database = tmp_path / "pasa" / "paper_database"
    names = json.loads((database / "id2paper.json").read_text())
    assert names == {world.paper(i).id: world.paper(i).title for i in range(len(world))}
    ids = {make_title_key(title): paper for paper, title in names.items()}
    with zipfile.ZipFile(database / "cs_paper_2nd.zip") as archive:
        assert set(archive.namelist()) == set(ids)
        for member in archive.namelist()[::7]:
            row = json.loads(archive.read(member))
            paper = world.paper(world.rows[ids[member]])
            assert (row["title"], row["abstract"]) == (paper.title, paper.abstract)
            back = {
                h: tuple(ids[make_title_key(t)] for t in cited)
                for h, cited in row["sections"].items()
            }
            assert back == paper.sections
    rows = (tmp_path / "pasa" / "AutoScholarQuery" / "test.jsonl").read_text().splitlines()
    assert len(rows) == source.sizes()["test"]
    with pytest.raises(BadValueError, match="exists already"):
        export_pasa(source, tmp_path / "pasa")


def test_equal_bytes_every_time(source: GeneratedRequests, tmp_path: Path) -> None:
    for name in ("a", "b"):
        export_pasa(source, tmp_path / name)
    archive = Path("paper_database") / "cs_paper_2nd.zip"
    assert (tmp_path / "a" / archive).read_bytes() == (tmp_path / "b" / archive).read_bytes()
