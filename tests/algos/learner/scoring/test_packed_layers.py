"""The packed layers of large models on a CPU, against the model's own layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from helpers.branching import branching
from helpers.nets import SMALL, gemma3, small
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from turngym.algos.core.protocols import Credits
from turngym.algos.learner import model_bundle
from turngym.algos.learner.attention import span_attention
from turngym.algos.learner.attention.packing import Pack
from turngym.algos.learner.attention.span_attention import SpanAttention, spans_of
from turngym.algos.learner.attention.tree_attention import NAME, TreeLayout, attending
from turngym.algos.learner.batching.micro_batch import MicroBatch, round_up
from turngym.algos.learner.batching.rows import Row, distinct_tokens, rows_of
from turngym.algos.learner.importance_weights import (
    Protection,
    rejected,
    weighed,
    without_paths,
)
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.scoring import layer_parts, pack_attention, scoring
from turngym.algos.learner.scoring.fused_head import HeadSettings
from turngym.algos.learner.scoring.head_scores import head_scores
from turngym.algos.learner.scoring.kept_memory import KeptMemory
from turngym.algos.learner.scoring.pack_attention import has_loops
from turngym.algos.learner.scoring.packed_layers import PackedLayers, why_not_packed
from turngym.algos.learner.scoring.token_scores import token_scores
from turngym.algos.learner.settings import LearnerSettings, Precision
from turngym.algos.recipes import make_recipe

CPU = torch.device("cpu")
PRECISIONS = pytest.mark.parametrize("precision", ["float32", "bfloat16"])


@given(seed=st.integers(0, 2**20), queries=st.sampled_from([1, 3, 128]))
@settings(max_examples=12, deadline=None)
def test_spans_attend_as_one_mask_does(seed: int, queries: int) -> None:
    rows = rows_of(branching(seed, turns=5))
    pack = Pack.of([r.ids for r in rows], [r.numbers for r in rows])
    rng = torch.Generator().manual_seed(seed)
    q, k, v, grad = (
        torch.randn(2, len(pack), width, generator=rng) for width in (3 * 8, 8, 8, 3 * 8)
    )
    before = span_attention.QUERIES
    span_attention.QUERIES = queries
    try:
        attention = SpanAttention(spans_of(pack.blocks()))
        out, logsumexp = attention(q, k, v)
        slopes = attention.backward(grad, (q, k, v), logsumexp)
    finally:
        span_attention.QUERIES = before
    wanted = [x.clone().requires_grad_() for x in (q, k, v)]
    apart = wanted[0].unflatten(-1, (3, 8)).transpose(1, 2).flatten(0, 1)
    mask = TreeLayout.of(pack, CPU, "mask").mask()[0]
    shared = [x.repeat_interleave(3, 0) for x in wanted[1:]]
    one = torch.nn.functional.scaled_dot_product_attention(
        apart, *shared, attn_mask=mask, scale=1.0
    )
    one = one.unflatten(0, (2, 3)).transpose(1, 2).flatten(2)
    torch.testing.assert_close(out, one, rtol=1e-4, atol=1e-5)
    one.backward(grad)
    for mine, x in zip(slopes, wanted, strict=True):
        torch.testing.assert_close(mine, x.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_compiled_parts_compute_as_torch_does(threads: int, temperature: float) -> None:
    """Roundings are in the same places, so few numbers differ, and those by one rounding."""
    layer_kernels = pytest.importorskip("turngym.algos.learner.scoring.layer_kernels")
    n, heads, group, width = 300, 2, 3, 8
    rng = torch.Generator().manual_seed(0)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=rng)

    def half(*shape: int) -> torch.Tensor:
        return numbers(*shape).bfloat16()

    x, added, weight, angles = numbers(n, 48), half(n, 48), numbers(48), numbers(n, width // 2)
    turns, norms = (angles.cos(), angles.sin(), 0.5), numbers(2, width)
    gated, grad, qkv = 3 * half(n, 80), half(n, 40), half(n, heads * (group + 2) * width)
    of_heads = (half(heads, n, group * width), *numbers(2, heads, n, width))
    logits, targets, towards = (
        3 * half(n, 40),
        torch.randint(40, (n,), generator=rng),
        numbers(2, n),
    )

    def everything(parts: Any) -> list[torch.Tensor]:
        found = [
            *parts.norm(x, weight, 1e-5, torch.bfloat16),
            *parts.norm(x, weight, 1e-5, torch.bfloat16, added),
        ]
        found += parts.norm_backward(half(n, 48), x, weight, 1e-5, numbers(n, 48))
        found += [parts.plus(x, added), parts.gate(gated), *parts.gate_backward(grad, gated)]
        found += [*parts.turn(qkv, *turns, heads), parts.turn_backward(of_heads, *turns)]
        found.append(parts.head_norm(qkv, norms, heads * group, 1e-5))
        found += parts.head_norm_backward(half(*qkv.shape), qkv, norms, heads * group, 1e-5)
        out = torch.empty(3, n)
        parts.measure(logits, targets, temperature, out)
        for of_entropies in (towards[1], None):
            slopes, grads = logits.clone(), (towards[0], of_entropies)
            parts.slopes(slopes, targets, temperature, (out[2], out[1]), grads)
            found.append(slopes)
        return [*found, out]

    before, state = torch.get_num_threads(), rng.get_state()
    torch.set_num_threads(threads)
    try:
        mine = everything(layer_kernels)
    finally:
        torch.set_num_threads(before)
    rng.set_state(state)
    for own, wanted in zip(mine, everything(layer_parts), strict=True):
        assert own.dtype == wanted.dtype
        rough = own.dtype == torch.bfloat16
        torch.testing.assert_close(own, wanted, rtol=2**-7 if rough else 1e-4, atol=1e-4)
        assert (own != wanted).float().mean() < (0.02 if rough else 1.0)


def test_no_bit_depends_on_the_number_of_threads() -> None:
    layer_kernels = pytest.importorskip("turngym.algos.learner.scoring.layer_kernels")
    x, weight = torch.randn(400, 48, generator=torch.Generator().manual_seed(0)), torch.ones(48)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(layer_kernels.norm_backward(x.bfloat16(), x, weight, 1e-5, x))
    finally:
        torch.set_num_threads(before)
    for total, of_weight in found[1:]:
        assert torch.equal(total, found[0][0])
        assert torch.equal(of_weight, found[0][1])


def batch_of(seed: int) -> MicroBatch:
    return MicroBatch.packed(rows_of(branching(seed, turns=5)), CPU)


def gradients(model: Any, states: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    model.zero_grad()
    hidden = states()
    towards = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(0))
    hidden.backward(towards.to(hidden.dtype))
    flat = torch.cat([p.grad.flatten() for p in model.get_decoder().parameters()])
    return hidden.detach().float(), flat


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).detach().norm() / b.detach().norm())


def varied(family: str) -> Any:
    """A small model whose biases and norms do something."""
    model = small(family)
    torch.manual_seed(0)
    if family == "qwen3":
        for name, weight in model.named_parameters():
            if "norm" in name:
                torch.nn.init.normal_(weight, 1.0, 0.3)
    if family == "qwen2":
        for layer in model.model.layers:
            for part in (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj):
                torch.nn.init.normal_(part.bias, std=0.3)
    return model


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_as_far_from_float32_as_the_models_own_layers(family: str, loops: bool) -> None:
    if loops and not has_loops():
        pytest.skip("the loops need numba")
    model = varied(family)
    assert why_not_packed(model) is None
    batch = batch_of(1)

    def own(half: bool) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=half), attending([model], NAME):
            return model.model(**batch.inputs()).last_hidden_state

    truth = gradients(model, lambda: own(False))
    theirs = gradients(model, lambda: own(True))
    mine = gradients(model, lambda: PackedLayers(model, loops=loops)(batch))
    for a, b, exact in zip(mine, theirs, truth, strict=True):
        assert 0 < distance(a, exact) < 1.5 * distance(b, exact)
    again = PackedLayers(model, activation_bytes=0, loops=loops)
    twice = gradients(model, lambda: again(batch))
    assert torch.equal(mine[1], twice[1])  # each layer computed twice is the same


@pytest.mark.parametrize("way", ["spans", "blocks", "loops"])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_equal_to_the_models_own_layers_in_float32(
    family: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_loops():
        pytest.skip("the loops need numba")
    loops = way != "spans"
    monkeypatch.setattr(pack_attention, "BLOCK_ENTRIES", 10**9 if way == "loops" else 0)
    monkeypatch.setattr(pack_attention, "PADDED_SHARE", 0.0)
    model, batch = varied(family), batch_of(2)
    with attending([model], NAME):
        own = gradients(model, lambda: model.model(**batch.inputs()).last_hidden_state)
    layers = PackedLayers(model, torch.float32, loops=loops)
    for mine, theirs in zip(gradients(model, lambda: layers(batch)), own, strict=True):
        assert distance(mine, theirs) < 1e-5
    # the last layer for some positions alone: what is read, and all gradients, stay as they are
    read = batch.read_positions()

    def some(layers: PackedLayers, where: torch.Tensor | None) -> torch.Tensor:
        with layers.reading(where):
            return layers(batch)[:, read]

    whole = gradients(model, lambda: some(layers, None))
    for mine, theirs in zip(gradients(model, lambda: some(layers, read)), whole, strict=True):
        assert distance(mine, theirs) < 1e-5


def test_heads_of_odd_sizes_are_left_to_products() -> None:
    model = LlamaForCausalLM(LlamaConfig(**SMALL | {"head_dim": 6})).eval()
    batch = batch_of(2)
    with attending([model], NAME):
        own = gradients(model, lambda: model.model(**batch.inputs()).last_hidden_state)
    layers = PackedLayers(model, torch.float32, loops=True)
    for mine, theirs in zip(gradients(model, lambda: layers(batch)), own, strict=True):
        assert distance(mine, theirs) < 1e-5


@pytest.mark.parametrize("large", [False, True])
@PRECISIONS
def test_an_update_is_that_of_the_models_own_layers(
    precision: Precision, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not large and not has_loops():
        pytest.skip("the loops need numba")
    monkeypatch.setattr(scoring, "is_large", lambda _: large)
    forest = branching(3, turns=4)
    rng = np.random.default_rng(0)
    credits = Credits([rng.normal(size=r.n_act).astype(np.float32) for r in rows_of(forest)])
    recipe = make_recipe("grpo", {"optim.minibatches": 1, "optim.warmup_steps": 0})
    rows, weights = [], []
    for own in (False, True):
        why = "asked for" if own else None
        monkeypatch.setattr(scoring, "why_not_packed", lambda _, why=why: why)
        model = varied("qwen3")
        learner = Learner(model, recipe, pad_id=0, settings=LearnerSettings(precision=precision))
        assert (learner.models.tokens.layers is None) == own
        ref = {"ref_logprobs": learner.ref_logprobs(forest)}
        rows.append(learner.update(forest, ref, credits))
        weights.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    near = 1e-4 if precision == "float32" else 0.05
    assert distance(*weights) < near
    for name in ("update/loss", "update/grad_norm"):
        assert rows[0][name] == pytest.approx(rows[1][name], rel=near, abs=near)


def test_hooks_of_others_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "is_large", lambda _: True)
    model, batch, seen = small("llama"), batch_of(1), []
    tokens = scoring.TokenModel(model, 1.0, "bfloat16")
    tokens.quicken(2**30)
    assert tokens.layers is not None
    with attending([model], NAME):
        mine = tokens.score(batch)[0]
        hook = model.model.layers[1].mlp.register_forward_hook(lambda *_: seen.append(1))
        theirs = tokens.score(batch)[0]
        hook.remove()
        again = tokens.score(batch)[0]
    assert seen == [1]
    assert not torch.equal(mine, theirs)
    assert torch.equal(mine, again)


def test_other_models_are_left_to_their_own_layers() -> None:
    assert "Gemma3ForCausalLM is none of" in str(why_not_packed(gemma3()))
    sliding = small("qwen2", use_sliding_window=True, sliding_window=8, max_window_layers=1)
    assert "a sliding window of 8" in str(why_not_packed(sliding))
    assert "activation" in str(why_not_packed(small("llama", hidden_act="gelu")))
    assert "biases behind" in str(why_not_packed(small("llama", attention_bias=True)))
    model = small("llama")
    assert PackedLayers(model).agrees()
    forward = model.model.layers[0].mlp.forward
    model.model.layers[0].mlp.forward = lambda x: 2 * forward(x)
    assert not PackedLayers(model).agrees()


@pytest.mark.parametrize("entropy", [True, False])
def test_the_head_in_pieces(entropy: bool) -> None:
    in_pieces = HeadSettings(
        temperature=0.7, entropy_gradient=entropy, dtype=torch.bfloat16, entries=5 * 40
    )
    rng = torch.Generator().manual_seed(0)
    states, weight = (torch.randn(n, 16, generator=rng).bfloat16() for n in (12, 40))
    targets = torch.randint(40, (12,), generator=rng)
    towards = torch.randn(2, 12, generator=rng)
    found = []
    for own in (True, False):
        s, w = (x.clone().float().requires_grad_() for x in (states, weight))
        if own:
            scores = head_scores(s, w, targets, in_pieces)
        else:
            scores = token_scores((s @ w.t()).bfloat16(), targets, 0.7, entropy)
        (scores[0] @ towards[0] + (scores[1] @ towards[1] if entropy else 0.0)).backward()
        found.append((*scores, s.grad, w.grad))
    for mine, other in zip(*found, strict=True):
        assert distance(mine, other) < 0.01


def kept_bytes(length: int, model: Any, precision: Precision) -> float:
    """Bytes per token that a pass over one path keeps for its backward pass."""
    row = Row(
        np.arange(length) % 300,
        np.array([length - 1]),
        np.zeros(1, np.int64),
        np.zeros(1, np.float32),
        np.arange(length),
    )
    batch = MicroBatch.packed([row], CPU)
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}

    def pack(t: torch.Tensor) -> torch.Tensor:
        storage = t.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return t

    tokens = scoring.TokenModel(model, 1.0, precision)
    tokens.quicken(2**40)
    assert tokens.layers is not None
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        states = tokens.hidden(batch)
    assert states.requires_grad
    return sum(kept.values()) / length


@PRECISIONS
def test_memory_of_a_token_does_not_grow_with_its_context(
    precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float32 too: there a path of a large model kept its attention weights of whole rows."""
    model = LlamaForCausalLM(LlamaConfig(**SMALL | {"max_position_embeddings": 2048})).eval()
    monkeypatch.setattr(scoring, "is_large", lambda _: True)
    short, long = (kept_bytes(length, model, precision) for length in (64, 1024))
    assert long < 1.1 * short
    said = PackedLayers(model, getattr(torch, precision)).bytes_per_token
    assert said < long < said + 8 * 4 * SMALL["hidden_size"]  # beside the embedding and last norm


@PRECISIONS
def test_a_large_models_micro_batches_fit_into_the_memory_for_them(
    precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    forest = branching(3, turns=4)
    rows = rows_of(forest)
    rng = np.random.default_rng(0)
    credits = Credits([rng.normal(size=row.n_act).astype(np.float32) for row in rows])
    recipe = make_recipe("grpo", {"optim.minibatches": 1, "optim.warmup_steps": 0})

    def updated(model: Any, **more: Any) -> tuple[Learner, dict[str, float]]:
        made = LearnerSettings(precision=precision, **more)
        learner = Learner(model, recipe, pad_id=0, settings=made)
        ref = {"ref_logprobs": learner.ref_logprobs(forest)}
        return learner, learner.update(forest, ref, credits)

    small_one, before = updated(small("llama"))
    assert (small_one.models.tokens.layers is not None) == has_loops()
    monkeypatch.setattr(scoring, "is_large", lambda _: True)
    large, row = updated(small("llama"))
    layers = large.models.tokens.layers
    assert layers is not None
    assert large.models.batching.token_budget == 8192
    assert row["update/loss"] == pytest.approx(before["update/loss"], abs=0.02)
    assert row["update/grad_norm"] == pytest.approx(before["update/grad_norm"], rel=0.05)
    trees = {(r.group, r.tree) for r in rows}
    largest = max(distinct_tokens([r for r in rows if (r.group, r.tree) == tree]) for tree in trees)
    monkeypatch.setattr(model_bundle, "ACTIVATION_BYTES", layers.bytes_per_token * largest)
    tight, again = updated(small("llama"))
    cut = [batch.ids.numel() for _, batch in tight.models.batching(rows, list(range(len(rows))))]
    assert len(cut) > 1
    assert max(cut) == round_up(largest)
    assert tight.models.batching.token_budget == largest
    assert again["update/grad_norm"] == pytest.approx(row["update/grad_norm"], rel=0.05)


def test_a_critic_of_its_own_is_counted_where_micro_batches_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scoring, "is_large", lambda _: True)
    room = 2**20
    monkeypatch.setattr(model_bundle, "ACTIVATION_BYTES", room)

    def budget(recipe: str, **more: Any) -> int:
        made = LearnerSettings(precision="bfloat16", **more)
        models = Learner(small("llama"), make_recipe(recipe), pad_id=0, settings=made).models
        layers = models.tokens.layers
        assert layers is not None
        # what rounding up may add still counts as fitting; a larger tree is computed again
        most = models.batching.token_budget * layers.bytes_per_token
        assert most <= layers.activation_bytes < 1.1 * most
        if models.critic is not None and models.critic.layers is not None:
            assert models.critic.layers.activation_bytes == layers.activation_bytes
        return models.batching.token_budget

    own = PackedLayers(small("llama")).bytes_per_token
    assert budget("grpo") == budget("ppo", critic="shared") == room // own
    # trained behind the policy it keeps nothing beside; half of the room is for its weights
    assert budget("ppo") == room // 2 // own
    monkeypatch.setattr(model_bundle, "split_values", lambda loss: ((loss,), ()))
    assert budget("ppo") == room // 6 // own  # both at once


def test_a_critic_of_its_own_computes_packs_as_the_policy_does() -> None:
    if not has_loops():
        pytest.skip("the loops need numba")
    made = LearnerSettings(precision="float32")
    models = Learner(small("llama"), make_recipe("ppo"), pad_id=0, settings=made).models
    critic, batch = models.critic, batch_of(1)
    assert critic is not None
    assert critic.layers is not None
    with torch.no_grad(), attending([critic.backbone], NAME):
        mine = critic.states(batch, None)
        critic.layers = None
        assert distance(mine, critic.states(batch, None)) < 1e-5
    shared = LearnerSettings(precision="float32", critic="shared")
    models = Learner(small("llama"), make_recipe("ppo"), pad_id=0, settings=shared).models
    assert models.critic is not None
    assert models.critic.layers is None  # it reads the policy's states


def test_padded_rows_of_a_large_model_fit_into_the_memory_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = rows_of(branching(3, turns=4))
    recipe = make_recipe("sft", {"optim.minibatches": 1})
    made = LearnerSettings(precision="bfloat16", shared_prefix=False)
    assert Learner(small("llama"), recipe, pad_id=0, settings=made).models.batching.fitting is None
    monkeypatch.setattr(scoring, "is_large", lambda _: True)
    models = Learner(small("llama"), recipe, pad_id=0, settings=made).models
    assert models.tokens.layers is None
    kept = KeptMemory.measured(models.tokens, CPU)
    # two layers: attention weights of 4 heads, at least in bfloat16, and more than the inputs
    assert kept.slope >= 2 * 4 * 2
    assert kept.base > PackedLayers(models.policy).bytes_per_token
    longest = max(len(row.ids) for row in rows)
    room = int(kept.of(3 * longest, longest)) + 1
    monkeypatch.setattr(model_bundle, "ACTIVATION_BYTES", room)
    models = Learner(small("llama"), recipe, pad_id=0, settings=made).models
    sizes = [b.ids.numel() for _, b in models.batching(rows, list(range(len(rows))))]
    assert len(sizes) > 1
    assert longest <= max(sizes) <= round_up(3 * longest)


@PRECISIONS
def test_one_step_that_scores_for_itself_is_the_step_after_scoring(
    precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "is_large", lambda _: True)
    forest = branching(3, turns=4)
    rng = np.random.default_rng(0)
    credits = Credits([rng.normal(size=r.n_act).astype(np.float32) for r in rows_of(forest)])
    off = max(float(np.abs(r.sampled).mean()) for r in rows_of(forest)) + 50

    def learner(**changes: Any) -> Learner:
        recipe = make_recipe("grpo", {"optim.minibatches": 1, "optim.warmup_steps": 0} | changes)
        made = LearnerSettings(precision=precision)
        return Learner(small("llama"), recipe, pad_id=0, settings=made)

    def ref(one: Learner) -> dict[str, Any]:
        return {"ref_logprobs": one.ref_logprobs(forest)}

    guard = Protection(cap=1e-3, reject_above=off)
    first, then = learner(), learner()
    now = first.logprobs(forest)
    apart, of_weights = weighed(credits, forest, now, 1e-3)
    one = first.update(forest, ref(first) | {"old_logprobs": now}, apart)
    done = then.update_scoring(forest, ref(then), credits, 1.0, guard)
    assert done is not None
    metrics, own = done
    assert own is not None
    assert all(np.array_equal(a, b) for a, b in zip(own, now, strict=True))
    expected = one | of_weights | {"update/rejected_frac": 0.0}
    assert metrics == pytest.approx(expected, rel=1e-6)  # sums of metrics in another order
    assert of_weights["update/importance_capped_frac"] > 0
    for a, b in zip(first.policy.parameters(), then.policy.parameters(), strict=True):
        assert torch.equal(a, b)
    # where a path must go, and where there are several steps, nothing happens
    strict = Protection(cap=1e-3, reject_above=0.01)
    steps = then.optimizer_steps
    assert then.update_scoring(forest, ref(then), credits, 1.0, strict) is None
    several = learner(**{"optim.epochs": 2})
    assert several.update_scoring(forest, ref(several), credits, 1.0, guard) is None
    assert (then.optimizer_steps, several.optimizer_steps) == (steps, 0)
    for a, b in zip(first.policy.parameters(), then.policy.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_silent_path_that_is_far_off_counts_alike_with_and_without_a_pass_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The step that scores for itself does not compute it, so the other one does not drop it."""
    monkeypatch.setattr(scoring, "is_large", lambda _: True)
    forest = branching(3, turns=4)
    rows = rows_of(forest)
    rng = np.random.default_rng(0)
    given = [rng.normal(size=row.n_act).astype(np.float32) for row in rows]
    given[1] = np.zeros_like(given[1])
    credits = Credits(given)

    def learner() -> Learner:
        recipe = make_recipe("dapo", {"optim.minibatches": 1, "optim.warmup_steps": 0})
        made = LearnerSettings(precision="bfloat16")
        return Learner(small("llama"), recipe, pad_id=0, settings=made)

    first, then = learner(), learner()
    assert first.loss_is_silent
    now = first.logprobs(forest)
    off = [float(np.abs(own - row.sampled).mean()) for own, row in zip(now, rows, strict=True)]
    now[1] = now[1] - np.float32(max(off) + 1)  # as a lost cache would leave it
    guard = Protection(cap=2.0, reject_above=max(off) + 0.5)
    assert guard.cap is not None
    assert guard.reject_above is not None
    out, metrics = rejected(forest, now, guard.reject_above, first.silent(given))
    assert metrics["update/rejected_frac"] == 0
    apart, _ = weighed(credits, forest, now, guard.cap, out)
    first.update(*without_paths(forest, {"old_logprobs": now}, apart, out))
    done = then.update_scoring(forest, {}, credits, 1.0, guard)
    assert done is not None
    assert done[1] is None  # not all were computed
    for a, b in zip(first.policy.parameters(), then.policy.parameters(), strict=True):
        assert torch.equal(a, b)
