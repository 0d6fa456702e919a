import json
import zipfile
from pathlib import Path

import pytest
from pasa_export import export_pasa

from turngym.envs.errors import BadValueError, DataError
from turngym.envs.paper_crawler.papers import title_key
from turngym.envs.paper_crawler.world.files import PAPERS, WORLD, export_world, import_world
from turngym.envs.paper_crawler.world.parameters import WorldParameters, world_parameters
from turngym.envs.paper_crawler.world.requests import GeneratedRequests, generated_requests
from turngym.envs.tasks import SPLITS


@pytest.fixture(scope="module")
def source() -> GeneratedRequests:
    small = world_parameters("micro", papers=300, train_requests=60, held_out_requests=10)
    return generated_requests(small, 3)


@pytest.fixture
def folder(source: GeneratedRequests, tmp_path: Path) -> Path:
    return export_world(source, tmp_path / "made" / "world").parent


def test_round_trip(source: GeneratedRequests, folder: Path) -> None:
    back = import_world(folder)
    assert back.papers == [source.world.paper(row) for row in range(len(source.world))]
    for split in SPLITS:
        tasks = [source.task(split, i) for i in range(source.sizes()[split] or 0)]
        assert back.requests[split] == [(task.id, task.payload) for task in tasks]
    assert back.facts["seed"] == 3
    assert WorldParameters(**back.facts["parameters"]) == source.world.parameters


def test_rows_are_those_of_autoscholarquery(source: GeneratedRequests, folder: Path) -> None:
    line = (folder / "queries_dev.jsonl").read_text().splitlines()[0]
    row, request = json.loads(line), source.task("dev", 0).payload
    assert row["question"] == request.text
    assert row["answer_arxiv_id"] == list(request.answers)
    assert row["answer"] == [source.world.paper(source.world.rows[i]).title
                             for i in request.answers]  # fmt: skip
    assert row["source_meta"] == {"published_time": str(request.date)}


def test_a_world_is_not_overwritten(source: GeneratedRequests, folder: Path) -> None:
    with pytest.raises(BadValueError, match="name an empty folder"):
        export_world(source, folder)


def test_a_changed_file_is_refused(folder: Path) -> None:
    with (folder / PAPERS).open("a") as file:
        file.write("{}\n")
    with pytest.raises(DataError, match="SHA-256 differs"):
        import_world(folder)


def test_a_damaged_row_is_named(folder: Path) -> None:
    import hashlib

    lines = (folder / PAPERS).read_text().splitlines()
    lines[4] = lines[4].replace('"title":', '"name":')
    (folder / PAPERS).write_text("\n".join(lines))
    facts = json.loads((folder / WORLD).read_text())
    facts["sha256"][PAPERS] = hashlib.sha256((folder / PAPERS).read_bytes()).hexdigest()
    (folder / WORLD).write_text(json.dumps(facts))
    with pytest.raises(DataError, match="line 5: KeyError"):
        import_world(folder)


@pytest.mark.parametrize(
    ("text", "named"),
    [("{", "not JSON"), ("[]", "format is"), ('{"format": 99}', "format is 99"),
     ('{"format": 1}', "no 'sha256'")],
)  # fmt: skip
def test_bad_facts(folder: Path, text: str, named: str) -> None:
    (folder / WORLD).write_text(text)
    with pytest.raises(DataError, match=named):
        import_world(folder)


def test_missing_files(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        import_world(tmp_path / "nowhere")
    (folder / "queries_test.jsonl").unlink()
    with pytest.raises(DataError, match="no such file"):
        import_world(folder)


def test_pasa_layout(source: GeneratedRequests, tmp_path: Path) -> None:
    world = source.world
    export_pasa(source, tmp_path / "pasa")
    database = tmp_path / "pasa" / "paper_database"
    names = json.loads((database / "id2paper.json").read_text())
    assert names == {world.paper(i).id: world.paper(i).title for i in range(len(world))}
    ids = {title_key(title): paper for paper, title in names.items()}
    with zipfile.ZipFile(database / "cs_paper_2nd.zip") as archive:
        assert set(archive.namelist()) == set(ids)
        for member in archive.namelist()[::7]:
            row = json.loads(archive.read(member))
            paper = world.paper(world.rows[ids[member]])
            assert (row["title"], row["abstract"]) == (paper.title, paper.abstract)
            back = {
                h: tuple(ids[title_key(t)] for t in cited) for h, cited in row["sections"].items()
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
