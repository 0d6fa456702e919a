"""`turngym init`: the package that it writes keeps the contract and passes its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from turngym.benchmarks.cli.init import name_parts
from turngym.benchmarks.cli.main import main
from turngym.envs.core.errors import BadValueError


def test_a_package_passes_its_tests_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "own-game"]) == 0
    assert "turngym play own_game:OwnGame-v0" in capsys.readouterr().out
    folder = tmp_path / "own-game"
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["turngym.environments"] == {"OwnGame-v0": "own_game"}
    assert "$" not in "".join(p.read_text() for p in folder.rglob("*") if p.is_file())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout
    how = ["--isolated", "--select", "E,F,W,B", "--line-length", "100"]
    ruff = [sys.executable, "-m", "ruff", "check", *how, str(folder)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert main(["init", "own-game"]) == 2  # never over what is there
    assert "holds files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("My Game", "no name of a package"),
        ("class", "no name of a package"),
        ("../up", "no name of a package"),
        ("json", "a module 'json' already"),
        ("search-qa", None),
        ("password", "an environment Password-v0 already"),
    ],
)
def test_names(name: str, reason: str | None) -> None:
    if reason is None:
        assert name_parts(name)["id"] == "SearchQa-v0"
        return
    with pytest.raises(BadValueError, match=reason):
        name_parts(name)
