"""The layers of a language model of the Llama family on a CPU, for packs.

What transformers computes, under autocast with the same roundings: q, k and v are one product and
so are the gates and what they gate; each layer is one function whose backward pass is written out.
It keeps seven tensors of a layer where autograd keeps thirty, and of large models none that grows
with the length of a context. In the last layer queries, output and MLP are computed for the tokens
alone whose states are read.

All multiply in float32 or bfloat16. Large models, which are bound by their products, attend by
products; small ones, bound by memory and calls, by compiled loops or, where many spans follow one
context, by products of whole blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..batching.micro_batch import MicroBatch
from ..batching.rows import Row
from .layer_parts import layer_parts
from .openings import Context, Opening
from .pack_attention import Attention, choose_attention

FAMILIES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
AGREE = {torch.bfloat16: 0.1, torch.float32: 1e-4}
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
    norm_heads: tuple[Tensor, ...]

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
            (a.q_norm.weight, a.k_norm.weight) if hasattr(a, "q_norm") else (),
        )

    def flat(self) -> tuple[Tensor, ...]:
        return (
            *(self.q, self.k, self.v, self.out, self.gate, self.up, self.down),
            *(self.norm_in, self.norm_mid, *self.bias, *self.norm_heads),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Narrow:
    """A layer's weights as its products take them, those of one input together."""

    qkv: Tensor
    bias: Tensor | None
    out: Tensor
    gated: Tensor
    down: Tensor
    norm_in: Tensor
    norm_mid: Tensor
    norm_heads: Tensor | None

    @classmethod
    def of(cls, w: _Weights, dtype: torch.dtype) -> _Narrow:
        return cls(
            _joined(dtype, w.q, w.k, w.v),
            _joined(dtype, *w.bias) if w.bias else None,
            _joined(dtype, w.out),
            _joined(dtype, w.gate, w.up),
            _joined(dtype, w.down),
            w.norm_in.detach().float(),
            w.norm_mid.detach().float(),
            _joined(torch.float32, *w.norm_heads).view(2, -1) if w.norm_heads else None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What the layers of one pass share.

    Attributes:
        attention: What sees what.
        cos: Rotary angles ``[tokens, width / 2]``.
        sin: The same.
        eps: Of the norms.
        dtype: Number format of the products.
        keep: Whether what the backward pass needs is kept, or computed again.
        read: Positions whose states are computed ``[k]``, the others' are 0; None for all.
        context: What stands before the pack in this layer.
        opening: What the pack's own first tokens are to others.
    """

    attention: Attention
    cos: Tensor
    sin: Tensor
    eps: float
    dtype: torch.dtype
    keep: bool
    read: Tensor | None = None
    context: Context | None = None
    opening: Context | None = None


def why_not_packed(model: Any) -> str | None:
    """Return why :class:`PackedLayers` does not compute a model; None if it does."""
    name = type(model).__name__
    if name not in FAMILIES:
        return f"{name} is none of {', '.join(FAMILIES)}"
    if next(model.parameters()).device.type != "cpu":
        return "the model is not on a CPU"
    if model.config.hidden_act != "silu":
        return f"activation {model.config.hidden_act!r}"
    if getattr(model.config, "sliding_window", None):
        return f"a sliding window of {model.config.sliding_window} tokens"
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
        model: One that :func:`why_not_packed` has no objection to, or the decoder of one; its
            weights are read anew in every pass.
        dtype: Number format of the products.
        activation_bytes: What a pass may keep for its backward pass; from a pack that needs more
            the inputs of the layers alone are kept, and each layer is computed again.
        loops: Whether compiled loops, or products of whole blocks, attend to short contexts; heads
            whose size is no multiple of four are left to products span by span.
    """

    def __init__(
        self,
        model: Any,
        dtype: torch.dtype = torch.bfloat16,
        activation_bytes: int = 2**31,
        *,
        loops: bool = False,
    ) -> None:
        self._decoder = getattr(model, "model", model)
        self.dtype, self.activation_bytes = dtype, activation_bytes
        first = self._decoder.layers[0].self_attn
        self._width = int(first.head_dim)
        self._loops = loops and self._width % 4 == 0  # they take four dimensions at a time
        self._scale = float(first.scaling)
        self._eps = float(self._decoder.layers[0].input_layernorm.variance_epsilon)
        self._read: Tensor | None = None
        self._opening: Opening | None = None

    @property
    def bytes_per_token(self) -> int:
        """What a pass keeps of one token for its backward pass."""
        config, a = self._decoder.config, self._decoder.layers[0].self_attn
        halves = 2 * a.q_proj.out_features + 2 * a.k_proj.out_features
        halves += 2 * config.intermediate_size
        if hasattr(a, "q_norm"):  # queries, keys and values before their norms as well
            halves += a.q_proj.out_features + 2 * a.k_proj.out_features
        each = 2 * 4 * config.hidden_size + self.dtype.itemsize * halves
        return len(self._decoder.layers) * each

    def of_copy(self, decoder: Any) -> PackedLayers:
        """Return the layers of a copy of the decoder, computed alike."""
        return PackedLayers(decoder, self.dtype, self.activation_bytes, loops=self._loops)

    def unwatched(self) -> bool:
        """Return whether nobody's hooks wait for the decoder's own modules."""
        return not any(map(has_hooks, self._decoder.modules()))

    @contextmanager
    def reading(self, read: Tensor | None) -> Iterator[None]:
        """Compute the last layer for some positions alone within the context.

        Args:
            read: Distinct positions whose last hidden states are read ``[k]``; the others' hold
                anything finite. None for all.
        """
        before, self._read = self._read, read
        try:
            yield
        finally:
            self._read = before

    def open(self, batch: MicroBatch) -> Opening:
        """Compute what other packs begin with, all tokens of a pack of one path."""
        assert batch.layout is not None
        a, tokens = self._decoder.layers[0].self_attn, len(batch.layout.ends)
        shape = a.k_proj.out_features // self._width, tokens, self._width, self.dtype
        contexts = [Context.empty(*shape) for _ in self._decoder.layers]
        return Opening(tokens, contexts, self._compute(batch, opening=contexts))

    @contextmanager
    def behind(self, opening: Opening | None) -> Iterator[None]:
        """Compute packs that leave an opening out within the context; None for whole packs."""
        before, self._opening = self._opening, opening
        try:
            yield
        finally:
            self._opening = before

    def __call__(self, batch: MicroBatch) -> Tensor:
        """Return last hidden states ``[1, tokens, hidden]`` of a pack, float32."""
        left_out = 0 if batch.layout is None else batch.layout.opening
        there = 0 if self._opening is None else self._opening.tokens
        assert left_out == there, f"the pack leaves out {left_out} tokens, the opening has {there}"
        contexts = None if self._opening is None else self._opening.contexts
        return self._compute(batch, context=contexts)

    def _compute(
        self,
        batch: MicroBatch,
        *,
        context: Sequence[Context] | None = None,
        opening: Sequence[Context] | None = None,
    ) -> Tensor:
        """Return last hidden states.

        Args:
            batch: A pack.
            context: What stands before it, of each layer; None for nothing.
            opening: Filled with what its own tokens are to others, of each layer.
        """
        layout = batch.layout
        assert layout is not None
        decoder = self._decoder
        hidden = decoder.embed_tokens(batch.ids)[0].float()
        cos, sin = decoder.rotary_emb(hidden[None], batch.positions)
        tokens, half = len(hidden), self._width // 2
        attention = partial(choose_attention, layout, self._scale, loops=self._loops)
        setting = _Setting(
            attention=attention(np.ones(tokens, np.bool_)),
            cos=cos[0, :, :half].float().contiguous(),
            sin=sin[0, :, :half].float().contiguous(),
            eps=self._eps,
            dtype=self.dtype,
            keep=(layout.opening + tokens) * self.bytes_per_token <= self.activation_bytes,
        )
        last = setting
        if self._read is not None:
            wanted = np.zeros(tokens, np.bool_)
            wanted[self._read.numpy()] = True
            last = replace(setting, attention=attention(wanted), read=self._read)
        with torch.autocast("cpu", enabled=False):
            for i, layer in enumerate(decoder.layers):
                weights = _Weights.of(layer)
                narrow = _Narrow.of(weights, self.dtype)
                now = last if layer is decoder.layers[-1] else setting
                if context is not None:
                    now = replace(now, context=context[i])
                if opening is not None:
                    now = replace(now, opening=opening[i])
                hidden = _Layer.apply(hidden, now, narrow, *weights.flat())
            return decoder.norm(hidden[None])

    @torch.no_grad()
    def agrees(self) -> bool:
        """Return whether the model's own layers give the same states of a small batch."""
        ids = np.arange(12) * 5 % len(self._decoder.embed_tokens.weight)
        none = np.zeros(1, np.int64)
        row = Row(ids, none + 11, none, np.zeros(1, np.float32), np.arange(12))
        own = self(MicroBatch.packed([row], torch.device("cpu")))
        with torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            theirs = self._decoder(torch.from_numpy(ids)[None], use_cache=False).last_hidden_state
        off = (own - theirs.float()).norm() / theirs.float().norm()
        return bool(off < AGREE[self.dtype])


def has_hooks(module: nn.Module) -> bool:
    """Return whether somebody's function waits for a pass through this very module."""
    forward = module._forward_hooks or module._forward_pre_hooks
    return bool(forward or module._backward_hooks or module._backward_pre_hooks)


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
        return out if setting.read is None else _spread(out, setting.read, x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, *made = ctx.saved_tensors
        setting: _Setting = ctx.setting
        if not setting.keep:
            made = _forward(x, setting, ctx.narrow)[1]
        of_x, *of_weights = _backward(grads[0], x, made, setting, ctx.narrow)
        return of_x, None, None, *map(Tensor.to, of_weights, ctx.dtypes)


def _forward(x: Tensor, setting: _Setting, w: _Narrow) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Compute a layer: ``[read tokens, hidden]`` float32, and what its backward pass needs."""
    parts, eps, read = layer_parts(), setting.eps, setting.read
    qkv = F.linear(parts.norm(x, w.norm_in, eps, setting.dtype)[1], w.qkv, w.bias)
    width = 2 * setting.cos.shape[1]
    heads, plain = (len(w.qkv) - w.out.shape[1]) // (2 * width), ()
    if w.norm_heads is not None:
        plain = (qkv,)
        qkv = parts.head_norm(qkv, w.norm_heads, w.out.shape[1] // width, eps)
    q, k, v = parts.turn(qkv, setting.cos, setting.sin, setting.attention.of_queries, heads)
    if setting.opening is not None:
        setting.opening.fill(k, v)
    seen, kept = setting.attention(q, *_behind(setting.context, k, v))
    seen = seen.transpose(0, 1).reshape(len(x), -1)
    if read is not None:
        seen, x = seen[read], x[read]
    middle, normed = parts.norm(x, w.norm_mid, eps, setting.dtype, F.linear(seen, w.out))
    gated = F.linear(normed, w.gated)
    out = parts.plus(middle, F.linear(parts.gate(gated), w.down))
    return out, (q, k, v, seen, middle, gated, *plain, *kept)


def _backward(
    grad: Tensor,
    x: Tensor,
    made: tuple[Tensor, ...] | list[Tensor],
    setting: _Setting,
    w: _Narrow,
) -> tuple[Tensor, ...]:
    """Return the gradients of a layer's input and of its weights."""
    parts, eps, dtype, read = layer_parts(), setting.eps, setting.dtype, setting.read
    q, k, v, seen, middle, gated, *more = made
    plain, kept = (more[:0], more) if w.norm_heads is None else (more[:1], more[1:])
    grad = grad if read is None else grad[read]
    some = grad.to(dtype)
    of_gated, product = parts.gate_backward(some @ w.down, gated)
    of_down = some.t() @ product
    normed = parts.norm(middle, w.norm_mid, eps, dtype)[1]
    of_gate, of_up = (of_gated.t() @ normed).chunk(2)
    of_middle, of_norm_mid = parts.norm_backward(of_gated @ w.gated, middle, w.norm_mid, eps, grad)
    some = of_middle.to(dtype)
    of_out = some.t() @ seen
    of_seen = some @ w.out
    if read is not None:
        of_seen, of_middle = _spread(of_seen, read, x), _spread(of_middle, read, x)
    of_seen = of_seen.view(len(x), len(k), -1).transpose(0, 1)
    whole = q, *_behind(setting.context, k, v)
    of_q, of_k, of_v = setting.attention.backward(of_seen, whole, kept)
    if setting.context is not None:
        of_k, of_v = setting.context.take(of_k, of_v)
    if setting.opening is not None:
        setting.opening.give(of_k, of_v)
    factor = setting.attention.of_queries
    of_qkv = parts.turn_backward((of_q, of_k, of_v), setting.cos, setting.sin, factor)
    of_norm_heads: tuple[Tensor, ...] = ()
    if w.norm_heads is not None:
        queries = w.out.shape[1] // w.norm_heads.shape[1]
        of_qkv, both = parts.head_norm_backward(of_qkv, plain[0], w.norm_heads, queries, eps)
        of_norm_heads = tuple(both)
    sizes = [w.out.shape[1], *[(len(w.qkv) - w.out.shape[1]) // 2] * 2]
    of_wq, of_wk, of_wv = (of_qkv.t() @ parts.norm(x, w.norm_in, eps, dtype)[1]).split(sizes)
    of_x, of_norm_in = parts.norm_backward(of_qkv @ w.qkv, x, w.norm_in, eps, of_middle)
    of_bias = () if w.bias is None else of_qkv.sum(0, dtype=torch.float32).split(sizes)
    return (
        *(of_x, of_wq, of_wk, of_wv, of_out, of_gate, of_up, of_down),
        *(of_norm_in, of_norm_mid, *of_bias, *of_norm_heads),
    )


def _behind(context: Context | None, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return (k, v) if context is None else context.before(k, v)


def _spread(rows: Tensor, read: Tensor, like: Tensor) -> Tensor:
    """Return rows at their places among as many as ``like`` has, 0 elsewhere."""
    out = torch.zeros(len(like), rows.shape[1], dtype=rows.dtype)
    return out.index_copy_(0, read, rows)


def _joined(dtype: torch.dtype, *weights: Tensor) -> Tensor:
    """Return weights below each other in a number format."""
    if len(weights) == 1:
        return weights[0].detach().to(dtype)
    shape = sum(map(len, weights)), *weights[0].shape[1:]
    out = torch.empty(shape, dtype=dtype)
    for part, weight in zip(out.split([len(w) for w in weights]), weights, strict=True):
        part.copy_(weight.detach())
    return out
