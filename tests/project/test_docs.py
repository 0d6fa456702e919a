"""What the docs tell a reader to do is done."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from turngym.algos.recipes import RECIPES
from turngym.benchmarks.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-credit-rule.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_a_reader_s_own_credit_rule_learns_with_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    (code,), (command,) = blocks("python"), blocks("sh")
    Path("best_of_group.py").write_text(code, encoding="utf-8")
    try:
        words = shlex.split(command)[1:]
        assert main([*words, "--run-dir", "run", "--eval-temperature", "1"]) == 0
    finally:
        RECIPES.pop("bestofgroup", None)
    result = json.loads(Path("run/result.json").read_text())
    before, after = (result[k][0]["success"]["mean"] for k in ("before", "after"))
    assert after > before + 0.3


@pytest.mark.parametrize(
    ("code", "reason"),
    [("import nothing_like_this", "nothing_like_this"), ("def broken(:", "SyntaxError")],
)
def test_a_plugin_that_does_not_run_says_why(
    code: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(code)
    assert main(["train", "--plugin", str(file)]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert reason in said
    assert main(["train", "--plugin", str(tmp_path / "absent.py")]) == 2
