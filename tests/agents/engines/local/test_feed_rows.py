"""Feeding the rows of a large model one by one to attention, against the padded way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.nets import gemma3, small

from turngym.agents.engines.local import packed_decoder
from turngym.agents.engines.local.engine import choose_forward
from turngym.agents.engines.local.forward import Piece
from turngym.agents.engines.local.kv_cache import KvPool
from turngym.agents.engines.local.packed_decoder import FastDecoder
from turngym.agents.models import causal_attention


def fed(forward: Any, turns: list[list[Any]]) -> torch.Tensor:
    """Logits after the last turn; each row's tokens are fed in as many parts as there are turns."""
    pool = KvPool(forward.shape, 8, 2**26)
    rows = [pool.acquire(sum(len(t[i]) for t in turns) + 1) for i in range(len(turns[0]))]
    starts = [0] * len(rows)
    with torch.inference_mode():
        for turn in turns:
            pieces = [
                Piece(row.index, start, ids)
                for row, start, ids in zip(rows, starts, turn, strict=True)
                if row is not None
            ]
            logits = forward.feed(pool, pieces)
            starts = [start + len(ids) for start, ids in zip(starts, turn, strict=True)]
    return logits


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3"])
@pytest.mark.parametrize("plain", [True, False])
def test_ragged_rows_in_two_turns(
    family: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    turns = [[rng.integers(320, size=n) for n in sizes] for sizes in ((7, 40, 1), (30, 2, 9))]
    model = gemma3(window=11) if family == "gemma3" else small(family)
    make = FastDecoder if plain else choose_forward
    padded = make(model, torch.bfloat16, 128)
    monkeypatch.setattr(packed_decoder, "is_large", lambda _: True)
    monkeypatch.setattr(causal_attention, "QUERIES", 16)
    by_row = make(model, torch.bfloat16, 128)
    assert (padded._by_row, by_row._by_row) == (False, True)
    mine, other = fed(by_row, turns), fed(padded, turns)
    with torch.no_grad():
        exact = torch.stack(
            [
                model(input_ids=torch.from_numpy(np.concatenate(parts))[None]).logits[0, -1]
                for parts in zip(*turns, strict=True)
            ]
        )
    off = [float((x - exact).norm() / exact.norm()) for x in (mine, other)]
    assert 0 < off[0] < max(1.5 * off[1], 0.03)
    assert not make(model, torch.float32, 128)._by_row


def test_small_models_are_fed_as_ever() -> None:
    assert not choose_forward(small("llama"), torch.bfloat16, 128)._by_row  # pyright: ignore[reportAttributeAccessIssue]
