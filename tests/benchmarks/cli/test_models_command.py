"""`turngym models`, GGUF files on the command line, and the demo with a real model's shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.gguf_files import write_gguf

from turngym.agents.models.registry.catalogue import CATALOGUE
from turngym.agents.models.registry.fetch import accepted_licences
from turngym.benchmarks.cli import demo
from turngym.benchmarks.cli.main import REFUSED, main

pytest.importorskip("gguf")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def said(capsys: pytest.CaptureFixture[str]) -> str:
    got = capsys.readouterr()
    return " ".join((got.out + got.err).split())


def test_models_are_listed_with_what_is_in_the_cache(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models"]) == 0
    text = said(capsys)
    assert "smollm2-135m SmolLM2-135M-Instruct Apache 2.0 chat 134.5 M" in text
    assert "nothing is in the cache yet" in text
    assert "--accept-licence gemma once" in text
    file = write_gguf(tmp_path / "tiny.gguf")
    words = ["play", "Letters-v0", "--agent", str(file), "--max-tokens", "2"]
    assert main([*words, "--accept-licence", "gemma"]) == 0  # any command takes it
    assert accepted_licences() == ["gemma"]
    capsys.readouterr()
    assert main(["models"]) == 0
    text = said(capsys)
    assert "tiny.gguf Tiny not stated chat" in text
    assert "--accept-licence" not in text


def test_the_page_has_the_figures_of_the_catalogue() -> None:
    page = Path(__file__).parents[3] / "docs" / "real-models.md"
    text = page.read_text(encoding="utf-8")
    for name, model in CATALOGUE.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}`")]
        for part in (
            model.title,
            f"{model.parameters / 1e6:.1f} M",
            f"{model.download_bytes / 1e6:.0f} MB",
            model.licence,
        ):
            assert part in row


def test_what_is_wrong_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, says in (
        (["models", "smolm2-135m"], "Did you mean 'smollm2-135m'"),
        (["models", "gemma3-270m"], "give --accept-licence gemma once"),
        (["models", "--accept-licence", "gema"], "Did you mean 'gemma'"),
        (["models", "--accept-licence"], "expected the name of a licence after it"),
        (
            ["play", "Letters-v0", "--agent", str(tmp_path / "no.gguf")],
            "no such file; expected a GGUF",
        ),
        (["train", "--model", "smollm2"], "Did you mean 'smollm2-135m'"),
        (["demo", "--minutes", "3"], "--minutes: goes with --model"),
        (["train", "--warm-start", "-1"], "expected 0 or more"),
        (
            ["train", "--warm-start-lr", "1e-4"],
            "--warm-start-lr: changes nothing without --warm-start N",
        ),
    ):
        assert main(words) == REFUSED, words
        assert says in said(capsys)


def test_the_demo_shows_a_model_as_it_is_taught_and_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few: dict[str, Any] = {"groups_per_step": 2, "rollout.n": 2}
    small = {"size": "micro", "hops": 1, "max_turns": 2, "top_k": 1}
    monkeypatch.setattr(demo, "REAL_RECIPE", few)
    monkeypatch.setattr(demo, "REAL_SETTINGS", small)
    monkeypatch.setattr(demo, "REAL_TOKENS", 8)
    run = tmp_path / "run"
    words = ["demo", "--model", str(write_gguf(tmp_path / "tiny.gguf")), "--run-dir", str(run)]
    assert main([*words, "--warm-start", "4", "--steps", "1", "--n", "2"]) == 0
    text = said(capsys)
    for line in ("1. ", "2. it imitates 4 episodes", "3. GRPO: 2 questions a step, 2 attempts"):
        assert line in text
    for when in ("as it is: ", "after imitation: ", "after GRPO: "):
        assert f"{when}0" in text
        assert text.index(when) < text.index("Question: ", text.index(when))
    assert (run / "trajectories" / demo.AS_IT_IS).exists()
