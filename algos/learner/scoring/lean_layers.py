"""A model's layers on a CPU, computed with less work: the same function, other rounding at most.

The update of a small model is bound by memory, and much of what it does is never read:

- Only the positions before action tokens are scored, a sixth of those of a question answering
  episode. What the last layer does position by position (queries, output, MLP, norms) is computed
  for them alone; its keys and values are computed for all.
- A root mean square norm made of torch's own parts passes over memory a dozen times in its
  backward pass; here three tensors are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

POSITIONWISE = ("mlp", "post_attention_layernorm", "self_attn.q_proj", "self_attn.o_proj")
"""Parts of the last layer that act on each position alone and that no other position reads."""


class LeanLayers:
    """The parts of one model that have a quicker form; found by name and by trying.

    Nothing is found in a model that names its parts otherwise, or that is not on a CPU.

    Args:
        model: A transformers model with a decoder.

    Attributes:
        norms: Root mean square norms that :func:`rms_norm` computes.
        last: Parts of the last layer and after it that may be computed for some positions only.
    """

    def __init__(self, model: Any) -> None:
        self.norms: list[nn.Module] = []
        self.last: list[nn.Module] = []
        if next(model.parameters()).device.type != "cpu" or not hasattr(model, "get_decoder"):
            return
        self.norms = [m for m in model.modules() if _is_rms_norm(m)]
        self.last = _last_parts(model)
        if self.last and not self._agrees(model):
            self.last = []

    @contextmanager
    def within(self, needed: Tensor | None) -> Iterator[None]:
        """Use the quicker forms within the context; it encloses the backward pass too.

        Args:
            needed: Distinct flat positions ``[k]`` of ``[rows, columns]`` whose last hidden states
                are read; the others' hold anything finite. None for all.
        """
        with ExitStack() as stack:
            for norm in self.norms:
                _replace(stack, norm, _quick_norm(norm))
            if needed is not None:
                for part in self.last:
                    _replace(stack, part, _only_at(part.forward, needed))
            yield

    @torch.no_grad()
    def _agrees(self, model: Any) -> bool:
        """Whether needed positions keep their states in a small batch."""
        ids = torch.arange(12).view(2, 6) * 5 % int(model.config.vocab_size)
        needed = torch.tensor([2, 3, 5, 7, 11])
        decoder = model.get_decoder()
        try:
            whole = decoder(input_ids=ids, use_cache=False).last_hidden_state
            with self.within(needed):
                some = decoder(input_ids=ids, use_cache=False).last_hidden_state
        except (TypeError, ValueError, IndexError, RuntimeError, AttributeError):
            return False  # a part that is called otherwise than with one tensor
        whole, some = (x.flatten(0, 1)[needed].float() for x in (whole, some))
        exact = next(model.parameters()).dtype == torch.float32
        return torch.allclose(whole, some, rtol=0.0, atol=(1e-4 if exact else 0.1) * 4)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Compute ``weight * x / sqrt(mean(x**2) + eps)`` over the last axis, in float32.

    Args:
        x: ``[..., n]``.
        weight: ``[n]``.
        eps: Added to the mean square.

    Returns:
        ``[..., n]``, of the wider of both number formats.
    """
    return _RmsNorm.apply(x, weight, eps)


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        wide = x.float()
        square = torch.linalg.vecdot(wide, wide).mul_(1.0 / x.shape[-1])
        scale = square.add_(eps).rsqrt_()[..., None]
        ctx.save_for_backward(x, weight, scale)
        out = (wide * scale).to(x.dtype)
        return out.mul_(weight) if out.dtype == weight.dtype else out * weight

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        grad, n = grads[0].float(), x.shape[-1]
        unit = x.float() * scale
        of_weight = (grad * unit).reshape(-1, n).sum(0) if ctx.needs_input_grad[1] else None
        of_x = grad * weight
        along = torch.linalg.vecdot(of_x, unit).mul_(-1.0 / n)[..., None]
        of_x = of_x.addcmul_(unit, along).mul_(scale).to(x.dtype)
        return of_x, None if of_weight is None else of_weight.to(weight.dtype), None


def _is_rms_norm(module: nn.Module) -> bool:
    weight, eps = getattr(module, "weight", None), getattr(module, "variance_epsilon", None)
    if not type(module).__name__.endswith("RMSNorm") or eps is None or "forward" in vars(module):
        return False
    if not isinstance(weight, Tensor) or weight.ndim != 1 or len(weight) == 0:
        return False
    with torch.no_grad():
        x = torch.linspace(-1.0, 2.0, 2 * len(weight), dtype=weight.dtype).view(2, -1)
        return torch.allclose(module(x), rms_norm(x, weight, eps), rtol=1e-5, atol=1e-6)


def _last_parts(model: Any) -> list[nn.Module]:
    """Return position-wise parts of the last layer, and the norm after it."""
    decoder = model.get_decoder()
    layers = getattr(decoder, "layers", None)
    if not isinstance(layers, nn.ModuleList) or not len(layers):
        return []
    parts = [(layers[-1], name) for name in POSITIONWISE] + [(decoder, "norm")]
    found = []
    for owner, name in parts:
        for piece in name.split("."):
            owner = getattr(owner, piece, None)
        if isinstance(owner, nn.Module):
            found.append(owner)
    return found


def _replace(stack: ExitStack, module: nn.Module, forward: Callable[..., Tensor]) -> None:
    own = vars(module)
    stack.callback(own.__setitem__, "forward", own["forward"]) if "forward" in own else (
        stack.callback(own.pop, "forward", None)
    )
    own["forward"] = forward


def _quick_norm(norm: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: rms_norm(x, norm.weight, norm.variance_epsilon)


def _only_at(forward: Callable[[Tensor], Tensor], needed: Tensor) -> Callable[[Tensor], Tensor]:
    """Return ``forward`` of ``[rows, columns, n]`` at flat positions, 0 elsewhere."""

    def some(x: Tensor) -> Tensor:
        part = forward(x.flatten(0, 1).index_select(0, needed)[None])[0]
        out = part.new_zeros(x.shape[0] * x.shape[1], part.shape[-1])
        return out.index_copy(0, needed, part).unflatten(0, x.shape[:2])

    return some
