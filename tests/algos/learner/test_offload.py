"""What is in main memory for a while: moments and reference, inputs of layers. Numbers stay."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.allocations import held_bytes, peak_bytes
from helpers.small_learners import SIZES, forest, learner, trained, update
from helpers.small_models import model
from helpers.training_runs import config, final_weights, run, same

from turngym.algos.learner.learner import Learner
from turngym.algos.learner.offload import (
    INPUTS_HERE,
    ActivationOffload,
    CopyLane,
    Offload,
    check_offload,
)
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.runs.run_dir import RunDir
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
    assert not {"cuda_graphs", "cache_gib"} & set(plain.resolved(""))  # nor do settings of later
    other = config(__file__, cuda_graphs=False, cache_gib=0.5)  # type: ignore[arg-type]
    assert other.resolved("")["cuda_graphs"] is False
    assert other.resolved("")["cache_gib"] == 0.5
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


# ---------------------------------------------------------------- activations


class LateLane(CopyLane):
    """Copies only when they are waited for, as a busy stream would; main memory is not traced."""

    def __init__(self) -> None:
        super().__init__(CPU)
        self.pending: dict[int, tuple[Any, Any]] = {}
        self.started = 0
        self.sizes: list[int] = []

    def host(self, like: torch.Tensor) -> torch.Tensor:
        self.sizes.append(like.nbytes)
        return torch.from_numpy(np.empty(like.shape, np.float32))

    def start(self, target: torch.Tensor, source: torch.Tensor) -> int:
        target.fill_(torch.nan)
        self.started += 1
        self.pending[self.started] = weakref.ref(target), weakref.ref(source)
        return self.started

    def wait(self, copy: int) -> None:
        for at in sorted(n for n in self.pending if n <= copy):  # one after the other
            target, source = (one() for one in self.pending.pop(at))
            assert target is not None
            assert source is not None
            target.copy_(source)


class Watched(ActivationOffload):
    """Counts the inputs that are on the device at a time."""

    most = 0

    def _leave(self, value: Any) -> Any:
        self._count()
        return super()._leave(value)

    def _come_back(self, moved: Any) -> Any:
        out = super()._come_back(moved)
        self._count()
        return out

    def _count(self) -> None:
        """Count those that it holds, and the one that the layer has."""
        self.most = max(self.most, 1 + sum(one.here is not None for one in self._inputs))


LAYERS = 8


def checkpointed(recipe: str = "grpo", lane: CopyLane | None = None) -> Learner:
    """A learner of eight layers that are computed again, whose inputs leave by a lane."""
    how = LearnerSettings(
        precision="float32", shared_prefix=False, micro_batch_tokens=600,
        gradient_checkpointing=True,
    )  # fmt: skip
    sizes: dict[str, Any] = SIZES | {"num_hidden_layers": LAYERS}
    net = model("Qwen2", **sizes)
    made = Learner(net, make_recipe(recipe, {"optim.minibatches": 1}), pad_id=0, settings=how)
    if lane is not None:
        made.models.activations = Watched(lane)
    return made


@pytest.mark.parametrize(("kind", "lane"), [("grpo", CopyLane(CPU)), ("ppo", LateLane())])
def test_gradients_are_the_same_to_the_last_bit(kind: str, lane: CopyLane) -> None:
    plain, moved = checkpointed(kind), checkpointed(kind, lane)
    seen: list[int] = []

    def count(layer: Any, inputs: tuple[torch.Tensor]) -> None:
        # older layers call their hooks again where the backward pass computes them again
        if layer.training and torch._C._current_graph_task_id() == -1:
            seen.append(inputs[0].nbytes)

    backbones = [moved.policy.model]
    if moved.critic is not None:
        backbones.append(moved.critic.backbone)
    for layer in [layer for backbone in backbones for layer in backbone.layers]:
        layer.register_forward_pre_hook(count)
    for made in (plain, moved):
        update(made)
    for one, other in zip(trained(plain), trained(moved), strict=True):
        assert torch.equal(one, other)
    offload = moved.models.activations
    assert isinstance(offload, Watched)
    assert offload.moved_bytes == sum(seen) > 0  # every layer's input, and nothing else
    assert offload.most == INPUTS_HERE - 1  # beside what the layer makes
    assert offload._inputs == []


def test_the_inputs_memory_is_free_meanwhile() -> None:
    lane = LateLane()
    plain, moved = checkpointed(), checkpointed("grpo", lane)
    said = [made.needs() for made in (plain, moved)]
    tokens, width = 600, SIZES["hidden_size"]
    assert said[0].activations - said[1].activations == tokens * (LAYERS - INPUTS_HERE) * width * 4
    peaks = [peak_bytes(lambda made=made: update(made)) for made in (plain, moved)]
    largest = max(lane.sizes)
    saved = (LAYERS - INPUTS_HERE) * largest
    assert 0.9 * saved <= peaks[0] - peaks[1] <= saved + 2 * largest
    beside = said[1].total - said[1].head  # pieces of logits are as large as the batch here
    assert 0.4 * beside < peaks[1] < beside


def test_a_pass_that_breaks_off_leaves_nothing_behind() -> None:
    lane = LateLane()
    made = checkpointed("grpo", lane)
    whole = checkpointed("grpo")
    layer = made.policy.model.layers[5]
    broken = layer.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        update(made)
    broken.remove()
    offload = made.models.activations
    assert offload is not None
    assert (offload._inputs, offload._leaving, lane.pending) == ([], None, {})
    for one in (made, whole):
        one.optimizer.zero_grad(set_to_none=True)
        update(one)
    assert all(map(torch.equal, trained(made), trained(whole)))


def test_activations_that_cannot_be_moved_are_refused() -> None:
    with pytest.raises(BadValueError, match=r"gradient_checkpointing is off.*--gradient-check"):
        LearnerSettings(offload_activations=True)
    on = LearnerSettings(offload_activations=True, gradient_checkpointing=True)
    with pytest.raises(BadValueError, match=r"whose memory is the main .*--no-offload-activations"):
        check_offload(on, CPU)
    check_offload(on, CUDA)
    with pytest.raises(BadValueError, match=r"--no-offload-activations"):
        learner(offload_activations=True, gradient_checkpointing=True)


def test_a_run_may_move_activations_later_and_ahead(tmp_path: Path) -> None:
    on = LearnerSettings(precision="float32", gradient_checkpointing=True, offload_activations=True)
    plain: TrainConfig = config(__file__)  # type: ignore[arg-type]
    moved = config(__file__, learner=on, max_lag=0)  # type: ignore[arg-type]
    assert "offload_activations" not in plain.resolved("")["learner"]
    assert moved.resolved("")["learner"]["offload_activations"] is True
    now = config(__file__, learner=on).resolved("")  # type: ignore[arg-type]
    with RunDir(tmp_path, plain.resolved("")) as folder:
        folder.check_config(plain.resolved(""), now)
