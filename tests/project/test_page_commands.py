"""Commands on pages are read by the command line itself, and their settings are settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from turngym.algos.recipes import make_recipe
from turngym.benchmarks.cli.arguments import pairs
from turngym.benchmarks.cli.env_options import EnvOptions, env_config
from turngym.benchmarks.cli.main import COMMANDS, main
from turngym.envs.core.errors import TurngymError

ROOT = Path(__file__).parents[2]
OTHER_TESTS = {"adding-a-credit-rule.md", "adding-a-recipe.md", "adding-an-engine.md"}
OTHER_TESTS |= {"adding-an-environment.md"}
"""Pages whose commands other tests of this folder run, with the files that they name."""
PAGES = [
    page
    for page in ("README.md", *(f"docs/{file.name}" for file in sorted(ROOT.glob("docs/*.md"))))
    if Path(page).name not in OTHER_TESTS
] + ["benchmarks/RESULTS.md"]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
NAMED = re.compile(r"\s*(\w+)=('[^']*'|\"[^\"]*\"|\S+)\s*(?:#.*)?")
INLINE = re.compile(r"(?<!`)`((?:\w+=\S+ )*turngym [^`]+)`(?!`)")
ENDS = {"|", "||", "&", "&&", ";", ">", ">>", "<"}
OWN_FILES = {"data", "corpus", "retriever", "site", "games", "index"}
"""Settings of environments that name a reader's own files or server."""


def split_commands(line: str, names: dict[str, str]) -> Iterator[list[str]]:
    """The words of the line's `turngym` commands, variables expanded as a shell does."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if named := re.fullmatch(r"\$(\w+)", word):
            words += names[named[1]].split()
        elif word not in ("…", "..."):  # what a page leaves out
            words.append(word)
    command: list[str] | None = None
    for word in [*words, ";"]:
        if word in ENDS:
            if command:
                yield command
            command = None
        elif command is not None:
            command.append(word)
        elif word in ("turngym", "turngym.benchmarks.cli"):
            command = []


def in_blocks(text: str) -> Iterator[list[str]]:
    """Commands of the blocks of a page, for a reader to copy."""
    blocks = [block for language, block in FENCED.findall(text) if language in ("", "sh")]
    for block in [*blocks, *INDENTED.findall(FENCED.sub("", text))]:
        names: dict[str, str] = {}
        for line in block.replace("\\\n", " ").splitlines():
            if named := NAMED.fullmatch(line):
                names[named[1]] = named[2].strip("'\"")
            elif "turngym" in line:
                yield from split_commands(line, names)


def in_words(text: str) -> Iterator[list[str]]:
    """Commands in the text of a page, which often name what they are about alone."""
    for found in INLINE.finditer(INDENTED.sub("", FENCED.sub("", text))):
        yield from split_commands(found[1].replace("\n", " "), {})


def settings(options: object) -> dict[str, Any]:
    """The fields of a command and of what is inside it, the environment's as one."""
    found: dict[str, Any] = {}
    for field in fields(options) if is_dataclass(options) else ():
        value = getattr(options, field.name)
        inside = is_dataclass(value) and not isinstance(value, EnvOptions)
        found |= settings(value) if inside else {field.name: value}
    return found


def read(words: list[str], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The options that the command line reads from these words; empty where it refuses."""
    module, found = import_module(f"turngym.benchmarks.cli.{words[0]}"), []
    monkeypatch.setattr(module, "run", found.append)
    try:
        main(words)
    except SystemExit:  # the parser's own way
        assert not found
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "turngym.benchmarks.cli.env_options.existing_file", lambda file, *_, **__: file
    )


def check_settings(command: object) -> None:
    """Raise where a recipe or an environment has no such setting, or refuses its value."""
    named = settings(command)
    recipes = named.get("recipe") or ()
    for recipe in (recipes,) if isinstance(recipes, str) else recipes:
        make_recipe(recipe, pairs(named.get("recipe_arg", ()), "--recipe-arg"))
    for options in named.values():
        if isinstance(options, EnvOptions) and named["env"] != "ENV":
            env = env_config(named["env"], options)
            if not OWN_FILES & env.settings.keys():
                assert env.prototype is not None


@pytest.mark.parametrize("page", PAGES)
def test_commands_to_copy_are_read(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in in_blocks((ROOT / page).read_text(encoding="utf-8")):
        plugin = "--plugin" in words  # a file that the reader has written, with names of its own
        if plugin:
            del words[words.index("--plugin") : words.index("--plugin") + 2]
        commands = read(words, monkeypatch)
        assert commands, f"{words}: {capsys.readouterr().err}"
        if not plugin:
            check_settings(*commands)


@pytest.mark.parametrize("page", PAGES)
def test_lists_stand_in_quotes(page: str) -> None:
    """Without them `[1,2]` is a file of the name 1 or 2 to bash, and an error to zsh."""
    text = (ROOT / page).read_text(encoding="utf-8")
    commands = "".join(block for language, block in FENCED.findall(text) if language in ("", "sh"))
    unquoted = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "", commands)
    assert re.findall(r"--[\w.-]+[ =]\[.*", unquoted) == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_text_name_no_other_options(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {name for group in COMMANDS.values() for name in group}
    for words in in_words((ROOT / page).read_text(encoding="utf-8")):
        assert words[0] in known | {"COMMAND"}, words
        if words[0] in known and not read(words, monkeypatch):
            assert "Unrecognized" not in (said := capsys.readouterr().err), f"{words}: {said}"


@pytest.mark.parametrize("wrong", ["--no-such-option 2", "--steps many", "--recipe"])
def test_what_the_command_line_refuses_is_found(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (words,) = in_blocks(f"```sh\nturngym train --env Game24-v0 {wrong}   # a remark\n```\n")
    assert read(words, monkeypatch) == []


@pytest.mark.parametrize("wrong", ["--env.no_such_setting 2", "--recipe.loss.no_such_field 2"])
def test_what_is_no_setting_is_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (words,) = in_blocks(f"    turngym train --env Game24-v0 {wrong}\n")
    (command,) = read(words, monkeypatch)
    with pytest.raises(TurngymError, match="no_such_"):
        check_settings(command)


def test_variables_of_a_block_become_words_with_their_quotes() -> None:
    block = """```sh
E='--env.tasks ["4-1","7-1"] --n 2'   # easy
turngym eval $E \\
    --agent a | head
```
"""
    (words,) = in_blocks(block)
    assert words == ["eval", "--env.tasks", '["4-1","7-1"]', "--n", "2", "--agent", "a"]
