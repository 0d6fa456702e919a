"""Handing a learner's weights to vLLM in place, and the proof that they arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ....envs.core.errors import BadValueError, EngineFault
from ...models.lora import merged_view
from ..base import Floats

Weights = Iterator[tuple[str, torch.Tensor]]
_SCALES = (0.3, 1.0, 3.0)
_SAME = 0.5


def plain_weights(model: Any) -> Weights:
    """Return names and tensors as in a checkpoint of the model; adapters are merged on the way.

    Nothing of ``model`` is changed: a merge that is undone leaves rounding behind.
    """
    for name, tensor in merged_view(model).state_dict().items():
        yield name, tensor.detach()


def reload(worker: Any, model: Any) -> None:
    """Runs beside vLLM's model: loads, and prepares again whatever was prepared from weights."""
    reload_from(worker, plain_weights(model))


def reload_from(worker: Any, weights: Weights) -> None:
    """Do what :func:`reload` does with weights that come one after the other."""
    with torch.no_grad():
        worker.model_runner.reload_weights(weights_iterator=weights)


def write(model: Any, path: str) -> None:
    """Write the weights for processes that cannot see the model."""
    from safetensors.torch import save_file

    # cloned: tied weights share memory, which such a file cannot say
    save_file({name: t.to("cpu").clone() for name, t in plain_weights(model)}, path)


def reload_file(worker: Any, path: str) -> None:
    """Do what :func:`reload` does with the weights of a file; each process takes its part."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        reload_from(worker, ((name, file.get_tensor(name)) for name in file.keys()))  # noqa: SIM118


@torch.no_grad()
def learner_logprobs(model: Any, context: Sequence[int], action: Sequence[int]) -> Floats:
    """Return the learner's log-probability of each token ``[n]`` of a given action."""
    device = next(model.parameters()).device
    logits = model(torch.tensor([[*context, *action]], device=device)).logits
    picked = torch.tensor(action, device=device)[:, None]
    found = logits[0, len(context) - 1 : -1].float().log_softmax(-1).gather(-1, picked)
    return found[:, 0].cpu().numpy()


def prove(
    model: Any,
    hand_over: Callable[[], None],
    engine_logprobs: Callable[[list[int], list[int]], Floats],
    text: tuple[list[int], list[int]],
    only: str = "",
) -> None:
    """Change the learner's weights, hand them over, and see whether the engine followed.

    An engine that keeps packed copies of weights may keep using old ones. Comparing under the
    weights that it was started with would not show that, so they are changed by noise, more and
    more until it shows in the log-probabilities, and put back afterwards.

    Args:
        model: The learner's.
        hand_over: Gives the engine the present weights.
        engine_logprobs: The engine's log-probabilities of an action after a context.
        text: Context and action.
        only: A part of the names of the weights that are handed over; empty for all.

    Raises:
        EngineFault: The engine did not follow, or computes something else from the start.
        BadValueError: The weights hardly matter: nothing can be proved.
    """
    hand_over()
    before = learner_logprobs(model, *text)
    noise = _distance(engine_logprobs(*text), before)
    if not noise < _SAME:
        raise EngineFault(
            f"engine: with the same weights its log-probabilities differ from the learner's by "
            f"{noise:.3g} nats on average; expected under {_SAME}. Is it the same architecture?"
        )
    for scale in _SCALES:
        with _shaken(model, scale, only):
            after = learner_logprobs(model, *text)
            moved = _distance(after, before)
            if not moved > 20 * noise:
                continue
            hand_over()
            left = _distance(engine_logprobs(*text), after)
        hand_over()
        if not left <= 3 * noise + 0.005 * moved:
            raise EngineFault(
                f"engine: after a hand-over of weights its log-probabilities are {left:.3g} nats "
                f"from the learner's, where the weights moved them by {moved:.3g} and rounding "
                f"explains {noise:.3g}: it keeps using stale copies of some weights. Use another "
                "version of vLLM, or engine='transformers'."
            )
        return
    raise BadValueError(
        f"engine: the log-probabilities of a text differ by {noise:.3g} nats between engine and "
        "learner, too much to see whether new weights arrive. Use engine_dtype='float32', or "
        "switch vllm.prove_sync off."
    )


@contextmanager
def _shaken(model: Any, scale: float, only: str) -> Iterator[None]:
    """Within, every weight has noise of ``scale`` times its tensor's own size; then it is back."""
    weights = [(name, p) for name, p in model.named_parameters() if only in name]
    kept = {name: p.detach().to("cpu", copy=True) for name, p in weights}
    source = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, p in weights:
            size = kept[name].float().square().mean().sqrt().clamp(min=0.02)
            noise = torch.randn(p.shape, generator=source) * size * scale
            p.add_(noise.to(p.device, p.dtype))
    try:
        yield
    finally:
        with torch.no_grad():
            for name, p in weights:
                p.copy_(kept[name])


def _distance(one: Floats, two: Floats) -> float:
    return float(np.abs(one - two).mean())
