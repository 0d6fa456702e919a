"""Attention as compiled loops, against one plain mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.branching import branching
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.learner.attention.packing import Block, FlatBlocks, Pack
from turngym.algos.learner.attention.tree_attention import TreeLayout
from turngym.algos.learner.batching.rows import rows_of

kernels: Any = pytest.importorskip("turngym.algos.learner.attention.block_kernels")

CPU = torch.device("cpu")
HEADS, GROUP, WIDTH = 2, 3, 8


def pack_of(seed: int) -> Pack:
    rows = rows_of(branching(seed, turns=5))
    return Pack.of([r.ids for r in rows], [r.numbers for r in rows])


def inputs(tokens: int, seed: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    rng = torch.Generator().manual_seed(seed)
    made = [torch.randn(HEADS, tokens, n * WIDTH, generator=rng) for n in (GROUP, 1, 1, GROUP)]
    return tuple(x.to(dtype) for x in made)


def by_mask(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float
) -> torch.Tensor:
    """What every token sees, ``[heads, tokens, group * width]``."""
    apart = q.unflatten(-1, (GROUP, WIDTH)).transpose(1, 2).flatten(0, 1)
    shared = [x.repeat_interleave(GROUP, 0) for x in (k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(
        apart, *shared, attn_mask=mask, scale=scale
    )
    return out.unflatten(0, (HEADS, GROUP)).transpose(1, 2).flatten(2)


@given(
    seed=st.integers(0, 2**20),
    window=st.sampled_from([None, 1, 3, 17]),
    half=st.booleans(),
    share=st.sampled_from([1.0, 0.4]),
)
@settings(max_examples=20, deadline=None)
def test_as_one_mask_says(seed: int, window: int | None, half: bool, share: float) -> None:
    pack = pack_of(seed)
    layout = TreeLayout.of(pack, CPU).within(window)
    q, k, v, towards = inputs(len(pack), seed, torch.bfloat16 if half else torch.float32)
    wanted = np.random.default_rng(seed).random(len(pack)) < share
    towards[:, ~wanted] = 0
    out = kernels.attend(q, k, v, layout.flat(), wanted, 0.4)
    grads = kernels.attend_backward(towards, (q, k, v), layout.flat(), wanted, 0.4)
    wide = [x.float().requires_grad_() for x in (q, k, v)]
    mask = TreeLayout.of(pack, CPU, "mask").within(window).mask()[0]
    expected = by_mask(*wide, mask, 0.4)
    expected.backward(towards.float())
    near = {"rtol": 2**-7, "atol": 2e-2} if half else {"rtol": 1e-4, "atol": 1e-5}
    assert not out[:, ~wanted].any()
    torch.testing.assert_close(out[:, wanted].float(), expected[:, wanted].detach(), **near)
    for mine, x in zip(grads, wide, strict=True):
        torch.testing.assert_close(mine.float(), x.grad, **near)
    assert grads[0].dtype == q.dtype
    assert grads[1].dtype == torch.float32


def test_long_spans_and_contexts_of_several_ranges() -> None:
    """Longer than the queries and the keys that a loop takes at a time."""
    blocks = (
        Block((), (0,), (70,)),
        Block(((0, 70),), (70, 150), (80, 41)),
        Block(((0, 70), (150, 191)), (191,), (99,)),
    )
    n, seen = 290, torch.zeros(290, 290, dtype=torch.bool)
    for block in blocks:
        for start, length in zip(block.starts, block.lengths, strict=True):
            for t in range(start, start + length):
                seen[t, start : t + 1] = True
                for first, stop in block.prefix:
                    seen[t, first:stop] = True
    flat = FlatBlocks.of(blocks)
    assert flat.longest == 210
    assert flat.tokens == n
    assert flat.entries == int(seen.sum())
    q, k, v, towards = (x.requires_grad_() for x in inputs(n, 0, torch.float32))
    expected = by_mask(q, k, v, seen, 0.3)
    expected.backward(towards)
    everyone, plain = np.ones(n, np.bool_), [x.detach() for x in (q, k, v)]
    torch.testing.assert_close(kernels.attend(*plain, flat, everyone, 0.3), expected.detach())
    grads = kernels.attend_backward(towards.detach(), tuple(plain), flat, everyone, 0.3)
    for mine, x in zip(grads, (q, k, v), strict=True):
        torch.testing.assert_close(mine, x.grad, rtol=1e-4, atol=1e-5)


def test_tokens_behind_all_spans_see_nothing() -> None:
    pack = pack_of(3)
    n = len(pack)
    flat = TreeLayout.of(pack, CPU).flat()
    q, k, v, towards = inputs(n + 5, 0, torch.float32)
    everyone = np.ones(n + 5, np.bool_)
    assert not kernels.attend(q, k, v, flat, everyone, 1.0)[:, n:].any()
    for grad in kernels.attend_backward(towards, (q, k, v), flat, everyone, 1.0):
        assert grad[:, :n].any()
        assert not grad[:, n:].any()


def test_no_bit_depends_on_the_number_of_threads() -> None:
    pack = pack_of(4)
    flat = TreeLayout.of(pack, CPU).flat()
    q, k, v, towards = inputs(len(pack), 0, torch.float32)
    everyone = np.ones(len(pack), np.bool_)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            out = kernels.attend(q, k, v, flat, everyone, 1.0)
            grads = kernels.attend_backward(towards, (q, k, v), flat, everyone, 1.0)
            found.append([out, *grads])
    finally:
        torch.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        assert torch.equal(one, two)


def test_what_is_not_finite_stays_so() -> None:
    """A run that has gone wrong must be seen to, not be mended by a loop."""
    pack = pack_of(5)
    flat = TreeLayout.of(pack, CPU).flat()
    everyone = np.ones(len(pack), np.bool_)
    for bad in (float("nan"), float("inf")):
        q, k, v, _ = inputs(len(pack), 0, torch.float32)
        v[0, 0, 0] = bad
        assert not kernels.attend(q, k, v, flat, everyone, 1.0).isfinite().all()
    q, k, v, _ = inputs(len(pack), 0, torch.float32)
    q[0, 0, 0] = float("nan")
    assert not kernels.attend(q, k, v, flat, everyone, 1.0).isfinite().all()
