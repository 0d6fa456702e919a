"""Imitation learning: supervised training on the action tokens of demonstrations."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..models.loading import has_bfloat16
from ..models.size import is_large
from .cores import SideBySide, passes_at_once
from .demonstrations import Demonstration

T = TypeVar("T")

_CHUNK_TOKENS = 4096
"""Padded tokens that go through the model at a time: activations that the caches still hold."""
_LARGE_CHUNK_TOKENS = 1024
"""The same of a large model on a CPU: one of 135 million weights keeps .9 to 1.3 MB of each."""
_SHORT_ROW = 256
"""Tokens of a row up to which a CPU takes the plain attention kernel."""


class Score(NamedTuple):
    """How well a model knows demonstrations that it has not seen.

    Attributes:
        greedy: Share of the dialogues whose every action greedy decoding writes exactly as shown.
        sampled: Mean probability that sampling at temperature 1 does.
    """

    greedy: float
    sampled: float


class WarmupAdamW:
    """AdamW on clipped gradients, with a learning rate that rises and then stays.

    Args:
        weights: What learns.
        lr: Learning rate after the warm-up.
        warmup_steps: Steps over which the learning rate rises.
        max_norm: Gradients are clipped to it.
        options: Further arguments of :class:`torch.optim.AdamW`.
    """

    def __init__(
        self,
        weights: Iterable[torch.nn.Parameter],
        *,
        lr: float,
        warmup_steps: int,
        max_norm: float,
        **options: Any,
    ) -> None:
        self._weights, self._lr = list(weights), lr
        self._warmup_steps, self._max_norm = warmup_steps, max_norm
        self._optimizer = torch.optim.AdamW(self._weights, lr=lr, **options)
        self.steps = 0

    def step(self) -> None:
        """Update the weights by their gradients, which are then gone."""
        torch.nn.utils.clip_grad_norm_(self._weights, self._max_norm)
        self.steps += 1
        for group in self._optimizer.param_groups:
            group["lr"] = self._lr * min(1.0, self.steps / self._warmup_steps)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)


class ImitationTrainer:
    """Trains a model to imitate: one AdamW step per batch of demonstrations.

    Loss on action tokens only, each weighing the same. Where the processor computes in bfloat16,
    products do (weights and optimiser stay float32). A small model's rows go through it in several
    threads where there are cores for them, to the same bits; with dropout, which draws random
    numbers, one after another.

    Args:
        model: A causal language model on its device; trained in place.
        lr: Learning rate after the warm-up.
        warmup_steps: Steps over which the learning rate rises.
        pad_id: Fills rows.

    Attributes:
        passes_at_once: Most passes of the model that run at a time.
    """

    def __init__(self, model: Any, *, lr: float, warmup_steps: int, pad_id: int) -> None:
        self._model = model
        self._pad_id = pad_id
        self._optimizer = WarmupAdamW(
            model.parameters(),
            lr=lr,
            warmup_steps=warmup_steps,
            max_norm=1.0,
            betas=(0.9, 0.98),
            weight_decay=0.01,
            fused=True,
        )
        self._weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._device = next(model.parameters()).device
        self._half = has_bfloat16(self._device)
        alone = is_large(model) or _has_dropout(model)
        self.passes_at_once = 1 if alone else passes_at_once(self._device)
        self._passes = SideBySide(self.passes_at_once)

    @property
    def steps(self) -> int:
        """Steps taken."""
        return self._optimizer.steps

    def step(self, demonstrations: Sequence[Demonstration]) -> float:
        """Learn from one batch; return the mean loss per action token in nats before the step."""
        self._model.train()
        total = sum(sum(d.acted) for d in demonstrations)

        def learn(rows: Sequence[Demonstration]) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
            logits, targets, _ = self._predict(rows)
            part = functional.cross_entropy(logits, targets, reduction="sum") / total
            if self.passes_at_once == 1:
                part.backward()
                return part.detach(), ()
            return part.detach(), torch.autograd.grad(part, self._weights, allow_unused=True)

        loss = 0.0

        def add(found: tuple[torch.Tensor, Sequence[torch.Tensor]]) -> None:
            nonlocal loss
            part, gradients = found
            loss += float(part)
            for weight, gradient in zip(self._weights, gradients, strict=False):
                if gradient is not None:
                    weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)

        self._each(demonstrations, learn, add)  # the sums of one chunk after another
        self._optimizer.step()
        return loss

    def score(self, demonstrations: Sequence[Demonstration]) -> Score:
        """Measure on demonstrations; see :class:`Score`."""
        self._model.eval()

        @torch.no_grad()
        def known(rows: Sequence[Demonstration]) -> tuple[float, float]:
            logits, targets, owner = self._predict(rows)
            logp = logits.log_softmax(-1)
            chosen = logp.gather(-1, targets[:, None])[:, 0]
            missed = (logp.argmax(-1) != targets).float()
            zeros = torch.zeros(len(rows), device=self._device)
            greedy = float((zeros.index_add(0, owner, missed) == 0).sum())
            return greedy, float(zeros.index_add(0, owner, chosen).exp().sum())

        greedy, sampled = 0.0, 0.0

        def add(shares: tuple[float, float]) -> None:
            nonlocal greedy, sampled
            greedy, sampled = greedy + shares[0], sampled + shares[1]

        self._each(demonstrations, known, add)
        return Score(greedy / len(demonstrations), sampled / len(demonstrations))

    def _each(
        self,
        demonstrations: Sequence[Demonstration],
        call: Callable[[Sequence[Demonstration]], T],
        add: Callable[[T], None],
    ) -> None:
        """Call ``add`` with what ``call`` returns for each chunk, in order; several at a time."""
        chunks = _chunks(demonstrations, chunk_tokens(self._model))
        by_kernel = itertools.groupby(chunks, lambda rows: len(rows[-1].ids) > _SHORT_ROW)
        for _, group in by_kernel:  # which attention kernel computes is one choice for all threads
            group = list(group)
            with row_attention(self._device, len(group[-1][-1].ids)):
                for found in self._passes.map(call, group):
                    add(found)

    def _predict(
        self, rows: Sequence[Demonstration]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Of all action tokens: logits ``[k, vocabulary]``, target ids and row numbers ``[k]``."""
        width = max(len(row.ids) for row in rows)
        ids = torch.full((len(rows), width), self._pad_id)
        acted = torch.zeros((len(rows), width), dtype=torch.bool)
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)] = torch.tensor(row.ids)
            acted[i, : len(row.ids)] = torch.tensor(row.acted)
        ids, where = ids.to(self._device), acted[:, 1:].to(self._device)
        kind = self._device.type
        half = torch.autocast(kind, torch.bfloat16) if self._half else contextlib.nullcontext()
        # rows are padded on the right, so a causal model needs no mask
        with half:
            hidden = self._model.base_model(input_ids=ids, use_cache=False).last_hidden_state
            logits = self._model.get_output_embeddings()(hidden[:, :-1][where])
        return logits.float(), ids[:, 1:][where], where.nonzero()[:, 0]


def row_attention(device: torch.device, width: int) -> AbstractContextManager[Any]:
    """Return a context with the attention kernel that is the fastest for rows on a CPU.

    Up to 256 tokens the plain one, which makes the whole table of scores; the blocked one, which
    does not, takes a third to a half of its time at 1,024 tokens and four fifths at 256.

    Args:
        device: Where the model is; elsewhere than on a CPU nothing is chosen.
        width: Tokens of a padded row.
    """
    if device.type != "cpu":
        return contextlib.nullcontext()
    blocked = [SDPBackend.FLASH_ATTENTION] if width > _SHORT_ROW else []
    return sdpa_kernel([*blocked, SDPBackend.MATH], set_priority=True)


def chunk_tokens(model: torch.nn.Module) -> int:
    """Return how many padded tokens go through a model at a time, at least a row."""
    on_cpu = next(model.parameters()).device.type == "cpu"
    return _LARGE_CHUNK_TOKENS if on_cpu and is_large(model) else _CHUNK_TOKENS


def in_chunks(lengths: Sequence[int], tokens: int = _CHUNK_TOKENS) -> Iterator[list[int]]:
    """Yield places of rows of similar length, at most ``tokens`` padded tokens at a time."""
    chunk: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if chunk and (len(chunk) + 1) * lengths[place] > tokens:
            yield chunk
            chunk = []
        chunk.append(place)
    if chunk:
        yield chunk


def _has_dropout(model: Any) -> bool:
    """Return whether a model may draw random numbers as it learns, which threads would share."""
    return any(share for name, share in model.config.to_dict().items() if "drop" in name)


def _chunks(demonstrations: Sequence[Demonstration], tokens: int) -> Iterator[list[Demonstration]]:
    for places in in_chunks([len(row.ids) for row in demonstrations], tokens):
        yield [demonstrations[i] for i in places]
