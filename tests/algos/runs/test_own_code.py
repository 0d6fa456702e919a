"""Whether parts of a user's own are still the code that a run began with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from turngym.agents.scripted import text_env
from turngym.algos.runs.own_code import changed_code, own_classes
from turngym.algos.runs.provenance import versions
from turngym.algos.runs.run_dir import add_version

RULE = """
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple
import torch

class Point(NamedTuple):
    x: int

@dataclass(frozen=True)
class Base:
    inner: object = None
    later: int = field(init=False)
    at = Point(1)
    @lru_cache
    def old(self, x=Point(2)): return x * 8
    def near(self, x): return x in {"a", "b", "c"}

class Rule(Base):
    scale = 2.0
    @property
    def much(self): return 1
    @staticmethod
    def still(x, by=3): return x + by
    @cached_property
    def kept(self): return [y for y in range(4)]
    @torch.no_grad()
    def quiet(self, x): return x * 2
    def __call__(self, x): return (lambda y: y * 5)(x)
"""


def made(source: str, **given: Any) -> Any:
    names: dict[str, Any] = {"__name__": "mine"}
    exec(compile(source, "mine.py", "exec", dont_inherit=True), names)
    return names["Rule"](**given)


def test_comments_and_layout_are_no_change_and_neither_is_another_process() -> None:
    found = own_classes([made(RULE)])
    assert list(found) == ["mine.Base", "mine.Rule"]
    assert (
        own_classes([made("# other\n\n" + RULE.replace(": return", ":\n        return"))]) == found
    )
    program = f"source = {RULE!r}\n" + (
        "from turngym.algos.runs.own_code import own_classes\n"
        "names = {'__name__': 'mine'}\nexec(compile(source, 'mine.py', 'exec'), names)\n"
        "print(own_classes([names['Rule']()]))"
    )
    for seed in ("1", "2"):  # the order of sets
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == str(found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2.0", "2.5"),
        ("return 1", "return 7"),
        ("by=3", "by=4"),
        ("x + by", "x - by"),
        ("range(4)", "range(5)"),
        ("y * 5", "y * 6"),
        ('"c"', '"d"'),
        ("x * 8", "x * 9"),
        ("x * 2", "x * 3"),
        ("Point(1)", "Point(3)"),
    ],
)
def test_every_part_of_a_class_counts(old: str, new: str) -> None:
    assert old in RULE
    assert own_classes([made(RULE.replace(old, new))]) != own_classes([made(RULE)])


def test_what_parts_hold_is_looked_at_and_the_projects_own_is_not(tmp_path: Path) -> None:
    from turngym.algos.recipes import make_recipe

    grpo = make_recipe("grpo", {}, small=True)
    assert own_classes([grpo, [tmp_path, 3, text_env(gym.make("Bandit-v0"))]]) == {}
    round_and_round: list[Any] = [made(RULE)]
    round_and_round.append(round_and_round)
    assert list(own_classes([round_and_round])) == ["mine.Base", "mine.Rule"]
    outer = "from dataclasses import dataclass\n@dataclass\nclass Rule:\n    held: object\n"
    assert "mine.Base" in own_classes([made(outer, held=(1, made(RULE)))])


def test_changes_since_any_earlier_start_are_told(tmp_path: Path) -> None:
    one, two = (versions(["A-v0"], 0, [made(s)]) for s in (RULE, RULE.replace("y * 5", "y")))
    assert add_version(tmp_path, one) == []
    assert add_version(tmp_path, one) == []
    assert add_version(tmp_path, two) == ["mine.Rule"]
    assert add_version(tmp_path, two) == ["mine.Rule"]  # the run is of both
    assert changed_code({**one, "python": "3.1.4"}, two) == []  # other bytes for the same code
    assert changed_code({"python": one["python"], "plugins": {"a": "1"}}, {"plugins": {"a": "2"}})
