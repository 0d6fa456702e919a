"""Packs in layers with a sliding window: every token sees the last ones of its own path only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.branching import branching
from helpers.nets import gemma3
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.learner.attention import block_attention
from turngym.algos.learner.attention.packing import Pack
from turngym.algos.learner.attention.tree_attention import (
    BLOCK_TOKENS,
    NAME,
    TreeLayout,
    attending,
    tree_attention,
)
from turngym.algos.learner.batching.micro_batch import MicroBatch
from turngym.algos.learner.batching.prefix_sharing import why_not_shared
from turngym.algos.learner.batching.rows import rows_of

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("flex_backward_on_cpu")


def grown(seed: int, tokens: int = 60) -> Pack:
    """A pack of one tree: some tokens go on from an earlier one of their line."""
    rng = np.random.default_rng(seed)
    parents = np.arange(-1, tokens - 1)
    for at in np.flatnonzero(rng.random(tokens) < 0.1):
        up = at - 1
        for _ in range(int(rng.integers(tokens // 2))):
            up = parents[up] if up >= 0 else -1
        parents[at] = up
    lines = []
    for leaf in sorted(set(range(tokens)) - set(parents.tolist())):
        line = [leaf]
        while parents[line[-1]] >= 0:
            line.append(int(parents[line[-1]]))
        lines.append(np.array(line[::-1]))
    return Pack.of(lines, lines)


def of_paths(pack: Pack, window: int) -> torch.Tensor:
    """Which token sees which, path by path ``[tokens, tokens]``."""
    seen = torch.zeros(len(pack), len(pack), dtype=torch.bool)
    for line in pack.paths:
        for i, at in enumerate(line):
            seen[at, line[max(0, i + 1 - window) : i + 1]] = True
    return seen


def run(attend: Any, pack: Pack) -> list[torch.Tensor]:
    """Output and gradients of query, key and value."""
    rng = torch.Generator().manual_seed(0)
    shapes = [(1, heads, len(pack), 16) for heads in (4, 2, 2)]
    inputs = [torch.randn(s, generator=rng).requires_grad_() for s in shapes]
    out = attend(*inputs)
    out.backward(torch.randn(out.shape, generator=rng))
    return [out.detach(), *(t.grad for t in inputs if t.grad is not None)]


def wanted(pack: Pack, window: int) -> list[torch.Tensor]:
    def attend(q: Any, k: Any, v: Any) -> torch.Tensor:
        k, v = (x.repeat_interleave(2, 1) for x in (k, v))
        scores = (0.3 * q @ k.mT).masked_fill(~of_paths(pack, window), float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2)

    return run(attend, pack)


@pytest.mark.parametrize("how", ["blocks", "flex", "mask"])
@given(
    seed=st.integers(0, 2**20),
    chunk=st.sampled_from([1, 5, 128]),
    window=st.sampled_from([1, 2, 7, 16, 59, 60]),
)
@settings(max_examples=5, deadline=None)
def test_equal_to_the_paths(how: Any, seed: int, chunk: int, window: int) -> None:
    pack = grown(seed)
    layout = TreeLayout.of(pack, CPU, how)

    def attend(q: Any, k: Any, v: Any) -> torch.Tensor:
        more = {"scaling": 0.3, "tree_layout": layout, "sliding_window": window}
        return tree_attention(torch.nn.Module(), q, k, v, None, **more)[0]

    before = block_attention.CHUNK
    block_attention.CHUNK = chunk
    try:
        got = run(attend, pack)
    finally:
        block_attention.CHUNK = before
    for mine, theirs in zip(got, wanted(pack, window), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


def test_a_window_that_no_path_exceeds_is_no_window() -> None:
    pack = grown(0)
    layout = TreeLayout.of(pack, CPU)
    longest = max(len(line) for line in pack.paths)
    assert layout.within(None) is layout
    assert layout.within(longest) is layout
    assert layout.within(longest - 1) is layout.within(longest - 1) is not layout
    assert layout.asked == {None, longest, longest - 1}


@pytest.mark.parametrize("window", [1, 100, 128, 300, 511])
def test_flex_blocks_hold_what_they_are_said_to_hold(window: int) -> None:
    for seed in range(3):
        pack = grown(seed, 512)
        mask = TreeLayout.of(pack, CPU, "flex").within(window).block_mask()
        seen = of_paths(pack, window).unflatten(1, (-1, BLOCK_TOKENS))
        seen = seen.unflatten(0, (-1, BLOCK_TOKENS)).transpose(1, 2).flatten(2)
        listed = {}
        for kind in ("", "full_"):
            counts, indices = (
                getattr(mask, f"{kind}kv_{what}")[0, 0] for what in ("num_blocks", "indices")
            )
            listed[kind] = {(q, int(k)) for q, n in enumerate(counts) for k in indices[q, : int(n)]}
        assert all(bool(seen[at].all()) for at in listed["full_"])
        some = {tuple(at) for at in seen.any(-1).nonzero().tolist()}
        assert some <= listed[""] | listed["full_"]
        blocks = 512 // BLOCK_TOKENS
        if window == 1:  # the others have no depth in common
            assert len(listed[""] | listed["full_"]) < blocks * (blocks + 1) // 2


@pytest.mark.parametrize("how", ["blocks", "flex", "mask"])
def test_hidden_states_are_those_of_the_paths(how: Any) -> None:
    model = gemma3(window=8, layers=2)
    rows = rows_of(branching(4))
    assert max(len(row.ids) for row in rows) > 2 * 8
    batch = MicroBatch.packed(rows, CPU, how)
    pack = Pack.of([r.ids for r in rows], [r.numbers for r in rows])
    with torch.no_grad(), attending([model], NAME):
        states = model.get_decoder()(**batch.inputs()).last_hidden_state[0]
    for row, line in zip(rows, pack.paths, strict=True):
        with torch.no_grad():
            own = model.get_decoder()(input_ids=torch.from_numpy(row.ids)[None])
        torch.testing.assert_close(states[line], own.last_hidden_state[0], rtol=1e-4, atol=1e-5)


def test_gemma3_shares_and_a_layer_that_hides_its_window_does_not() -> None:
    model = gemma3()
    assert why_not_shared(model) is None
    for layer in model.model.layers:
        layer.self_attn.sliding_window = None
    assert "ask for attention to windows ['None']" in str(why_not_shared(model))
    both = gemma3(use_bidirectional_attention=True)
    assert "windows" in str(why_not_shared(both)) or "something else" in str(why_not_shared(both))
