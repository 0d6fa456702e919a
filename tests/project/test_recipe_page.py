"""The page on recipes holds: its recipe learns, and what it calls refused is refused."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from turngym.algos import credit, losses, rollouts
from turngym.algos.core import annotators, filters, recipe
from turngym.algos.recipes import RECIPES
from turngym.algos.rollouts import value_tracker
from turngym.benchmarks.cli.main import main
from turngym.envs.core.errors import BadValueError

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-recipe.md").read_text(encoding="utf-8")
CODE = "".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
REFUSED = re.findall(r"^\| `(\w+=.*?)` \| (.*?) \|$", PAGE, re.MULTILINE)


@pytest.fixture
def forget() -> Iterator[None]:
    yield
    RECIPES.pop("leaveoneout", None)


@pytest.mark.usefixtures("forget")
def test_the_recipe_of_the_page_learns_with_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    (command,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    Path("leave_one_out.py").write_text(CODE, encoding="utf-8")
    assert main([*shlex.split(command)[1:], "--run-dir", "run", "--eval-temperature", "1"]) == 0
    result = json.loads(Path("run/result.json").read_text())
    before, after = (result[k][0]["success"]["mean"] for k in ("before", "after"))
    assert after > before + 0.3


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(("change", "reason"), REFUSED)
def test_what_the_page_calls_refused_is_refused_with_that_reason(change: str, reason: str) -> None:
    names: dict[str, Any] = {}
    exec(CODE, names)
    make: Callable[[], recipe.Recipe] = names["leave_one_out"]
    parts = {}
    for module in (credit, losses, rollouts, annotators, filters, recipe, value_tracker):
        parts |= vars(module)
    settings = eval(f"dict({change})", parts)
    with pytest.raises(BadValueError, match=re.escape(reason)):
        replace(make(), **settings)


def test_the_page_has_refusals() -> None:
    assert len(REFUSED) >= 8
