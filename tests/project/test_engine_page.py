"""The example of docs/adding-an-engine.md keeps the laws of engines, and trains."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers.commands import with_options

from turngym.agents.engines.factory import ENGINES
from turngym.benchmarks.cli.main import REFUSED, main

PAGE = Path(__file__).parents[2] / "docs" / "adding-an-engine.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


ENGINE, LAWS = blocks("python")
(COMMAND,) = blocks("sh")


def run_laws() -> dict[str, Any]:
    """Run the page's test file beside its engine; return what it defines."""
    sys.modules["my_engine"] = module = ModuleType("my_engine")
    names: dict[str, Any] = {"__name__": __name__}
    try:
        exec(compile(ENGINE, "my_engine.py", "exec"), module.__dict__)
        exec(compile(LAWS, "test_my_engine.py", "exec"), names)
    finally:
        ENGINES.pop("recompute", None)
        del sys.modules["my_engine"]
    return names


_FOUND = run_laws()
net, eng, TestRecomputeEngine = _FOUND["net"], _FOUND["eng"], _FOUND["TestRecomputeEngine"]


def test_a_reader_s_own_engine_trains_with_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    Path("my_engine.py").write_text(ENGINE, encoding="utf-8")
    words = with_options(shlex.split(COMMAND)[1:], {"--eval-n": "4"})
    command = [*words, "--recipe.groups_per_step", "2", "--run-dir"]
    try:
        assert main([*command, "run"]) == 0
        mine = command.index("recompute")
        command[mine] = "transformers"
        assert main([*command, "built-in"]) == 0
    finally:
        ENGINES.pop("recompute", None)
    rewards = [rewards_of(Path(folder)) for folder in ("run", "built-in")]
    assert rewards[0]
    assert rewards[0] == rewards[1]


def rewards_of(folder: Path) -> list[float]:
    """Return what the training steps of a run earned."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [row["rollout/return_mean"] for row in rows if "rollout/return_mean" in row]


def test_an_engine_that_no_plugin_registers_is_refused_with_the_nearest_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    words = ["train", "--engine", "transformer", "--env", "Bandit-v0", "--steps", "1"]
    assert main([*words, "--run-dir", str(tmp_path / "run")]) == REFUSED
    text = " ".join(capsys.readouterr().err.split())
    assert "unknown engine 'transformer'. Did you mean 'transformers'?" in text
    assert not (tmp_path / "run").exists()
