"""Help on one screen, and errors about options in plain words."""

from __future__ import annotations

import contextlib
import re
from importlib import import_module

import pytest
import tyro

from turngym.benchmarks.cli.main import COMMANDS, main
from turngym.benchmarks.cli.train import Command
from turngym.benchmarks.cli.words import (
    WIDTH,
    _first_sentence,
    in_plain_words,
    make_parser,
    subcommands,
)

SCREEN = 56


@pytest.mark.parametrize("name", [name for group in COMMANDS.values() for name in group])
def test_every_command_has_a_short_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "-h"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"turngym {name}: ")
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= WIDTH + 20
    assert f"turngym {name} " in lines[-1]
    assert "--help" in lines[-1]


SUBCOMMANDS = [
    (name, sub)
    for group in COMMANDS.values()
    for name in group
    for sub in subcommands(import_module(f"turngym.benchmarks.cli.{name}").Command)
]


@pytest.mark.parametrize(("name", "sub"), SUBCOMMANDS)
def test_subcommands_have_the_help_of_commands(
    name: str, sub: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They had the parser's own: {None}|STR, and --no-transcripts beside --no-no-transcripts."""
    assert main([name, "-h"]) == 0
    assert re.search(rf"\n  {sub} +[A-Z]", capsys.readouterr().out)
    for option in ("-h", "--help"):
        assert main([name, sub, option]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"turngym {name} {sub}: ")
        assert not re.search(r"None|STR|--no-no-|--sampler|--bounds", said)


def test_groups_in_a_group_are_named_by_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    """The short help named an option --sampler, which there is not."""
    assert main(["papers", "draw", "-h"]) == 0
    assert " --engine --engine-dtype " in capsys.readouterr().out


def test_no_help_speaks_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command with an engine quoted a reference to a method."""
    assert main(["eval", "--help"]) == 0
    assert not re.search(r":(meth|class|func|attr|data):", capsys.readouterr().out)


def test_the_short_help_of_train_groups_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "-h"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\n\nHow the learner computes\n  --micro-batch-tokens --precision", said)
    assert re.search(r"\n  --steps +Training steps", said)
    assert main(["play", "-h"]) == 0
    assert re.search(r"\n  ENV +Id of the environment", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Folder (left out: `runs`; made anew). More.", "Folder (left out: runs; made anew)"),
        ("With --suite: folders to take from. More.", "With --suite: folders to take from"),
        ("One thing; and another.", "One thing"),
        ("Of e.g. rooms, v0. More.", "Of e.g. rooms, v0"),
        ("agents: any; training: one model. More.", "agents: any; training: one model"),
        ("No end here", "No end here"),
    ],
)
def test_first_sentences_end_where_sentences_do(text: str, sentence: str) -> None:
    """Help on one screen ended in the middle: "Folder of the matrix (left out"."""
    assert _first_sentence(text) == sentence


@pytest.mark.parametrize("name", [name for group in COMMANDS.values() for name in group])
def test_no_line_of_the_short_help_leaves_a_bracket_open(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([name, "-h"])
    for line in capsys.readouterr().out.splitlines():
        assert line.endswith("…") or line.count("(") == line.count(")"), line


@pytest.mark.parametrize(
    "words",
    [
        *([name] for group in COMMANDS.values() for name in group),
        ["index", "search"],
        ["leaderboard", "verify"],
        ["papers", "draw"],
        ["armap", "pairs"],
    ],
    ids=" ".join,
)
def test_no_help_names_a_default_of_nothing(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(SystemExit):  # commands of commands
        main([*words, "--help"])
    said = capsys.readouterr().out
    assert len(said) > 100
    assert not re.search(r"\(default:( None|\s*''|\s*)\)", said)
    boxes = {len(line) for line in said.splitlines() if line.startswith("│")}
    assert len(boxes) <= 1


def test_the_folder_of_a_run_is_also_called_out() -> None:
    """`train --out DIR` proposed the timeout of a server's weights."""
    assert tyro.cli(Command, args=["--out", "somewhere"]).run_dir == "somewhere"
    assert tyro.cli(Command, args=["--run-dir", "somewhere"]).run_dir == "somewhere"


def test_the_whole_help_of_train_has_every_option_in_its_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", "--help"]) == 0
    said = capsys.readouterr().out
    groups = dict(part.split("\n", 1) for part in said.split("\n\n") if "\n  --" in part)
    assert list(groups)[:2] == ["Options", "Settings of the environment"]
    assert "  --size text\n" in groups["Settings of the environment"]
    assert "  --micro-batch-tokens integer\n" in groups["How the learner computes"]
    assert (
        "  --vllm.tensor-parallel integer\n" in groups["vllm options: Settings of the engine vllm"]
    )
    parser = make_parser("train", Command)
    names = [name for a in parser._actions if a.dest != "help" for name in a.option_strings]
    assert len(names) > 60
    listed = {name.strip(",") for line in said.splitlines() for name in line.split()}
    assert set(names) <= listed
    assert max(map(len, said.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--steps", "abc"], "expected a whole number, got 'abc'"),
        (["--eval-n", "3.5"], "'3.5' is no whole number"),
        (["--minutes", "soon"], "expected a number, got 'soon'"),
        (["--eval-temperature", "warm"], "'warm' is no number"),
    ],
)
def test_errors_name_no_types_of_python(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["train", *words])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert reason in said
    for word in ("<class", "invalid literal", "could not convert", "NoneType", "{None}"):
        assert word not in said


@pytest.mark.parametrize(("name", "sub"), SUBCOMMANDS)
def test_a_wrong_option_of_a_subcommand_points_to_its_own_help(
    name: str, sub: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`leaderboard verify --wrong` pointed to the help of `leaderboard`, which has no options."""
    with pytest.raises(SystemExit) as end:
        main([name, sub, "--no-such-option"])
    assert end.value.code == 2
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert f"turngym {name} {sub} --help" in said


def test_an_unknown_subcommand_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "verfy", "--no-such-option"]) == 2
    said = capsys.readouterr().err
    assert "turngym leaderboard: unknown subcommand 'verfy'. Did you mean 'verify'?" in said
    assert "`turngym leaderboard --help` has a line on each." in said


def test_a_box_stays_whole() -> None:
    inside = ["Got errors:", "- <class 'NoneType'>: ['x']", "- --steps {None}|INT"]
    box = "\n".join(f"│ {line:40} │" for line in inside)
    said = in_plain_words(box).splitlines()
    assert [line.strip("│ ") for line in said] == ["Got errors:", "- --steps INT"]
    assert {len(line) for line in said} == {44}


def test_other_lines_stay_as_they_are() -> None:
    text = "error: a │ b\n│ nothing to do │\n"
    assert in_plain_words(text) == text
