"""docs/comparisons.md says what the code does."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from turngym.benchmarks.claims import nulls
from turngym.benchmarks.claims.catalogue import find_claims
from turngym.benchmarks.cli.main import main
from turngym.envs.utils.seed_tests import MIN_SEEDS
from turngym.envs.utils.statistics import Estimate, share_gain

PAGE = (Path(__file__).parents[2] / "docs" / "comparisons.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,), (printed,) = blocks("python"), blocks("text")
    exec(compile(code, "comparisons.md", "exec"), {})
    assert capsys.readouterr().out == printed


def commands(name: str) -> list[list[str]]:
    lines = [shlex.split(line)[1:] for block in blocks("sh") for line in block.splitlines()]
    assert {words[0] for words in lines} == {"claims", "eval"}
    return [words for words in lines if words[0] == name]


def test_the_commands_exist(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nulls, "NULLS", nulls.NULLS[:1])
    monkeypatch.setattr(nulls, "TRIALS", 50)
    lines = commands("claims")
    assert len(lines) == 3
    for words in lines:
        if "--only" in words:
            assert len(find_claims(words[2::2])) == 2
        else:
            assert main(words) == 0
    assert "tree-control" in capsys.readouterr().out


def test_two_agents_differ_as_the_page_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    tables = blocks("output")
    for words, table in zip(commands("eval"), tables, strict=True):
        assert main(words) == 0
        said = "".join(line.rstrip() + "\n" for line in capsys.readouterr().out.splitlines())
        assert table in said
    rows = json.loads(Path("earlier.json").read_text(encoding="utf-8"))
    shares = [Estimate(**row["success"]) for row in rows]
    for share in shares:
        shown = (100 * x for x in (share.mean, share.low95, share.high95))
        assert "{:.1f} % ({:.1f} to {:.1f})".format(*shown) in PAGE
    unpaired = share_gain(*shares)
    assert f"from {100 * unpaired.low95:.1f} to {100 * unpaired.high95:.1f} points" in PAGE


def test_the_bounds_are_those_of_the_code() -> None:
    for said in (
        f"at most {nulls.MAX_REPRODUCED:.1%}".replace("%", " %"),
        f"at most {nulls.MAX_SIGNIFICANT:.0%}".replace("%", " %"),
        f"at least {nulls.MIN_COVERAGE:.0%}".replace("%", " %"),
    ):
        assert said in PAGE
    assert (MIN_SEEDS, nulls.ERRORS) == (5, 3.0)
