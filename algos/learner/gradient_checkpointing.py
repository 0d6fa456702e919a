"""Gradient checkpointing of models that compute as in evaluation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch.utils.checkpoint import checkpoint

from ...envs.core.errors import BadValueError
from .offload import ActivationOffload


def is_recomputable(model: Any) -> bool:
    """Return whether a model has layers that can be checkpointed."""
    return bool(_layers(model))


def check_recomputable(model: Any) -> None:
    """Refuse a model whose layers cannot be checkpointed.

    Raises:
        BadValueError: It has none that can.
    """
    if not is_recomputable(model):
        raise BadValueError(
            f"LearnerSettings.gradient_checkpointing: {type(model).__name__} has no layers that "
            "can be run again; leave it off and lower micro_batch_tokens instead."
        )


@contextmanager
def recomputing(models: Sequence[Any], offload: ActivationOffload | None = None) -> Iterator[None]:
    """Recompute the layers in the backward pass within the context, keeping only their inputs.

    transformers checkpoints layers in training mode only, which would switch dropout on too. So
    the mode is set on the layers themselves and not on what is inside them, and all of it is put
    back: in training mode a model refuses the cache that an engine may want of it.

    Args:
        models: transformers models; enclose forward and backward passes.
        offload: Takes the inputs to main memory; None leaves them where they are.
    """
    # nothing is drawn without dropout, so no random state is copied per layer
    again: Callable[..., Any]
    again = functools.partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
    with ExitStack() as stack:
        if offload is not None:
            again = offload.around(again)
            stack.enter_context(offload.watching())
        for layer in [layer for model in models for layer in _layers(model)]:
            stack.callback(_set, layer, layer.gradient_checkpointing, layer.training)
            layer._gradient_checkpointing_func = again
            _set(layer, True, True)
        yield


def _set(layer: Any, on: bool, training: bool) -> None:
    layer.gradient_checkpointing = on
    layer.training = training


def _layers(model: Any) -> list[Any]:
    from transformers.modeling_layers import GradientCheckpointingLayer  # slow to import

    return [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
