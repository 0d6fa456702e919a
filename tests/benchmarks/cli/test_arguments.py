"""Options that do not go together: named, with what does."""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import pytest
import tyro

from turngym.benchmarks.cli import play, train
from turngym.benchmarks.cli.arguments import (
    check_workers,
    expand_dotted,
    new_folder,
    output_file,
    refuse_empty,
    refuse_others,
    refuse_without,
    values,
)
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs.core.errors import BadValueError

ABOUT = ("--name", "a", "--organisation", "b", "--licence", "MIT")


@dataclass(frozen=True)
class Inner:
    """Nested options."""

    depth: int = 1
    so_far: str = ""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Options of every kind."""

    env: str
    report: tuple[str, ...] = ()
    out: str | None = None
    flat: Annotated[Inner, tyro.conf.arg(name="")] = field(default_factory=partial(Inner, depth=2))
    named: Inner = field(default_factory=Inner)


TAKES = ("env", "report", "out")


def test_what_a_mode_takes_or_was_not_given_goes_with_it() -> None:
    refuse_others(Command(env="a", report=("x",), out="y"), "try --report", TAKES)
    refuse_others(Command(env="a", flat=Inner(depth=2)), "try --report", TAKES)
    refuse_without(Command(env="a", out="y"), "--report", ("so_far",))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (Command(env="a", flat=Inner()), "--depth does not go with try --report"),
        (Command(env="a", named=Inner(so_far="x")), "--named.so-far does not go with"),
        (
            Command(env="a", flat=Inner(2, "b"), named=Inner(depth=0)),
            "--so-far and --named.depth do not go with try --report, which takes --env and --out.",
        ),
    ],
)
def test_others_are_refused_by_the_names_they_are_typed_with(command: Command, says: str) -> None:
    with pytest.raises(BadValueError, match=says):
        refuse_others(command, "try --report", TAKES)


def test_modes_without_options_and_options_without_their_mode_say_so() -> None:
    with pytest.raises(BadValueError, match="which takes no other option"):
        refuse_others(Command(env="a", out="x"), "try --env", ("env",))
    with pytest.raises(BadValueError, match=r"--out and --so-far need --report\."):
        refuse_without(Command(env="a", out="x", flat=Inner(2, "b")), "--report", ("out", "so_far"))


def test_output_paths_that_cannot_be_are_refused_at_once(tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.write_text("kept")
    for name, make in (
        (tmp_path, output_file),
        (note / "x", output_file),
        (note / "x", new_folder),
    ):
        with pytest.raises(BadValueError, match="folder"):
            make(str(name))
    assert note.read_text() == "kept"
    assert output_file(str(tmp_path / "a" / "b.json")).parent.is_dir()
    assert not new_folder(str(tmp_path / "new" / "er")).exists()


def test_a_file_that_may_not_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """eval played all tasks before a read-only folder took its scores, submit a whole suite."""
    (tmp_path / "old.json").touch()
    assert output_file(str(tmp_path / "old.json")).exists()
    assert output_file("/dev/null") == Path("/dev/null")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    for name, make in (("new.json", output_file), ("old.json", output_file), ("x", new_folder)):
        with pytest.raises(BadValueError, match=rf"{name}: may not be written to"):
            make(str(tmp_path / name))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    "words",
    [
        ["eval", "--env", "Bandit-v0", "--n", "2", "--agent", "random", "--out", "{}.json"],
        ["submit", "random", "--suite", "micro-game24-v3", *ABOUT, "--out", "{}"],
        ["play", "Bandit-v0", "--agent", "random", "--out", "{}.jsonl"],
        ["starters", "--env", "Game24-v0", "--out", "{}.json"],
        ["train", "--env", "Bandit-v0", "--run-dir", "{}"],
        ["train", "--env", "Bandit-v0", "--run-dir", "{}/a/b"],
        ["demo", "--run-dir", "{}"],
        ["credit", "--env", "Bandit-v0", "--out", "{}"],
        ["bench", "--suite", "quick", "--out", "{}"],
        ["bench", "--speed", "--out", "{}.md"],
        ["claims", "--out", "{}"],
        ["papers", "stats", "--size", "micro", "--out", "{}.json"],
        ["leaderboard", "index", "--db", "{}.sqlite"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_command_says_before_the_work_that_its_output_cannot_be_written(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rights do not say it: root has them all in /proc, as in a network folder of another's."""

    def begin(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    for place in (
        "eval._evaluate",
        "submit._play_scripted",
        "train.starter",
        "demo.starter",
        "starters.score_starter",
        "papers.compute_world_statistics",
        "leaderboard.rebuild",
    ):
        module, name = place.split(".")
        monkeypatch.setattr(import_module(f"turngym.benchmarks.cli.{module}"), name, begin)
    monkeypatch.setattr("turngym.benchmarks.speed.table.measure", begin)
    assert main([word.format("/proc/turngym-out") for word in words]) == REFUSED
    said = capsys.readouterr().err
    assert "may not be written to" in said or "cannot be a folder" in said
    assert "/proc/turngym-out" in said


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "--env", "Bandit-v0", "--n", "1", "--agent", "random", "--out"],
        ["play", "Bandit-v0", "--agent", "random", "--out"],
        ["eval", "--env", "Bandit-v0", "--n", "1", "--agent"],
        ["view"],
        ["curves"],
    ],
)
def test_a_name_that_is_too_long_for_a_file_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "x" * 300]) == REFUSED
    assert "cannot be used (File name too long)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (Command(env="x", out=""), "--out"),
        (Command(env="x", out="  "), "--out"),
        (Command(env="x", report=("a", "")), "--report"),
        (Command(env="x", named=Inner(so_far=" ")), "--named.so-far"),
    ],
)
def test_an_empty_text_is_refused(command: Command, option: str) -> None:
    """`--out "$UNSET"` wrote into the working folder, and `--suite ""` ended in a traceback."""
    with pytest.raises(BadValueError, match=f"^{option}: was given an empty text"):
        refuse_empty(command)


def test_a_default_may_be_empty() -> None:
    refuse_empty(Command(env="x"))
    refuse_empty(Command(env="x", out="here", report=("a",), named=Inner(so_far="b")))


def test_an_empty_text_with_a_meaning_is_let_pass() -> None:
    refuse_empty(train.Command(recipe="grpo", eval_split=""))
    refuse_empty(play.Command(env="MathWord-v0", out=""))
    with pytest.raises(BadValueError, match=r"^--model: was given an empty text"):
        refuse_empty(train.Command(recipe="grpo", eval_split="", model=""))


def test_an_empty_place_is_named_as_the_help_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        (["play", "  "], "ENV: was given an empty text"),
        (["bench", "--suite", ""], "--suite: was given an empty text"),
        (["leaderboard", "verify", "x", ""], "ENTRIES: was given an empty text"),
        (["eval", "--agent", "expert", ""], "--agent: was given an empty text"),
        (["eval", "--agent"], "--agent: names no agent"),
    ):
        assert main(words) == REFUSED
        assert says in capsys.readouterr().err


def test_a_value_that_is_no_json_is_text() -> None:
    words = ["a=[1]", "b=[1", f"c={'[' * 9999}"]
    assert values(words, "--env-arg") == {"a": [1], "b": "[1", "c": "[" * 9999}


@pytest.mark.parametrize("word", ["--env.", "--env.=1", "--recipe."])
def test_a_dotted_option_needs_a_name(word: str) -> None:
    with pytest.raises(BadValueError, match="expected the name of a setting after the dot"):
        expand_dotted([word, "1"])


@pytest.mark.parametrize(
    "words", [["bench", "--suite", "quick"], ["claims"], ["credit", "--env", "Bandit-v0"]]
)
def test_processes_have_a_bound(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`bench --workers 99999999999` filled the memory before it began."""
    assert check_workers(1024) == 1024
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--workers", "99999999999"]) == REFUSED
    said = capsys.readouterr().err
    assert "--workers 99999999999: expected at most 1,024, a process each." in said
    assert not any(tmp_path.iterdir())
