"""How large a model is."""

from __future__ import annotations

import torch
from torch import nn

from turngym.agents.models.size import LARGE, count_weights, is_large


def test_tied_weights_count_once() -> None:
    table, head = nn.Embedding(7, 3), nn.Linear(3, 7, bias=False)
    model = nn.ModuleList([table, head])
    assert count_weights(model) == 42
    head.weight = table.weight
    assert count_weights(model) == 21


def test_a_model_is_large_from_the_bound_on() -> None:
    with torch.device("meta"):
        below, at = nn.Linear(LARGE - 1, 1, bias=False), nn.Linear(LARGE, 1, bias=False)
    assert (is_large(below), is_large(at)) == (False, True)
