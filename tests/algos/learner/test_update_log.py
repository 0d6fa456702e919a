"""Metrics of an update: read from the device at once, the same numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from turngym.algos.learner.update_log import UpdateLog


def test_a_micro_batch_does_not_wait_for_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, each micro batch read every number by itself."""
    reads: list[int] = []
    real = torch.Tensor.tolist

    def count(values: torch.Tensor) -> Any:
        reads.append(values.numel())
        return real(values)

    monkeypatch.setattr(torch.Tensor, "tolist", count)
    for name in ("__float__", "__bool__", "item", "cpu"):
        monkeypatch.setattr(torch.Tensor, name, lambda *_: 1 / 0)
    weights = torch.tensor([0.1, 0.7, 0.3], requires_grad=True)
    log = UpdateLog()
    for at, share in enumerate((0.5, 1.0, 0.25)):
        loss = weights[at] * 1.1
        log.loss(loss, {"kl": loss * 2, "clip_frac": (loss * 3).to(torch.bfloat16)}, share)
    assert reads == []
    log.step([1.0], finite=True)
    log.left_out(0, 3)
    found = log.metrics([{"lr": 1e-3}])
    assert reads == [9]
    monkeypatch.undo()
    losses = [float(w * 1.1) for w in weights.detach()]
    assert found["update/loss"] == sum(losses)
    assert found["loss/kl"] == sum(float(torch.tensor(x) * 2) for x in losses)
    wanted = 0.0
    for x, share in zip(losses, (0.5, 1.0, 0.25), strict=True):
        wanted += float((torch.tensor(x) * 3).to(torch.bfloat16)) / share
    assert found["loss/clip_frac"] == wanted
    assert log.metrics([{"lr": 1e-3}]) == found
