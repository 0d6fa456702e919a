"""One forward pass: log-probability, entropy and hidden state of action tokens only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ....agents.models.device_memory import card_share
from ....agents.models.loading import has_bfloat16
from ....agents.models.size import is_large
from ....envs.utils.process_setting import ProcessSetting
from ..attention.tree_attention import NAME, attending
from ..batching.micro_batch import MicroBatch
from ..settings import Precision
from .fused_head import HeadSettings, fused_head, piece_entries
from .head_scores import head_scores
from .pack_attention import has_loops
from .packed_layers import PackedLayers, has_hooks, why_not_packed
from .token_scores import token_scores

# The table of logits is by far the largest tensor of a small batch with a large vocabulary; above
# this many entries (on a CPU) it is made, used and made again in the backward pass in pieces.
LOGITS_PER_CHUNK = 2**24
# Below this many columns torch's blocked CPU attention is slower than the plain product.
SHORT_ROW = 512


class TokenModel:
    """A causal language model seen as a scorer of action tokens.

    Args:
        model: Any ``AutoModelForCausalLM``.
        temperature: Of sampling: log-probabilities and entropies are those of the tempered
            distribution, as the engine reports them.
        precision: See :class:`LearnerSettings`; results are float32 in any case.
        entropy_gradient: Whether the entropies carry gradient.

    Attributes:
        layers: What computes packs in place of the model's own layers; None where nothing does.
        fused: Whether a plain output layer is computed by :func:`~.fused_head.fused_head`, as on
            CUDA.
    """

    def __init__(
        self,
        model: Any,
        temperature: float,
        precision: Precision = "float32",
        entropy_gradient: bool = True,
    ) -> None:
        self.entropy_gradient = entropy_gradient
        self.model = model
        self.temperature = temperature
        self.precision: Precision = precision
        self.separable = _head_is_plain(model)
        self.layers: PackedLayers | None = None
        self.fused = self.device.type == "cuda"
        self.casts = True

    def quicken(self, activation_bytes: int) -> None:
        """Compute packs by :class:`PackedLayers` where that is quicker than the model's own layers.

        That is a large model, and a small one where its loops are compiled.

        Args:
            activation_bytes: What one pass may keep for its backward pass; a pack that needs more
                keeps the inputs of the layers alone.
        """
        quicker = (self.large or has_loops()) and (self.half or self.exact)
        if quicker and self.separable and why_not_packed(self.model) is None:
            dtype = torch.bfloat16 if self.half else torch.float32
            made = PackedLayers(self.model, dtype, activation_bytes, loops=not self.large)
            self.layers = made if made.agrees() else None

    @property
    def large(self) -> bool:
        """Whether products, and not memory, take most of a pass on a CPU."""
        return is_large(self.model)

    @property
    def half(self) -> bool:
        """Whether products are made in bfloat16."""
        return computes_in_half(self.precision, self.device)

    @property
    def dtype(self) -> torch.dtype:
        """Number format of the weights."""
        return next(self.model.parameters()).dtype

    @property
    def exact(self) -> bool:
        """Whether weights and products are in float32."""
        return self.dtype == torch.float32 and not self.half

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    def hidden(self, batch: MicroBatch) -> Tensor:
        """Return last hidden states ``[rows, columns, hidden]``."""
        if batch.layout is not None and self.layers is not None and self.layers.unwatched():
            return self.layers(batch)
        with self.autocast():
            return self.model.get_decoder()(**batch.inputs()).last_hidden_state

    def score(self, batch: MicroBatch, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return log-probabilities and entropies ``[m]`` of the scored tokens, float32.

        Args:
            batch: The paths.
            hidden: Their last hidden states when the caller has them already.
        """
        if not self.separable:
            with self.autocast():
                logits = self.model(**batch.inputs()).logits
            chosen = batch.at(logits, batch.before)
            return token_scores(chosen, batch.targets, self.temperature, self.entropy_gradient)
        states = self.hidden(batch) if hidden is None else hidden
        return self._chunked(batch.at(states, batch.before), batch.targets)

    def _chunked(self, states: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        head: nn.Module = self.model.get_output_embeddings()
        if type(head) is nn.Linear and head.bias is None:
            if self.layers is not None and not has_hooks(head):
                return head_scores(states, head.weight, targets, self._head_settings(head))
            if self.fused:
                return fused_head(states, head.weight, targets, self._head_settings(head))
        rows = max(1, self.piece_entries // int(self.model.config.vocab_size))

        def piece(part: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
            with self.autocast():
                logits = head(part)
            return token_scores(logits, wanted, self.temperature, self.entropy_gradient)

        if len(states) <= rows:
            return piece(states, targets)
        parts = [
            checkpoint(piece, s, t, use_reentrant=False) if torch.is_grad_enabled() else piece(s, t)
            for s, t in zip(states.split(rows), targets.split(rows), strict=True)
        ]
        return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])

    @property
    def piece_entries(self) -> int:
        """Most logits that are held at a time."""
        if self.device.type != "cuda":
            return LOGITS_PER_CHUNK
        card = torch.cuda.get_device_properties(self.device).total_memory
        return piece_entries(int(card_share() * card))

    def _head_settings(self, head: nn.Linear) -> HeadSettings:
        return HeadSettings(
            temperature=self.temperature,
            entropy_gradient=self.entropy_gradient,
            dtype=torch.bfloat16 if self.half else head.weight.dtype,
            entries=self.piece_entries,
        )

    def autocast(self) -> Any:
        """Return the context that the model runs in."""
        if not self.half or not self.casts:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


def computes_in_half(precision: Precision, device: torch.device) -> bool:
    """Return whether products are made in bfloat16 on a device."""
    return precision == "bfloat16" or (precision == "auto" and has_bfloat16(device))


class WithoutAdapter(TokenModel):
    """A model with its adapter disabled: the starting model, without a copy.

    Args:
        model: A peft model.
        temperature: Divides the logits.
        precision: As in :class:`TokenModel`.
    """

    def score(self, batch: MicroBatch, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Score tokens, see :meth:`TokenModel.score`."""
        with self.model.disable_adapter():
            return super().score(batch, hidden)


def adapter_alone_learns(model: Any) -> bool:
    """Return whether only adapters train: a peft model whose base weights are frozen."""
    if not hasattr(model, "disable_adapter") or not hasattr(model, "peft_config"):
        return False
    return all(getattr(c, "bias", "none") == "none" for c in model.peft_config.values())


@torch.no_grad()
def _head_is_plain(model: Any) -> bool:
    """Return whether logits are the output layer on the last hidden state, nothing more.

    Some architectures scale or cap their logits after the layer; those are run whole.
    """
    head = model.get_output_embeddings()
    if head is None or not hasattr(model, "get_decoder"):
        return False
    device = next(model.parameters()).device
    ids = torch.arange(4, device=device)[None] % int(model.config.vocab_size)
    states = model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state
    whole = model(input_ids=ids, use_cache=False).logits
    return torch.allclose(head(states).float(), whole.float(), atol=1e-3, rtol=1e-3)


@contextmanager
def attention_for(models: Sequence[Any], batch: MicroBatch) -> Iterator[None]:
    """Select the attention implementation that suits the batch within the context.

    Packs need their own. Short rows on a CPU take attention as two products, a tenth of an update
    cheaper. The model may be shared with an engine whose masks suit its own choice, so that is put
    back.

    Args:
        models: transformers models.
        batch: What is about to go through them, forward and backward.
    """
    if batch.layout is not None:
        name = NAME
    elif batch.ids.device.type == "cpu" and batch.row_columns <= SHORT_ROW:
        models = [m for m in models if m.config._attn_implementation == "sdpa"]
        name = "eager"
    else:
        name = None
    with attending(models, name):
        yield


@contextmanager
def quick_cpu_maths(device: torch.device) -> Iterator[None]:
    """Select the fastest exact products for small models on a CPU; do nothing elsewhere.

    "medium" sends float32 products to oneDNN, about twice as fast. Where oneDNN then rounds to
    bfloat16, as it does on processors with matrix units, products stay as they are. The setting is
    the process's: it holds until the last thread leaves, and then the caller's is put back.

    Args:
        device: Where the model is.
    """
    if device.type != "cpu":
        yield
        return
    with _PRECISION.held():
        yield


@cache
def _is_medium_exact() -> bool:
    """Return whether "medium" multiplies float32 as float32 here; bfloat16 is .4 % off."""
    third = torch.full((64, 64), 1 / 3)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        product = third @ third
    finally:
        torch.set_float32_matmul_precision(before)
    return torch.allclose(product, torch.full_like(product, 64 / 9), rtol=1e-5)


_PRECISION = ProcessSetting(
    torch.get_float32_matmul_precision,
    torch.set_float32_matmul_precision,
    lambda: "medium" if _is_medium_exact() else "highest",
)
