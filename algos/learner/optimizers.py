"""Optimisers: AdamW for weights of any number format, and its 8-bit form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...envs.core.errors import BadValueError, MissingExtraError
from ..core.recipe import Optim
from .settings import OptimizerKind


def make_optimizer(groups: list[dict[str, Any]], optim: Optim, kind: OptimizerKind) -> Any:
    """Return the optimiser of a learner.

    ``"adamw"`` keeps its own float32 copy of weights in half precision, as steps of a usual
    learning rate are smaller than the resolution of such weights. ``"adamw8bit"`` keeps its two
    moments in 8 bits and no copy, a quarter of the memory: use it with float32 weights or
    adapters.

    Args:
        groups: Parameter groups with ``params`` and ``lr``.
        optim: Settings of the recipe.
        kind: Which.

    Raises:
        MissingExtraError: bitsandbytes is not installed.
        BadValueError: 8-bit moments on weights in half precision, where steps would be lost.
    """
    if kind == "adamw8bit":
        return _eight_bit(groups, optim)
    half = any(p.dtype != torch.float32 for group in groups for p in group["params"])
    if half:
        return MasterAdamW(groups, betas=optim.betas, weight_decay=optim.weight_decay)
    return FusedAdamW(groups, betas=optim.betas, weight_decay=optim.weight_decay)


class _Uncompiled(torch.optim.Optimizer):
    """An optimiser whose methods are not hidden from torch's compiler, which hiding imports.

    That takes one to two seconds, in which a small model takes four steps; nothing here is compiled
    anyway.
    """

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own."""
        _bare(torch.optim.Optimizer.add_param_group)(self, param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Free all gradients, or set them to 0."""
        _bare(torch.optim.Optimizer.zero_grad)(self, set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return states and settings, parameters by number."""
        return _bare(torch.optim.Optimizer.state_dict)(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take saved states and settings."""
        _bare(torch.optim.Optimizer.load_state_dict)(self, state_dict)


class FusedAdamW(_Uncompiled, torch.optim.AdamW):
    """``torch.optim.AdamW(..., fused=True)``, bit for bit, with the same states and hooks.

    Args:
        groups: Parameter groups with ``params`` and ``lr``.
        settings: Further arguments of torch's.
    """

    def __init__(self, groups: list[dict[str, Any]], **settings: Any) -> None:
        super().__init__(groups, fused=True, **settings)

    @torch.no_grad()
    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take one step on all parameters that have a gradient."""
        _bare(torch.optim.AdamW.step)(self)


def _bare(method: Any) -> Any:
    """Return a method without what decorators of torch put around it."""
    return getattr(method, "__wrapped__", method)


class MasterAdamW(_Uncompiled):
    """AdamW whose steps are taken on float32 copies of the weights.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate of groups without one.
        betas: Decay of the two moments.
        eps: Added to the root of the second moment.
        weight_decay: Decoupled from the gradient.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take one step on all parameters that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step(p, group)
        return loss

    def _step(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["count"] = torch.zeros((), dtype=torch.float32)
            state["master"] = p.detach().float().clone()
            state["mean"] = torch.zeros_like(state["master"])
            state["square"] = torch.zeros_like(state["master"])
        assert p.grad is not None
        grad, master, (b1, b2) = p.grad.float(), state["master"], group["betas"]
        state["count"] += 1
        n, lr = int(state["count"]), group["lr"]
        master.mul_(1 - lr * group["decay"])
        state["mean"].lerp_(grad, 1 - b1)
        state["square"].mul_(b2).addcmul_(grad, grad, value=1 - b2)
        root = state["square"].sqrt().div_((1 - b2**n) ** 0.5).add_(group["eps"])
        master.addcdiv_(state["mean"], root, value=-lr / (1 - b1**n))
        p.copy_(master)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a saved state; torch would round the copies to the weights' own format."""
        super().load_state_dict(state_dict)
        order = [p for group in self.param_groups for p in group["params"]]
        for i, saved in state_dict["state"].items():
            p = order[i]
            self.state[p] = {
                name: value.to("cpu" if name == "count" else p.device, torch.float32, copy=True)
                for name, value in saved.items()
            }


def _eight_bit(groups: list[dict[str, Any]], optim: Optim) -> Any:
    try:
        from bitsandbytes.optim import AdamW8bit  # pyright: ignore[reportMissingImports]
    except ImportError as fault:
        raise MissingExtraError("optimizer='adamw8bit'", "bitsandbytes", "gpu", fault) from fault
    half = {str(p.dtype) for group in groups for p in group["params"]} - {"torch.float32"}
    if half:
        raise BadValueError(
            f"optimizer='adamw8bit' keeps no float32 copy of weights, and these are "
            f"{', '.join(sorted(half))}: small steps would be lost. Use weights='float32', LoRA, "
            "or optimizer='adamw'."
        )
    return AdamW8bit(groups, betas=optim.betas, weight_decay=optim.weight_decay)
