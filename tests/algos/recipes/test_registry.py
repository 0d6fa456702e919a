"""The table of recipes: a function takes its own place again, and no other's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module, reload
from pathlib import Path
from typing import Any

import pytest

from turngym.algos.recipes import RECIPES, make_recipe
from turngym.envs.core.errors import BadValueError

CELL = """
from dataclasses import replace
from turngym.algos.recipes import grpo, recipe

@recipe("mine", small={{"rollout.n": {n}}})
def {name}():
    return replace(grpo(), name="{own}", paper="ours")
"""


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    before = dict(RECIPES)
    yield
    RECIPES.clear()
    RECIPES.update(before)


def run_cell(
    number: int, module: str = "__main__", name: str = "my_own", n: int = 4, own: str = "my_own"
) -> None:
    """Run a cell as a notebook does: in one module, each with a file name of its own."""
    code = compile(CELL.format(name=name, n=n, own=own), f"<cell {number}>", "exec")
    exec(code, {"__name__": module})


def rollouts() -> Any:
    recipe: Any = make_recipe("my_own", small=True)
    return recipe.rollout.n


def test_a_cell_of_a_notebook_may_be_run_again() -> None:
    run_cell(1)
    run_cell(2, n=6)
    assert rollouts() == 6


def test_a_module_may_be_reloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "recipe_of_mine.py"
    file.write_text(CELL.format(name="my_own", n=4, own="My-Own"))
    module = import_module("recipe_of_mine")
    file.write_text(CELL.format(name="my_own", n=12, own="My-Own"))
    reload(module)
    assert rollouts() == 12
    del sys.modules["recipe_of_mine"]


@pytest.mark.parametrize(
    ("again", "words"),
    [
        ({"module": "theirs"}, "'my_own' of theirs: the name is taken by 'my_own' of __main__"),
        ({"name": "myown"}, "'myown' of __main__: the name is taken by 'my_own' of __main__"),
        ({"name": "grpo"}, "taken by 'grpo' of turngym.algos.recipes.grpo; choose another name"),
    ],
)
def test_the_name_of_another_is_refused(again: dict[str, str], words: str) -> None:
    run_cell(1)
    with pytest.raises(BadValueError, match=words):
        run_cell(2, **again)  # type: ignore[arg-type]
    assert rollouts() == 4


def test_two_files_of_one_module_name_are_two() -> None:
    run_cell(1, "mine")
    with pytest.raises(BadValueError, match="choose another name"):
        run_cell(2, "mine")


def test_a_recipe_that_goes_by_the_name_of_another_is_refused() -> None:
    """Its runs and its entries on the board would be GRPO's."""
    run_cell(1, own="grpo")
    with pytest.raises(
        BadValueError, match=r"with the name 'grpo'.*replace\(\.\.\., name='my_own'\)"
    ):
        make_recipe("my_own")
