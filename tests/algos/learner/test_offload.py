"""Moments and reference in main memory while the engine plays: nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.allocations import held_bytes
from helpers.small_learners import forest, learner, trained, update
from helpers.training_runs import config, final_weights, run, same

from turngym.algos.learner.learner import Learner
from turngym.algos.learner.offload import Offload, check_offload
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.training.config import Budget, TrainConfig
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def with_offload(made: Learner) -> Learner:
    """Let a learner on a CPU move its state, from main memory to main memory."""
    made.offload = Offload(made.optimizer, made.models.frozen, CPU)
    return made


@pytest.fixture(params=["grpo", "ppo"])
def recipe(request: pytest.FixtureRequest) -> str:
    return request.param


def test_training_is_the_same_to_the_last_bit(recipe: str) -> None:
    plain, moved = learner(recipe), with_offload(learner(recipe))
    for _ in range(3):
        for made in (plain, moved):
            update(made)
            made.rest()
    for one, other in zip(trained(plain), trained(moved), strict=True):
        assert torch.equal(one, other)
    moved.wake()
    for p, q in zip(trained(plain), trained(moved), strict=True):
        for name, value in plain.optimizer.state[p].items():
            assert torch.equal(value, moved.optimizer.state[q][name])


def test_the_device_s_memory_is_free_meanwhile() -> None:
    # whatever is given back below is taken where it is seen: the profiler knows blocks by their
    # addresses, and mistakes one that it did not see for an older one
    built: list[Learner] = []
    held_bytes(lambda: built.append(with_offload(learner("grpo"))))
    made = built[0]
    assert made.offload is not None
    assert made.models.reference is not None
    held_bytes(lambda: update(made))
    moments = sum(t.nbytes for s in made.optimizer.state.values() for t in s.values())
    gradients = sum(p.grad.nbytes for p in trained(made) if p.grad is not None)
    frozen = made.offload.frozen_bytes
    assert frozen == sum(p.nbytes for p in made.models.reference.model.parameters())
    places = [p.data_ptr() for p in made.models.reference.model.parameters()]
    moved = moments + frozen
    slack = 4096
    # as much of main memory, once, as the device gives back beside the gradients
    assert abs(held_bytes(made.rest) + gradients) <= slack < min(moved, gradients)
    for _ in range(2):
        assert abs(held_bytes(made.rest)) <= slack
        assert abs(held_bytes(made.wake) - moved) <= slack  # of the device
        assert abs(held_bytes(made.rest) + moved) <= slack
    assert places != [p.data_ptr() for p in made.models.reference.model.parameters()]
    assert made.bytes_beside_engine() == -frozen


def test_scores_bring_the_reference_back() -> None:
    made = with_offload(learner("grpo"))
    before = [row.tolist() for row in made.ref_logprobs(forest())]
    update(made)
    made.rest()
    assert [row.tolist() for row in made.ref_logprobs(forest())] == before


def test_a_checkpoint_that_is_loaded_meanwhile_counts() -> None:
    made, other = with_offload(learner("grpo")), learner("grpo")
    update(other)
    update(other)
    saved = other.optimizer.state_dict()
    update(made)
    made.rest()
    made.optimizer.load_state_dict(saved)
    made.wake()
    for p, q in zip(trained(made), trained(other), strict=True):
        assert torch.equal(made.optimizer.state[p]["exp_avg"], other.optimizer.state[q]["exp_avg"])


@pytest.mark.parametrize(
    ("changes", "device", "reason"),
    [
        ({}, CPU, "computes on cpu, whose memory is the main memory"),
        ({"optimizer": "adamw8bit"}, CUDA, "adamw8bit keeps its moments"),
    ],
)
def test_what_cannot_be_moved_is_refused(
    changes: dict[str, Any], device: torch.device, reason: str
) -> None:
    settings = LearnerSettings(offload=True, **changes)
    with pytest.raises(BadValueError, match=reason):
        check_offload(settings, device)
    check_offload(LearnerSettings(**changes), device)


def test_a_learner_on_a_cpu_refuses_it() -> None:
    with pytest.raises(BadValueError, match=r"--no-offload"):
        learner(offload=True)
    check_offload(LearnerSettings(offload=True), CUDA)


def test_playing_ahead_is_refused_and_the_file_of_other_runs_stays() -> None:
    with pytest.raises(BadValueError, match="take turns on the GPU's memory"):
        config(__file__, learner=LearnerSettings(offload=True), max_lag=0)  # type: ignore[arg-type]
    plain: TrainConfig = config(__file__)  # type: ignore[arg-type]
    assert "offload" not in plain.resolved("")["learner"]
    assert "cuda_graphs" not in plain.resolved("")  # nor does a setting of later
    other = config(__file__, cuda_graphs=False)  # type: ignore[arg-type]
    assert other.resolved("")["cuda_graphs"] is False
    moved = config(__file__, learner=LearnerSettings(offload=True))  # type: ignore[arg-type]
    assert moved.resolved("")["learner"]["offload"] is True


def test_a_run_takes_turns_and_learns_the_same(tiny_model: Path, tmp_path: Path) -> None:
    setup = config(tiny_model, evals=(), budget=Budget(steps=2))
    run(setup, tmp_path / "plain")
    rests: list[int] = []
    with Trainer(setup, tmp_path / "moved") as trainer:
        learner = with_offload(trainer.learner)
        assert learner.offload is not None
        rest = learner.offload.rest
        learner.offload.rest = lambda: rests.append(trainer.counters.step) or rest()
        trainer.run()
        assert learner.offload._resting
    assert rests == [0, 1]  # after each update, before its step is counted
    assert same(*(final_weights(tmp_path / name, 2) for name in ("plain", "moved")))
