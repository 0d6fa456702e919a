"""`turngym submit` and `turngym leaderboard` from the outside, with a tiny suite."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.board_helpers import edit_episodes, tiny_suite
from safetensors.torch import load_file, save_file

from turngym.benchmarks.cli import references
from turngym.benchmarks.cli.main import main
from turngym.benchmarks.cli.tables import escape
from turngym.leaderboard.suites.files import write_suite

WHO = ("--organisation", "us", "--licence", "MIT", "--date", "2026-01-31")


@pytest.fixture(scope="module")
def suite_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_suite(tiny_suite(), tmp_path_factory.mktemp("suite")))


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def submit(suite: str, out: Path, *words: str, name: str = "ours") -> int:
    given = ("--suite", suite, "--out", str(out), "--name", name, *WHO)
    at = _options_at(words)
    return main(("submit", *words[:at], *given, *words[at:]))


def _options_at(words: tuple[str, ...]) -> int:
    return next((i for i, word in enumerate(words) if word.startswith("--")), len(words))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "submit: names nothing to play; expected a model"),
        (
            ("expert", "--board", "algorithms", "--budget-tokens", "-1"),
            "--budget-tokens -1: expected 0 or more",
        ),
        (
            ("expert", "--board", "algorithms", "--budget-calls", "-2"),
            "--budget-calls -2: expected 0 or more",
        ),
    ],
)
def test_an_entry_of_nothing_is_refused(
    words: tuple[str, ...],
    says: str,
    suite_file: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """These ended in tracebacks."""
    out = tmp_path / "entry"
    assert submit(suite_file, out, *words) == 2
    assert says in capsys.readouterr().err
    assert not out.exists()


def test_a_full_disk_keeps_the_reference_row_that_was_to_be_replaced(
    suite_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = tmp_path / "tiny-v1" / "null"
    words = ("leaderboard", "reference", "--suite", suite_file, "--out", str(tmp_path))
    assert main((*words, "--only", "null")) == 0
    before = {path: path.read_bytes() for path in row.rglob("*") if path.is_file()}

    def fill(root: Path, *_: object) -> None:
        (root / "episodes").mkdir(parents=True)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(references, "write_entry", fill)
    assert main((*words, "--only", "null", "--overwrite")) == 2
    assert before == {path: path.read_bytes() for path in row.rglob("*") if path.is_file()}
    assert [path.name for path in row.parent.iterdir()] == ["null"]


def test_submit_verify_index_table(
    suite_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "entries" / "tiny-v1"
    (tmp_path / "card.md").write_text("# The card\n")
    key = tmp_path / "key"
    assert main(("leaderboard", "key", str(key))) == 0
    more = ("--readme", str(tmp_path / "card.md"), "--link", "https://example.org/a")
    signed = ("--key", str(key), "--recipe", "scripted", "--parameters", "7")
    assert submit(suite_file, home / "ours", "random", *more, *signed) == 0
    where = ("--entries", str(home.parent), "--suite-file", suite_file)
    database = ("--db", str(tmp_path / "index.sqlite"))
    assert main(("leaderboard", "index", *where, *database)) == 0
    assert main(("leaderboard", "table", *database)) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "reference --suite FILE`, FILE being that of tiny-v1" in told  # no name of the package's
    assert main(("leaderboard", "reference", "--suite", suite_file, "--out", str(home.parent))) == 0
    capsys.readouterr()

    verdicts = tmp_path / "verdicts.jsonl"
    check = ("leaderboard", "verify", "--suite-file", suite_file, "--json", str(verdicts))
    assert main((*check, str(home / "ours"))) == 0
    said = capsys.readouterr().out
    assert "accepted" in said
    assert " environment " in said  # cut to "environm…" in a pipe
    verdict = json.loads(verdicts.read_text())
    assert verdict["accepted"]
    assert verdict["signed_by"]
    assert verdict["manifest"]["card"]["links"] == ["https://example.org/a"]
    assert verdict["manifest"]["card"]["parameters"] == 7
    assert (home / "ours" / "README.md").read_text() == "# The card\n"

    shutil.copytree(home / "ours", home / "forged")
    edit_episodes(home / "forged", lambda episodes: episodes[0].update(reward=1.0))
    assert main(("leaderboard", "index", *where, *database)) == 0
    said = capsys.readouterr().out
    assert "refused tiny-v1/forged" in said
    assert "4 of 5 entries" in said

    rows = tmp_path / "rows.json"
    assert main(("leaderboard", "table", *database, "--json", str(rows))) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("ours (us)", "expert", "random", "null", "pass^2"))
    (board,) = json.loads(rows.read_text())
    assert [row["rank"] for row in board["rows"] if row["reference"] is None] == [None]
    assert "reproduction and development" in shown
    assert main(("leaderboard", "table", *database, "--suite", "other-v1")) == 2
    assert "unknown suite" in capsys.readouterr().err


def test_verify_refuses_and_goes_on(
    suite_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    assert submit(suite_file, good, "null") == 0
    shutil.copytree(good, bad)
    edit_episodes(bad, lambda episodes: episodes[0]["chain"].__setitem__(1, "0" * 16))
    words = ("leaderboard", "verify", "--suite-file", suite_file, str(bad), str(good))
    assert main(words) == 2
    said = capsys.readouterr()
    assert "(observation)" in said.out
    assert "got: 0000000000000000" in said.out
    assert "accepted" in said.out
    assert "1 of 2 entries refused" in said.err


def test_verify_is_told_a_file_of_an_entry(
    suite_file: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = tmp_path / "mine"
    assert submit(suite_file, entry, "null") == 0
    episodes = next(path for path in (entry / "episodes").rglob("*") if path.is_file())
    monkeypatch.chdir(tmp_path)
    for file in (entry / "entry.json", Path("mine/entry.json"), episodes):
        capsys.readouterr()
        assert main(("leaderboard", "verify", str(file))) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "Name its folder: " + ("mine" if not file.is_absolute() else str(entry)) in said
    other = tmp_path / "notes.json"
    other.write_text("{}")
    assert main(("leaderboard", "verify", str(other))) == 2
    assert "is no zip, tar or tar.gz" in " ".join(capsys.readouterr().out.split())


def test_suites_are_listed_and_checked(
    suite_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("leaderboard", "suites")) == 0
    listed = capsys.readouterr().out
    assert "micro-v3" in listed
    assert "standard-v4" in listed
    assert main(("leaderboard", "suites", "--check", suite_file)) == 0
    assert "tiny-v1: 0 of 6 tasks differ" in capsys.readouterr().out
    data = json.loads(Path(suite_file).read_text())
    data["cells"][0]["digests"][1] = "f" * 32
    other = tmp_path / "tiny-v1.json"
    other.write_text(json.dumps(data))
    assert main(("leaderboard", "suites", "--check", str(other))) == 2
    said = capsys.readouterr()
    assert "Password-v0 task 2" in said.out
    assert "1 tasks are others" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("expertt",), "unknown agent 'expertt'. Did you mean 'expert'"),
        (("nowhere.jsonl",), "no such file"),
        (("expert", "random"), "one source per entry"),
        (("expert", "--board", "algorithms"), "is no run directory"),
        (("expert", "--key", "nokey"), "not a signing key"),
        (("expert", "--readme", "nofile.md"), "cannot be read"),
        (("expert", "--link", "javascript:alert(1)"), "links"),
        (("expert", "--date", "yesterday"), "date"),
    ],
)
def test_submit_refuses(
    suite_file: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    assert submit(suite_file, tmp_path / "e", *words) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "e" / "entry.json").exists()


def test_an_entry_that_could_not_be_written_whole_is_not_there(
    suite_file: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the same command refuses the folder, and a half could be taken for the whole."""

    def full(root: Path, *about: object) -> None:
        (root / "episodes").mkdir()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = tmp_path / "entry"
    with monkeypatch.context() as patch:
        patch.setattr("turngym.benchmarks.cli.submit.write_entry", full)
        assert submit(suite_file, out, "random") == 2
    assert f"{tmp_path}: the disk is full" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert submit(suite_file, out, "random") == 0
    assert (out / "entry.json").is_file()


def test_submit_and_reference_overwrite_nothing(
    suite_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "e"
    assert submit(suite_file, out, "null") == 0
    assert submit(suite_file, out, "null") == 2
    assert "holds files" in capsys.readouterr().err
    words = ("leaderboard", "reference", "--suite", suite_file, "--out", str(tmp_path / "refs"))
    assert main((*words, "--only", "null")) == 0
    assert main((*words, "--only", "null")) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main((*words, "--only", "null", "--overwrite")) == 0
    assert main((*words, "--only", "nil")) == 2


@pytest.fixture
def trained(tiny_model: Path, tmp_path: Path) -> list[Path]:
    """Three run directories as training leaves them, around untrained models."""
    found = []
    for seed in range(3):
        root = tmp_path / f"run{seed}"
        checkpoint = root / "checkpoints" / "step-000004"
        shutil.copytree(tiny_model, checkpoint)
        weights = load_file(checkpoint / "model.safetensors")
        made = torch.Generator().manual_seed(seed)
        moved = {
            name: value + 0.3 * torch.randn(value.shape, generator=made)
            for name, value in weights.items()
        }
        save_file(moved, checkpoint / "model.safetensors", {"format": "pt"})
        (checkpoint / "trainer").mkdir()
        (checkpoint / "trainer" / "state.json").write_text('{"progress": {}, "files": {}}')
        budget = {"steps": 4, "tokens": 1000, "calls": 50, "minutes": None}
        config = {"seed": seed, "model": "starter", "budget": budget}
        (root / "config.json").write_text(json.dumps(config))
        result = {
            "recipe": "grpo",
            "env_id": "Password-v0",
            "seed": seed,
            "config_digest": "c",
            "model_digest": "sha256:" + "a" * 64,
            "steps": 4,
            "sampled_tokens": 1010,
            "env_turns": 40,
            "seconds": 1.0,
            "before": [],
            "after": [],
        }
        (root / "result.json").write_text(json.dumps(result))
        found.append(root)
    return found


def test_three_training_runs_make_an_entry_of_an_algorithm(
    suite_file: str, trained: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "entry"
    runs = [str(root) for root in trained]
    words = ("leaderboard", "verify", "--suite-file", suite_file)
    shutil.copytree(trained[1] / "checkpoints", tmp_path / "kept")
    shutil.rmtree(trained[1] / "checkpoints")
    shutil.copytree(trained[0] / "checkpoints", trained[1] / "checkpoints")
    assert submit(suite_file, out, *runs, "--board", "algorithms", "--max-tokens", "4") == 0
    said = capsys.readouterr().out
    assert "note: trained on Password-v0, but the score of tiny-v1 is the mean over 2 " in said
    assert "environments, among them Fork-v0." in said
    assert main((*words, str(out))) == 2
    assert "copies of one run" in capsys.readouterr().out
    shutil.rmtree(out)
    shutil.rmtree(trained[1] / "checkpoints")
    shutil.move(tmp_path / "kept", trained[1] / "checkpoints")
    assert submit(suite_file, out, *runs, "--board", "algorithms", "--max-tokens", "4") == 0
    assert main((*words, str(out))) == 0
    assert "accepted" in capsys.readouterr().out
    manifest = json.loads((out / "entry.json").read_text())
    assert [run["seed"] for run in manifest["runs"]] == [0, 1, 2]
    assert manifest["runs"][0]["used"] == {"sampled_tokens": 1010, "tool_calls": 40}
    assert manifest["track"]["budget"] == {"sampled_tokens": 1000, "tool_calls": 50}
    assert manifest["card"]["recipe"] == "grpo"
    assert manifest["card"]["sampling"] == "greedy, at most 4 tokens"


def test_runs_of_another_start_or_unfinished_are_no_entry_together(
    suite_file: str, trained: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(root) for root in trained]
    path = trained[1] / "result.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"model_digest": "sha256:" + "b" * 64}))
    assert submit(suite_file, tmp_path / "e", *runs, "--board", "algorithms") == 2
    assert "another start or budget" in capsys.readouterr().err
    path.unlink()
    assert submit(suite_file, tmp_path / "e", *runs, "--board", "algorithms") == 2
    assert "the run is not finished" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("result", "count", "says"),
    [
        ({}, 2, "at least 3 runs with different seeds. Got 0, 1. Expected 3 or more different"),
        ({"seed": 0}, 3, "at least 3 runs with different seeds. Got 0, 0, 2."),
        ({"sampled_tokens": 1100}, 3, "seed 1 used more sampled tokens than its track allows. Got"),
        ({"recipe": "ppo"}, 3, "run1: was trained by ppo, but "),
    ],
)
def test_runs_that_the_board_would_refuse_are_not_played(
    suite_file: str,
    trained: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    result: dict[str, Any],
    count: int,
    says: str,
) -> None:
    path = trained[1] / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | result))
    runs = [str(root) for root in trained[:count]]
    assert submit(suite_file, tmp_path / "e", *runs, "--board", "algorithms") == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "e" / "entry.json").exists()


def test_a_maintainer_plays_the_weights_and_the_rerun_is_ranked(
    suite_file: str, trained: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "entries"
    out = root / "tiny-v1" / "mine"
    model = str(trained[0])
    assert submit(suite_file, out, model, "--max-tokens", "4") == 0
    where = ("--entries", str(root), "--suite-file", suite_file)
    rerun = ("leaderboard", "rerun", "tiny-v1/mine", *where, "--max-tokens", "4")
    assert main((*rerun, "--weights", model)) == 0
    assert "12 have the submitted actions" in capsys.readouterr().out
    assert main((*rerun, "--weights", model)) == 2
    assert "--overwrite" in capsys.readouterr().err
    for wrong, said in (
        (("--weights", "expert"), "is no model"),
        (("--weights", model, "--weights", model), "2 models for 1 runs"),
        (("--weights", "nowhere"), "nowhere"),
    ):
        assert main((*rerun, *wrong, "--overwrite")) == 2
        assert said in capsys.readouterr().err
    database = ("--db", str(tmp_path / "index.sqlite"))
    assert main(("leaderboard", "index", *where, *database)) == 0
    rows = tmp_path / "rows.json"
    assert main(("leaderboard", "table", *database, "--json", str(rows))) == 0
    assert ", rerun" in capsys.readouterr().out
    (board,) = json.loads(rows.read_text())
    found = {row["entry_id"]: row for row in board["rows"]}
    assert found["tiny-v1/mine-rerun"]["rank"] == 1
    assert found["tiny-v1/mine-rerun"]["ranked_by"] == "rerun"
    assert found["tiny-v1/mine"]["rank"] is None
    assert not any(row["copy_of"] for row in found.values())
    record = json.loads((root / "tiny-v1" / "mine-rerun.record.json").read_text())
    assert record["rerun"]["weights"][0].startswith("sha256:")
    assert main(("leaderboard", "rerun", "tiny-v1/none", *where, "--weights", model)) == 2
    assert "no such entry" in capsys.readouterr().err


def test_no_control_character_of_a_stranger_reaches_the_terminal(
    suite_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = tmp_path / "\x1b[2J\x9b31m\x07evil"
    assert main(("leaderboard", "verify", str(evil))) == 2
    assert submit(suite_file, evil, "null") == 0
    capsys.readouterr()
    edit_episodes(evil, lambda episodes: episodes.pop())
    assert main(("leaderboard", "verify", "--suite-file", suite_file, str(evil))) == 2
    assert escape("\x1b[2J\x9b31m\x07[red]\x85") == "␚[2J␚31m␚\\[red]␚"
    shown = "".join(capsys.readouterr())
    assert "evil" in shown
    assert not set("\x1b\x9b\x07") & set(shown)
