"""Widths of padded rows and lengths of packs: they repeat from micro batch to micro batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.branching import branching
from helpers.nets import small
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.learner.batching import micro_batch
from turngym.algos.learner.batching.micro_batch import (
    COLUMN_GRAIN,
    Batching,
    Columns,
    MicroBatch,
    round_up,
)
from turngym.algos.learner.batching.rows import Row, rows_of
from turngym.algos.learner.scoring.packed_layers import PackedLayers
from turngym.algos.learner.scoring.scoring import TokenModel, attention_for

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
    exact, rounded = shapes(Columns()), shapes(Columns.on(CUDA, 128))
    assert len({width for _, width in exact}) > 10
    assert {width for _, width in rounded} == {COLUMN_GRAIN, 2 * COLUMN_GRAIN}
    assert all(rows * width <= 400 for rows, width in rounded)


def test_the_context_of_a_model_bounds_the_columns() -> None:
    assert Columns.on(CUDA, 100).of(70) == 100
    assert Columns.on(CUDA, None).of(70) == 128
    assert Columns.on(CUDA, 60).of(70) == 70
    assert Columns.on(CPU, 100).of(70) == 72
    assert Columns.on(CPU, 71).of(70) == 71
    assert (Columns.on(CPU, None).rows(70), Columns.on(CUDA, None).rows(70)) == (72, 70)


def test_more_columns_change_no_number() -> None:
    net, rows = small("qwen2"), [row(30), row(41), row(25)]
    found: list[tuple[Any, ...]] = []
    many = [row(20 + n % 23) for n in range(33)]
    for shape, paths in (((3, 64), rows), ((34, 42), many)):
        found.clear()
        for columns in (None, Columns(grain=64 if paths is rows else None)):
            batch = MicroBatch.padded(paths, 0, CPU, columns)
            scored = TokenModel(net, 1.0).score(batch)
            found.append(tuple(batch.in_paths(values) for values in scored))
        assert batch.ids.shape == shape
        for here, there in zip(*found, strict=True):
            torch.testing.assert_close(here, there, atol=1e-5, rtol=1e-5)


def test_positions_that_are_read_have_few_counts() -> None:
    batch = MicroBatch.padded([row(n) for n in range(20, 60)], 0, CPU, Columns.on(CPU, None))
    needed = batch.read_positions()
    assert len(needed) == len(needed.unique()) == round_up(len(batch.before.unique()))
    assert set(batch.before.tolist()) <= set(needed.tolist())
    whole = MicroBatch.padded([row(4)], 0, CPU)
    assert whole.read_positions().tolist() == [2]


@given(st.integers(1, 10**6))
def test_packs_have_sixteen_lengths_between_powers_of_two(count: int) -> None:
    wide = round_up(count)
    assert count <= wide <= max(count, 1.0625 * count)
    assert round_up(wide) == wide
    power = 1 << (count.bit_length() - 1)
    assert len({round_up(n) for n in range(power, 2 * power, max(1, power // 64))} - {power}) <= 16


@pytest.mark.parametrize("large", [False, True])
def test_what_fills_a_pack_changes_no_number(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(branching(3, turns=5))
    found: list[list[torch.Tensor]] = []
    for rounded in (round_up, lambda count: count):
        monkeypatch.setattr(micro_batch, "round_up", rounded)
        net = small("llama")
        tokens = TokenModel(net, 1.0, "bfloat16" if large else "float32")
        if large:
            tokens.layers = PackedLayers(net)
        batch = MicroBatch.packed(rows, CPU)
        with attention_for([net], batch):
            scored = [batch.in_paths(values) for values in tokens.score(batch)]
            (scored[0].sum() + scored[1].square().sum()).backward()
        slopes = [p.grad for p in net.parameters() if p.grad is not None]
        found.append([*(x.detach() for x in scored), *slopes])
        assert batch.ids.shape[1] == rounded(batch.layout.ends.numel())
    assert batch.ids.shape[1] % 2  # an odd length was rounded before
    loose = 0.03 if large else 1e-5
    for here, there in zip(*found, strict=True):
        assert here.isfinite().all()
        torch.testing.assert_close(here, there, atol=loose, rtol=loose)
