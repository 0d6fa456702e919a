"""Which implementation of attention a model runs with, and why not another."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ...envs.core.errors import UnknownNameError

Attention = Literal["auto", "flash_attention_2", "flex_attention", "sdpa", "eager"]
ATTENTIONS = ("auto", "flash_attention_2", "flex_attention", "sdpa", "eager")
_SUPPORT = {
    "flash_attention_2": ("_supports_flash_attn", "_supports_flash_attn_2"),
    "flex_attention": ("_supports_flex_attn",),
    "sdpa": ("_supports_sdpa",),
}

_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def register_attention(name: str, attend: Callable[..., Any]) -> None:
    """Make an attention function known to models by a name.

    Args:
        name: For ``set_attn_implementation``.
        attend: Takes the layer, queries, keys and values ``[rows, heads, columns, width]``, a mask
            and keyword arguments; returns ``[rows, columns, heads, width]`` and weights or None.
    """
    _FUNCTIONS[name] = attend


def find_attention(name: str) -> Callable[..., Any] | None:
    """Return the registered function of that name; None for torch's and transformers' own."""
    return _FUNCTIONS.get(name)


def offer_attention(name: str) -> None:
    """Make a registered function known to transformers' models too."""
    from transformers import AttentionInterface  # imports all that models need: seconds

    AttentionInterface.register(name, _FUNCTIONS[name])


def attention_windows(config: Any) -> dict[str, int | None]:
    """Return how many tokens a token sees, itself the last, by kind of layer; None for all.

    Args:
        config: Of a transformers model, or of its text part.
    """
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if not kinds:
        slides = window is not None and getattr(config, "use_sliding_window", True)
        kinds = {"sliding_attention" if slides else "full_attention"}
    return {kind: window if kind == "sliding_attention" else None for kind in sorted(kinds)}


class Chosen(NamedTuple):
    """An implementation, and why it is not the one that was asked for (empty when it is)."""

    name: str
    reason: str = ""


def choose_attention(model: Any, wanted: Attention, device: Any) -> Chosen:
    """Return the implementation for a model on a device.

    ``"auto"`` takes FlashAttention where it is installed and the device can run it, else torch's
    own (sdpa), else the plain products (eager). What was asked for and cannot be had falls back in
    the same order.

    Args:
        model: A transformers model.
        wanted: What was asked for.
        device: The torch device.

    Raises:
        UnknownNameError: No such implementation.
    """
    if wanted not in ATTENTIONS:
        raise UnknownNameError("attention", wanted, ATTENTIONS)
    order = ("flash_attention_2", "sdpa", "eager")
    asked = "flash_attention_2" if wanted == "auto" else wanted
    reasons = []
    for name in (asked, *(n for n in order if n != asked and not _faster(n, asked))):
        reason = _why_not(model, name, device)
        if reason is None:
            reason = "" if wanted == "auto" and name != "eager" else "; ".join(reasons)
            return Chosen(name, f"attention is {name}: {reason}" if reason else "")
        reasons.append(f"{name} cannot be used, as {reason}")
    return Chosen("eager", f"attention is eager: {'; '.join(reasons)}")


def avoid_planned_kernels(device: Any) -> None:
    """Switch cuDNN's attention off in this process where models are on CUDA.

    On recent GPUs torch takes it first, and it builds a plan for every new shape, 0.1 to 0.5
    seconds each time; the shapes of sampling and training change all the time. Flash and
    memory-efficient attention, which come next, take any shape as it is.

    Args:
        device: The torch device of a model; nothing happens for a CPU.
    """
    if device.type != "cuda":
        return
    import torch

    torch.backends.cuda.enable_cudnn_sdp(False)


def set_attention(model: Any, wanted: Attention, device: Any) -> str:
    """Switch a model to the chosen implementation; returns the reason of a fall-back, or ``""``."""
    chosen = choose_attention(model, wanted, device)
    if model.config._attn_implementation != chosen.name:
        model.set_attn_implementation(chosen.name)
    return chosen.reason


def _faster(name: str, asked: str) -> bool:
    """Whether ``name`` is more than what was asked for: nobody who wants eager wants flash."""
    order = ("eager", "sdpa", "flex_attention", "flash_attention_2")
    return order.index(name) > order.index(asked)


def _why_not(model: Any, name: str, device: Any) -> str | None:
    """Return the reason why an implementation cannot be used, None when it can."""
    if name == "eager":
        return None
    if not any(getattr(model, flag, False) for flag in _SUPPORT[name]):
        return f"{type(model).__name__} does not support it"
    if name == "sdpa":
        return None
    if device.type != "cuda":
        return f"the device is {device.type} and it needs CUDA"
    if name == "flash_attention_2":
        if importlib.util.find_spec("flash_attn") is None:
            return "the package flash-attn is not installed"
        import torch

        if next(model.parameters()).dtype == torch.float32:
            return "the weights are float32 and it computes in half precision (--weights bfloat16)"
        if torch.cuda.get_device_capability(device)[0] < 8:
            return "it needs a GPU of the Ampere generation or later"
    return None
