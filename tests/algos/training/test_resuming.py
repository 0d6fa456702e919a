"""What an interrupt, a kill, a full disk or damage leaves: a run that goes on as if without."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.training_runs import (
    Killed,
    config,
    kill_after,
    run,
)

from turngym.algos.runs.progress import Silent
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training.config import Budget
from turngym.algos.training.trainer import Trainer, train


class Notes(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


# ---------------------------------------------------------------- without a checkpoint


def test_a_finished_run_of_metrics_alone_gives_its_result_again(
    tiny_model: Path, tmp_path: Path
) -> None:
    """Before, opening its folder erased the metrics, and all was trained again."""
    setup = config(tiny_model, records="metrics", evals=(), budget=Budget(steps=2))
    first, report = train(setup, tmp_path), Notes()
    metrics = (tmp_path / "metrics.jsonl").read_text()
    assert train(setup, tmp_path, report) == first
    assert "is finished; its result is given again" in report.said[0]
    assert (tmp_path / "metrics.jsonl").read_text() == metrics
    more = replace(setup, budget=Budget(steps=3))
    assert train(more, tmp_path, report).steps == 3
    assert "no checkpoint, so training begins anew" in report.said[1]
    assert (tmp_path / "earlier-1" / "metrics.jsonl").read_text() == metrics
    assert (tmp_path / "earlier-1" / "result.json").exists()
    assert [row["step"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3]


def test_metrics_from_before_the_first_checkpoint_are_set_aside(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup, report = config(tiny_model, evals=()), Notes()
    for _ in range(2):
        with Trainer(setup, tmp_path, report) as trainer:
            kill_after(trainer, 1)
            with pytest.raises(Killed):
                trainer.run()
    assert run(setup, tmp_path).steps == 4
    assert "earlier-1" in report.said[0]
    for number in (1, 2):
        assert len(read_metrics(tmp_path / f"earlier-{number}" / "metrics.jsonl")) == 1


# ---------------------------------------------------------------- which steps are written


def written(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("trajectories/step-*-train.jsonl"))


def test_after_an_interrupt_the_same_steps_are_written(tiny_model: Path, tmp_path: Path) -> None:
    """Before, checkpoints were counted from the interrupt on, and rollouts from the start."""
    setup = config(tiny_model, evals=(), budget=Budget(steps=7), keep=9)
    run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "cut") as trainer:
        step = trainer.train_step

        def stop() -> dict[str, float]:
            if trainer.counters.step == 3:
                raise KeyboardInterrupt
            return step()

        trainer.train_step = stop  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    run(setup, tmp_path / "cut")
    names = [
        {p.name for p in (tmp_path / which / "checkpoints").iterdir()}
        for which in ("straight", "cut")
    ]
    assert names[0] == {f"step-{step:06d}" for step in (2, 4, 6, 7)}
    assert names[1] == names[0] | {"step-000003"}
    assert written(tmp_path / "straight") == written(tmp_path / "cut")


def test_a_damaged_checkpoint_is_not_kept_in_place_of_whole_ones(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup, report = config(tiny_model, evals=(), keep=1, checkpoint_every=100), Notes()
    with Trainer(setup, tmp_path) as trainer:
        trainer.train_step()
        trainer._save()
        shutil.copytree(tmp_path / "checkpoints/step-000001", tmp_path / "copy")
        trainer.train_step()
        trainer.train_step()
        trainer._save()
    shutil.move(tmp_path / "copy", tmp_path / "checkpoints/step-000001")
    (tmp_path / "checkpoints/step-000003/model.safetensors").write_bytes(b"bad")
    with Trainer(setup, tmp_path, report) as trainer:
        assert trainer.counters.step == 1
        trainer.train_step()
        trainer._save()
    left = sorted(p.name for p in (tmp_path / "checkpoints").iterdir())
    assert left == ["damaged-step-000003", "step-000002"]
    assert "damaged-step-000003" in "".join(report.said)
    with Trainer(setup, tmp_path) as trainer:
        assert trainer.counters.step == 2
