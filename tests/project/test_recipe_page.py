"""The page on recipes holds: its recipes learn, and what it calls refused is refused."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from helpers.commands import with_options

from turngym.agents.engines.base import Sampling
from turngym.agents.engines.factory import EngineSettings, build_engine
from turngym.agents.models.loading import load_tokenizer
from turngym.agents.rendering.factory import make_renderer
from turngym.agents.warm_start.cache import ensure_starter
from turngym.algos import credit, losses, rollouts
from turngym.algos.core import annotators, filters, recipe
from turngym.algos.core.protocols import Start
from turngym.algos.recipes import RECIPES, make_recipe
from turngym.algos.rollouts import EpisodeRunner, value_tracker
from turngym.benchmarks.cli.main import main
from turngym.envs.core.errors import BadValueError
from turngym.envs.core.plugins import VARIABLE, load_plugin, passed_on

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-recipe.md").read_text(encoding="utf-8")
FILES = dict(
    zip(
        re.findall(r"[Ss]ave\s+this\s+as\s+`(\w+)\.py`", PAGE),
        re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL),
        strict=True,
    )
)
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
REFUSED = re.findall(r"^\| `(\w+=.*?)` \| (.*?) \|$", PAGE, re.MULTILINE)


@pytest.fixture
def forget() -> Iterator[None]:
    before, path = dict(RECIPES), list(sys.path)
    yield
    RECIPES.clear()
    RECIPES.update(before)
    sys.path[:] = path
    for name in FILES:
        sys.modules.pop(name, None)


@pytest.mark.slow
@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(("name", "command"), list(zip(FILES, COMMANDS, strict=True)))
def test_a_recipe_of_the_page_learns_with_one_command(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = train_in(tmp_path, monkeypatch, name, shlex.split(command)[1:])
    assert after > before + 0.3


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(("name", "command"), list(zip(FILES, COMMANDS, strict=True)))
def test_a_command_of_the_page_runs(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = with_options(shlex.split(command)[1:], {"--steps": "1", "--eval-n": "4"})
    train_in(tmp_path, monkeypatch, name, words)


def train_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: list[str]
) -> tuple[float, float]:
    """Save a recipe and train with it; the mean success before and after."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TURNGYM_CACHE", str(folder / "cache"))
    Path(f"{name}.py").write_text(FILES[name], encoding="utf-8")
    assert main([*words, "--run-dir", "run", "--eval-temperature", "1"]) == 0
    result = json.loads(Path("run/result.json").read_text())
    before, after = (result[k][0]["success"]["mean"] for k in ("before", "after"))
    return before, after


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(("change", "reason"), REFUSED)
def test_what_the_page_calls_refused_is_refused_with_that_reason(change: str, reason: str) -> None:
    names: dict[str, Any] = {}
    exec(FILES["leave_one_out"], names)
    make: Callable[[], recipe.Recipe] = names["leave_one_out"]
    parts = {}
    for module in (credit, losses, rollouts, annotators, filters, recipe, value_tracker):
        parts |= vars(module)
    settings = eval(f"dict({change})", parts)
    with pytest.raises(BadValueError, match=re.escape(reason)):
        replace(make(), **settings)


def test_the_page_has_refusals() -> None:
    assert len(REFUSED) >= 8


@pytest.mark.usefixtures("forget")
def test_the_rollout_of_the_page_grows_the_trees_that_it_describes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Branches share their stem's turns, and the same start plays the same again."""
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "stems.py"
    file.write_text(FILES["stems"], encoding="utf-8")
    with passed_on():  # and no further: processes of later tests would load it too
        load_plugin(str(file))
    folder = str(ensure_starter("Fork-v0"))
    tokenizer = load_tokenizer(folder)
    rollout: Any = make_recipe("stems").rollout
    played = []
    for _ in range(2):
        engine = build_engine(folder, tokenizer, EngineSettings(max_batch=8))
        renderer = make_renderer(tokenizer, tools=())
        runner = EpisodeRunner(gym.make("Fork-v0"), engine, renderer, Sampling(max_tokens=4))
        group = asyncio.run(rollout(runner, Start("train", 3, 5, "a")))
        assert len(group.trees) == 2
        for tree in group.trees:
            assert [turn.parent for turn in tree.turns] == [-1, 0, 1, 2, 2, 2, 2]
            assert all(tree.turns[leaf].status != "running" for leaf in tree.leaves())
        played.append([turn.action for tree in group.trees for turn in tree.turns])
    assert played[0] == played[1]
    assert len(set(played[0])) > 2
    assert VARIABLE not in os.environ
