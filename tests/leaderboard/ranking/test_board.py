"""Boards and their index: ranks, references, tracks, reproductions, and what is taken over."""

from __future__ import annotations

import itertools
import math
import resource
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.board_helpers import edit_episodes, edit_manifest, make_entry, refusal_of, verdict_of
from helpers.site_helpers import says, written

from turngym.envs.core.errors import DataError
from turngym.envs.utils.statistics import student_mean
from turngym.leaderboard.ranking.board import compare_tasks, make_boards
from turngym.leaderboard.ranking.index import Indexed, read_index, rebuild
from turngym.leaderboard.schema.board import Board, PairedTest, RunTest
from turngym.leaderboard.schema.entry import Budget, Run, Track
from turngym.leaderboard.schema.record import Record, Rerun, record_path
from turngym.leaderboard.schema.result import Refusal, Verdict
from turngym.leaderboard.schema.suite import Suite
from turngym.leaderboard.verification.verify import verify_folder

TRACK = Track(
    start="starter",
    start_digest="sha256:" + "a" * 64,
    budget=Budget(sampled_tokens=1000, tool_calls=100),
)


DAYS = ("2026-01-01", "2026-01-02")
RERUN = Rerun(of="tiny-v1/other", weights=("sha256:" + "a" * 64,), equal=3, episodes=12)


def runs(*seeds: int, tokens: int = 900) -> tuple[Run, ...]:
    used = Budget(sampled_tokens=tokens, tool_calls=100)
    return tuple(Run(seed=seed, used=used) for seed in seeds)


@pytest.fixture(scope="module")
def entries(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """References, a bungler twice, a copy of the expert, two that are ranked, and a forgery."""
    root = tmp_path_factory.mktemp("board")
    home = root / suite.id
    for name in ("expert", "random", "null"):
        make_entry(suite, home / name, name, name=name, reference=name)
    make_entry(suite, home / "lucky", "random", name="lucky")
    make_entry(suite, home / "lucky-again", "random", name="lucky again", reproduces="lucky")
    make_entry(suite, home / "copy", "expert", name="copy", reference="expert", date="0001-01-01")
    written(suite, home / "fool", says("fool"), name="fool")
    write_record(home / "fool", account="bob", accepted=f"{DAYS[1]}T00:00:00+00:00", season="s")
    written(suite, home / "mine", says("mine"), name="mine")
    write_record(home / "mine", accepted=f"{DAYS[0]}T00:00:00+00:00", rerun=RERUN)
    terms = {"board": "algorithms", "track": TRACK}
    make_entry(suite, home / "algo", "random", name="algo", runs=runs(0, 1, 2), **terms)
    shutil.copytree(home / "expert", home / "forged")
    edit_episodes(home / "forged", lambda episodes: episodes[0].update(seed=1))
    return root


def write_record(folder: Path, **known: Any) -> None:
    Record(**known).write(record_path(folder))


@pytest.fixture(scope="module")
def index(entries: Path, suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> list[Indexed]:
    database = tmp_path_factory.mktemp("index") / "deep" / "index.sqlite"
    found = rebuild(entries, database, lambda root: verdict_of(root, suite))
    assert read_index(database) == found
    return found


@pytest.fixture(scope="module")
def agents(index: list[Indexed]) -> Board:
    return make_boards(index)[0]


def never_verified(folder: Path) -> Verdict:
    raise AssertionError(f"{folder} was verified")


def test_there_is_a_board_for_agents_and_one_per_track(index: list[Indexed]) -> None:
    assert [(b.board, b.suite, b.track) for b in make_boards(index)] == [
        ("agents", "tiny-v1", None),
        ("algorithms", "tiny-v1", TRACK),
    ]


def test_ranks_are_of_those_who_can_be_trusted(agents: Board) -> None:
    rows = {row.entry_id.split("/")[1]: row for row in agents.rows}
    trusted = {"expert", "random", "null", "mine", "fool"}
    assert {row.entry_id.split("/")[1] for row in agents.rows[: len(trusted)]} == trusted
    for part in (agents.rows[: len(trusted)], agents.rows[len(trusted) :]):
        means = [row.score.mean for row in part]
        assert means == sorted(means, reverse=True)
    assert {name for name, row in rows.items() if row.reference} == {"expert", "random", "null"}
    assert (rows["mine"].rank, rows["mine"].ranked_by) == (1, "rerun")
    assert (rows["fool"].rank, rows["fool"].ranked_by) == (2, "season"), "ties go by acceptance"
    assert rows["mine"].score.mean == rows["fool"].score.mean
    assert (rows["fool"].account, rows["fool"].accepted) == ("bob", DAYS[1])
    for name in ("copy", "lucky", "lucky-again"):
        assert (rows[name].rank, rows[name].ranked_by) == (None, "")
    assert rows["copy"].reference is None, "a reference row is only what stands under its name"
    assert rows["copy"].copy_of == "tiny-v1/expert"
    assert rows["lucky-again"].copy_of == rows["lucky"].copy_of == "tiny-v1/random"
    assert rows["lucky-again"].reproduces == "lucky"
    assert "forged" not in rows
    assert agents.missing_references == ()
    assert rows["expert"].score.mean == 1.0
    assert rows["null"].score.mean == 0.0


@pytest.mark.parametrize(("day", "ranks"), [(DAYS[1], (1, 2)), (DAYS[0], (1, 1))])
def test_the_last_digit_of_a_mean_decides_no_rank(
    index: list[Indexed], day: str, ranks: tuple[int, int]
) -> None:
    """Thirds of eight tasks that add up to the same have another mean in a sixth of all orders."""

    def nudged(one: Indexed) -> Indexed:
        if one.entry_id != "tiny-v1/fool":
            return one
        mean = math.nextafter(one.scores.score.mean, 1.0)
        score = one.scores.score.model_copy(update={"mean": mean})
        scores = one.scores.model_copy(update={"score": score})
        verdict = one.verdict.model_copy(update={"scores": scores})
        record = one.record.model_copy(update={"accepted": f"{day}T12:00:00+00:00"})
        return replace(one, verdict=verdict, record=record)

    rows = {row.entry_id: row for row in make_boards([nudged(one) for one in index])[0].rows}
    mine, fool = rows["tiny-v1/mine"], rows["tiny-v1/fool"]
    assert fool.score.mean > mine.score.mean
    assert (mine.rank, fool.rank) == ranks


def test_a_copy_of_a_ranked_entry_has_no_rank(index: list[Indexed]) -> None:
    late = Record(accepted="2030-01-01T00:00:00+00:00", season="s")
    fool = next(one for one in index if one.entry_id == "tiny-v1/fool")
    again = Indexed(entry_id="tiny-v1/again", verdict=fool.verdict, record=late)
    rows = {row.entry_id.split("/")[1]: row for row in make_boards([*index, again])[0].rows}
    assert (rows["again"].rank, rows["again"].copy_of) == (None, "tiny-v1/fool")
    assert (rows["fool"].rank, rows["fool"].copy_of) == (2, "")
    other = Record(rerun=Rerun(of="tiny-v1/fool", weights=("sha256:0",), equal=12, episodes=12))
    rerun = Indexed(entry_id="tiny-v1/fool-rerun", verdict=fool.verdict, record=other)
    rows = {row.entry_id.split("/")[1]: row for row in make_boards([*index, rerun])[0].rows}
    assert rows["fool-rerun"].copy_of == rows["fool"].copy_of == "", "a rerun repeats its entry"
    assert rows["fool-rerun"].rank is not None


@pytest.mark.parametrize(
    "name", ["turngym", "TurnGym", " turn gym", "turn-gym", "ｔurngym", "turngym\u3164"]
)
def test_the_references_organisation_is_reserved(suite: Suite, tmp_path: Path, name: str) -> None:
    make_entry(suite, tmp_path / "e", "null", organisation=name)
    assert refusal_of(tmp_path / "e", suite).reason == "reserved"
    make_entry(suite, tmp_path / "null", "null", organisation=name, reference="null")
    assert verdict_of(tmp_path / "null", suite).accepted


def test_neighbours_are_compared_over_the_tasks(agents: Board) -> None:
    by_id = {row.entry_id: row for row in agents.rows}
    for row in agents.rows[:-1]:
        test = row.versus_next
        assert isinstance(test, PairedTest)
        below = by_id[test.other]
        assert test.difference == pytest.approx(row.score.mean - below.score.mean)
        assert 0 < test.p_value <= 1
        assert test.tasks == 6
    assert agents.rows[-1].versus_next is None
    mine = by_id["tiny-v1/mine"]
    assert mine.versus_next is not None
    assert mine.versus_next.p_value == 1.0


def test_algorithms_have_an_interval_over_runs_and_the_references(index: list[Indexed]) -> None:
    board = make_boards(index)[1]
    rows = {row.entry_id.split("/")[1]: row for row in board.rows}
    assert set(rows) == {"algo", "expert", "random", "null"}
    algo = rows["algo"]
    assert len(algo.runs) == 3
    assert algo.score.mean == pytest.approx(sum(algo.runs) / 3)
    assert algo.rank is None
    assert algo.episodes == 36
    assert algo.used == Budget(sampled_tokens=900, tool_calls=100)
    verdict = next(one.verdict for one in index if one.entry_id == "tiny-v1/algo")
    assert verdict.scores is not None
    assert verdict.scores.between_runs == algo.score
    assert verdict.scores.score.mean == pytest.approx(algo.score.mean)


def test_algorithms_are_compared_over_runs_and_with_themselves(index: list[Indexed]) -> None:
    algo = next(one for one in index if one.entry_id == "tiny-v1/algo")

    def method(name: str, scores: list[float], seed: int, reproduces: str = "") -> Indexed:
        mean = student_mean(scores)
        of_runs = {"runs": tuple(scores), "between_runs": mean, "score": mean}
        found = algo.scores.model_copy(update=of_runs)
        fields = {"name": name, "reproduces": reproduces}
        seeds = runs(*range(seed, seed + len(scores)))
        manifest = algo.manifest.model_copy(update={**fields, "runs": seeds})
        verdict = algo.verdict.model_copy(update={"scores": found, "manifest": manifest})
        return Indexed(entry_id=f"tiny-v1/{name}", verdict=verdict)

    good = method("good", [0.8, 0.84, 0.82, 0.86, 0.79, 0.83], 0)
    again = method("again", [0.81, 0.83, 0.85, 0.8, 0.82], 20, reproduces="good")
    bad = method("bad", [0.5, 0.52, 0.55, 0.51, 0.49, 0.5], 0)
    references = [one for one in index if one.manifest.reference]
    board = make_boards([good, again, bad, *references])[-1]
    rows = {row.entry_id.split("/")[1]: row for row in board.rows}
    assert list(rows) == ["expert", "random", "null", "good", "again", "bad"]
    close, clear = rows["good"].versus_next, rows["again"].versus_next
    assert isinstance(close, RunTest)
    assert isinstance(clear, RunTest)
    assert (close.other, close.verdict) == ("tiny-v1/again", "not decided")
    assert (clear.other, clear.verdict) == ("tiny-v1/bad", "above")
    assert rows["expert"].versus_next is None
    assert rows["bad"].versus_next is None
    halves = rows["good"].versus_itself
    assert halves is not None
    assert halves.difference == pytest.approx((0.8 + 0.82 + 0.79 - 0.84 - 0.86 - 0.83) / 3)
    assert rows["expert"].versus_itself is None
    repeated = rows["again"].versus_reproduced
    assert repeated is not None
    assert repeated.other == "tiny-v1/good"
    assert rows["good"].versus_reproduced is None


def method(
    algo: Indexed, entry_id: str, name: str, mean: float, reproduces: str = "", **known: Any
) -> Indexed:
    """An entry on the board of algorithms with five runs around ``mean``."""
    scores = [mean + d for d in (-0.02, -0.01, 0.0, 0.01, 0.02)]
    estimate = student_mean(scores)
    of_runs = {"runs": tuple(scores), "between_runs": estimate, "score": estimate}
    fields = {"name": name, "reproduces": reproduces, "runs": runs(*range(len(scores)))}
    verdict = algo.verdict.model_copy(
        update={
            "scores": algo.scores.model_copy(update=of_runs),
            "manifest": algo.manifest.model_copy(update=fields),
        }
    )
    return Indexed(entry_id=f"tiny-v1/{entry_id}", verdict=verdict, record=Record(**known))


@pytest.mark.parametrize(
    ("reproduces", "accepted", "original"),
    [
        ("good", f"{DAYS[1]}T00:00:00+00:00", "tiny-v1/good"),
        ("good", "", "tiny-v1/good"),
        ("good", f"{DAYS[0]}T00:00:00+00:00", None),  # nothing of the name was there before
        ("tiny-v1/b-good", "2026-01-04T00:00:00+00:00", "tiny-v1/b-good"),
        ("tiny-v1/b-good", f"{DAYS[1]}T00:00:00+00:00", None),
        ("tiny-v1/again", f"{DAYS[1]}T00:00:00+00:00", None),  # itself
        ("", f"{DAYS[1]}T00:00:00+00:00", None),
    ],
)
def test_a_later_entry_of_the_name_is_not_the_one_reproduced(
    index: list[Indexed], reproduces: str, accepted: str, original: str | None
) -> None:
    algo = next(one for one in index if one.entry_id == "tiny-v1/algo")
    day, late = f"{DAYS[0]}T00:00:00+00:00", "2026-01-03T00:00:00+00:00"
    rows = [
        method(algo, "good", "good", 0.7, accepted=day),
        method(algo, "b-good", "good", 0.8, accepted=late),
        method(algo, "good-rerun", "good", 0.75, rerun=RERUN),
        method(algo, "again", "again", 0.6, reproduces, accepted=accepted),
        *(one for one in index if one.manifest.reference),
    ]
    again = next(row for row in make_boards(rows)[-1].rows if row.entry_id == "tiny-v1/again")
    tested = again.versus_reproduced
    assert (None if tested is None else tested.other) == original


def test_originals_without_a_time_of_acceptance(index: list[Indexed]) -> None:
    algo = next(one for one in index if one.entry_id == "tiny-v1/algo")
    late = "2026-01-03T00:00:00+00:00"
    rows = [
        method(algo, "good", "good", 0.7),
        method(algo, "better", "good", 0.9, accepted="2026-01-04T00:00:00+00:00"),
        method(algo, "again", "again", 0.6, "good", accepted=late),
    ]
    again = next(row for row in make_boards(rows)[-1].rows if row.entry_id == "tiny-v1/again")
    assert again.versus_reproduced is not None
    assert again.versus_reproduced.other == "tiny-v1/good"


def test_a_board_says_which_references_it_misses(index: list[Indexed]) -> None:
    some = [one for one in index if not one.entry_id.endswith(("/null", "/random"))]
    assert make_boards(some)[0].missing_references == ("random", "null")


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"runs": runs(0, 1)}, "3 or more"),
        ({"runs": runs(0, 1, 1)}, "3 or more"),
        ({"runs": runs(0, 1, 2, tokens=1051)}, "at most 1000"),
        ({"runs": runs(0, 1, 2, tokens=0)}, "above 0"),
        ({"runs": runs(0, 1, 2)}, "actions of their own"),  # null acts alike in every run
    ],
)
def test_rules_of_the_board_of_algorithms(
    suite: Suite, tmp_path: Path, others: dict, expected: str
) -> None:
    make_entry(suite, tmp_path / "e", "null", board="algorithms", track=TRACK, **others)
    refusal = refusal_of(tmp_path / "e", suite)
    assert refusal.reason == "board_rules"
    assert expected in refusal.expected


def test_agents_have_one_run_and_no_track(suite: Suite, tmp_path: Path, entry: Path) -> None:
    make_entry(suite, tmp_path / "e", "null", runs=runs(0, 1))
    assert refusal_of(tmp_path / "e", suite).reason == "board_rules"
    edit_manifest(entry, lambda data: data.update(track=TRACK.model_dump()))
    assert refusal_of(entry, suite).reason == "format"


def test_only_what_changed_is_verified_again(entries: Path, suite: Suite, tmp_path: Path) -> None:
    seen: list[str] = []

    def check(root: Path) -> Verdict:
        seen.append(root.name)
        return verdict_of(root, suite)

    home = Path(shutil.copytree(entries / "tiny-v1", tmp_path / "entries" / "tiny-v1"))
    database = tmp_path / "index.sqlite"
    told: list[str] = []
    rebuild(home.parent, database, check, on_progress=lambda name, place, count: told.append(name))
    assert sorted(seen) == sorted(name.split("/")[1] for name in told)
    assert len(seen) == 10
    seen.clear()
    edit_manifest(home / "lucky", lambda data: data.update(description="new words"))
    shutil.rmtree(home / "copy")
    found = rebuild(home.parent, database, check)
    assert seen == ["lucky"]
    assert "tiny-v1/copy" not in {one.entry_id for one in found}
    seen.clear()
    rebuild(home.parent, database, check, fresh=True)
    assert len(seen) == 9


def test_an_entry_that_is_added_while_others_are_verified_stays(
    entries: Path, suite: Suite, tmp_path: Path
) -> None:
    home, database = tmp_path / "entries", tmp_path / "index.sqlite"
    shutil.copytree(entries / "tiny-v1" / "expert", home / "tiny-v1" / "expert")

    def check(folder: Path) -> Verdict:
        return verdict_of(folder, suite)

    def slow(folder: Path) -> Verdict:
        shutil.copytree(entries / "tiny-v1" / "lucky", home / "tiny-v1" / "lucky")
        rebuild(home, database, check)  # another process
        return check(folder)

    rebuild(home, database, slow)
    added = read_index(database)
    assert [one.entry_id for one in added] == ["tiny-v1/expert", "tiny-v1/lucky"]
    shutil.rmtree(home / "tiny-v1" / "lucky")
    assert rebuild(home, database, check) == read_index(database) == added[:1]


def test_an_interrupted_index_keeps_what_it_has_replayed(
    entries: Path, suite: Suite, tmp_path: Path
) -> None:
    database, replayed = tmp_path / "index.sqlite", list[str]()

    def check(folder: Path) -> Verdict:
        if len(replayed) == 4:
            raise KeyboardInterrupt
        replayed.append(folder.name)
        return verdict_of(folder, suite)

    with pytest.raises(KeyboardInterrupt):
        rebuild(entries, database, check)
    first = replayed.copy()
    replayed.clear()
    with pytest.raises(KeyboardInterrupt):
        rebuild(entries, database, check)
    assert len(set(first + replayed)) == 8
    assert len(read_index(database)) == 8


def test_what_is_no_property_of_an_entry_is_not_remembered(
    entries: Path, suite: Suite, tmp_path: Path
) -> None:
    database = tmp_path / "index.sqlite"
    newer = suite.model_copy(update={"version": 2})
    changed = suite.model_copy(update={"description": "changed"})
    for known, reason in (
        ({}, "unknown_suite"),
        ({newer.id: newer}, "suite_version"),
        ({suite.id: changed}, "suite_digest"),
    ):
        found = rebuild(entries, database, lambda root, known=known: verify_folder(root, known))
        reasons = {one.verdict.refusal.reason for one in found if one.verdict.refusal}
        assert (len(found), reasons) == (10, {reason})

    def break_down(root: Path) -> Verdict:
        refusal = Refusal(reason="environment_broken", message="the tool is away")
        verdict = verdict_of(root, suite)
        return verdict.model_copy(update={"accepted": False, "refusal": refusal, "scores": None})

    rebuild(entries, database, break_down)
    found = rebuild(entries, database, lambda root: verdict_of(root, suite))
    assert [one.entry_id for one in found if not one.verdict.accepted] == ["tiny-v1/forged"]

    assert rebuild(entries, database, never_verified) == found, (
        "refusals of the entry's own are remembered"
    )


def test_the_index_can_be_asked_in_sql(entries: Path, suite: Suite, tmp_path: Path) -> None:
    database = tmp_path / "index.sqlite"
    rebuild(entries, database, lambda root: verdict_of(root, suite))
    base = sqlite3.connect(database)
    rows = base.execute(
        "SELECT name, accepted, reason, round(score, 3) FROM entries ORDER BY entry_id"
    ).fetchall()
    base.close()
    assert ("expert", 1, "", 1.0) in rows
    assert ("expert", 0, "seed", None) in rows


def test_files_that_are_no_index(tmp_path: Path, entries: Path, suite: Suite) -> None:
    with pytest.raises(DataError, match="leaderboard index"):
        read_index(tmp_path / "none.sqlite")
    other = tmp_path / "other.sqlite"
    base = sqlite3.connect(other)
    base.execute("CREATE TABLE mine (a INTEGER)")
    base.commit()
    base.close()
    text = tmp_path / "text.sqlite"
    text.write_text("no database at all, but long enough to be looked at" * 50)
    for path, fresh in itertools.product((other, text), (False, True)):
        with pytest.raises(DataError, match="name another file"):
            rebuild(entries, path, never_verified, fresh=fresh)
    with pytest.raises(DataError, match="no such folder"):
        rebuild(tmp_path / "nowhere", tmp_path / "x.sqlite", lambda root: verdict_of(root, suite))


def test_a_full_disk_does_not_make_another_file_of_an_index(
    tmp_path: Path, entries: Path, suite: Suite
) -> None:
    """It was told to be no index, and to name another file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(DataError, match=r"index cannot be used now \(.*Make room") as told:
            rebuild(entries, tmp_path / "index.sqlite", lambda root: verdict_of(root, suite))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "not an index" not in str(told.value)


def test_an_index_that_was_cut_off_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    class Cut(sqlite3.Connection):
        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            if sql.startswith("PRAGMA user_version ="):
                raise KeyboardInterrupt
            return super().execute(sql, *given)

    def cut(*given: Any, **settings: Any) -> sqlite3.Connection:
        return connect(*given, factory=Cut, **settings)

    home, database = tmp_path / "entries", tmp_path / "index.sqlite"
    home.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", cut)
        with pytest.raises(KeyboardInterrupt):
            rebuild(home, database, never_verified)
    assert rebuild(home, database, never_verified) == read_index(database) == []


@pytest.mark.parametrize("fresh", [False, True])
def test_an_index_of_an_earlier_version_is_rebuilt(
    tmp_path: Path, entries: Path, suite: Suite, fresh: bool
) -> None:
    database = tmp_path / "old.sqlite"
    with sqlite3.connect(database) as base:
        base.execute("CREATE TABLE entries (entry_id TEXT, verdict TEXT)")
        base.execute("INSERT INTO entries VALUES ('a', '{}')")
        base.execute("PRAGMA user_version = 2")
    base.close()
    with pytest.raises(DataError, match="rebuild it"):
        read_index(database)
    found = rebuild(entries, database, lambda root: verdict_of(root, suite), fresh=fresh)
    assert read_index(database) == found


def test_scores_that_differ_by_rounding_alone_are_no_difference(index: list[Indexed]) -> None:
    """Means of equal scores in another order differ in the last digits; p was .03 for six tasks."""
    one = next(entry for entry in index if entry.entry_id == "tiny-v1/mine")

    def scored(value: float) -> Indexed:
        episodes = tuple(e.model_copy(update={"score": value}) for e in one.verdict.episodes)
        return replace(one, verdict=one.verdict.model_copy(update={"episodes": episodes}))

    test = compare_tasks(scored(0.1 + 0.2), scored(0.3))
    assert (test.tasks, test.difference, test.p_value) == (6, 0.0, 1.0)
