"""`--engine` and its settings, wherever a command names a model."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.board_helpers import tiny_suite
from helpers.maze import Arms

from turngym.agents.engines.base import EngineSource, Requirement
from turngym.agents.engines.local.engine import build
from turngym.agents.engines.vllm.settings import VllmSettings
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.leaderboard.suites.files import write_suite

assert Arms
VLLM = ("--engine", "vllm", "--vllm.cache-gib", "0.5", "--max-batch", "3", "--device", "cpu")
GAME = ("--size", "micro", "--env.prompt", "none", "--env.max_turns", "2", "--env.top_k", "1")
CRAWL = ("--size", "micro", "--task", "0")
NOT_INSTALLED = importlib.util.find_spec("vllm") is None


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[EngineSource]:
    """What an engine that stands in for vLLM was built from."""
    found: list[EngineSource] = []

    def stand_in(source: EngineSource) -> Any:
        found.append(source)
        return build(source)

    monkeypatch.setattr(Requirement, "check", lambda *_: None)
    name = "turngym.agents.engines.vllm.engine"
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(build=stand_in))
    return found


def words_of(command: str, model: str, folder: Path) -> list[str]:
    """A call of a command that has a model act."""
    few = ["--max-tokens", "4"]
    if command == "play":
        return ["play", "SearchQA-v0", *GAME, "--agent", model, *few]
    if command == "eval":
        return ["eval", "--agent", model, *GAME, "--n", "2", *few]
    if command == "prompting":
        return ["eval", "--agent", "direct", "--model", model, *GAME, "--n", "1", *few]
    if command == "planner":
        return ["eval", "--agent", "greedy", "--model", model, "--env", "Arms-v0", "--n", "1", *few]
    if command == "train":
        run = ["--run-dir", str(folder / "run"), "--steps", "1", "--eval-split", ""]
        changed = ["--recipe.n", "2", "--recipe.groups_per_step", "2", "--recipe.minibatches", "1"]
        return ["train", "--model", model, *GAME, *run, *changed, *few]
    if command == "submit":
        suite = str(write_suite(tiny_suite(), folder))
        who = ["--name", "ours", "--organisation", "us", "--licence", "MIT"]
        out = ["--suite", suite, "--out", str(folder / "entry")]
        return ["submit", model, *who, *out, *few]
    if command == "pairs":
        words = ["--out", str(folder / "pairs.jsonl"), "--player", model, "expert", "--n", "2"]
        return ["armap", "pairs", "--env", "Arms-v0", *words, "--tries", "1", *few]
    if command == "hindsight":
        words = ["--out", str(folder / "pairs.jsonl"), "--player", "random", "expert", "--n", "4"]
        return ["armap", "pairs", "--env", "Arms-v0", *words, "--hindsight", model]
    if command == "papers":
        out = ["--out", str(folder / "crawl.png")]
        return ["papers", "draw", "--agent", model, *CRAWL, *out]
    assert command == "demo"
    return ["demo", "--run-dir", str(folder / "run"), "--steps", "0", "--n", "2"]


COMMANDS = (
    *("play", "eval", "prompting", "planner", "train"),
    *("submit", "pairs", "hindsight", "papers", "demo"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reaches_the_chosen_engine(
    command: str,
    tiny_model: Path,
    tmp_path: Path,
    built: list[EngineSource],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("turngym.benchmarks.cli.demo.starter", lambda *_: str(tiny_model))
    assert main([*words_of(command, str(tiny_model), tmp_path), *VLLM]) == 0
    (source,) = built
    assert source.model == str(tiny_model)
    assert source.own == VllmSettings(cache_gib=0.5)
    assert (source.max_batch, source.device) == (3, "cpu")
    assert (source.learner is not None) == (command in ("train", "demo"))


@pytest.mark.skipif(not NOT_INSTALLED, reason="vLLM is installed")
@pytest.mark.parametrize("command", ["play", "eval", "prompting", "train", "submit", "pairs"])
def test_without_vllm_the_extra_is_named(
    command: str, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words_of(command, str(tiny_model), tmp_path), *VLLM]) == REFUSED
    said = " ".join(capsys.readouterr().err.split())
    assert "the engine 'vllm' needs the package" in said
    assert "pip install 'turngym[vllm]'" in said
    assert "no index has turngym" in said.replace("\n", " ")
    assert "or pip install vllm" in said.replace("\n", " ")


def test_settings_of_another_engine_are_refused(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words_of("eval", str(tiny_model), tmp_path)
    assert main([*words, "--vllm.cache-gib", "0.5"]) == REFUSED
    assert "settings of vllm were given, but the engine is 'transformers'" in " ".join(
        capsys.readouterr().err.split()
    )
