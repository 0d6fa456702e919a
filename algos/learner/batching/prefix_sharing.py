"""Whether a model computes the same over a pack of distinct tokens as over separate rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ....envs.core.errors import BadValueError
from ..attention.tree_attention import NAME, attending
from .micro_batch import MicroBatch
from .rows import Row


def why_not_shared(model: Any) -> str | None:
    """Return why prefixes cannot be shared in this model; None when they can.

    What the configuration does not show is found by trying: a small tree, packed and as rows.

    Args:
        model: A transformers model.
    """
    return _by_config(model) or _by_trying(model)


def _by_config(model: Any) -> str | None:
    name, config = type(model).__name__, model.config
    if not getattr(model, "_supports_attention_backend", False):
        return f"the attention of {name} cannot be replaced"
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    if kinds:
        return f"{name} has layers that are no full attention: {', '.join(sorted(kinds))}"
    windows = getattr(config, "use_sliding_window", True)
    if getattr(config, "layer_types", None) is None and windows:
        window = getattr(config, "sliding_window", None)
        if window is not None:
            return f"{name} attends to a sliding window of {window} tokens"
    return None


@torch.no_grad()
def _by_trying(model: Any) -> str | None:
    name = type(model).__name__
    device = next(model.parameters()).device
    rows = _small_tree(int(model.config.vocab_size))
    apart = [
        model(input_ids=torch.from_numpy(r.ids)[None].to(device), use_cache=False).logits[0]
        for r in rows
    ]
    # on CUDA one plain mask will do: it is the positions and the wiring that can go wrong
    batch = MicroBatch.packed(rows, device, "blocks" if device.type == "cpu" else "mask")
    try:
        with attending([model], NAME):
            packed = model(**batch.inputs()).logits
    except BadValueError as refusal:
        return str(refusal)
    packed = packed[0, torch.from_numpy(np.concatenate([r.numbers for r in rows])).to(device)]
    apart = torch.cat(apart)
    exact = apart.dtype == torch.float32
    if (packed - apart).abs().max() > (1e-3 if exact else 0.1) * apart.abs().max():
        return f"{name} computes something else over a packed tree than over its paths"
    return None


def _small_tree(vocabulary: int) -> list[Row]:
    """Return three paths that fork at different depths, with other tokens after the forks."""
    lines = ([0, 1, 2, 3, 4, 5], [0, 1, 2, 6, 7], [0, 8, 9])
    return [
        Row(
            ids=(np.array(line) * 7 + 1) % vocabulary,
            at=np.arange(1, len(line)),
            turns=np.zeros(len(line) - 1, np.int64),
            sampled=np.zeros(len(line) - 1, np.float32),
            numbers=np.array(line),
        )
        for line in lines
    ]
