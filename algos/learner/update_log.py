"""Metrics of one update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.protocols import Floats
from ..runs.process_group import Channel
from .batching.rows import NOT_SAMPLED, Row
from .importance_weights import difference_metrics


class UpdateLog:
    """Collects the metrics of one update.

    Numbers of the micro batches stay on their device until all are read at once: each read makes
    the host wait for everything that the device was asked for.
    """

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self.norms: list[list[float]] = []
        self.skipped = 0
        self.out = [0, 0]
        self.dropped = [0, 0]
        self.differences: list[Floats] = []
        self.total_loss = 0.0
        self._unread: list[tuple[str | None, float, Tensor]] = []
        self._steps_of: dict[str, set[int]] = {}  # by name, in which optimiser steps

    def loss(self, loss: Tensor, parts: Mapping[str, Tensor], share: float) -> None:
        """Log one micro batch's loss and its parts.

        Args:
            loss: Its share of the mini batch's loss.
            parts: Shares too. A mean per token (its name carries a unit) is taken over the tokens
                that were computed, and over the steps that computed any; a term of the loss is
                what the left-out paths add 0 to.
            share: Computed tokens by all tokens of the mini batch.
        """
        self._unread.append((None, 1.0, loss.detach()))
        for name, value in parts.items():
            per_token = "_" in name
            self._unread.append((name, share if per_token else 1.0, value.detach()))
            if per_token:
                self._steps_of.setdefault(name, set()).add(self.steps)

    def read(self) -> None:
        """Add up what is still on the device."""
        if not self._unread:
            return
        # every number format that a loss is made in is exact in double
        numbers = torch.stack([value.double() for _, _, value in self._unread]).tolist()
        for (name, scale, _), number in zip(self._unread, numbers, strict=True):
            if name is None:
                self.total_loss += number
            else:
                self.parts[name] = self.parts.get(name, 0.0) + number / scale
        self._unread.clear()

    def left_out(self, n: int, of: int) -> None:
        """Log that ``n`` paths of a mini batch of ``of`` were not computed."""
        self.out[0] += n
        self.out[1] += of

    def masked(self, n: int, of: int) -> None:
        """Log that the loss dropped ``n`` of a mini batch's ``of`` tokens."""
        self.dropped[0] += n
        self.dropped[1] += of

    def step(self, norms: list[float], finite: bool) -> None:
        """Log one optimiser step; it is skipped when a norm is not finite."""
        if finite:
            self.norms.append(norms)
        else:
            self.skipped += 1

    def compare(self, rows: Sequence[Row], which: Sequence[int], mine: Sequence[Floats]) -> None:
        """Log the learner's log-probabilities of rows ``which`` before any update.

        Tokens that were not sampled are no part of it.
        """
        for r, own in zip(which, mine, strict=True):
            sampled = rows[r].sampled
            self.differences.append(np.abs(sampled - own)[sampled != NOT_SAMPLED])

    @property
    def steps(self) -> int:
        """Optimiser steps that are done, skipped ones too."""
        return len(self.norms) + self.skipped

    def merge(self, ranks: Channel) -> None:
        """Add what the other processes computed."""
        self.read()
        if ranks.world_size == 1:
            return
        everyone = ranks.everyone((self.total_loss, self.parts, self.differences, self._steps_of))
        self.total_loss = sum(loss for loss, *_ in everyone)
        names = sorted({name for _, parts, *_ in everyone for name in parts})
        self.parts = {n: sum(parts.get(n, 0.0) for _, parts, *_ in everyone) for n in names}
        self.differences = [d for _, _, differences, _ in everyone for d in differences]
        reported = [reported for *_, reported in everyone]
        self._steps_of = {
            n: set().union(*(one.get(n, ()) for one in reported)) for n in names if "_" in n
        }

    def metrics(self, groups: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Return metrics by declared key; ``groups`` are the optimiser's, policy first."""
        self.read()
        steps = self.steps
        out = {
            f"loss/{name}": value / len(self._steps_of.get(name) or range(steps))
            for name, value in self.parts.items()
        }
        out["update/loss"] = self.total_loss / steps
        for i, who in enumerate(["", "critic_"][: len(groups)]):
            if self.norms:
                out[f"update/{who}grad_norm"] = float(np.mean([n[i] for n in self.norms]))
            out[f"update/{who}lr"] = groups[i]["lr"]
        out["update/optimizer_steps"] = float(len(self.norms))
        out["update/skipped_steps"] = float(self.skipped)
        out["update/paths_left_out_frac"] = self.out[0] / self.out[1]
        if self.dropped[1]:
            out["update/masked_frac"] = self.dropped[0] / self.dropped[1]
        return out | difference_metrics(self.differences)


def pieces(flat: Floats, rows: Sequence[Row], micro: Sequence[int]) -> list[Floats]:
    """Split the ``[n]`` values of a micro batch into one array per row."""
    ends = np.cumsum([rows[r].n_act for r in micro])[:-1]
    return np.split(flat, ends)
