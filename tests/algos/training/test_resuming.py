"""What an interrupt, a kill, a full disk or damage leaves: a run that goes on as if without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers.training_runs import (
    config,
    run,
)

from turngym.algos.runs.progress import Silent
from turngym.algos.training.config import Budget
from turngym.algos.training.trainer import Trainer


class Notes(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


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
