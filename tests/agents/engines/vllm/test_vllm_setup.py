"""What vLLM is made with, without vLLM."""

from __future__ import annotations

import pytest
import torch

from turngym.agents.engines.vllm import setup
from turngym.agents.engines.vllm.settings import VllmSettings


@pytest.mark.parametrize(("device", "world", "launched"), [
    ("cuda", "2", True), ("cuda", None, False), ("cuda", "1", False), ("cpu", "2", False),
])  # fmt: skip
def test_each_process_of_torchrun_has_its_own_card(
    monkeypatch: pytest.MonkeyPatch, device: str, world: str | None, launched: bool
) -> None:
    """Before, the engines of all processes took the first card."""
    monkeypatch.setattr(setup, "vllm_device", lambda: torch.device(device))
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if world is not None:
        monkeypatch.setenv("WORLD_SIZE", world)
    made = setup.engine_arguments("m", 4, "bfloat16", None, VllmSettings())
    assert (made.get("distributed_executor_backend") == "external_launcher") is launched
    assert made.get("tensor_parallel_size", 1) == 1
