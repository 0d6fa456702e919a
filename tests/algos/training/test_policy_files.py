"""The policy of a checkpoint comes back as it was, whatever its architecture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.small_models import model
from safetensors.torch import load_file, save_file

from turngym.algos.training.policy_files import load_policy_weights, save_policy

EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 8}


@pytest.mark.parametrize(
    ("family", "settings"), [("Qwen2", {}), ("GPTNeoX", {}), ("Qwen3Moe", EXPERTS)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_come_back(
    family: str, settings: dict[str, Any], dtype: torch.dtype, tmp_path: Path
) -> None:
    net, other = (model(family, seed=seed, **settings).to(dtype) for seed in (0, 1))
    save_policy(net, tmp_path)
    load_policy_weights(tmp_path, other)
    for name, weight in net.state_dict().items():
        assert torch.equal(weight, other.state_dict()[name]), name


def test_a_weight_too_many_is_refused(tmp_path: Path) -> None:
    net = model("Qwen2")
    save_policy(net, tmp_path)
    file = tmp_path / "model.safetensors"
    save_file(load_file(file) | {"value_head.weight": torch.ones(1, 32)}, file, {"format": "pt"})
    with pytest.raises(ValueError, match="value_head"):
        load_policy_weights(tmp_path, net)
