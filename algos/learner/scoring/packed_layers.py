"""The layers of a language model of the Llama family on a CPU, for packs, in bfloat16.

What transformers computes under autocast, with the same roundings, for models that are bound by
their products: q, k and v are one product and so are the gates and what they gate; each layer is
one function whose backward pass is written out. It keeps seven tensors of a layer where autograd
keeps thirty, and none that grows with the length of a context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention.span_attention import Span, attend, attend_backward, spans_of
from ..batching.micro_batch import MicroBatch
from ..batching.rows import Row

FAMILIES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM")
SMALLEST = 2**25
"""Weights from which products take most of the time; smaller models are bound by memory."""

AGREE = 0.1
"""Largest distance of last hidden states, as a part of their norm: roundings differ by less."""


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """A layer's parameters in the order in which :class:`_Layer` takes them."""

    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor
    norm_in: Tensor
    norm_mid: Tensor
    bias: tuple[Tensor, ...]

    @classmethod
    def of(cls, layer: Any) -> _Weights:
        a, m = layer.self_attn, layer.mlp
        biases = tuple(x.bias for x in (a.q_proj, a.k_proj, a.v_proj) if x.bias is not None)
        return cls(
            a.q_proj.weight,
            a.k_proj.weight,
            a.v_proj.weight,
            a.o_proj.weight,
            m.gate_proj.weight,
            m.up_proj.weight,
            m.down_proj.weight,
            layer.input_layernorm.weight,
            layer.post_attention_layernorm.weight,
            biases,
        )

    def flat(self) -> tuple[Tensor, ...]:
        return (
            *(self.q, self.k, self.v, self.out, self.gate, self.up, self.down),
            *(self.norm_in, self.norm_mid, *self.bias),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What all layers of one pass share: spans, rotary angles ``[tokens, 1, width / 2]``."""

    spans: tuple[Span, ...]
    cos: Tensor
    sin: Tensor
    width: int
    scale: float
    eps: float
    keep: bool


def why_not_packed(model: Any) -> str | None:
    """Return why :class:`PackedLayers` does not compute a model; None if it does."""
    name = type(model).__name__
    if name not in FAMILIES:
        return f"{name} is none of {', '.join(FAMILIES)}"
    if next(model.parameters()).device.type != "cpu":
        return "the model is not on a CPU"
    if model.config.hidden_act != "silu":
        return f"activation {model.config.hidden_act!r}"
    linears = [m for m in model.modules() if "Linear" in type(m).__name__]
    if any(type(m) is not nn.Linear or not isinstance(m.weight, nn.Parameter) for m in linears):
        return "linear layers of another kind (adapters or quantised weights)"
    for layer in model.model.layers:
        a, m = layer.self_attn, layer.mlp
        with_bias = [x.bias is not None for x in (a.q_proj, a.k_proj, a.v_proj)]
        if any(x.bias is not None for x in (a.o_proj, m.gate_proj, m.up_proj, m.down_proj)):
            return "biases behind the attention or in the MLP"
        if any(with_bias) != all(with_bias):
            return "biases in a part of queries, keys and values"
    return None


class PackedLayers:
    """Computes the last hidden states of a pack; see the module's text.

    Args:
        model: One that :func:`why_not_packed` has no objection to; its weights are read anew in
            every pass.
        activation_bytes: What a pass may keep for its backward pass; from a pack that needs more
            the inputs of the layers alone are kept, and each layer is computed again.
    """

    def __init__(self, model: Any, activation_bytes: int = 2**31) -> None:
        self._decoder = model.model
        self.activation_bytes = activation_bytes
        first = self._decoder.layers[0].self_attn
        self._width = int(first.head_dim)
        self._scale = float(first.scaling)
        self._eps = float(self._decoder.layers[0].input_layernorm.variance_epsilon)

    @property
    def bytes_per_token(self) -> int:
        """What a pass keeps of one token for its backward pass."""
        config, a = self._decoder.config, self._decoder.layers[0].self_attn
        halves = 2 * a.q_proj.out_features + 2 * a.k_proj.out_features
        halves += 2 * config.intermediate_size
        return len(self._decoder.layers) * (2 * 4 * config.hidden_size + 2 * halves)

    def __call__(self, batch: MicroBatch) -> Tensor:
        """Return last hidden states ``[1, tokens, hidden]`` of a pack, float32."""
        assert batch.layout is not None
        decoder = self._decoder
        hidden = decoder.embed_tokens(batch.ids)[0].float()
        cos, sin = decoder.rotary_emb(hidden[None], batch.positions)
        half = self._width // 2
        setting = _Setting(
            spans=spans_of(batch.layout.blocks),
            cos=cos[0, :, None, :half].float(),
            sin=sin[0, :, None, :half].float(),
            width=self._width,
            scale=self._scale,
            eps=self._eps,
            keep=batch.ids.numel() * self.bytes_per_token <= self.activation_bytes,
        )
        with torch.autocast("cpu", enabled=False):
            for layer in decoder.layers:
                hidden = _Layer.apply(hidden, setting, *_Weights.of(layer).flat())
            return decoder.norm(hidden[None])

    @torch.no_grad()
    def agrees(self) -> bool:
        """Return whether the model's own layers give the same states of a small batch."""
        ids = np.arange(12) * 5 % len(self._decoder.embed_tokens.weight)
        none = np.zeros(1, np.int64)
        row = Row(ids, none + 11, none, np.zeros(1, np.float32), np.arange(12))
        own = self(MicroBatch.packed([row], torch.device("cpu")))
        with torch.autocast("cpu", torch.bfloat16):
            theirs = self._decoder(torch.from_numpy(ids)[None], use_cache=False).last_hidden_state
        off = (own - theirs.float()).norm() / theirs.float().norm()
        return bool(off < AGREE)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, setting: _Setting, *weights: Tensor) -> Tensor:
        out, made = _forward(x, setting, weights)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(x, *(made if setting.keep else ()), *weights)
            ctx.setting = setting
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, *rest = ctx.saved_tensors
        setting: _Setting = ctx.setting
        if setting.keep:
            made, weights = rest[:MADE], rest[MADE:]
        else:
            weights = rest
            made = _forward(x, setting, weights)[1]
        of_x, *of_weights = _backward(grads[0], x, made, setting, weights)
        found = [g.to(w.dtype) for g, w in zip(of_weights, weights, strict=True)]
        return of_x, None, *found


MADE = 6
"""Tensors that :func:`_forward` returns for the backward pass."""


def _forward(
    x: Tensor, setting: _Setting, weights: tuple[Tensor, ...] | list[Tensor]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Compute a layer: ``[tokens, hidden]`` float32, and what its backward pass needs."""
    wq, wk, wv, wo, gate, up, down, norm_in, norm_mid, *bias = weights
    normed = _norm(x, norm_in, setting.eps)
    qkv = F.linear(normed, _half(wq, wk, wv), _half(*bias) if bias else None)
    q, k, v = _turned(qkv, setting, len(wq), len(wk))
    seen = attend(q, k, v, setting.spans).transpose(0, 1).reshape(len(x), -1)
    middle = x + F.linear(seen, _half(wo))
    gated = F.linear(_norm(middle, norm_mid, setting.eps), _half(gate, up))
    opened, inner = gated.chunk(2, -1)
    out = middle + F.linear(F.silu(opened) * inner, _half(down))
    return out, (q, k, v, seen, middle, gated)


def _backward(
    grad: Tensor,
    x: Tensor,
    made: tuple[Tensor, ...] | list[Tensor],
    setting: _Setting,
    weights: tuple[Tensor, ...] | list[Tensor],
) -> tuple[Tensor, ...]:
    """Return the gradients of a layer's input and of its weights."""
    wq, wk, wv, wo, gate, up, down, norm_in, norm_mid, *bias = weights
    q, k, v, seen, middle, gated = made
    opened, inner = gated.chunk(2, -1)
    some = grad.bfloat16()
    active = F.silu(opened)
    of_down = some.t() @ (active * inner)
    of_product = some @ _half(down)
    of_gated = torch.empty_like(gated)
    torch.mul(of_product, active, out=of_gated[:, inner.shape[1] :])
    of_gated[:, : inner.shape[1]] = torch.ops.aten.silu_backward(of_product.mul_(inner), opened)
    normed = _norm(middle, norm_mid, setting.eps)
    of_gate, of_up = (of_gated.t() @ normed).split([len(gate), len(up)])
    of_middle, of_norm_mid = _norm_backward(
        of_gated @ _half(gate, up), middle, norm_mid, setting.eps
    )
    of_middle += grad
    some = of_middle.bfloat16()
    of_out = some.t() @ seen
    of_seen = (some @ _half(wo)).view(len(x), len(k), -1).transpose(0, 1).contiguous()
    of_qkv = _turned_backward(attend_backward(of_seen, q, k, v, setting.spans), setting)
    normed = _norm(x, norm_in, setting.eps)
    of_q, of_k, of_v = (of_qkv.t() @ normed).split([len(wq), len(wk), len(wv)])
    of_x, of_norm_in = _norm_backward(of_qkv @ _half(wq, wk, wv), x, norm_in, setting.eps)
    of_x += of_middle
    of_bias = of_qkv.sum(0, dtype=torch.float32).split([len(b) for b in bias]) if bias else ()
    return (
        *(of_x, of_q, of_k, of_v, of_out, of_gate, of_up, of_down),
        *(of_norm_in, of_norm_mid, *of_bias),
    )


def _half(*weights: Tensor) -> Tensor:
    """Return weights below each other in bfloat16."""
    if len(weights) == 1:
        return weights[0].bfloat16()
    return torch.cat([w.bfloat16() for w in weights])


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Root mean square norm ``[tokens, n]`` in bfloat16."""
    return (x * _shrink(x, eps)).mul_(weight).bfloat16()


def _shrink(x: Tensor, eps: float) -> Tensor:
    square = torch.linalg.vecdot(x, x).mul_(1.0 / x.shape[-1])
    return square.add_(eps).rsqrt_()[:, None]


def _norm_backward(grad: Tensor, x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return the gradients of a norm's input and weight, float32."""
    shrink = _shrink(x, eps)
    unit, of_x = x * shrink, grad.float()
    of_weight = torch.linalg.vecdot(of_x, unit, dim=0)
    of_x = of_x * weight
    along = torch.linalg.vecdot(of_x, unit).mul_(-1.0 / x.shape[-1])[:, None]
    return of_x.addcmul_(unit, along).mul_(shrink), of_weight


def _turned(qkv: Tensor, setting: _Setting, n_q: int, n_k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rotate queries and keys; heads come first, those of a group side by side."""
    tokens, width = len(qkv), setting.width
    turning = qkv[:, : n_q + n_k].float().view(tokens, -1, 2, width // 2)
    turned = torch.empty(tokens, n_q + n_k, dtype=qkv.dtype)
    _rotate(turning, setting.cos, setting.sin, turned.view(turning.shape), n_q // width, setting)
    heads = n_k // width
    q, k = turned[:, :n_q], turned[:, n_q:]
    return (
        q.view(tokens, heads, -1).transpose(0, 1).contiguous(),
        k.view(tokens, heads, -1).transpose(0, 1).contiguous(),
        qkv[:, n_q + n_k :].view(tokens, heads, -1).transpose(0, 1).contiguous(),
    )


def _turned_backward(grads: tuple[Tensor, Tensor, Tensor], setting: _Setting) -> Tensor:
    """Return the gradient of ``qkv`` from those of what :func:`_turned` made of it."""
    of_q, of_k, of_v = (g.transpose(0, 1).flatten(1) for g in grads)
    n_q, width = of_q.shape[1], setting.width
    turned = torch.cat([of_q.float(), of_k], 1).view(len(of_q), -1, 2, width // 2)
    out = torch.empty(len(of_q), n_q + of_k.shape[1] + of_v.shape[1], dtype=torch.bfloat16)
    turning = out[:, : n_q + of_k.shape[1]].view(turned.shape)
    _rotate(turned, setting.cos, -setting.sin, turning, n_q // width, setting)
    out[:, n_q + of_k.shape[1] :] = of_v
    return out


def _rotate(
    x: Tensor, cos: Tensor, sin: Tensor, out: Tensor, queries: int, setting: _Setting
) -> None:
    """Write ``[tokens, heads, 2, width / 2]`` rotated to ``out``, the first heads scaled too."""
    x[:, :queries] *= setting.scale
    a, b = x.unbind(2)
    out[:, :, 0] = (a * cos).addcmul_(b, sin, value=-1.0)
    out[:, :, 1] = (b * cos).addcmul_(a, sin)
