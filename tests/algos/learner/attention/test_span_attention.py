"""Attention span by span: how far bfloat16 takes its gradients off, and what its passes share."""

from __future__ import annotations

import torch

from turngym.algos.learner.attention.span_attention import Span, SpanAttention

HEADS, GROUP, WIDTH, TOKENS = 2, 3, 32, 300


def exact(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor
) -> list[torch.Tensor]:
    """Output and gradients of causal attention in float64."""
    of_q, of_k, of_v = (x.double().requires_grad_() for x in (q, k, v))
    scores = torch.einsum("htgd,hsd->htgs", of_q.unflatten(2, (GROUP, WIDTH)), of_k)
    later = torch.ones(TOKENS, TOKENS).triu(1).bool()[:, None]
    weights = scores.masked_fill(later, float("-inf")).softmax(-1)
    out = torch.einsum("htgs,hsd->htgd", weights, of_v).flatten(2)
    found = torch.autograd.grad(out, (of_q, of_k, of_v), grad.double())
    return [out.detach(), *found]


def test_gradients_hold_where_one_key_has_nearly_all_the_weight() -> None:
    """There a slope is the difference of two nearly equal numbers, and a mean gradient taken from
    the rounded output instead of the rounded weights is three to five times as far off."""
    rng = torch.Generator().manual_seed(0)
    q, k, v, grad = (
        torch.randn(HEADS, TOKENS, n * WIDTH, generator=rng) for n in (GROUP, 1, 1, GROUP)
    )
    k[:, 0] *= 3
    q = q / 4 + 0.08 * k[:, :1].repeat(1, 1, GROUP)
    q, k, v, grad = (x.bfloat16() for x in (q, k, v + 0.5, grad))
    attention = SpanAttention([Span((), 0, TOKENS)])
    out, logsumexp = attention(q, k, v)
    mine = out, *attention.backward(grad, (q, k, v), logsumexp)
    off = [
        float((a.double() - b).norm() / b.norm())
        for a, b in zip(mine, exact(q, k, v, grad), strict=True)
    ]
    assert off[0] < 0.004
    assert max(off[1:3]) < 0.04
    assert off[3] < 0.004


def test_passes_of_several_layers_do_not_disturb_each_other() -> None:
    """All use the same memory for their scores: what was returned stays as it was."""
    rng = torch.Generator().manual_seed(1)

    def layer() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        made = [torch.randn(HEADS, TOKENS, n * WIDTH, generator=rng) for n in (GROUP, 1, 1)]
        return made[0], made[1], made[2]

    spans = Span((), 0, 120), Span(((0, 40),), 120, TOKENS)
    together, layers = SpanAttention(spans), [layer() for _ in range(3)]
    made = [together(*inputs) for inputs in layers]
    kept = [(out.clone(), logsumexp.clone()) for out, logsumexp in made]
    grads = [
        together.backward(out, inputs, logsumexp)
        for inputs, (out, logsumexp) in zip(layers, made, strict=True)
    ]
    for inputs, (out, logsumexp), mine, before in zip(layers, made, grads, kept, strict=True):
        alone = SpanAttention(spans)
        wanted = alone(*inputs)
        assert all(map(torch.equal, wanted, before))
        assert torch.equal(out, before[0])
        assert torch.equal(logsumexp, before[1])
        assert all(map(torch.equal, alone.backward(out, inputs, logsumexp), mine))
