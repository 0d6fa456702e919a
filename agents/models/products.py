"""Products of matrices in half precision whose results are not rounded to it."""

from __future__ import annotations

import torch
from torch import Tensor


def wide_product(a: Tensor, b: Tensor) -> Tensor:
    """Compute ``a @ b.T`` in float32, whatever the format of both.

    Logits that are rounded to bfloat16 differ by some hundredths of a nat, the largest part of
    what engine and learner disagree in; the sums behind them are float32 anyway.

    Args:
        a: ``[rows, inner]``.
        b: ``[columns, inner]``, of the same number format.
    """
    if a.dtype == torch.float32:
        return a @ b.t()
    if a.device.type == "cuda":
        return torch.mm(a, b.t(), out_dtype=torch.float32)
    return a.float() @ b.float().t()
