"""Gradient cosines against the areas of a matrix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.tiny_matrix import column, filled, tiny

from turngym.benchmarks.cli.main import main
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.microscope.against import (
    Comparison,
    CreditCell,
    area_reliability,
    compare_reports,
    correlate,
    order_line,
    read_cells,
    report_files,
    within_columns,
)
from turngym.benchmarks.microscope.report import CreditReport, Row, Value
from turngym.envs.core.errors import DataError
from turngym.envs.core.registration import default_settings

ENVS = ("Bandit-v0", "Password-v0", "Recall-v0")
RECIPES = ("grpo", "ppo", "rloo")
SUCCESS = {"grpo": 0.25, "ppo": 0.5, "rloo": 1.0}


def report(env_id: str, cosines: dict[str, float], **more: Any) -> CreditReport:
    def row(name: str, role: Any, cosine: float) -> Row:
        return Row(
            name=name,
            role=role,
            rollout="Chains",
            played=0,
            groups=2,
            turns=8,
            left_out=0,
            tokens=10.0,
            success=0.5,
            deviation=0.1,
            within=0.0,
            measures={"cosine_batch": Value(value=cosine)},
            differences={},
        )

    rows = [row(name, "recipe", cosine) for name, cosine in cosines.items()]
    return CreditReport(
        env_id=env_id,
        env_settings={"size": "micro", **more},
        model="m",
        model_digest="d",
        split="train",
        seed=0,
        groups=2,
        continuations=4,
        noise=0,
        transitions="fixed",
        work={
            "turns": 8.0,
            "continuations": 64.0,
            "actions": 9.0,
            "seconds": 1.0,
            "processes": 1.0,
        },
        commit="",
        rows=[*rows, row("truth", "truth", 1.0)],
    )


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    suite = tiny(RECIPES, ENVS, (0, 1))

    def returns(cell: Any) -> Any:
        solved = SUCCESS[cell.recipe]
        return [[float(i < 4 * solved) for i in range(4)]] * 2

    filled(tmp_path / "matrix", suite, returns)
    return tmp_path / "matrix"


def write(folder: Path, reports: list[CreditReport]) -> list[str]:
    for i, one in enumerate(reports):
        one.write(folder / f"{i}" / "credit.json")
    return [str(folder / f"{i}") for i in range(len(reports))]


@pytest.mark.parametrize(("order", "rho"), [((0.1, 0.2, 0.9), 1.0), ((0.9, 0.2, 0.1), -1.0)])
def test_cosines_that_order_recipes_as_areas_do(
    order: tuple[float, ...],
    rho: float,
    matrix: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reports = [report(env, dict(zip(RECIPES, order, strict=True))) for env in ENVS]
    files = write(tmp_path, reports)
    cells = read_cells(str(matrix), files)
    assert len(cells) == 9
    assert {cell.seeds for cell in cells} == {2}
    assert [cell.area for cell in cells[:3]] == sorted(cell.area for cell in cells[:3])
    line = order_line(correlate(cells)[0])
    # all three agree: how far others would be is not known
    assert line.startswith(
        f"cosine_batch: rank correlation with the area {rho:.2f} (no interval, p "
    )
    assert "over 9 cells of 3 environments; the claim asks for 40 cells" in line
    out = tmp_path / "out"
    assert main(["credit", "--against", str(matrix), "--reports", *files, "--out", str(out)]) == 0
    assert f"{rho:.2f} (no interval" in capsys.readouterr().out
    assert f"| {rho:.2f} | none |" in (out / "against.md").read_text()


def test_only_what_a_row_has_can_be_too_noisy(matrix: Path, tmp_path: Path) -> None:
    """A measure that no row had was too noisy in as many cells as the truth."""
    unsure = report(ENVS[0], dict.fromkeys(RECIPES, 0.5))
    for row in unsure.rows:
        row.measures["reliability"] = row.measures["reference_reliability"] = Value(value=0.3)
    found = read_cells(str(matrix), write(tmp_path, [unsure]))
    assert [cell.noisy for cell in found] == [["cosine_batch"]] * len(RECIPES)


@pytest.mark.parametrize("kind", [CreditReport, Comparison])
def test_a_record_of_another_format_is_refused(
    matrix: Path, tmp_path: Path, kind: type[CreditReport | Comparison]
) -> None:
    paths = write(tmp_path, [report("Bandit-v0", dict(zip(RECIPES, (0.1, 0.2, 0.3), strict=True)))])
    record: CreditReport | Comparison = compare_reports(str(matrix), paths)
    if kind is CreditReport:
        record = CreditReport.read(Path(paths[0]) / "credit.json")
    file = tmp_path / "record.json"
    record.write(file)
    assert kind.read(file) == record
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 2}))
    with pytest.raises(DataError, match="format: Input should be 1"):
        kind.read(file)


@pytest.mark.parametrize(
    ("others", "reliability"),
    [((1, 2, 3, 4), 1.0), ((2, 1, 4, 3), 0.75), ((3, 1, 4, 2), 0.0), ((3, 2, 4, 1), -1.0)],
)
def test_halves_of_the_seeds_say_how_reliable_areas_are(
    others: tuple[int, ...], reliability: float
) -> None:
    """Of halves that correlate by -.4 it was -1.33."""
    cells = [
        CreditCell(
            column=column,
            at="",
            recipe=f"r{i}",
            measures={},
            noisy=[],
            area=0.0,
            seeds=2,
            halves=(float(i), float(other)),
        )
        for column in "ab"
        for i, other in enumerate(others)
    ]
    assert area_reliability(cells) == pytest.approx(reliability)


def test_sides_are_ranked_within_their_environment(matrix: Path, tmp_path: Path) -> None:
    """A scale of the environment's own, or one recipe alone, says nothing about recipes."""
    reports = [
        report(ENVS[0], {"grpo": 0.1, "ppo": 0.2}),
        report(ENVS[1], {"grpo": 0.8, "ppo": 0.9}),
        report(ENVS[2], {"grpo": 0.5}),
    ]
    cells = read_cells(str(matrix), write(tmp_path, reports))
    x, y, columns = within_columns(cells, "cosine_batch")
    assert x == y == [0.0, 1.0, 0.0, 1.0]
    assert columns == [ENVS[0]] * 2 + [ENVS[1]] * 2


def test_a_report_is_read_once_by_whatever_path(matrix: Path, tmp_path: Path) -> None:
    """A folder and the file in it were two reports of one column, and refused."""
    (folder,) = write(tmp_path, [report(ENVS[0], {"grpo": 0.1})])
    (tmp_path / "link").symlink_to(folder)
    paths = [folder, f"{folder}/credit.json", f"{folder}/../0", str(tmp_path / "link")]
    assert report_files(paths) == [Path(folder) / "credit.json"]
    assert len(read_cells(str(matrix), paths)) == 1


def test_a_default_that_is_not_written_is_the_same(matrix: Path, tmp_path: Path) -> None:
    assert default_settings(ENVS[0])["size"] == "micro"  # the columns' own
    plain = report(ENVS[0], {"grpo": 0.1}).model_copy(update={"env_settings": {}})
    assert len(read_cells(str(matrix), write(tmp_path, [plain]))) == 1


def test_what_a_study_has_otherwise_than_its_column_is_told(
    matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A study of other settings, or of another policy, stood beside the column without a word."""
    start = column(tiny(RECIPES, ENVS, (0, 1)), ENVS[0])
    start = start.model_copy(update={"start_digest": "sha256:1"})
    start.write(Layout(matrix).column_file(ENVS[0]))
    alike = report(ENVS[0], {"grpo": 0.1}).model_copy(update={"model_digest": "sha256:1"})
    assert compare_reports(str(matrix), write(tmp_path / "a", [alike])).doubts == []
    other = report(ENVS[0], {"grpo": 0.1}, arms="9")
    (path,) = write(tmp_path / "b", [other])
    words = ["--against", str(matrix), "--reports", path, "--out", str(tmp_path / "out")]
    assert main(["credit", *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for doubt in (
        "settings that column Bandit-v0 does not name: arms is '9' there and not given here",
        "measured the policy m, which is not what column Bandit-v0 starts from",
    ):
        assert f"careful: {path}/credit.json: {doubt}" in said
        assert f"{path}/credit.json: {doubt}" in (tmp_path / "out" / "against.md").read_text()


def test_what_does_not_fit_is_refused(
    matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(tmp_path / "a", [report("Fork-v0", {"grpo": 0.1})])
    with pytest.raises(DataError, match="no column of Fork-v0"):
        read_cells(str(matrix), other)
    unlike = write(tmp_path / "b", [report(ENVS[0], {"grpo": 0.1}, size="full")])
    with pytest.raises(DataError, match="no column of Bandit-v0"):
        read_cells(str(matrix), unlike)
    unknown = write(tmp_path / "c", [report(ENVS[0], {"dapo": 0.1})])
    with pytest.raises(DataError, match="no recipe of the reports"):
        read_cells(str(matrix), unknown)
    twice = write(tmp_path / "d", [report(ENVS[0], {"grpo": 0.1})] * 2)
    with pytest.raises(DataError, match="earlier report"):
        read_cells(str(matrix), twice)
    assert main(["credit", "--against", str(matrix)]) == 2
    words = ["--against", str(matrix), "--reports", other[0], "--env", "Keys-v0", "--noise", "1"]
    assert main(["credit", *words]) == 2
    assert "--env and --noise do not go with credit --against, which" in capsys.readouterr().err
