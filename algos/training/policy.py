"""The starting policy of a run: loading, attention, fused kernels and adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ...agents.models.attention import set_attention
from ...agents.models.loading import load_model, load_tokenizer, resolve_device
from ...agents.models.lora import with_lora
from ...agents.rendering.factory import keep_style
from ...envs.core.errors import BadValueError, MissingExtraError
from ..runs.progress import Reporter
from .config import TrainConfig


def load_policy(config: TrainConfig, report: Reporter, *, waits: bool = False) -> tuple[Any, Any]:
    """Load the model that a run trains, and its tokenizer.

    Args:
        config: The run.
        report: Where warnings are shown.
        waits: Whether the model is to be cut up between processes. It waits for that in main
            memory: without adapters as its files, mapped, which all processes of a machine share.

    Raises:
        TurngymError: Something of the model does not fit; says what.
    """
    tokenizer = load_tokenizer(config.model)
    keep_style(tokenizer, config.render)
    device = own_device(config.device)
    if waits:
        whole = config.lora is not None or (Path(config.model) / "adapter_config.json").is_file()
        dtype = config.weights if whole else "stored"  # a sum with adapters is rounded once
        model = load_model(config.model, dtype=dtype, device="cpu")
        if config.weights == "bfloat16":  # else an engine would play with what is not yet rounded
            for weight in model.parameters():
                weight.data = weight.data.bfloat16()
    else:
        own = _may_be_own(config)
        model = load_model(config.model, dtype=config.weights, device=config.device, own_class=own)
        device = next(model.parameters()).device
    if warning := set_attention(model, config.attention, device):
        report.note(warning)
    if config.learner.liger:
        apply_liger(model, device)
    if config.lora is not None:
        model = with_lora(model, config.lora, config.seed)
    return model, tokenizer


def _may_be_own(config: TrainConfig) -> bool:
    """Return whether a run asks nothing of its model that is transformers' to do."""
    learner = config.learner
    changed = config.lora is not None or learner.liger or learner.gradient_checkpointing
    plain = config.attention in ("auto", "sdpa", "eager")
    return config.engine == "transformers" and plain and not changed


def own_device(name: str) -> torch.device:
    """Return the device of this process by the run's name for it."""
    device = resolve_device(name)
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def check_teacher(teacher: str | None, tokenizer: Any) -> None:
    """Refuse a teacher whose tokens are others than the policy's.

    Args:
        teacher: Folder or hub name of its model; None for no teacher.
        tokenizer: The policy's.

    Raises:
        BadValueError: Its tokenizer has other ids.
    """
    if teacher is not None and load_tokenizer(teacher).get_vocab() != tokenizer.get_vocab():
        raise BadValueError(
            f"the teacher {teacher} has another tokenizer than the policy, so it cannot score the "
            "policy's tokens. Choose a teacher of the same family of models."
        )


def apply_liger(model: Any, device: Any) -> None:
    """Replace norms, rotary embedding and gated layers of a model by Liger's fused kernels.

    Log-probabilities stay with :mod:`turngym.algos.learner.scoring.token_scores`, which is fused
    already and gives
    entropies too; Liger's own loss knows the cross entropy alone.

    Args:
        model: A transformers model; changed in place.
        device: Where it is.

    Raises:
        BadValueError: Not a CUDA device, or a model that Liger does not know.
        MissingExtraError: liger-kernel is not installed.
    """
    if device.type != "cuda":
        raise BadValueError(
            f"LearnerSettings.liger: the device is {device.type}, and Liger's kernels run on CUDA "
            "alone. Leave it off."
        )
    try:
        from liger_kernel.transformers import (  # pyright: ignore[reportMissingImports]
            _apply_liger_kernel_to_instance,
        )
        from liger_kernel.transformers.monkey_patch import (  # pyright: ignore[reportMissingImports]
            MODEL_TYPE_TO_APPLY_LIGER_FN,
        )
    except ImportError as fault:
        raise MissingExtraError("LearnerSettings.liger", "liger-kernel", "gpu", fault) from fault
    kind = model.config.model_type
    if kind not in MODEL_TYPE_TO_APPLY_LIGER_FN:
        raise BadValueError(
            f"LearnerSettings.liger: Liger has no kernels for models of type {kind!r}. Known: "
            f"{', '.join(sorted(MODEL_TYPE_TO_APPLY_LIGER_FN))}. Leave it off."
        )
    _apply_liger_kernel_to_instance(
        model=model, cross_entropy=False, fused_linear_cross_entropy=False
    )
