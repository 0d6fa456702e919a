"""A linear layer whose weight is laid out once for the device that multiplies with it."""

from __future__ import annotations

import torch
import torch.nn.functional as F

_ROWS_HINT = 64  # batch size that the prepacked layout is chosen for


class PackedLinear:
    """``x @ weight.T + bias`` in the weight's number format, alone or with what follows it.

    On a CPU with oneDNN the weight is reordered ahead of time and the activation runs inside the
    product: small batches are bound by the number of operations.

    Args:
        weight: ``[out, in]``.
        bias: ``[out]`` or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self.out_features = weight.shape[0]
        self._weight, self._bias = weight, bias
        self._packed = weight.device.type == "cpu" and can_prepack(weight.dtype)
        if self._packed:
            self._weight = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS_HINT)
            self._run = torch.ops.mkldnn._linear_pointwise.default
            self._run_binary = torch.ops.mkldnn._linear_pointwise.binary

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """``[rows, in] -> [rows, out]``."""
        if self._packed:
            return self._run(x, self._weight, self._bias, "none", [], "")
        return F.linear(x, self._weight, self._bias)

    def silu(self, x: torch.Tensor) -> torch.Tensor:
        """``silu(self(x))``."""
        if self._packed:
            return self._run(x, self._weight, self._bias, "swish", [], "")
        return F.silu(F.linear(x, self._weight, self._bias))

    def times(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """``self(x) * other``, ``other`` is ``[rows, out]``."""
        if self._packed:
            return self._run_binary(x, other, self._weight, self._bias, "mul")
        return F.linear(x, self._weight, self._bias) * other


def can_prepack(dtype: torch.dtype) -> bool:
    """True where oneDNN's prepacked product exists in this build of torch."""
    return (
        dtype in (torch.float32, torch.bfloat16)
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )
