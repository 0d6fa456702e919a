"""Widths of padded rows: on CUDA they repeat from micro batch to micro batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from helpers.nets import small

from turngym.algos.learner.batching.micro_batch import COLUMN_GRAIN, Batching, Columns, MicroBatch
from turngym.algos.learner.batching.rows import Row
from turngym.algos.learner.scoring.scoring import TokenModel

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def row(length: int) -> Row:
    at = np.arange(3, length)
    ids = np.random.default_rng(length).integers(0, 320, length)
    turns, sampled = np.zeros(len(at), np.int64), np.zeros(len(at), np.float32)
    return Row(ids, at, turns, sampled, np.arange(length))


def shapes(columns: Columns, budget: int = 400) -> list[tuple[int, ...]]:
    rows = [row(n) for n in np.random.default_rng(0).integers(20, 128, 60)]
    cut = Batching(token_budget=budget, pad_id=0, device=CPU, shared=False, columns=columns)
    parts = list(cut(rows, range(len(rows))))
    assert sorted(i for part, _ in parts for i in part) == list(range(60))
    return [tuple(batch.ids.shape) for _, batch in parts]


def test_a_gpu_meets_few_shapes_and_never_more_tokens_than_asked_for() -> None:
    exact, rounded = shapes(Columns.on(CPU, 128)), shapes(Columns.on(CUDA, 128))
    assert len({width for _, width in exact}) > 10
    assert {width for _, width in rounded} == {COLUMN_GRAIN, 2 * COLUMN_GRAIN}
    assert all(rows * width <= 400 for rows, width in rounded)


def test_the_context_of_a_model_bounds_the_columns() -> None:
    assert Columns.on(CUDA, 100).of(70) == 100
    assert Columns.on(CUDA, None).of(70) == 128
    assert Columns.on(CUDA, 60).of(70) == 70
    assert Columns.on(CPU, 100).of(70) == 70


def test_more_columns_change_no_number() -> None:
    net, rows = small("qwen2"), [row(30), row(41), row(25)]
    found: list[tuple[Any, ...]] = []
    for columns in (None, Columns(grain=64)):
        batch = MicroBatch.padded(rows, 0, CPU, columns)
        found.append(TokenModel(net, 1.0).score(batch))
    assert batch.ids.shape == (3, 64)
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(here, there, atol=1e-5, rtol=1e-5)
