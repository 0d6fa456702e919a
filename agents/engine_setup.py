"""What an engine settles once: the way through the model, its memory, the ids that end a text."""

from __future__ import annotations

from typing import Any

import torch

from ..envs.errors import EngineFault, TurngymError
from .fast_decoder import FastDecoder, why_not_fast
from .forward import Forward
from .memory import memory_full
from .render import end_of_message
from .sampling import compiled_loops


def choose_forward(model: Any, dtype: torch.dtype, max_context: int) -> Forward:
    """The packed decoder where it knows the model, else the model's own forward.

    With numba on few cores the packed decoder's own loops are compiled.

    Raises:
        BadValueError: Neither can sample from it; the message says why.
    """
    if why_not_fast(model, max_context) is None:
        if compiled_loops() is not None:
            from .native_decoder import NativeDecoder, why_not_native  # needs numba

            if why_not_native(model, dtype) is None:
                return NativeDecoder(model, dtype, max_context)
        return FastDecoder(model, dtype, max_context)
    from .hf_forward import HfForward  # transformers is slow to import

    return HfForward(model, dtype, max_context)


def cache_bytes(gib: float | None, device: torch.device) -> int:
    """Memory for keys and values: 2 GiB on a CPU, half of what is free on CUDA, or as asked."""
    if gib is not None:
        return int(gib * 2**30)
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] // 2
    return 2 * 2**30


def end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """All ids that end a text according to model, generation settings, tokenizer and template."""
    found: set[int] = {end_of_message(tokenizer), int(tokenizer.eos_token_id)}
    for config in (model.config, getattr(model, "generation_config", None)):
        value = getattr(config, "eos_token_id", None)
        if value is not None:
            found |= set(value) if isinstance(value, (list, tuple)) else {int(value)}
    return frozenset(int(i) for i in found)


def broken(fault: BaseException, knobs: str) -> TurngymError:
    """What everybody who waits is told when a step of the engine fails.

    Args:
        fault: What went wrong.
        knobs: What to change when memory ran out, a sentence.
    """
    if (full := memory_full(fault, "sampling", knobs)) is not None:
        return full
    if isinstance(fault, TurngymError):
        return EngineFault(f"engine: the step of the whole batch failed. {fault}")
    said = f"{type(fault).__name__}: {str(fault).strip()[:500]}"
    return EngineFault(f"engine: the step of the whole batch failed: {said}")
