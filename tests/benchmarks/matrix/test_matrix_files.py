"""Packed results and parts: the same report from one file, and what is refused."""

from __future__ import annotations

import errno
import gzip
import json
from pathlib import Path

import pytest
from helpers.tiny_matrix import Pretender, Quiet, filled, finished, search, tiny

from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.matrix.cell import Cell
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.matrix_files import hide_paths, read_parts, write_packed
from turngym.benchmarks.matrix.report import write_report
from turngym.benchmarks.matrix.run import run_matrix
from turngym.benchmarks.matrix.suite import RateSearch, Suite
from turngym.benchmarks.matrix.train_cell import make_result
from turngym.envs.core.errors import BadValueError, DataError

SEARCH = RateSearch(scales=(1, 10), seeds=(50,), share=0.5)
GONE = "FileNotFoundError: /home/somebody/data/a.json is missing"


def matrix(folder: Path, seeds: tuple[int, ...] = (0, 1, 2), **changes: object) -> Suite:
    """A folder with every kind of file; only cells of ``seeds`` are there."""
    suite = tiny(("grpo", "ppo"), seeds=(0, 1, 2), lr_search=SEARCH, **changes)

    def returns(cell: Cell) -> object:
        if cell.seed not in seeds:
            return None
        if (cell.recipe, cell.seed) == ("ppo", 2):
            return make_result(suite, cell, "failed", GONE, 'File "/root/x/y/a.py", line 3')
        rows = [[1.0, float(cell.seed), 1.0, 0.0]]
        return finished(suite, cell, rows).model_copy(update={"area": 0.1234567890123})

    layout = filled(folder, suite, returns)
    for row in ("grpo", "ppo"):
        search(suite, row, "Bandit-v0").write(layout.search_file(row, "Bandit-v0"))
    return suite


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_packed_file_gives_the_same_report(tmp_path: Path, name: str) -> None:
    matrix(tmp_path / "matrix")
    packed = tmp_path / "results" / name
    assert main(["bench", "--pack", str(tmp_path / "matrix"), "--out", str(packed)]) == 0
    first = packed.read_bytes()
    data = gzip.decompress(first) if name.endswith("gz") else first
    for word in (b"nowhere", b"/home", b"/root", b"somebody"):
        assert word not in data
    assert main(["bench", "--report", str(packed)]) == 0
    assert main(["bench", "--report", str(tmp_path / "matrix")]) == 0
    written = (tmp_path / "results" / "a-report" / "report.md").read_text()
    assert written == (tmp_path / "matrix" / "report.md").read_text().replace(
        "/home/somebody/data/a", "a"
    )
    assert "12.3" in written
    # packed again, from the folder or from the file itself, it has the same bytes
    assert write_packed(read_parts([packed]), tmp_path / name).read_bytes() == first


def test_a_folder_whose_suite_was_cut_off_can_be_claimed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tiny()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("turngym.envs.utils.disk_errors.os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            Layout(tmp_path).claim(suite)
    assert not Layout(tmp_path).suite_file.exists()
    Layout(tmp_path).claim(suite)
    assert Suite.read(Layout(tmp_path).suite_file) == suite


def test_parts_of_one_suite_are_merged(tmp_path: Path) -> None:
    matrix(tmp_path / "whole")
    matrix(tmp_path / "a", seeds=(0,))
    matrix(tmp_path / "b", seeds=(1, 2))
    write_packed(read_parts([tmp_path / "b"]), tmp_path / "b.jsonl")
    whole = read_parts([tmp_path / "whole"])
    assert read_parts([tmp_path / "b", tmp_path / "a"]) == whole
    mixed = read_parts([tmp_path / "a", tmp_path / "b.jsonl"])
    assert list(mixed.cells) == list(whole.cells)
    assert mixed.columns == whole.columns  # the folder is the first part
    # a finished cell is better than one that failed elsewhere
    suite = matrix(tmp_path / "c", seeds=())
    late = finished(suite, suite.cells[-1], [[1.0] * 4])
    late.write(Layout(tmp_path / "c").cell_file(suite.cells[-1]))
    merged = read_parts([tmp_path / "whole", tmp_path / "c"])
    assert merged.cells[suite.cells[-1].key] == late
    assert read_parts([tmp_path / "c", tmp_path / "whole"]) == merged


def test_parts_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    suite = matrix(tmp_path / "a")
    matrix(tmp_path / "b")
    layout, cell = Layout(tmp_path / "b"), suite.cells[0]
    finished(suite, cell, [[0.0] * 4]).write(layout.cell_file(cell))
    with pytest.raises(DataError, match=r"grpo--Bandit-v0--s0.*other results; keep one"):
        read_parts([tmp_path / "a", tmp_path / "b"])
    matrix(tmp_path / "other", trials=1)
    with pytest.raises(DataError, match="only parts of one suite"):
        read_parts([tmp_path / "a", tmp_path / "other"])
    matrix(tmp_path / "c", seeds=())
    for name, digest in (("a", "1"), ("c", "2")):
        start = Layout(tmp_path / name).column(suite, "Bandit-v0")
        assert start is not None
        start.model_copy(update={"start_digest": digest}).write(
            Layout(tmp_path / name).column_file("Bandit-v0")
        )
    with pytest.raises(DataError, match="starts from another model"):
        read_parts([tmp_path / "a", tmp_path / "c"])


def test_cells_of_a_column_were_trained_from_one_model(tmp_path: Path) -> None:
    """Starts are compared part by part; files that were copied together had two."""
    suite = matrix(tmp_path)
    layout, (first, second) = Layout(tmp_path), suite.cells[:2]
    start = layout.column(suite, "Bandit-v0")
    assert start is not None
    start.model_copy(update={"start_digest": "a"}).write(layout.column_file("Bandit-v0"))
    for cell, model in ((first, "a"), (second, "b")):
        made = finished(suite, cell, [[1.0] * 4]).model_copy(update={"start_digest": model})
        made.write(layout.cell_file(cell))
    with pytest.raises(DataError, match=rf"{second.key}' was trained from another .*\(b\).*\(a\)"):
        read_parts([tmp_path])
    with pytest.raises(DataError, match=second.key):
        run_matrix(suite, tmp_path, Pretender(suite, layout, lambda job: None), Quiet())


@pytest.mark.parametrize("names", [("failed", "stopped"), ("stopped", "failed")])
def test_a_seed_that_failed_in_one_part_is_no_stopped_one(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    """The last part's won, and a row that lost a seed is not decided by the others."""
    for name, state in (("failed", "failed"), ("stopped", "interrupted")):
        suite = matrix(tmp_path / name, seeds=())
        cut = make_result(suite, suite.cells[0], state, "why")
        cut.write(Layout(tmp_path / name).cell_file(suite.cells[0]))
    merged = read_parts([tmp_path / name for name in names])
    assert [cell.state for cell in merged.cells.values()] == ["failed"]


def test_damaged_files_name_the_place(tmp_path: Path) -> None:
    matrix(tmp_path / "a")
    path = write_packed(read_parts([tmp_path / "a"]), tmp_path / "a.jsonl")
    lines = path.read_text().splitlines()
    for number, line, says in (
        (0, "{}", "line 1 has format None"),
        (1, lines[1][:40], "line 2: not JSON"),
        (1, "[" * 10**5, "line 2: not JSON"),
        (2, "[]", "line 3: expected a JSON object"),
        (2, '{"kind": "cel", "result": {}}', "line 3: kind 'cel'"),
        (1, lines[1].replace('"column":"Bandit-v0"', '"column":1'), "line 2: column"),
    ):
        path.write_text("\n".join([*lines[:number], line, *lines[number + 1 :]]))
        with pytest.raises(DataError, match=says):
            read_parts([path])
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"x")[:-4])
    with pytest.raises(DataError, match="cut or damaged"):
        read_parts([tmp_path / "b.gz"])


def test_packing_needs_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix(tmp_path / "a")
    assert main(["bench", "--pack", str(tmp_path / "a")]) == REFUSED
    assert "--pack needs --out FILE" in capsys.readouterr().err


def test_large_results_are_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix(tmp_path / "a")
    monkeypatch.setattr("turngym.benchmarks.matrix.matrix_files.LARGE", 100)
    with pytest.raises(BadValueError, match=r"ends in \.gz"):
        write_packed(read_parts([tmp_path / "a"]), tmp_path / "a.jsonl")


def test_paths_are_hidden_and_nothing_else() -> None:
    assert hide_paths("see /a/b/c.py, https://x.org/a/b and 1/2") == (
        "see c.py, https://x.org/a/b and 1/2"
    )


def test_a_field_of_a_newer_version_is_told_as_one(tmp_path: Path) -> None:
    suite = matrix(tmp_path)
    path = Layout(tmp_path).cell_file(suite.cells[0])
    path.write_text(json.dumps(json.loads(path.read_text()) | {"luck": 1}))
    with pytest.raises(DataError, match=r"luck: .*: a misspelt field, or one of a newer turngym"):
        read_parts([tmp_path])


def test_two_processes_may_write_one_report_and_one_packed_file_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bench --report` of a matrix that ended meanwhile: the second one ended in a traceback."""
    matrix(tmp_path / "m")
    results, packed, others = read_parts([tmp_path / "m"]), tmp_path / "p.jsonl", []
    replace = Path.replace

    def write() -> None:
        write_report([tmp_path / "m"], tmp_path / "out", "grpo")
        write_packed(results, packed)

    def take_name(part: Path, target: Path) -> Path:
        if target.name not in others:  # another process is at the same place, and ends first
            others.append(target.name)
            write()
        return replace(part, target)

    (tmp_path / "out").mkdir()
    monkeypatch.setattr(Path, "replace", take_name)
    write()
    assert set(others) == {"report.html", "report.md", "p.jsonl"}
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"report.html", "report.md"}
    assert not [path for path in tmp_path.rglob("*.part")]
