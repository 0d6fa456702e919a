"""The check of a GPU machine: its rehearsal on a CPU, and that it finds what is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from turngym.algos.learner import model_bundle
from turngym.algos.learner.attention import block_attention
from turngym.algos.learner.scoring import scoring
from turngym.benchmarks.speed.gpu import check
from turngym.benchmarks.speed.gpu.measures import Table, correctness
from turngym.benchmarks.speed.gpu.report import Part, page
from turngym.benchmarks.speed.gpu.scale import TOY

ROOT = Path(__file__).resolve().parents[3]


def start(python: Path | str, out: Path) -> subprocess.CompletedProcess[str]:
    """Run the script from a folder that is no checkout."""
    return subprocess.run(
        ["bash", ROOT / "benchmarks/gpu/check.sh", "--toy", "--out", out],
        env={**os.environ, "PYTHON": str(python), "WHEELS": str(out / "none")},
        cwd=out,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_script_rehearses_all_parts_on_a_cpu(tmp_path: Path) -> None:
    done = start(sys.executable, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("report.html")
    parts = json.loads((tmp_path / "report.json").read_text())
    assert [part["name"] for part in parts] == [*check.MEASURES, "model"]
    text = (tmp_path / "report.html").read_text()
    for title in ("Environment", "Attention of a decode step", "Updates", "A training step"):
        assert f"<h2>{title}" in text
    assert "nothing is wrong" in text
    assert text.count("<polyline") == 3
    assert all(part["table"]["rows"] and not part["fault"] for part in parts)
    assert [row[3] for row in parts[2]["table"]["rows"]] == ["yes", "yes", "yes", "yes", ""]


@pytest.mark.parametrize("probed", [True, False])
def test_an_attention_that_sees_the_future_is_found(
    monkeypatch: pytest.MonkeyPatch, probed: bool
) -> None:
    small = replace(TOY, groups=1, paths=2, rows=2, new=2)
    monkeypatch.setattr(block_attention._Work, "hide", lambda *_: None)
    monkeypatch.setattr(scoring, "has_loops", lambda: False)  # they attend by themselves
    if probed:  # the learner itself finds it, and computes rows
        with pytest.warns(UserWarning, match="prefixes are not shared"):
            found = correctness(small)
        assert [row[3] for row in found.rows] == ["yes", "yes", "NO", "yes", ""]
        return
    monkeypatch.setattr(model_bundle, "why_not_shared", lambda _: None)
    found = correctness(small)
    assert [row[3] for row in found.rows] == ["NO", "NO", "yes", "yes", ""]
    assert "packed in float32" in found.failed[0]


def test_a_failing_part_is_shown_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> Table:
        raise RuntimeError("no kernel for <this>")

    good = Table("Good", ("a",), (("1",),), aims=(("fast", "very", True),))
    monkeypatch.setattr(check, "MEASURES", {"kernels": broken, "updates": lambda _: good})
    words = ["--toy", "--out", str(tmp_path), "--part", "kernels", "updates"]
    assert check.main(words) == 1
    text = (tmp_path / "report.html").read_text()
    assert "RuntimeError: no kernel for &lt;this&gt;" in text
    assert "<h2>Good</h2>" in text
    assert "<td>fast<td>very<td>yes" in text


def test_without_a_gpu_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert check.main(["--out", str(tmp_path / "out")]) == 2
    assert "rehearse it on this CPU with --toy" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_was_left_out_is_said() -> None:
    text = page([Part("x", 1.0, Table("X", ("a",), ()))], "title", ["the model: no <gguf>"])
    assert "What was left out" in text
    assert "no &lt;gguf&gt;" in text


def test_a_bare_python_is_told_what_is_missing(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec "{sys.executable}" -S -s "$@"\n')
    bare.chmod(0o755)
    done = subprocess.run(
        ["bash", ROOT / "benchmarks/gpu/check.sh", "--toy"],
        env={"PATH": os.environ["PATH"], "PYTHON": str(bare), "WHEELS": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "lacks: torch numpy scipy transformers" in done.stderr
    assert "wheels.sh" in done.stderr


def test_the_wheels_are_those_that_the_check_asks_for() -> None:
    gather = (ROOT / "benchmarks/gpu/wheels.sh").read_text()
    lists = " ".join(re.findall(r"^(?:whole|alone)=\((.*?)\)", gather, re.MULTILINE | re.DOTALL))
    script = (ROOT / "benchmarks/gpu/check.sh").read_text()
    (needed,) = re.findall(r'^need = "(.*)"', script, re.MULTILINE)
    assert set(needed.split()) - set(lists.split()) == {"torch", "numpy", "scipy"}
    assert "vllm" not in lists
