"""The pages on adding a part tell a reader what to do, and it works when it is done."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest
from helpers.commands import with_options

from turngym.algos.recipes import RECIPES
from turngym.algos.runs.run_dir import read_json, read_metrics
from turngym.benchmarks.cli.main import main
from turngym.envs.core import registration

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"adding-a-credit-rule.md": 0.3, "adding-an-environment.md": 0.2}
"""How much the success of the page's training command rises at least, by page."""
ELSEWHERE = {"adding-a-recipe.md", "adding-an-engine.md"}
"""Pages that tests/project/test_recipe_page.py and test_engine_page.py try."""


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what plugins registered, and their modules."""
    recipes, ids, modules = dict(RECIPES), set(gym.registry), set(sys.modules)
    monkeypatch.setattr(registration, "_SPECS", dict(registration._SPECS))
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield
    for name in set(sys.modules) - modules:
        if Path(str(getattr(sys.modules[name], "__file__", ""))).is_relative_to(Path.cwd()):
            del sys.modules[name]
    RECIPES.clear()
    RECIPES.update(recipes)
    for env_id in set(gym.registry) - ids:
        del gym.registry[env_id]


def test_every_page_on_adding_a_part_is_tried() -> None:
    assert {path.name for path in DOCS.glob("adding-*.md")} == set(PAGES) | ELSEWHERE


@pytest.mark.slow
@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("page", PAGES)
def test_a_reader_s_own_part_learns_with_the_commands_of_its_page(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = follow_page(page, tmp_path, monkeypatch, {})
    assert after > before + PAGES[page]
    for cell in cells():  # most updates come after the warm-up
        optim = read_json(cell / "config.json")["recipe"]["optim"]
        assert read_metrics(cell / "metrics.jsonl")[-1]["update/lr"] == optim["lr"]
        assert read_json(cell / "result.json")["optimizer_steps"] > 2 * optim["warmup_steps"]


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_on_adding_a_part_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow_page(page, tmp_path, monkeypatch, {"--steps": "1", "--eval-n": "4"}, tokens=400)
    assert len(cells()) == (2 if page == "adding-an-environment.md" else 0)


def cells() -> list[Path]:
    """The folders of what the page's suite trained."""
    return [path.parent for path in Path("sorting").rglob("metrics.jsonl")]


def follow_page(
    page: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    instead: dict[str, str],
    tokens: int = 4000,
) -> tuple[float, float]:
    """Save a page's files and run its commands; the mean success before and after."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TURNGYM_CACHE", str(folder / "cache"))
    text = (DOCS / page).read_text(encoding="utf-8")
    for kind, ending in (("python", "py"), ("json", "json")):
        files = re.findall(rf"Save\s+this\s+as\s+`(\w+\.{ending})`", text)
        blocks = re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)
        for file, code in zip(files, blocks, strict=True):
            Path(file).write_text(code.replace("4000", str(tokens)), encoding="utf-8")
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            run(with_options(shlex.split(line), instead))
    (written,) = (p for name in ("run", "runs") for p in Path(name).rglob("result.json"))
    result = json.loads(written.read_text())
    before, after = (result[k][0]["success"]["mean"] for k in ("before", "after"))
    return before, after


def run(words: list[str]) -> None:
    if words[0] == "python":
        subprocess.run([sys.executable, *words[1:]], check=True)
        return
    assert words[0] == "turngym"
    more = ["--eval-temperature", "1"] if words[1] == "train" else []
    if words[1] == "train" and "--run-dir" not in words:
        more += ["--run-dir", "run"]
    assert main([*words[1:], *more]) == 0


@pytest.mark.parametrize(
    ("code", "reason"),
    [("import nothing_like_this", "nothing_like_this"), ("def broken(:", "SyntaxError")],
)
def test_a_plugin_that_does_not_run_says_why(
    code: str,
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))  # the file's folder is added
    file = tmp_path / "mine.py"
    file.write_text(code)
    assert main(["train", "--plugin", str(file)]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert reason in said
    assert main(["train", "--plugin", str(tmp_path / "absent.py")]) == 2
