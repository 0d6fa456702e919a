"""Whether a model computes the same over a pack of distinct tokens as over separate rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ....agents.models.attention import attention_windows
from ....agents.models.size import count_weights
from ....envs.core.errors import BadValueError
from ..attention.tree_attention import NAME, attending
from .micro_batch import MicroBatch
from .rows import Row

TOLERANCE = 1e-3
"""Largest difference of logits in float32, as a part of the largest one."""
HALF_TOLERANCE = 0.1
"""The same in half precision."""
WINDOWED = ("gemma3_text",)
"""Model types whose sliding windows a pack computes; others go row by row where they have one, as
their published numbers did."""
WIDE_PARAMETERS = 10**9
"""Most weights of a float32 copy that settles a doubt; of a larger model the first layers."""


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
    windows = attention_windows(config)
    if odd := windows.keys() - {"full_attention", "sliding_attention"}:
        return f"{name} has layers that are no full attention: {', '.join(sorted(odd))}"
    window = windows.get("sliding_attention")
    if window is not None and config.model_type not in WINDOWED:
        return (
            f"{name} has layers that attend to a sliding window of {window} tokens "
            f"(sliding_attention), which packs of {', '.join(WINDOWED)} alone compute"
        )
    return None


@torch.no_grad()
def _by_trying(model: Any) -> str | None:
    name = type(model).__name__
    rows = _small_tree(int(model.config.vocab_size))
    try:
        packed, asked = _packed(model, rows)
        apart = _apart(model, rows)
    except BadValueError as refusal:
        return str(refusal)
    windows = set(attention_windows(model.config).values())
    if asked != windows:  # the small tree is within all windows: its logits do not show them
        return (
            f"the layers of {name} ask for attention to windows {sorted(map(str, asked))}, and "
            f"its configuration says {sorted(map(str, windows))}"
        )
    other = f"{name} computes something else over a packed tree than over its paths"
    if apart.dtype == torch.float32:
        return None if _off(packed, apart) <= TOLERANCE else other
    if _off(packed, apart) <= HALF_TOLERANCE:
        return None
    return _by_float32(model, rows, other)


def _by_float32(model: Any, rows: Sequence[Row], other: str) -> str | None:
    """Hold the pack and the rows of a model in half precision to float32.

    Both of them round, and a row may be further from the truth than the pack: a language model's
    first tokens have activations in the hundreds. So the wiring is judged in float32, and the pack
    may be off by twice what rows are.
    """
    with _fewer_layers(model, WIDE_PARAMETERS):
        packed, apart = _packed(model, rows)[0], _apart(model, rows)
        wide = copy.deepcopy(model).float()
    truth = _apart(wide, rows)
    wired = _off(_packed(wide, rows)[0], truth)
    of_pack, of_rows = _off(packed, truth), _off(apart, truth)
    found = (
        f"in {apart.dtype} the pack is {of_pack:.3f} off float32 and rows are {of_rows:.3f} "
        f"(parts of the largest logit); in float32 the two differ by {wired:.1e}"
    )
    if wired <= TOLERANCE and of_pack <= max(HALF_TOLERANCE, 2 * of_rows):
        warnings.warn(f"prefixes are shared: {found}.", stacklevel=2)
        return None
    return f"{other}: {found}"


def _apart(model: Any, rows: Sequence[Row]) -> Tensor:
    """Return the logits of every token of every row, one row at a time."""
    device = next(model.parameters()).device
    return torch.cat(
        [
            model(input_ids=torch.from_numpy(r.ids)[None].to(device), use_cache=False).logits[0]
            for r in rows
        ]
    )


def _packed(model: Any, rows: Sequence[Row]) -> tuple[Tensor, set[int | None]]:
    """Return the same logits from one packed pass, and the windows that its layers asked for."""
    device = next(model.parameters()).device
    # on CUDA one plain mask will do: it is the positions and the wiring that can go wrong
    batch = MicroBatch.packed(rows, device, "blocks" if device.type == "cpu" else "mask")
    with attending([model], NAME):
        logits = model(**batch.inputs()).logits
    assert batch.layout is not None
    at = torch.from_numpy(np.concatenate([r.numbers for r in rows])).to(device)
    return logits[0, at], batch.layout.asked


def _off(logits: Tensor, truth: Tensor) -> float:
    """Return the largest difference as a part of the largest logit."""
    return float((logits.float() - truth.float()).abs().max() / truth.float().abs().max())


@contextmanager
def _fewer_layers(model: Any, most: int) -> Iterator[None]:
    """Leave a model only so many first layers, within the context, that it has ``most`` weights."""
    decoder = model.get_decoder()
    layers = getattr(decoder, "layers", None)
    count = count_weights(model)
    if count <= most or not isinstance(layers, nn.ModuleList):
        yield
        return
    each = count_weights(layers) // len(layers)
    kept = max(1, len(layers) - -(-(count - most) // each))
    decoder.layers = layers[:kept]
    try:
        yield
    finally:
        decoder.layers = layers


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
