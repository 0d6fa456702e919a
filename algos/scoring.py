"""One forward pass over rows: log-probability, entropy and hidden state of action tokens only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from ..agents.loading import has_bfloat16
from .learner_settings import Precision
from .rows import Row
from .token_scores import token_scores

# The table of logits is by far the largest tensor of a small batch with a large vocabulary; above
# this many entries it is made, used and made again in the backward pass in pieces.
LOGITS_PER_CHUNK = 2**24
# Below this many columns torch's blocked CPU attention is slower than the plain product.
SHORT_ROW = 512


@dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """Rows of one micro batch, padded on the right.

    Attributes:
        ids: ``[paths, columns]`` int64.
        row: Row of every action token ``[n]``.
        column: Its place among its path's action tokens ``[n]``.
        before: Position of the token in front of it: where it is predicted ``[n]``.
        targets: The action tokens ``[n]``.
        width: Most action tokens of a path.
    """

    ids: Tensor
    row: Tensor
    column: Tensor
    before: Tensor
    targets: Tensor
    width: int

    @classmethod
    def of(cls, rows: Sequence[Row], pad_id: int, device: torch.device) -> Padded:
        """Pad ``rows`` and put them on ``device``."""
        columns = max(len(row.ids) for row in rows)
        ids = torch.full((len(rows), columns), pad_id, dtype=torch.int64)
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)] = torch.from_numpy(row.ids)
        at = torch.cat([torch.from_numpy(row.at) for row in rows])
        counts = torch.tensor([row.n_act for row in rows])
        index = torch.repeat_interleave(torch.arange(len(rows)), counts)
        column = torch.cat([torch.arange(row.n_act) for row in rows])
        targets = ids[index, at]
        move = (ids, index, column, at - 1, targets)
        return cls(*(t.to(device) for t in move), width=int(counts.max()))

    def spread(self, flat: Tensor) -> Tensor:
        """``[n]`` action-token values as ``[paths, width]``, 0 on padding; keeps the gradient."""
        table = flat.new_zeros(len(self.ids), self.width)
        return table.index_put((self.row, self.column), flat)

    def table(self, per_row: Sequence[Any], fill: float = 0.0) -> Tensor:
        """Arrays ``[n_act]`` per row (numpy) as one float tensor ``[paths, width]``."""
        out = torch.full((len(self.ids), self.width), fill, dtype=torch.float32)
        for i, values in enumerate(per_row):
            out[i, : len(values)] = torch.as_tensor(values, dtype=torch.float32)
        return out.to(self.ids.device)


class TokenModel:
    """A causal language model seen as a scorer of action tokens.

    Args:
        model: Any ``AutoModelForCausalLM``.
        temperature: Of sampling: log-probabilities and entropies are those of the tempered
            distribution, as the engine reports them.
        precision: See :class:`LearnerSettings`; results are float32 in any case.
        entropy_gradient: Whether the entropies carry gradient.
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

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    def hidden(self, ids: Tensor) -> Tensor:
        """Last hidden states ``[paths, columns, hidden]``."""
        with self.autocast(), plain_attention(self.model, ids):
            return self.model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state

    def score(self, batch: Padded, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies ``[n]`` of the action tokens, float32.

        Args:
            batch: The rows.
            hidden: Their last hidden states when the caller has them already.
        """
        if not self.separable:
            with self.autocast(), plain_attention(self.model, batch.ids):
                logits = self.model(input_ids=batch.ids, use_cache=False).logits
            chosen = logits[batch.row, batch.before]
            return token_scores(chosen, batch.targets, self.temperature, self.entropy_gradient)
        states = self.hidden(batch.ids) if hidden is None else hidden
        return self._chunked(states[batch.row, batch.before], batch.targets)

    def _chunked(self, states: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        head: nn.Module = self.model.get_output_embeddings()
        rows = max(1, LOGITS_PER_CHUNK // int(self.model.config.vocab_size))

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

    def autocast(self) -> Any:
        """The context that the model runs in."""
        half = self.precision == "bfloat16" or (
            self.precision == "auto" and has_bfloat16(self.device)
        )
        if not half:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)


@torch.no_grad()
def _head_is_plain(model: Any) -> bool:
    """True when logits are the output layer on the last hidden state, nothing more.

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
def plain_attention(model: Any, ids: Tensor) -> Iterator[None]:
    """Within, short rows on a CPU use attention as two products, a tenth of an update cheaper.

    The model may be shared with an engine whose masks suit its own choice, so that is put back.

    Args:
        model: A transformers model.
        ids: Rows ``[paths, columns]`` that are about to go through it.
    """
    config = model.config
    if (
        ids.device.type != "cpu"
        or ids.shape[1] > SHORT_ROW
        or config._attn_implementation != "sdpa"
    ):
        yield
        return
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation("sdpa")


@contextmanager
def quick_cpu_maths(device: torch.device, columns: int) -> Iterator[None]:
    """On a CPU, the fastest exact way through small models; elsewhere nothing.

    "medium" sends float32 products to oneDNN (about twice as fast, still float32 on machines
    without matrix units); beside it the blocked attention kernel is slow on short rows. The
    caller's global precision setting is put back.

    Args:
        device: Where the model is.
        columns: Tokens per padded row.
    """
    if device.type != "cpu":
        yield
        return
    before = torch.get_float32_matmul_precision()
    kernel = SDPBackend.MATH if columns <= SHORT_ROW else SDPBackend.FLASH_ATTENTION
    torch.set_float32_matmul_precision("medium")
    try:
        with sdpa_kernel([kernel, SDPBackend.MATH]):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
