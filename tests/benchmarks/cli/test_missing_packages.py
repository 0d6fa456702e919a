"""Packages that a command needs at its end alone are missed at its beginning."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from turngym.algos import train_on
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs.core import errors
from turngym.envs.core.errors import MissingExtraError

INDEX = ["index", "build", "--corpus", "passages.jsonl", "--out", "index", "--encoder", "model"]
EXTRAS = {"fastapi": "web", "faiss": "dense", "sentence_transformers": "dense"}
"""The extra of a package, where it is not train."""


def lack(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        errors, "find_spec", lambda name: None if name == package else find_spec(name)
    )


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["train", "--env", "Bandit-v0", "--steps", "1"], "matplotlib"),
        (["train", "--env", "Bandit-v0", "--warm-start", "50"], "tensorboard"),
        (["demo", "--steps", "1"], "matplotlib"),
        (["bench", "--suite", "quick"], "jinja2"),
        (["claims", "--seeds", "2"], "jinja2"),
        (["credit", "--env", "Bandit-v0"], "jinja2"),
        (["retriever", "serve", "--corpus", "passages.jsonl"], "fastapi"),
        ([*INDEX, "--kind", "flat"], "faiss"),
        ([*INDEX, "--kind", "hnsw"], "sentence_transformers"),
    ],
)
def test_a_package_of_the_end_is_missed_at_the_beginning(
    words: Sequence[str],
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    lack(package, monkeypatch)
    assert main(words) == REFUSED
    said = capsys.readouterr().err
    named = {"faiss": "faiss-cpu"}.get(package, package.replace("_", "-"))
    assert f"needs the package '{named}', which is not installed" in said
    extra = EXTRAS.get(package, "train")
    assert f"pip install 'turngym[{extra}]'" in said
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_metrics_alone_draws_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack("matplotlib", monkeypatch)
    asked = {"steps": 1, "eval_n": 1, "max_tokens": 2, "run_dir": tmp_path / "run"}
    small = {"recipe_settings": {"groups_per_step": 1, "rollout.n": 2}}
    with pytest.raises(MissingExtraError, match="'matplotlib'"):
        train_on("Bandit-v0", **asked, **small)
    assert train_on("Bandit-v0", **asked, **small, records="metrics").steps == 1
