"""A model's weights as the packed decoder multiplies with them: few, large, laid out once.

q, k and v are one product, and the norms in front of a product are folded into it. What families
of models do differently (activations, norms behind a block, windows, rotary angles by layer) is
written down here, layer by layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from ...models.attention import attention_windows
from ...models.products import wide_product

_ROWS_HINT = 64  # batch size that the prepacked layout is chosen for
WRITE_ENTRIES = 2**24
"""Weights that are converted at a time: their float32 form stays small beside the largest layer."""
GEMMA3 = "Gemma3ForCausalLM"
FAMILIES = (
    *("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"),
    GEMMA3,
)
_STATIC_ROPE = {"default", "linear", "llama3", "yarn"}


def why_not_fast(model: Any, max_context: int) -> str | None:
    """Return the reason why the packed decoder does not know a model, None if it does."""
    name = type(model).__name__
    if name not in FAMILIES:
        return f"{name} is none of {', '.join(FAMILIES)}"
    return _by_config(model, max_context) or _by_linears(model)


def _by_config(model: Any, max_context: int) -> str | None:
    name, config = type(model).__name__, model.config
    gemma = name == GEMMA3
    activation = config.hidden_activation if gemma else config.hidden_act
    if activation != ("gelu_pytorch_tanh" if gemma else "silu"):
        return f"activation {activation!r}"
    kinds = model.model.rotary_emb.rope_type
    for kind in kinds.values() if isinstance(kinds, dict) else (kinds,):
        if kind not in _STATIC_ROPE:
            return f"rotary embedding of type {kind!r}"
    if gemma:
        for odd in ("attn_logit_softcapping", "final_logit_softcapping"):
            if getattr(config, odd) is not None:
                return f"{odd} of {getattr(config, odd)}"
        return "attention in both directions" if config.use_bidirectional_attention else None
    window = getattr(config, "sliding_window", None)
    sliding = any(k != "full_attention" for k in getattr(config, "layer_types", None) or ())
    if (sliding or name == "MistralForCausalLM") and window is not None and window < max_context:
        return f"sliding window of {window} tokens, shorter than the context of {max_context}"
    return None


def _by_linears(model: Any) -> str | None:
    if any(
        type(m).__name__ == "Linear" and not isinstance(m.weight, torch.nn.Parameter)
        for m in model.modules()
    ):
        return "weights that are not plain parameters"
    if any(
        "Linear" in type(m).__name__ and type(m) is not torch.nn.Linear for m in model.modules()
    ):
        return "linear layers of another kind (adapters or quantised weights)"
    return None


class PackedLinear:
    """A linear layer whose weight is laid out once for the device that multiplies with it.

    It computes ``x @ weight.T + bias`` in the weight's number format, alone or with what follows.

    On a CPU with oneDNN the weight is reordered ahead of time and the activation runs inside the
    product: small batches are bound by the number of operations.

    New weights take the place of the old ones in the same memory, so that there are never two sets.

    Args:
        shape: ``(out, in)``.
        dtype: Number format of the products.
        device: Where they are made.
    """

    def __init__(self, shape: tuple[int, int], dtype: torch.dtype, device: torch.device) -> None:
        self.out_features = shape[0]
        self._packed = device.type == "cpu" and can_prepack(dtype)
        self._shape, self._dtype, self._device = shape, dtype, device
        self._bias: torch.Tensor | None = None
        self._weight = torch.empty(0 if self._packed else shape, dtype=dtype, device=device)
        if self._packed:
            self._run = torch.ops.mkldnn._linear_pointwise.default
            self._run_binary = torch.ops.mkldnn._linear_pointwise.binary

    def load(
        self, write: Callable[[torch.Tensor], None], bias: torch.Tensor | None = None
    ) -> PackedLinear:
        """Take new weights, and return the layer.

        Args:
            write: Writes them into a tensor ``[out, in]`` on the layer's device.
            bias: ``[out]`` or None; the same as before in every call.
        """
        if self._packed:
            self._weight = torch.empty(0)  # the old ones go first
            plain = torch.empty(self._shape, dtype=self._dtype)
            write(plain)
            self._weight = torch.ops.mkldnn._reorder_linear_weight(plain, _ROWS_HINT)
        else:
            write(self._weight)
        if bias is not None:
            bias = bias.to(self._device, self._dtype)
            self._bias = bias if self._bias is None else self._bias.copy_(bias)
        return self

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """``[rows, in] -> [rows, out]``."""
        if self._packed:
            return self._run(x, self._weight, self._bias, "none", [], "")
        return F.linear(x, self._weight, self._bias)

    def wide(self, x: torch.Tensor) -> torch.Tensor:
        """``self(x)`` in float32; on CUDA it never was anything else."""
        if self._packed or x.device.type == "cpu":
            return self(x).float()
        out = wide_product(x, self._weight)
        return out if self._bias is None else out.add_(self._bias)

    def silu(self, x: torch.Tensor) -> torch.Tensor:
        """``silu(self(x))``."""
        if self._packed:
            return self._run(x, self._weight, self._bias, "swish", [], "")
        return F.silu(F.linear(x, self._weight, self._bias))

    def gelu(self, x: torch.Tensor) -> torch.Tensor:
        """``gelu(self(x))``, by its approximation with a tangent."""
        if self._packed:
            return self._run(x, self._weight, self._bias, "gelu", [], "tanh")
        return F.gelu(F.linear(x, self._weight, self._bias), approximate="tanh")

    def times(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """``self(x) * other``, ``other`` is ``[rows, out]``."""
        if self._packed:
            return self._run_binary(x, other, self._weight, self._bias, "mul")
        return F.linear(x, self._weight, self._bias) * other


def can_prepack(dtype: torch.dtype) -> bool:
    """True where oneDNN's prepacked product exists in this build of torch, on this processor.

    Processors without AVX-512 have it in float32 only.
    """
    if not (
        torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    ):
        return False
    narrow = dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return dtype == torch.float32 or narrow


@dataclass(slots=True)
class Block:
    """Weights of one block, packed; the norms in front of its products are folded in.

    Attributes:
        qkv: Queries, keys and values.
        norm_q: Of every head's queries; None without.
        norm_k: Of every head's keys.
        out: Behind attention.
        norm_out: Of what :attr:`out` gives, before it is added; None without.
        gate: Of the MLP, in front of the activation.
        up: What is gated.
        down: Behind it.
        norm_down: Of what :attr:`down` gives, before it is added; None without.
        activate: A gate's product with its activation.
        angles: Which of :attr:`PackedWeights.turns` its queries and keys are turned by.
        window: How many tokens a token sees, itself the last; None for all.
    """

    qkv: PackedLinear
    norm_q: torch.Tensor | None
    norm_k: torch.Tensor | None
    out: PackedLinear
    norm_out: torch.Tensor | None
    gate: PackedLinear
    up: PackedLinear
    down: PackedLinear
    norm_down: torch.Tensor | None
    activate: Callable[[PackedLinear, torch.Tensor], torch.Tensor]
    angles: int
    window: int | None

    def mlp(self, x: torch.Tensor) -> torch.Tensor:
        """Return the gated layers of normed states ``[rows, width]``, before their last norm."""
        return self.down(self.up.times(x, self.activate(self.gate, x)))


class PackedWeights:
    """All weights of a model.

    Args:
        model: One that :func:`why_not_fast` has no objection to.
        dtype: Of the matrix products.
        device: Where they are made.
        max_context: Positions for which rotary angles are tabled.

    Attributes:
        heads: Query heads and key heads.
        dim: Numbers of a head.
        width: Numbers of a token between the blocks.
        eps: Of all norms.
        blocks: The layers.
        head: The output layer, the last norm folded in.
        embed: The embedding ``[vocabulary, width]``.
        turns: Rotary angles of each kind of layer, complex ``[positions, dim / 2]``.
    """

    def __init__(
        self, model: Any, dtype: torch.dtype, device: torch.device, max_context: int
    ) -> None:
        config = model.config
        self._dtype, self._device = dtype, device
        self.heads: tuple[int, int] = config.num_attention_heads, config.num_key_value_heads
        own = getattr(config, "head_dim", None)
        self.dim: int = own or config.hidden_size // config.num_attention_heads
        self.width: int = config.hidden_size
        self.eps: float = config.rms_norm_eps
        self._gemma = type(model).__name__ == GEMMA3
        embedding = getattr(model.model.embed_tokens, "base_layer", model.model.embed_tokens)
        self._scale = float(embedding.embed_scale) if self._gemma else None
        # scores are multiplied by 1 / sqrt(dim) everywhere: what else there is, is in the queries
        self._heat = (self.dim / config.query_pre_attn_scalar) ** 0.5 if self._gemma else None
        self.embed = torch.empty(0)
        self.blocks: list[Block] = []
        self.turns: list[torch.Tensor] = []
        self._build(model, max_context)

    @torch.no_grad()
    def _build(self, model: Any, max_context: int) -> None:
        """Lay the weights out for the first time."""
        self._take_embedding(model.model)
        config, body = model.config, model.model
        at = torch.arange(max_context + 1, device=self._device)[None]
        windows = attention_windows(config) if self._gemma else {"": None}
        for kind in windows:
            more = (kind,) if self._gemma else ()
            cos, sin = body.rotary_emb(torch.zeros(1, device=self._device), at, *more)
            half = self.dim // 2
            self.turns.append(torch.complex(cos[0, :, :half].float(), sin[0, :, :half].float()))
        for number, block in enumerate(body.layers):
            kind = config.layer_types[number] if self._gemma else ""
            window = windows[kind]
            seen = None if window is None or window >= max_context else window
            self.blocks.append(self._empty(block, list(windows).index(kind), seen))
        self.head = self._linear(model.lm_head)
        self._take_layers(model)

    @torch.no_grad()
    def load(self, model: Any) -> None:
        """Take the weights of ``model``, layer after layer: there are never two sets."""
        self._take_embedding(model.model)
        self._take_layers(model)

    def _take_layers(self, model: Any) -> None:
        for layer, block in zip(self.blocks, model.model.layers, strict=True):
            self._pack(layer, block)
        self._load(self.head, model.lm_head, norm=model.model.norm)

    def _take_embedding(self, body: Any) -> None:
        """Take the table, in half precision where it comes in it."""
        weight = body.embed_tokens.weight.detach()
        dtype = weight.dtype if weight.dtype in (torch.bfloat16, torch.float16) else torch.float32
        if self.embed.dtype != dtype or self.embed.shape != weight.shape:
            self.embed = weight.to(self._device, dtype, copy=True)
        else:
            self.embed.copy_(weight)
        # the model multiplies by a factor of its weights' own format
        scale = self._scale
        self._factor = None if scale is None else float(torch.tensor(scale, dtype=weight.dtype))

    def embedded(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of tokens ``[total, width]`` in float32."""
        found = F.embedding(ids, self.embed).float()
        return found if self._factor is None else found.mul_(self._factor)

    def _empty(self, block: Any, angles: int, window: int | None) -> Block:
        """Return a layer of the shapes of ``block``."""
        a, m = block.self_attn, block.mlp
        behind = [torch.empty(self.width, device=self._device) for _ in range(2)]
        return Block(
            qkv=self._linear(a.q_proj, a.k_proj, a.v_proj),
            norm_q=self._head_norm(a.q_norm) if hasattr(a, "q_norm") else None,
            norm_k=self._head_norm(a.k_norm) if hasattr(a, "k_norm") else None,
            out=self._linear(a.o_proj),
            norm_out=behind[0] if self._gemma else None,
            gate=self._linear(m.gate_proj),
            up=self._linear(m.up_proj),
            down=self._linear(m.down_proj),
            norm_down=behind[1] if self._gemma else None,
            activate=PackedLinear.gelu if self._gemma else PackedLinear.silu,
            angles=angles,
            window=window,
        )

    def _linear(self, *linears: Any) -> PackedLinear:
        """Several layers over one input as one."""
        shape = sum(x.weight.shape[0] for x in linears), linears[0].weight.shape[1]
        return PackedLinear(shape, self._dtype, self._device)

    def _pack(self, layer: Block, block: Any) -> None:
        """Take the weights of ``block``."""
        a, m = block.self_attn, block.mlp
        before, middle = block.input_layernorm, block.post_attention_layernorm
        if layer.norm_out is not None and layer.norm_down is not None:
            layer.norm_out.copy_(self._norm(middle))
            layer.norm_down.copy_(self._norm(block.post_feedforward_layernorm))
            middle = block.pre_feedforward_layernorm
        together = a.q_proj, a.k_proj, a.v_proj
        self._load(layer.qkv, *together, norm=before, arrange=self._paired)
        if layer.norm_q is not None and layer.norm_k is not None:
            layer.norm_q.copy_(self._head_norm(a.q_norm))
            layer.norm_k.copy_(self._head_norm(a.k_norm))
            if self._heat is not None:
                layer.norm_q.mul_(self._heat)
        self._load(layer.out, a.o_proj)
        self._load(layer.gate, m.gate_proj, norm=middle)
        self._load(layer.up, m.up_proj, norm=middle)
        self._load(layer.down, m.down_proj)

    def _load(
        self,
        layer: PackedLinear,
        *linears: Any,
        norm: Any | None = None,
        arrange: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        """Several layers over one input as one, behind ``norm``; ``arrange`` reorders outputs."""
        scale = None if norm is None else self._norm(norm) * self.width**0.5
        bias = None
        biases = [None if x.bias is None else x.bias.detach() for x in linears]
        if (some := next((b for b in biases if b is not None), None)) is not None:
            each = zip(linears, biases, strict=True)
            parts = [some.new_zeros(x.out_features) if b is None else b for x, b in each]
            bias = torch.cat(parts) if arrange is None else arrange(torch.cat(parts))

        def folded(weight: torch.Tensor) -> torch.Tensor:
            wide = self._here(weight)
            return wide if scale is None else wide * scale

        def write(target: torch.Tensor) -> None:
            if arrange is not None:
                target.copy_(arrange(folded(torch.cat([x.weight.detach() for x in linears]))))
                return
            at, step = 0, max(1, WRITE_ENTRIES // target.shape[1])
            for rows in (part for x in linears for part in x.weight.split(step)):
                target[at : at + len(rows)].copy_(folded(rows))
                at += len(rows)

        layer.load(write, bias)

    def _paired(self, weight: torch.Tensor) -> torch.Tensor:
        """Reorder q and k so that what rotates together lies together; scores stay the same."""
        turned = sum(self.heads) * self.dim
        heads = weight[:turned].unflatten(0, (-1, 2, self.dim // 2)).transpose(1, 2)
        return torch.cat([heads.flatten(0, 2), weight[turned:]])

    def _head_norm(self, norm: Any) -> torch.Tensor:
        """Return a head's norm in the order of :meth:`_paired`."""
        return self._norm(norm).view(2, -1).T.reshape(-1)

    def _norm(self, norm: Any) -> torch.Tensor:
        """Return what a norm multiplies by; Gemma's weights are offsets from 1."""
        weight = self._here(norm.weight)
        return weight + 1.0 if self._gemma else weight

    def _here(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.detach().to(self._device).float()
