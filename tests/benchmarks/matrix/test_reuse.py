"""Results survive a new version of their suite where nothing they depend on has changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tiny_matrix import Pretender, Quiet, column, filled, finished, search, tiny

from turngym.algos.training.config import model_digest
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.benchmarks.matrix.cell import Cell
from turngym.benchmarks.matrix.jobs import Job
from turngym.benchmarks.matrix.layout import Layout
from turngym.benchmarks.matrix.matrix_files import read_parts, write_packed
from turngym.benchmarks.matrix.reuse import reuse_results
from turngym.benchmarks.matrix.run import run_matrix
from turngym.benchmarks.matrix.suite import RateSearch, Suite, SuiteRecipe
from turngym.envs.core.errors import BadValueError, DataError

SEARCH = RateSearch(scales=(1, 10), seeds=(50,), share=0.5)
Change = Callable[[Suite], dict[str, object]]


def first(**changes: object) -> Suite:
    return tiny(envs=("Bandit-v0", "Password-v0"), seeds=(0, 1), **changes)


def newer(suite: Suite, change: Change) -> Suite:
    """The next version of a suite, checked as a file of it is."""
    changed = suite.model_copy(update={"version": 2, "about": "newer", **change(suite)})
    return Suite.model_validate_json(changed.model_dump_json())


def returns(cell: Cell) -> list[list[float]]:
    return [[1.0, float(cell.seed), 0.0, 0.0]]


def more_tokens(suite: Suite) -> dict[str, object]:
    limits = suite.envs[0].limits.model_copy(update={"tokens": 99})
    return {"envs": (suite.envs[0].model_copy(update={"limits": limits}), suite.envs[1])}


def other_row(suite: Suite) -> dict[str, object]:
    return {"recipes": (suite.recipes[0], SuiteRecipe(name="ppo", settings={"optim.lr": 1.0}))}


KEPT: dict[str, tuple[Change, int]] = {
    "a row": (lambda s: {"recipes": (SuiteRecipe(name="rloo"), *s.recipes)}, 8),
    "an A/A row": (lambda s: {"recipes": (*s.recipes, s.recipes[0].again())}, 8),
    "a column": (lambda s: {"envs": (*tiny(envs=("Keys-v0",)).envs, *s.envs)}, 8),
    "a seed": (lambda s: {"seeds": (0, 1, 2)}, 8),
    "a name": (lambda s: {"name": "renamed"}, 8),
    "the report's bounds": (lambda s: {"min_effect": 0.5, "equivalence": 0.1}, 8),
    "a column's tokens": (more_tokens, 4),
    "a row's settings": (other_row, 4),
    "a seed less": (lambda s: {"seeds": (1,)}, 4),
    "the trials": (lambda s: {"trials": 5}, 0),
    "a search": (lambda s: {"lr_search": SEARCH}, 0),
    "the seeds of a row": (
        lambda s: {"recipes": (s.recipes[0].model_copy(update={"seed_offset": 7}), s.recipes[1])},
        4,
    ),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", KEPT)
def test_cells_are_kept_where_nothing_they_depend_on_changes(
    tmp_path: Path, name: str, packed: bool
) -> None:
    change, kept = KEPT[name]
    old = first()
    filled(tmp_path / "old", old, returns)
    source = tmp_path / "old"
    if packed:
        source = write_packed(read_parts([source]), tmp_path / "old.jsonl")
    suite = newer(old, change)
    (found,) = reuse_results(suite, tmp_path / "new", [source])
    assert (found.taken, found.known, found.other, found.other_start) == (kept, 0, 8 - kept, 0)
    assert f"{kept} finished cells of {source}" in str(found)
    layout = Layout(tmp_path / "new")
    for cell in suite.cells:
        result = layout.cell(suite, cell)
        if result is not None:
            assert result.tries == finished(old, cell, returns(cell)).tries
    again = reuse_results(suite, tmp_path / "new", [source])[0]
    assert (again.taken, again.known) == (0, kept)


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    old = first()
    filled(tmp_path / "old", old, returns)
    suite = newer(old, lambda s: {"seeds": (0, 1, 2)})
    reuse_results(suite, tmp_path / "new", [tmp_path / "old"])
    worker = Pretender(suite, Layout(tmp_path / "new"), lambda job: None)
    board = run_matrix(suite, tmp_path / "new", worker, Quiet())
    assert sorted(worker.asked) == sorted(str(cell) for cell in suite.cells if cell.seed == 2)
    assert (board.reused, board.counts()) == (8, {"finished": 12})


def test_learning_rates_are_kept_with_their_cells(tmp_path: Path) -> None:
    old = first(lr_search=SEARCH)
    layout = filled(tmp_path / "old", old, returns)
    for row in ("grpo", "ppo"):
        search(old, row, "Bandit-v0").write(layout.search_file(row, "Bandit-v0"))
    suite = newer(old, lambda s: {"seeds": (0, 1, 2)})
    reuse_results(suite, tmp_path / "new", [tmp_path / "old"])
    worker = Pretender(suite, Layout(tmp_path / "new"), lambda job: None)
    run_matrix(suite, tmp_path / "new", worker, Quiet(), suite.only(["env=Bandit-v0"]))
    assert worker.asked == [str(c) for c in suite.cells if c.seed == 2 and "Bandit" in c.column]
    wider = newer(old, lambda s: {"lr_search": SEARCH.model_copy(update={"scales": (1.0, 3.0)})})
    assert reuse_results(wider, tmp_path / "wider", [tmp_path / "old"])[0].taken == 0
    assert not list((tmp_path / "wider").glob("searches/*"))


def test_results_from_before_digests_are_those_of_their_folder_s_suite(tmp_path: Path) -> None:
    old = first()
    layout = filled(tmp_path / "old", old, returns)
    for path in [*layout.root.glob("cells/*"), *layout.root.glob("columns/*")]:
        bare = json.loads(path.read_text())
        del bare["digest"]
        path.write_text(json.dumps(bare))
    suite = newer(old, more_tokens)
    (found,) = reuse_results(suite, tmp_path / "new", [layout.root])
    assert (found.taken, found.other) == (4, 4)
    assert read_parts([layout.root]).cells  # and its own report is still there
    strange = json.loads(path.read_text()) | {"suite_digest": "another"}
    path.write_text(json.dumps(strange))
    with pytest.raises(BadValueError, match="belongs to another suite"):
        reuse_results(suite, tmp_path / "new", [layout.root])


def test_cells_from_another_start_are_left(tmp_path: Path) -> None:
    suite = first()
    filled(tmp_path / "a", suite, lambda cell: returns(cell) if cell.seed else None)
    other = filled(tmp_path / "b", suite, returns)
    start = column(suite, "Bandit-v0").model_copy(update={"start_digest": "other"})
    start.write(other.column_file("Bandit-v0"))
    for cell in suite.only(["env=Bandit-v0"]):
        made = finished(suite, cell, returns(cell)).model_copy(update={"start_digest": "other"})
        made.write(other.cell_file(cell))
    a, b = reuse_results(suite, tmp_path / "new", [tmp_path / "a", tmp_path / "b"])
    assert (a.taken, b.taken, b.known, b.other_start) == (4, 2, 4, 2)
    assert "started from another model" in str(b)


def test_cells_of_other_tasks_are_left(tmp_path: Path) -> None:
    """The second folder was filled after the environment had changed."""
    suite = first()
    for seed, tasks in enumerate(("before", "after")):
        layout = filled(
            tmp_path / tasks, suite, lambda c, own=seed: returns(c) if c.seed == own else None
        )
        start = column(suite, "Bandit-v0").model_copy(update={"tasks_digest": tasks})
        start.write(layout.column_file("Bandit-v0"))
        for cell in suite.only(["env=Bandit-v0", f"seed={seed}"]):
            made = finished(suite, cell, returns(cell)).model_copy(update={"tasks_digest": tasks})
            made.write(layout.cell_file(cell))
    folders = [tmp_path / "before", tmp_path / "after"]
    before, after = reuse_results(suite, tmp_path / "new", folders)
    assert (before.taken, after.taken, after.other_tasks) == (4, 2, 2)
    assert "2 were scored on other tasks" in str(after)
    with pytest.raises(DataError, match=r"other evaluation tasks \(after\).*\(before\)"):
        read_parts(folders)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("", ""),
        ("start_digest", "starting model made here is another one"),
        ("tasks_digest", "evaluation tasks are not those of the results"),
    ],
)
def test_a_packed_start_is_made_again_and_has_to_be_the_same(
    tmp_path: Path, other: str, says: str
) -> None:
    old = first()
    layout = filled(tmp_path / "old", old, returns)
    known = column(old, "Bandit-v0").model_copy(update={"tasks_digest": "tasks"})
    known.write(layout.column_file("Bandit-v0"))
    packed = write_packed(read_parts([tmp_path / "old"]), tmp_path / "old.jsonl")
    suite = newer(old, lambda s: {"seeds": (0, 1, 2)})
    reuse_results(suite, tmp_path / "new", [packed])
    layout = Layout(tmp_path / "new")

    class Other(Pretender):
        """Makes another model or other tasks in the first column, where they shall be others."""

        def submit(self, job: Job) -> None:
            super().submit(job)
            path = layout.column_file("Bandit-v0")
            if other and str(job) == "start of Bandit-v0":
                made = json.loads(path.read_text()) | {other: "other"}
                path.write_text(json.dumps(made))

    worker = Other(suite, layout, lambda job: None)
    board = run_matrix(suite, tmp_path / "new", worker, Quiet())
    starts = [asked for asked in worker.asked if asked.startswith("start")]
    assert starts == ["start of Bandit-v0", "start of Password-v0"]
    if not other:
        assert board.counts() == {"finished": 12}
        return
    assert board.counts() == {"finished": 10, "failed": 2}
    assert says in board.results["ppo--Bandit-v0--s2"].reason
    kept = layout.column(suite, "Bandit-v0")
    assert kept is not None
    assert (kept.start_digest, kept.tasks_digest) == ("", "tasks")  # of the reused results


@pytest.mark.parametrize("change", ["gone", "another"])
def test_the_start_of_a_folder_that_was_moved_is_made_again(tmp_path: Path, change: str) -> None:
    """Its path is that of another machine, or what lies there here was made by this one."""
    suite = first()
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"weights")
    layout = filled(tmp_path / "moved", suite, lambda c: None if c.seed else returns(c))
    here = {"start": str(model), "start_digest": model_digest(str(model))}
    start = column(suite, "Bandit-v0").model_copy(update=here)
    start.write(layout.column_file("Bandit-v0"))

    class Maker(Pretender):
        """Makes the same model again."""

        def submit(self, job: Job) -> None:
            super().submit(job)
            if str(job) == "start of Bandit-v0":
                made = start.model_copy(update={"start": str(tmp_path / "made here")})
                made.write(layout.column_file("Bandit-v0"))

    if change == "gone":
        model.rename(tmp_path / "elsewhere")
    else:
        (model / "model.safetensors").write_bytes(b"other weights")
    worker = Maker(suite, layout, lambda job: None)
    board = run_matrix(suite, layout.root, worker, Quiet())
    assert [asked for asked in worker.asked if asked.startswith("start")] == ["start of Bandit-v0"]
    assert board.counts() == {"finished": 8}
    kept = layout.column(suite, "Bandit-v0")
    assert kept is not None
    assert kept.start == str(tmp_path / "made here")


def test_an_older_version_merges_with_newer_parts(tmp_path: Path) -> None:
    old = first()
    filled(tmp_path / "old", old, returns)
    packed = write_packed(read_parts([tmp_path / "old"]), tmp_path / "old.jsonl.gz")
    suite = newer(old, lambda s: {**more_tokens(s), "seeds": (0, 1, 2)})
    filled(tmp_path / "new", suite, lambda cell: returns(cell) if cell.seed == 2 else None)
    for parts in ([packed, tmp_path / "new"], [tmp_path / "new", packed]):
        whole = read_parts(parts)
        assert whole.suite == suite
        assert whole.left_out == 4
        want = [c.key for c in suite.cells if c.seed == 2 or c.column == "Password-v0"]
        assert list(whole.cells) == want
    again = write_packed(whole, tmp_path / "both.jsonl")
    assert list(read_parts([again]).cells) == want
    unversioned = suite.model_copy(update={"version": 1})
    filled(tmp_path / "same", unversioned, returns)
    with pytest.raises(DataError, match="what has changed needs a new version"):
        read_parts([packed, tmp_path / "same"])


def test_the_command_says_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tiny(seeds=(0, 1))
    filled(tmp_path / "old", old, returns)
    old.write(tmp_path / "suite.json")
    words = ["bench", "--suite", str(tmp_path / "suite.json"), "--out", str(tmp_path / "new")]
    assert main([*words, "--reuse", str(tmp_path / "old")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "reused 4 finished cells of" in said
    assert "4 finished; 4 were there before" in said
    assert main(["bench", "--report", str(tmp_path / "new"), "--reuse", "x"]) == REFUSED
    assert "--reuse does not go with bench --report" in capsys.readouterr().err
