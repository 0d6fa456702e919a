"""docs/comparisons.md says what the code does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from turngym.benchmarks.claims import nulls
from turngym.benchmarks.claims.catalogue import find_claims
from turngym.benchmarks.cli.main import main
from turngym.envs.utils.seed_tests import MIN_SEEDS

PAGE = (Path(__file__).parents[2] / "docs" / "comparisons.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,), (printed,) = blocks("python"), blocks("text")
    exec(compile(code, "comparisons.md", "exec"), {})
    assert capsys.readouterr().out == printed


def test_the_commands_exist(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nulls, "NULLS", nulls.NULLS[:1])
    monkeypatch.setattr(nulls, "TRIALS", 50)
    lines = [shlex.split(line)[1:] for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) == 3
    for words in lines:
        if "--only" in words:
            assert len(find_claims(words[2::2])) == 2
        else:
            assert main(words) == 0
    assert "tree-control" in capsys.readouterr().out


def test_the_bounds_are_those_of_the_code() -> None:
    for said in (
        f"at most {nulls.MAX_REPRODUCED:.1%}".replace("%", " %"),
        f"at most {nulls.MAX_SIGNIFICANT:.0%}".replace("%", " %"),
        f"at least {nulls.MIN_COVERAGE:.0%}".replace("%", " %"),
    ):
        assert said in PAGE
    assert (MIN_SEEDS, nulls.ERRORS) == (5, 3.0)
