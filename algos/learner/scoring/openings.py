"""What several packs begin with, as keys and values that all of them attend to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(slots=True, eq=False)
class Context:
    """Keys and values of a layer that several packs attend to, and the sums of their gradients.

    All are ``[key heads, tokens, width]``; sums are float32.
    """

    keys: Tensor
    values: Tensor
    of_keys: Tensor
    of_values: Tensor

    @classmethod
    def empty(cls, heads: int, tokens: int, width: int, dtype: torch.dtype) -> Context:
        """Return one that is to be filled."""
        keys, values = torch.empty((2, heads, tokens, width), dtype=dtype)
        return cls(keys, values, *torch.zeros((2, heads, tokens, width)))

    def fill(self, k: Tensor, v: Tensor) -> None:
        """Take the first keys and values of the pass that computes them."""
        n = self.keys.shape[1]
        self.keys.copy_(k[:, :n])
        self.values.copy_(v[:, :n])

    def before(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of a pack behind these."""
        return torch.cat([self.keys, k], 1), torch.cat([self.values, v], 1)

    def take(self, of_k: Tensor, of_v: Tensor) -> tuple[Tensor, Tensor]:
        """Add gradients of what :meth:`before` returned; return those of the pack's own."""
        n = self.keys.shape[1]
        self.of_keys += of_k[:, :n]
        self.of_values += of_v[:, :n]
        return of_k[:, n:].contiguous(), of_v[:, n:].contiguous()

    def give(self, of_k: Tensor, of_v: Tensor) -> None:
        """Add the sums to the gradients of the pass that computed keys and values."""
        n = self.keys.shape[1]
        of_k[:, :n] += self.of_keys
        of_v[:, :n] += self.of_values


@dataclass(slots=True, eq=False)
class Opening:
    """Tokens that all packs of a batch begin with, computed once for all of them.

    A pack attends to their keys and values and adds to the gradients of these; at the end one
    backward pass carries the sums to the weights. Nothing else of these tokens is read.

    Attributes:
        tokens: How many they are.
        contexts: One of each layer.
        top: Last hidden states, with the graph of the pass where there is one.
    """

    tokens: int
    contexts: list[Context]
    top: Tensor

    def backward(self) -> None:
        """Add the gradients that came from the packs to those of the weights."""
        self.top.backward(torch.zeros_like(self.top))
