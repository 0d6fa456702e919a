"""The KL penalty in the reward of each token."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from ..core.protocols import Annotations

KlKind = Literal["k1", "k2", "k3"]


def kl_price(kind: KlKind, annotations: Annotations, path: int) -> npt.NDArray[np.float64]:
    """Estimate of KL(policy || reference) on each sampled token of a path ``[n_act]``, in nats.

    With ``d = old_logprob - ref_logprob``: k1 is ``d`` (what papers take off rewards: unbiased, and
    so is its gradient there), k2 is ``d**2 / 2``, k3 is ``exp(-d) + d - 1`` (Schulman 2020).

    Args:
        kind: The estimator.
        annotations: Hold ``old_logprobs`` and ``ref_logprobs``.
        path: Which path.
    """
    d = annotations["old_logprobs"][path].astype(np.float64) - annotations["ref_logprobs"][path]
    if kind == "k1":
        return d
    if kind == "k2":
        return 0.5 * d * d
    return np.exp(np.clip(-d, -20.0, 20.0)) + d - 1.0
