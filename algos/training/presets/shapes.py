"""Sizes of published models, and what follows from them: parameters, cache and saved tensors."""

from __future__ import annotations

from dataclasses import dataclass

from ....envs.core.errors import UnknownNameError


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShape:
    """A decoder of the Llama and Qwen family.

    Attributes:
        layers: Decoder layers.
        hidden: Width.
        heads: Query heads.
        kv_heads: Key and value heads.
        head_dim: Width of a head.
        inner: Width of the gated feed-forward part.
        vocabulary: Rows of the embedding.
        tied: Whether the output layer is the embedding.
        qkv_bias: Whether q, k and v have biases.
        qk_norm: Whether q and k are normed per head.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    vocabulary: int
    tied: bool
    qkv_bias: bool = False
    qk_norm: bool = False

    @property
    def linear_layer(self) -> int:
        """Weights of the linear maps of one layer, biases left out."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return self.hidden * (2 * q + 2 * kv + 3 * self.inner)

    @property
    def layer(self) -> int:
        """Parameters of one layer."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        bias = q + 2 * kv if self.qkv_bias else 0
        norms = 2 * self.hidden + (2 * self.head_dim if self.qk_norm else 0)
        return self.linear_layer + bias + norms

    @property
    def backbone(self) -> int:
        """Parameters without a separate output layer."""
        return self.layers * self.layer + self.vocabulary * self.hidden + self.hidden

    @property
    def parameters(self) -> int:
        """All parameters, a tied output layer counted once."""
        return self.backbone + (0 if self.tied else self.vocabulary * self.hidden)

    def adapters(self, rank: int) -> int:
        """Return the number of parameters of LoRA on all linear maps of the layers."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        ends = 2 * (self.hidden + q) + 2 * (self.hidden + kv) + 3 * (self.hidden + self.inner)
        return self.layers * rank * ends

    @property
    def cache_entries(self) -> int:
        """Numbers that one cached token has: keys and values of all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim

    @property
    def saved_entries(self) -> int:
        """Numbers per token that one layer keeps for its backward pass, attention being fused.

        Two norms and two residuals, q and attention's output, k and v, and the four tensors of
        the gated part.
        """
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return 4 * self.hidden + 2 * q + 2 * kv + 4 * self.inner


def _qwen25(layers: int, hidden: int, heads: int, kv: int, inner: int, tied: bool) -> ModelShape:
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv,
        head_dim=128,
        inner=inner,
        vocabulary=151_936 if tied else 152_064,
        tied=tied,
        qkv_bias=True,
    )


def _qwen3(layers: int, hidden: int, heads: int, inner: int) -> ModelShape:
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=8,
        head_dim=128,
        inner=inner,
        vocabulary=151_936,
        tied=False,
        qk_norm=True,
    )


SHAPES: dict[str, ModelShape] = {
    "Qwen2.5-1.5B": _qwen25(28, 1536, 12, 2, 8960, tied=True),
    "Qwen2.5-3B": _qwen25(36, 2048, 16, 2, 11_008, tied=True),
    "Qwen2.5-7B": _qwen25(28, 3584, 28, 4, 18_944, tied=False),
    "Qwen2.5-14B": _qwen25(48, 5120, 40, 8, 13_824, tied=False),
    "Qwen3-8B": _qwen3(36, 4096, 32, 12_288),
    "Qwen3-14B": _qwen3(40, 5120, 40, 17_408),
}
"""By the name on the hub, without owner and ``-Instruct``."""


def shape_of(model: str) -> ModelShape:
    """Return the shape of a model by its hub name.

    Raises:
        UnknownNameError: Not among :data:`SHAPES`.
    """
    name = model.rpartition("/")[2].removesuffix("-Instruct")
    if name not in SHAPES:
        raise UnknownNameError("model", model, SHAPES, "plan")
    return SHAPES[name]
