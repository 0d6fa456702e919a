"""Chunks of an imitation: how much of it goes through the model at a time."""

from __future__ import annotations

import pytest
import torch

from turngym.agents.models import size
from turngym.agents.warm_start.imitation import chunk_tokens, in_chunks


def test_a_large_model_on_a_cpu_takes_less_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Linear(4, 4)
    assert chunk_tokens(model) == 4096
    monkeypatch.setattr(size, "LARGE", 20)
    assert chunk_tokens(model) == 1024
    assert chunk_tokens(model.to("meta")) == 4096
    lengths = [600, 500, 400, 1500]
    assert list(in_chunks(lengths, 1024)) == [[2, 1], [0], [3]]  # a row is never cut
