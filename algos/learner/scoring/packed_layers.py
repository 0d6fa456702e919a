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
from .layer_parts import layer_parts

FAMILIES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM")
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
class _Narrow:
    """A layer's weights as its products take them: bfloat16, those of one input together."""

    qkv: Tensor
    bias: Tensor | None
    out: Tensor
    gated: Tensor
    down: Tensor
    norm_in: Tensor
    norm_mid: Tensor

    @classmethod
    def of(cls, w: _Weights) -> _Narrow:
        return cls(
            _half(w.q, w.k, w.v),
            _half(*w.bias) if w.bias else None,
            _half(w.out),
            _half(w.gate, w.up),
            _half(w.down),
            w.norm_in.detach().float(),
            w.norm_mid.detach().float(),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What all layers of one pass share: spans, rotary angles ``[tokens, width / 2]``."""

    spans: tuple[Span, ...]
    cos: Tensor
    sin: Tensor
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
            cos=cos[0, :, :half].float().contiguous(),
            sin=sin[0, :, :half].float().contiguous(),
            scale=self._scale,
            eps=self._eps,
            keep=batch.ids.numel() * self.bytes_per_token <= self.activation_bytes,
        )
        with torch.autocast("cpu", enabled=False):
            for layer in decoder.layers:
                weights = _Weights.of(layer)
                hidden = _Layer.apply(hidden, setting, _Narrow.of(weights), *weights.flat())
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
    def forward(
        ctx: Any, x: Tensor, setting: _Setting, narrow: _Narrow, *weights: Tensor
    ) -> Tensor:
        out, made = _forward(x.contiguous(), setting, narrow)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(x, *(made if setting.keep else ()))
            ctx.setting, ctx.narrow = setting, narrow
            ctx.dtypes = [w.dtype for w in weights]
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, *made = ctx.saved_tensors
        setting: _Setting = ctx.setting
        if not setting.keep:
            made = _forward(x, setting, ctx.narrow)[1]
        of_x, *of_weights = _backward(grads[0], x, made, setting, ctx.narrow)
        return of_x, None, None, *map(Tensor.to, of_weights, ctx.dtypes)


def _forward(x: Tensor, setting: _Setting, w: _Narrow) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Compute a layer: ``[tokens, hidden]`` float32, and what its backward pass needs."""
    parts, eps = layer_parts(), setting.eps
    qkv = F.linear(parts.norm(x, w.norm_in, eps)[1], w.qkv, w.bias)
    heads = (len(w.qkv) - w.out.shape[1]) // (4 * setting.cos.shape[1])
    q, k, v = parts.turn(qkv, setting.cos, setting.sin, setting.scale, heads)
    seen = attend(q, k, v, setting.spans).transpose(0, 1).reshape(len(x), -1)
    middle, normed = parts.norm(x, w.norm_mid, eps, F.linear(seen, w.out))
    gated = F.linear(normed, w.gated)
    out = parts.plus(middle, F.linear(parts.gate(gated), w.down))
    return out, (q, k, v, seen, middle, gated)


def _backward(
    grad: Tensor,
    x: Tensor,
    made: tuple[Tensor, ...] | list[Tensor],
    setting: _Setting,
    w: _Narrow,
) -> tuple[Tensor, ...]:
    """Return the gradients of a layer's input and of its weights."""
    parts, eps = layer_parts(), setting.eps
    q, k, v, seen, middle, gated = made
    some = grad.bfloat16()
    of_gated, product = parts.gate_backward(some @ w.down, gated)
    of_down = some.t() @ product
    normed = parts.norm(middle, w.norm_mid, eps)[1]
    of_gate, of_up = (of_gated.t() @ normed).chunk(2)
    of_middle, of_norm_mid = parts.norm_backward(of_gated @ w.gated, middle, w.norm_mid, eps, grad)
    some = of_middle.bfloat16()
    of_out = some.t() @ seen
    of_seen = (some @ w.out).view(len(x), len(k), -1).transpose(0, 1)
    of_heads = attend_backward(of_seen, q, k, v, setting.spans)
    of_qkv = parts.turn_backward(of_heads, setting.cos, setting.sin, setting.scale)
    sizes = [w.out.shape[1], *[(len(w.qkv) - w.out.shape[1]) // 2] * 2]
    of_q, of_k, of_v = (of_qkv.t() @ parts.norm(x, w.norm_in, eps)[1]).split(sizes)
    of_x, of_norm_in = parts.norm_backward(of_qkv @ w.qkv, x, w.norm_in, eps, of_middle)
    of_bias = () if w.bias is None else of_qkv.sum(0, dtype=torch.float32).split(sizes)
    return (
        *(of_x, of_q, of_k, of_v, of_out, of_gate, of_up, of_down),
        *(of_norm_in, of_norm_mid, *of_bias),
    )


def _half(*weights: Tensor) -> Tensor:
    """Return weights below each other in bfloat16."""
    if len(weights) == 1:
        return weights[0].detach().bfloat16()
    shape = sum(map(len, weights)), *weights[0].shape[1:]
    out = torch.empty(shape, dtype=torch.bfloat16)
    for part, weight in zip(out.split([len(w) for w in weights]), weights, strict=True):
        part.copy_(weight.detach())
    return out
