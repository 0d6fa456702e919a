"""Gradients of credit by backward passes of the learner, one vector per group and kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...algos.core.forest import Forest
from ...algos.core.protocols import Floats
from ...algos.learner.batching.rows import rows_of
from ...algos.learner.learner import Learner

EXACT = 1 << 18
"""Models of up to so many parameters keep their gradients as they are."""
SKETCH = 1 << 18
"""Numbers of the sketch that stands for a longer gradient."""
Vectors = npt.NDArray[np.float32]


class Sketch:
    """A random projection that keeps inner products.

    Each coordinate is added, with a random sign, to a random place (Charikar, Chen and
    Farach-Colton 2002, "Finding frequent items in data streams"). The error of a cosine is about
    ``1 / sqrt(SKETCH)``, .002. Vectors of up to :data:`EXACT` numbers stay as they are.

    Args:
        size: Length of the vectors.
    """

    def __init__(self, size: int) -> None:
        self.exact = size <= EXACT
        self.size = size if self.exact else SKETCH
        if not self.exact:
            drawn = torch.Generator().manual_seed(0)
            self._place = torch.randint(SKETCH, (size,), generator=drawn)
            self._sign = torch.randint(2, (size,), generator=drawn, dtype=torch.int8) * 2 - 1

    def __call__(self, vector: torch.Tensor) -> torch.Tensor:
        """Return the vector ``[size]``, or its sketch."""
        vector = vector.float().cpu()
        if self.exact:
            return vector
        return torch.zeros(self.size).index_add_(0, self._place, vector * self._sign)


def group_gradients(
    learner: Learner,
    forest: Forest,
    kinds: Mapping[str, Sequence[Floats]],
    tick: Callable[[float], None] = lambda _: None,
    units: Sequence[int] | None = None,
) -> dict[str, Vectors]:
    """Return ``sum over tokens of coefficient * grad log pi`` of every group, or of every unit.

    One forward pass serves all kinds.

    Args:
        learner: Its policy is differentiated, tempered as its recipe samples.
        forest: The groups.
        kinds: Coefficients by name: one ``[n_act]`` array per path.
        tick: Called with the share that is done.
        units: Number of the unit that each group belongs to; None: every group is one.

    Returns:
        ``[units, numbers]`` by name.
    """
    weights = [p for p in learner.policy.parameters() if p.requires_grad]
    sketch = Sketch(sum(p.numel() for p in weights))
    unit_of = range(len(forest.groups)) if units is None else units
    count = max(unit_of, default=-1) + 1
    found = {name: np.zeros((count, sketch.size), np.float32) for name in kinds}
    rows = rows_of(forest)
    members: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        members.setdefault(unit_of[row.group], []).append(i)
    models = learner.models
    for n, (unit, chosen) in enumerate(members.items()):
        for micro, batch, _ in models.team.batches(models.batching, rows, chosen):
            with models.computing(batch, training=True):
                logprobs, _, _ = models.trained(batch, False)
                spread = batch.spread(logprobs)
                for place, (name, streams) in enumerate(kinds.items()):
                    total = (spread * batch.table([streams[i] for i in micro])).sum()
                    grads: tuple[Any, ...] = torch.autograd.grad(
                        total, weights, retain_graph=place + 1 < len(kinds), allow_unused=True
                    )
                    flat = [
                        (torch.zeros_like(w) if g is None else g).reshape(-1)
                        for w, g in zip(weights, grads, strict=True)
                    ]
                    found[name][unit] += sketch(torch.cat(flat)).numpy()
        tick((n + 1) / len(members))
    return found
