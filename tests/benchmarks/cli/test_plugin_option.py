"""`--plugin` and `MODULE:Id-v0` in every command, in the processes that it starts too."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest

import turngym
from turngym.benchmarks.cli.main import COMMANDS, load_plugins, main
from turngym.envs.core import registration
from turngym.envs.core.errors import BadValueError, DataError
from turngym.envs.core.plugins import VARIABLE, loaded_plugins, passed_on

PAGE = Path(__file__).parents[3] / "docs" / "adding-an-environment.md"
OWN = "smallest_first:SmallestFirst-v0"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with the environment of the guide; what it registers is forgotten."""
    monkeypatch.setattr(registration, "_SPECS", dict(registration._SPECS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    path = tmp_path / "smallest_first.py"
    path.write_text(code, encoding="utf-8")
    ids = set(gym.registry)
    yield path
    for env_id in set(gym.registry) - ids:
        del gym.registry[env_id]
    sys.modules.pop("smallest_first", None)


def test_words_of_plugins_are_taken_from_any_command(own: Path) -> None:
    before = os.environ.get(VARIABLE)
    with passed_on():
        assert load_plugins([OWN, "--seed", "3"]) == ["SmallestFirst-v0", "--seed", "3"]
        assert load_plugins(["--env", OWN]) == ["--env", "SmallestFirst-v0"]
        assert load_plugins([f"--env={OWN}"]) == ["--env=SmallestFirst-v0"]
        assert load_plugins(["--plugin", str(own), "--n", "1"]) == ["--n", "1"]
        assert load_plugins([f"--plugin={own}"]) == []
        assert len(loaded_plugins()) == 2  # the module and the file
        # the value of another option is a text of its own
        assert load_plugins(["--name", "lab:Agent-v1"]) == ["--name", "lab:Agent-v1"]
        with pytest.raises(DataError, match="no module 'lab'"):
            load_plugins(["--env", "lab:Agent-v1"])
    assert os.environ.get(VARIABLE) == before
    for words in (["--plugin"], ["--plugin", "--n"]):
        with pytest.raises(BadValueError, match="expected a Python file or a module"):
            load_plugins(words)


def test_commands_know_it(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envs", "--plugin", "smallest_first"]) == 0
    assert "name four digits from the smallest to the largest" in capsys.readouterr().out
    assert main(["play", OWN, "--agent", "expert"]) == 0
    assert "solved" in capsys.readouterr().out
    assert main(["eval", "--env", OWN, "--agent", "expert", "--n", "3"]) == 0
    assert "100.0%" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for group in COMMANDS.values() for name in group])
def test_every_command_shows_the_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):  # commands of commands list these
        assert main([name, "--help"]) == 0
    assert "--plugin FILE|MODULE" in capsys.readouterr().out


def test_an_entry_over_an_environment_of_one_s_own_is_verified_in_its_process(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen = ["leaderboard", "freeze", OWN, "--n", "2", "--trials", "1", "--name", "own"]
    assert main(frozen) == 0
    said = capsys.readouterr().out
    assert "submit AGENT --suite own-v1.json --plugin smallest_first --name" in said
    file = tmp_path / "own-v1.json"
    assert main([*frozen[:-1], "other", "--n", "99"]) == 2
    assert "holds 72 tasks" in capsys.readouterr().err
    named = ["--name", "lab:Agent-v1", "--organisation", "mine", "--licence", "MIT"]
    words = ["expert", *named, "--suite", str(file), "--out", "my entry"]
    assert main(["submit", "--plugin", str(own), *words]) == 0
    # what it says works as it stands
    (line,) = [t for t in capsys.readouterr().out.splitlines() if t.startswith("check it with")]
    checked = shlex.split(line.partition("turngym ")[2])
    assert checked[-1] == "smallest_first.py"
    assert main(checked) == 0
    assert "100.0" in capsys.readouterr().out
    verify = ["leaderboard", "verify", "my entry", "--suite-file", str(file), "--json", "out.jsonl"]
    assert main([*verify, "--plugin", str(own)]) == 0
    verdict = json.loads(Path("out.jsonl").read_text())
    assert "100.0" in capsys.readouterr().out, verdict
    assert main(verify) != 0  # without it nobody knows the environment


def test_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.split() == ["turngym", turngym.__version__]


def test_gymnasium_loads_the_package_by_its_name() -> None:
    assert gym.make("turngym:SearchQA-v0", size="micro").unwrapped.max_turns > 0
