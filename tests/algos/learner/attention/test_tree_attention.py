"""Three ways to compute tree attention, held to one plain mask; and how models take it up."""

from __future__ import annotations

from types import MethodType
from typing import Any

import numpy as np
import pytest
import torch
from helpers.branching import branching
from helpers.nets import FAMILIES, SMALL, small
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import create_block_mask
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from turngym.algos.learner.attention import block_attention
from turngym.algos.learner.attention import tree_attention as tree_module
from turngym.algos.learner.attention.packing import Pack
from turngym.algos.learner.attention.tree_attention import (
    NAME,
    TreeLayout,
    attending,
    interval_blocks,
    tree_attention,
)
from turngym.algos.learner.batching import prefix_sharing
from turngym.algos.learner.batching.micro_batch import MicroBatch
from turngym.algos.learner.batching.prefix_sharing import why_not_shared
from turngym.algos.learner.batching.rows import rows_of
from turngym.envs.core.errors import BadValueError

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("flex_backward_on_cpu")


def packed(seed: int, **shape: Any) -> Pack:
    rows = rows_of(branching(seed, **shape))
    return Pack.of([r.ids for r in rows], [r.numbers for r in rows])


def run(pack: Pack, how: Any, dtype: torch.dtype, seed: int = 0) -> list[torch.Tensor]:
    """Output and gradients of query, key and value."""
    rng = torch.Generator().manual_seed(seed)
    shapes = [(1, 4, len(pack), 16), (1, 2, len(pack), 16), (1, 2, len(pack), 16)]
    inputs = [torch.randn(s, generator=rng).to(dtype).requires_grad_() for s in shapes]
    out, weights = tree_attention(
        torch.nn.Module(), *inputs, None, scaling=0.3, tree_layout=TreeLayout.of(pack, CPU, how)
    )
    assert weights is None
    towards = torch.randn(out.shape, generator=rng).to(dtype)
    out.backward(towards)
    return [out.detach(), *(t.grad for t in inputs if t.grad is not None)]


@pytest.mark.parametrize("how", ["blocks", "flex"])
@given(seed=st.integers(0, 2**20), chunk=st.sampled_from([1, 3, 128]))
@settings(max_examples=15, deadline=None)
def test_equal_to_one_mask(how: str, seed: int, chunk: int) -> None:
    pack = packed(seed, turns=5)
    before = block_attention.CHUNK
    block_attention.CHUNK = chunk
    try:
        got = run(pack, how, torch.float32)
    finally:
        block_attention.CHUNK = before
    for mine, wanted in zip(got, run(pack, "mask", torch.float32), strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-5)


def test_long_spans_and_many_of_them() -> None:
    rng = np.random.default_rng(0)
    lines, start = [], 150
    for length in (140, 131, 140, 3, 2, 1, 60, 64):
        lines.append(np.concatenate([np.arange(150), np.arange(start, start + length)]))
        start += length
    pack = Pack.of([rng.integers(0, 9, len(line)) for line in lines], lines)
    assert 1 < len(pack.blocks()) < 8
    for mine, wanted in zip(
        run(pack, "blocks", torch.float32), run(pack, "mask", torch.float32), strict=True
    ):
        torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=2e-5)


def test_bfloat16_is_as_close_as_one_mask_is() -> None:
    pack = packed(1)
    exact = run(pack, "mask", torch.float32)
    for mine, plain, wanted in zip(
        run(pack, "blocks", torch.bfloat16), run(pack, "mask", torch.bfloat16), exact, strict=True
    ):
        error, allowed = (mine - wanted).norm(), (plain - wanted).norm()
        assert 0 < error < 2 * allowed + 1e-3 * wanted.norm()


class Largest(TorchDispatchMode):
    """Entries of the largest tensor that any operation returned."""

    entries = 0

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor):
                self.entries = max(self.entries, t.numel())
        return out


def forked(seed: int, tokens: int) -> Pack:
    """A pack of so many tokens: every token goes on from one of the last 400 in its line."""
    rng = np.random.default_rng(seed)
    parents = np.arange(-1, tokens - 1)
    for at in np.flatnonzero(rng.random(tokens) < 0.03):
        up = at - 1
        for _ in range(int(rng.integers(400))):
            up = parents[up] if up >= 0 else -1
        parents[at] = up
    lines = []
    for leaf in set(range(tokens)) - set(parents.tolist()):
        line = [leaf]
        while parents[line[-1]] >= 0:
            line.append(int(parents[line[-1]]))
        lines.append(np.array(line[::-1]))
    return Pack.of(lines, lines)


@pytest.mark.parametrize("tokens", [3, 127, 128, 129, 384, 1_500])
def test_block_masks_from_intervals_are_torchs_own(tokens: int) -> None:
    for seed in range(3):
        pack = forked(seed, tokens)
        layout = TreeLayout.of(pack, CPU, "flex")
        mine, ends = layout.block_mask(), layout.ends
        n = len(ends)
        wanted = create_block_mask(
            lambda _b, _h, q, k, ends=ends: (k <= q) & (q < ends[k]), None, None, n, n, device="cpu"
        )
        assert mine.shape == wanted.shape
        assert mine.BLOCK_SIZE == wanted.BLOCK_SIZE
        assert layout.block_mask() is mine  # built once
        for name in ("kv", "q"):
            for kind in ("", "full_"):
                counts, indices = (
                    [getattr(m, f"{kind}{name}_{what}") for m in (mine, wanted)]
                    for what in ("num_blocks", "indices")
                )
                assert torch.equal(*counts)
                for a, b, count in zip(*(i[0, 0] for i in indices), counts[0][0, 0], strict=True):
                    assert torch.equal(a[:count], b[:count])


def test_block_masks_are_built_without_a_table_of_all_pairs() -> None:
    pack = forked(0, 2_000)
    ends = TreeLayout.of(pack, CPU, "flex").ends
    n = len(ends)
    with Largest() as before:
        create_block_mask(lambda _b, _h, q, k: q < ends[k], None, None, n, n, device="cpu")
    with Largest() as now:
        interval_blocks(ends)
    assert before.entries >= n * n
    assert now.entries <= n


def test_the_blocks_of_a_cpu_are_worked_out_for_a_cpu_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pack = packed(0)
    assert TreeLayout.of(pack, CPU, "blocks").blocks
    monkeypatch.setattr(Pack, "blocks", lambda _: pytest.fail("nobody reads them"))
    TreeLayout.of(pack, CPU, "flex").block_mask()


def test_flex_attention_fails_rather_than_run_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [torch.ones(1, *[1] * i, 2) for i in range(4)]
    monkeypatch.setattr(tree_module, "MOST_VARIANTS", 2)

    def compiled() -> Any:
        torch._dynamo.reset()
        return torch.compile(lambda x: x.view(x.numel()).sin(), backend="eager", dynamic=False)

    def run(forms: Any) -> None:
        for x in shapes:
            forms(x)

    with torch._dynamo.config.patch(recompile_limit=2):
        run(compiled())  # past the limit torch goes on without its compiler
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
            run(tree_module.never_uncompiled(compiled()))
    monkeypatch.setattr(tree_module, "MOST_VARIANTS", 8)
    run(tree_module.never_uncompiled(compiled()))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_flex_attention_on_cuda_of_long_packs_and_wide_heads() -> None:
    """Three trees of 5,000 tokens, heads of 128 of which seven share a key head."""
    for seed in range(3):
        pack = forked(seed, 5_000)
        made = {}
        for how in ("flex", "mask"):
            rng = torch.Generator().manual_seed(0)
            shapes = [(1, heads, len(pack), 128) for heads in (14, 2, 2)]
            inputs = [
                torch.randn(s, generator=rng).to("cuda", torch.bfloat16).requires_grad_()
                for s in shapes
            ]
            layout = TreeLayout.of(pack, torch.device("cuda"), how)
            out, _ = tree_attention(torch.nn.Module(), *inputs, None, tree_layout=layout)
            out.float().square().sum().backward()
            made[how] = [out, *(t.grad for t in inputs)]
        for mine, wanted in zip(made["flex"], made["mask"], strict=True):
            assert mine.isfinite().all()
            assert (mine - wanted).float().norm() < 1e-2 * wanted.float().norm()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_flex_attention_on_cuda(dtype: torch.dtype) -> None:
    packs = [packed(seed, groups=6, turns=12) for seed in range(3)]
    for pack in [*packs, forked(0, 40), forked(1, 100)]:  # short ones have kernels of their own
        made = {}
        for how in ("flex", "mask"):
            rng = torch.Generator().manual_seed(0)
            shapes = [(1, 4, len(pack), 64), (1, 2, len(pack), 64), (1, 2, len(pack), 64)]
            inputs = [
                torch.randn(s, generator=rng).to("cuda", dtype).requires_grad_() for s in shapes
            ]
            layout = TreeLayout.of(pack, torch.device("cuda"), how)
            out, _ = tree_attention(torch.nn.Module(), *inputs, None, tree_layout=layout)
            out.float().square().sum().backward()
            made[how] = [out, *(t.grad for t in inputs)]
        for mine, wanted in zip(made["flex"], made["mask"], strict=True):
            if dtype == torch.bfloat16:  # single numbers are off by a bit of large gradients
                assert (mine - wanted).float().norm() < 1e-2 * wanted.float().norm()
            else:
                torch.testing.assert_close(mine, wanted, rtol=2e-3, atol=2e-3)


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("how", ["blocks", "flex", "mask"])
@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_are_those_of_the_paths(family: str, how: Any) -> None:
    model = small(family)
    rows = rows_of(branching(4))
    batch = MicroBatch.packed(rows, CPU, how)
    pack = Pack.of([r.ids for r in rows], [r.numbers for r in rows])
    with torch.no_grad(), attending([model], NAME):
        states = model.get_decoder()(**batch.inputs()).last_hidden_state[0]
    assert model.config._attn_implementation == "sdpa"
    for row, line in zip(rows, pack.paths, strict=True):
        with torch.no_grad():
            own = model.get_decoder()(input_ids=torch.from_numpy(row.ids)[None])
        torch.testing.assert_close(states[line], own.last_hidden_state[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_these_models_share(family: str) -> None:
    assert why_not_shared(small(family)) is None


def test_these_models_do_not_and_say_why() -> None:
    window = small("qwen2", use_sliding_window=True, sliding_window=8, max_window_layers=1)
    assert "sliding_attention" in str(why_not_shared(window))
    mistral = MistralForCausalLM(MistralConfig(**SMALL, sliding_window=64))
    assert "sliding window of 64" in str(why_not_shared(mistral))
    capped = Gemma2ForCausalLM(
        Gemma2Config(**SMALL | {"layer_types": ["full_attention"] * 2, "attn_implementation": None})
    )
    assert "softcap" in str(why_not_shared(capped))


def test_learned_positions_follow_the_depth() -> None:
    config = GPT2Config(vocab_size=320, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    config.bos_token_id = config.eos_token_id = None
    assert why_not_shared(GPT2LMHeadModel(config).eval()) is None


def test_a_model_that_ignores_positions_is_found_out() -> None:
    model = small("qwen2")
    inner = model.get_decoder()
    forward = inner.forward

    def without_positions(*args: Any, position_ids: Any = None, **more: Any) -> Any:
        return forward(*args, **more)

    inner.forward = without_positions
    assert "something else" in str(why_not_shared(model))


def coarse(seed: int) -> Any:
    """A model whose attention is so sharp that bfloat16 rounds it to something else."""
    torch.manual_seed(seed)
    config = LlamaConfig(**SMALL | {"num_hidden_layers": 4, "initializer_range": 0.2})
    model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight *= 32.0
    return model


def test_rounding_of_the_rows_is_no_reason_against_sharing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = coarse(3)
    monkeypatch.setattr(prefix_sharing, "HALF_TOLERANCE", 0.01)  # as rounding is where depth is 30
    with pytest.warns(UserWarning, match=r"prefixes are shared: .* off float32 and rows are"):
        assert why_not_shared(model) is None
    monkeypatch.setattr(prefix_sharing, "WIDE_PARAMETERS", 20_000)  # then with fewer layers
    with pytest.warns(UserWarning, match="prefixes are shared"):
        assert why_not_shared(model) is None
    assert len(model.model.layers) == 4

    def without_positions(self: Any, *args: Any, position_ids: Any = None, **more: Any) -> Any:
        return type(self).forward(self, *args, **more)

    inner = model.get_decoder()
    inner.forward = MethodType(without_positions, inner)
    assert "something else" in str(why_not_shared(model))


def test_dropout_and_a_missing_layout_are_refused() -> None:
    q = torch.randn(1, 2, 3, 4)
    with pytest.raises(BadValueError, match="cannot receive the tree mask"):
        tree_attention(torch.nn.Module(), q, q, q, None)
    layout = TreeLayout.of(packed(0), CPU)
    with pytest.raises(BadValueError, match="dropout"):
        tree_attention(torch.nn.Module(), q, q, q, None, tree_layout=layout, dropout=0.1)


def test_implementations_are_put_back_after_an_error() -> None:
    one, other = small("qwen2"), small("llama")
    other.set_attn_implementation("eager")

    def fail() -> None:
        with attending([one, other, one], NAME):
            assert one.config._attn_implementation == NAME
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert one.config._attn_implementation == "sdpa"
    assert other.config._attn_implementation == "eager"
