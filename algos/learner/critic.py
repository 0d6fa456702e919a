"""The critic: a scalar head on a language model's hidden states."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .batching.micro_batch import MicroBatch
from .scoring.packed_layers import PackedLayers
from .settings import CriticKind


class Critic(nn.Module):
    """Value of the state after each token.

    The head starts at 0, so the first values are 0 whatever the backbone says.

    Args:
        policy: The causal language model to start from.
        kind: ``"own"``: a copy of the policy's backbone, trained on values alone (Search-R1's
            form); ``"shared"``: the head reads the policy's own hidden states, and its gradient
            trains the policy's backbone too (half the memory, but the two losses compete).
        copied: Copies the backbone.

    Attributes:
        layers: What computes packs in place of the backbone's own layers; None where nothing does.
    """

    def __init__(
        self, policy: Any, kind: CriticKind, copied: Callable[[Any], Any] = copy.deepcopy
    ) -> None:
        super().__init__()
        self.kind: CriticKind = kind
        self.backbone = copied(policy.get_decoder()) if kind == "own" else None
        self.layers: PackedLayers | None = None
        device = next(policy.parameters()).device
        width = int(policy.config.hidden_size)
        head = nn.Linear(width, 1, device="meta", dtype=torch.float32)  # draws no random numbers
        self.head = head.to_empty(device=device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def quicken(self, policy: PackedLayers) -> None:
        """Compute packs as the policy's are, where the backbone is a copy of the policy's."""
        if self.backbone is not None:
            self.layers = policy.of_copy(self.backbone)

    def states(self, batch: MicroBatch, policy_states: Tensor | None) -> Tensor:
        """Return hidden states that the head reads ``[rows, columns, hidden]``."""
        if self.backbone is None:
            assert policy_states is not None
            return policy_states
        if batch.layout is not None and self.layers is not None and self.layers.unwatched():
            return self.layers(batch)
        return self.backbone(**batch.inputs()).last_hidden_state

    def forward(self, states: Tensor) -> Tensor:
        """Map ``[..., hidden]`` to float32 values ``[...]``."""
        return self.head(states.float())[..., 0]
