"""An engine that dies in the middle of a run: what is said, and that nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.training_runs import config, final_weights, numbers, run, same

from turngym.agents.models.out_of_memory import MemoryFullError
from turngym.algos.runs.progress import Silent
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import EngineFault


class Heard(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def die(trainer: Trainer, fault: Exception, step: int) -> None:
    """Let the engine break in the rollouts of ``step``."""
    engine: Any = trainer.engine
    decode = engine._forward.decode

    def decoding(*args: Any) -> torch.Tensor:
        if engine.version >= step - 1:
            raise fault
        return decode(*args)

    engine._forward.decode = decoding


@pytest.mark.parametrize("max_lag", [None, 1])
def test_a_dead_engine_leaves_a_run_that_goes_on(
    tiny_model: Path, tmp_path: Path, max_lag: int | None
) -> None:
    setup = config(tiny_model, evals=(), checkpoint_every=100, max_lag=max_lag)
    run(setup, tmp_path / "straight")
    heard = Heard()
    with Trainer(setup, tmp_path / "run", heard) as trainer:
        die(trainer, RuntimeError("CUDA error: device-side assert"), step=3)
        with pytest.raises(EngineFault, match="device-side assert"):
            trainer.run()
        # with a lag, weights 2 play step 4: three steps are done by then
        assert trainer.counters.step == 2 + (max_lag or 0)
    assert f"the engine failed; step {2 + (max_lag or 0)} is saved" in heard.lines[-1]
    result = run(setup, tmp_path / "run")
    assert result.steps == 4
    assert [r["step"] for r in numbers(tmp_path / "run")] == [1, 2, 3, 4]
    if max_lag is None:
        assert numbers(tmp_path / "run") == numbers(tmp_path / "straight")
        assert same(final_weights(tmp_path / "run"), final_weights(tmp_path / "straight"))


def test_a_hand_over_that_fails_loses_no_update(tiny_model: Path, tmp_path: Path) -> None:
    setup = config(tiny_model, evals=(), checkpoint_every=100)
    run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "run") as trainer:
        sync = trainer.engine.sync

        def broken(model: Any, version: int | None = None) -> None:
            if version == 2:
                raise EngineFault("engine: no weights taken")
            sync(model, version)

        trainer.engine.sync = broken  # type: ignore[method-assign]
        with pytest.raises(EngineFault, match="no weights taken"):
            trainer.run()
        assert trainer.counters.step == 2
    run(setup, tmp_path / "run")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "straight")
    assert same(final_weights(tmp_path / "run"), final_weights(tmp_path / "straight"))


def test_out_of_memory_names_the_knob(tiny_model: Path, tmp_path: Path) -> None:
    with Trainer(config(tiny_model, evals=()), tmp_path) as trainer:
        die(trainer, torch.OutOfMemoryError("tried to allocate 9 GiB"), step=1)
        with pytest.raises(MemoryFullError, match="lower max_batch"):
            trainer.run()
