"""Optimisers: float32 copies of half weights, 8 bits, and what is refused."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.training_runs import Killed, config, final_weights, kill_after, numbers, run, same
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.recipe import Optim
from turngym.algos.learner.optimizers import FusedAdamW, MasterAdamW, make_optimizer
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.training.policy import apply_liger
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError, MissingExtraError

OPTIM = Optim(lr=1e-2, weight_decay=0.1)


def grads(n: int, shape: tuple[int, ...] = (3, 4)) -> list[torch.Tensor]:
    draws = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=draws).bfloat16() for _ in range(n)]


def trained(optimizer: Any, p: torch.nn.Parameter, given: list[torch.Tensor]) -> None:
    for g in given:
        p.grad = g.to(p.dtype)
        optimizer.step()


def test_steps_are_those_of_adamw_on_float32_copies() -> None:
    start = torch.randn(3, 4, generator=torch.Generator().manual_seed(1)).bfloat16()
    half, whole = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.float())
    ours = MasterAdamW([{"params": [half], "lr": 1e-2}], betas=(0.9, 0.98), weight_decay=0.1)
    theirs = torch.optim.AdamW([whole], lr=1e-2, betas=(0.9, 0.98), weight_decay=0.1)
    trained(ours, half, grads(12))
    trained(theirs, whole, grads(12))
    torch.testing.assert_close(ours.state[half]["master"], whole.detach(), rtol=1e-5, atol=1e-7)
    assert torch.equal(half, whole.bfloat16())


def test_small_steps_add_up_in_half_weights() -> None:
    lost, kept = (torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16)) for _ in range(2))
    given = [torch.ones(4, dtype=torch.bfloat16)] * 60
    trained(torch.optim.AdamW([lost], lr=1e-4, weight_decay=0.0), lost, given)
    trained(MasterAdamW([{"params": [kept], "lr": 1e-4}], weight_decay=0.0), kept, given)
    assert torch.equal(lost, torch.ones(4, dtype=torch.bfloat16))  # every step rounds away
    assert kept[0].item() == pytest.approx(1.0 - 60e-4, abs=4e-3)


def test_a_saved_state_goes_on_bit_for_bit() -> None:
    given = grads(6)
    straight, halted = (torch.nn.Parameter(torch.ones(3, 4).bfloat16()) for _ in range(2))
    one = MasterAdamW([{"params": [straight], "lr": 1e-3}])
    trained(one, straight, given)
    two = MasterAdamW([{"params": [halted], "lr": 1e-3}])
    trained(two, halted, given[:3])
    resumed = torch.nn.Parameter(halted.detach().clone())
    three = MasterAdamW([{"params": [resumed], "lr": 1e-3}])
    three.load_state_dict(two.state_dict())
    assert three.state[resumed]["master"].dtype == torch.float32
    trained(three, resumed, given[3:])
    assert torch.equal(straight, resumed)
    assert torch.equal(one.state[straight]["master"], three.state[resumed]["master"])


def test_a_run_in_half_weights_is_resumed_in_the_same_numbers(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup = config(tiny_model, weights="bfloat16", evals=())
    run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "killed") as trainer:
        assert isinstance(trainer.learner.optimizer, MasterAdamW)
        kill_after(trainer, 3)
        with pytest.raises(Killed):
            trainer.run()
    run(setup, tmp_path / "killed")
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "straight")
    final = [final_weights(tmp_path / name) for name in ("straight", "killed")]
    assert same(*final)
    assert {w.dtype for w in final[0].values()} == {torch.bfloat16}


def test_float32_weights_keep_torchs_own() -> None:
    groups = [{"params": [torch.nn.Parameter(torch.ones(2))], "lr": 1e-3}]
    assert type(make_optimizer(groups, OPTIM, "adamw")) is FusedAdamW


def test_eight_bits_need_bitsandbytes_and_float32_weights(monkeypatch: Any) -> None:
    whole = [{"params": [torch.nn.Parameter(torch.ones(2))], "lr": 1e-3}]
    half = [{"params": [torch.nn.Parameter(torch.ones(2).bfloat16())], "lr": 1e-3}]
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(MissingExtraError, match=r"turngym\[gpu\]"):
        make_optimizer(whole, OPTIM, "adamw8bit")

    class AdamW8bit(torch.optim.AdamW):
        """In the place of the package's own."""

    there, optim = types.ModuleType("bitsandbytes"), types.ModuleType("bitsandbytes.optim")
    optim.AdamW8bit = AdamW8bit  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bitsandbytes", there)
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", optim)
    made = make_optimizer(whole, OPTIM, "adamw8bit")
    assert isinstance(made, AdamW8bit)
    assert made.defaults["betas"] == OPTIM.betas
    assert made.param_groups[0]["weight_decay"] == 0.1
    with pytest.raises(BadValueError, match="small steps would be lost"):
        make_optimizer(half, OPTIM, "adamw8bit")
    with pytest.raises(BadValueError, match="expected 'adamw' or 'adamw8bit'"):
        LearnerSettings(optimizer="adam8bit")  # type: ignore[arg-type]


def test_liger_is_refused_with_the_reason_and_asked_for_layers_alone(monkeypatch: Any) -> None:
    model = types.SimpleNamespace(config=types.SimpleNamespace(model_type="qwen2"))
    with pytest.raises(BadValueError, match="run on CUDA"):
        apply_liger(model, torch.device("cpu"))
    monkeypatch.setitem(sys.modules, "liger_kernel", None)
    with pytest.raises(MissingExtraError, match="liger-kernel"):
        apply_liger(model, torch.device("cuda"))
    asked: dict[str, Any] = {}
    names = ("liger_kernel", "liger_kernel.transformers", "liger_kernel.transformers.monkey_patch")
    top, inner, patch = (types.ModuleType(name) for name in names)
    inner._apply_liger_kernel_to_instance = lambda **given: asked.update(given)  # type: ignore
    patch.MODEL_TYPE_TO_APPLY_LIGER_FN = {"qwen2": None}  # type: ignore[attr-defined]
    for name, module in zip(names, (top, inner, patch), strict=True):
        monkeypatch.setitem(sys.modules, name, module)
    apply_liger(model, torch.device("cuda"))
    assert asked == {"model": model, "cross_entropy": False, "fused_linear_cross_entropy": False}
    model.config.model_type = "odd"
    with pytest.raises(BadValueError, match="no kernels for models of type 'odd'"):
        apply_liger(model, torch.device("cuda"))


def plain_weights(seed: int) -> list[torch.nn.Parameter]:
    draws = torch.Generator().manual_seed(seed)
    shapes = ((5, 3), (7,), (2, 2, 2))
    return [torch.nn.Parameter(torch.randn(s, generator=draws)) for s in shapes]


@given(steps=st.integers(1, 8), decay=st.sampled_from([0.0, 0.1]), swap=st.integers(0, 8))
def test_fused_steps_are_torchs_and_either_reads_the_others_state(
    steps: int, decay: float, swap: int
) -> None:
    optim = Optim(lr=1e-2, weight_decay=decay, betas=(0.9, 0.98))
    mine, theirs = plain_weights(0), plain_weights(0)

    def groups(params: list[torch.nn.Parameter]) -> list[dict[str, Any]]:
        return [
            {"params": params[:2], "lr": 1e-2, "base_lr": 1e-2},
            {"params": params[2:], "lr": 3e-3, "base_lr": 3e-3},
        ]

    def torchs(params: list[torch.nn.Parameter]) -> torch.optim.AdamW:
        return torch.optim.AdamW(groups(params), betas=optim.betas, weight_decay=decay, fused=True)

    one: Any = make_optimizer(groups(mine), optim, "adamw")
    two: Any = torchs(theirs)
    assert isinstance(one, FusedAdamW)
    draws = torch.Generator().manual_seed(1)
    for step in range(steps):
        if step == swap:  # each goes on from what the other saved
            saved = one.state_dict(), two.state_dict()
            one, two = make_optimizer(groups(mine), optim, "adamw"), torchs(theirs)
            one.load_state_dict(saved[1])
            two.load_state_dict(saved[0])
        for i, (p, q) in enumerate(zip(mine, theirs, strict=True)):
            p.grad = None if (step + i) % 4 == 3 else torch.randn(p.shape, generator=draws)
            q.grad = None if p.grad is None else p.grad.clone()
        for optimizer in (one, two):
            for group in optimizer.param_groups:
                group["lr"] = group["base_lr"] * (step + 1)
            optimizer.step()
        for p, q in zip(mine, theirs, strict=True):
            assert torch.equal(p, q)
    ours, other = one.state_dict(), two.state_dict()
    assert ours["state"].keys() == other["state"].keys()
    for number, state in other["state"].items():
        assert all(torch.equal(ours["state"][number][name], state[name]) for name in state)
    assert ours["param_groups"] == other["param_groups"]


def test_hooks_are_those_of_torch() -> None:
    params = plain_weights(0)
    made = make_optimizer([{"params": params, "lr": 1e-2}], OPTIM, "adamw")
    assert isinstance(made, torch.optim.AdamW)
    seen: list[str] = []
    made.register_step_pre_hook(lambda *_: seen.append("before"))
    made.register_step_post_hook(lambda *_: seen.append("after"))
    for p in params:
        p.grad = torch.ones_like(p)
    made.step()
    assert seen == ["before", "after"]
    made.zero_grad()
    assert all(p.grad is None for p in params)
