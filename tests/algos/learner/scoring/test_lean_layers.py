"""Quicker forms of layers on a CPU, held to the model's own code."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.nets import FAMILIES, small
from torch import nn

from turngym.algos.learner.scoring.lean_layers import LeanLayers, rms_norm

IDS = (torch.arange(2 * 9).view(2, 9) * 7 + 3) % 320
NEEDED = torch.tensor([1, 4, 5, 11, 17])


def gradients(model: Any, needed: torch.Tensor | None, lean: LeanLayers | None) -> list[Any]:
    """Return states at the needed positions and the gradients of a number made of them."""
    model.zero_grad()
    read = model.get_decoder()
    if lean is None:
        states = read(input_ids=IDS, use_cache=False).last_hidden_state.flatten(0, 1)[NEEDED]
        states.square().sum().backward()
    else:
        with lean.within(needed):
            states = read(input_ids=IDS, use_cache=False).last_hidden_state.flatten(0, 1)[NEEDED]
            states.square().sum().backward()
    found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return [states.detach(), found]


@pytest.mark.parametrize("needed", [NEEDED, None])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_same_states_and_gradients(family: str, needed: torch.Tensor | None) -> None:
    model = small(family)
    lean = LeanLayers(model)
    assert len(lean.norms) >= 5
    assert len(lean.last) == 5
    states, wanted = gradients(model, None, None)
    got_states, got = gradients(model, needed, lean)
    torch.testing.assert_close(got_states, states)
    assert got.keys() == wanted.keys()
    for name, grad in wanted.items():
        torch.testing.assert_close(got[name], grad, rtol=1e-4, atol=1e-4, msg=name)
    assert not any("forward" in vars(m) for m in model.modules())  # all put back


def test_other_positions_are_not_computed() -> None:
    model = small("qwen3")
    lean, seen = LeanLayers(model), []
    model.model.layers[-1].mlp.down_proj.register_forward_hook(
        lambda _, given, __: seen.append(given[0].shape)
    )
    with lean.within(NEEDED), torch.no_grad():
        model(input_ids=IDS, use_cache=False)
    assert seen == [(1, 5, 48)]


def test_last_parts_that_others_read_are_left_whole() -> None:
    """A model whose MLP mixes positions does not agree when only some are computed."""
    model = small("llama")

    class Mixing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.cumsum(1)

    model.model.layers[-1].mlp = Mixing()
    lean = LeanLayers(model)
    assert lean.last == []
    assert lean.norms


def test_norm_of_another_form_is_left_alone() -> None:
    model = small("llama")

    class OffsetRMSNorm(nn.Module):
        """As Gemma's: the weight is an offset from 1."""

        weight = nn.Parameter(torch.full((32,), 0.5))
        variance_epsilon = 1e-6

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return rms_norm(x, 1.0 + self.weight, self.variance_epsilon)

    model.model.norm = OffsetRMSNorm()
    assert model.model.norm not in LeanLayers(model).norms


def test_norm_against_differences() -> None:
    x = torch.linspace(-1.5, 2.0, 24, dtype=torch.float64).view(2, 3, 4).requires_grad_()
    weight = torch.linspace(0.5, 1.5, 4, dtype=torch.float64).requires_grad_()
    plain = weight * x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    wanted = torch.autograd.grad(plain.sin().sum(), (x, weight))
    got = torch.autograd.grad(rms_norm(x.float(), weight.float(), 1e-5).sin().sum(), (x, weight))
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
