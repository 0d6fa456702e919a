"""Decode steps captured as CUDA graphs, so that a token costs one launch and not a thousand.

A step is padded to one of a few sizes, and its arrays lie at the same addresses every time; so do
the weights, which are taken in place, and the cache. What was captured is dropped when one of them
moves: the cache while its rows still grow in number or length, the weights never after the first
hand-over.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..transfers import Parcel

Step = Callable[..., Tensor]
"""From a step's first arrays to its logits, all on the device and without a look at any number."""
Replay = Callable[[], object]
Recorder = Callable[[Callable[[], Tensor]], tuple[Replay, Tensor]]
"""Captures a piece of work: what runs it again, and where its result will be every time."""
EAGER = 2
"""Steps of a size that are launched kernel by kernel before one is captured: they load the kernels,
and a size that is met only once is not worth a capture."""
ROW_BYTES, MORE_BYTES = 64, 512
"""Memory for a step's arrays: of each row, and beyond."""


def cuda_recorder() -> Recorder:
    """Return what captures CUDA graphs; all of one recorder share the memory of their insides."""
    pool = torch.cuda.graph_pool_handle()

    def record(work: Callable[[], Tensor]) -> tuple[Replay, Tensor]:
        graph = torch.cuda.CUDAGraph()
        # a learner in another thread may go on meanwhile
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            out = work()
        return graph.replay, out

    return record


@dataclass(slots=True)
class _Size:
    """What is kept for steps of one size."""

    memory: Tensor
    seen: int = 0
    replay: Replay | None = None
    out: Tensor | None = None


class DecodeGraphs:
    """Runs decode steps of padded sizes, captured from the third one of each.

    Args:
        most: Most rows of a step.
        recorder: Makes what captures; anew whenever all that was captured is dropped.

    Attributes:
        captured: Steps that were captured so far.
        off: Why nothing is captured any more; None where all is well.
    """

    def __init__(self, most: int, recorder: Callable[[], Recorder] = cuda_recorder) -> None:
        self._sizes = [1 << n for n in range(most.bit_length()) if 1 << n < most] + [most]
        self._make = recorder
        self._record: Recorder | None = None
        self._kept: dict[int, _Size] = {}
        self._place: Hashable = None
        self.captured = 0
        self.off: str | None = None

    def padded(self, rows: int) -> int:
        """Return the size that a step of so many rows is padded to."""
        return next((size for size in self._sizes if size >= rows), rows)

    def run(self, size: int, place: Hashable, parcel: Parcel, count: int, step: Step) -> Tensor:
        """Send a step's arrays, and return what it computes.

        Args:
            size: Of the step, by :meth:`padded`.
            place: Where weights and cache are; steps of another place are captured anew.
            parcel: The arrays; the first ``count`` have the shapes that belong to ``size``.
            count: How many the step reads.
            step: What to run; its result holds until the next call.
        """
        if place != self._place:
            self.forget()
            self._place = place
        kept = self._kept.get(size)
        if kept is None:
            memory = torch.empty(
                ROW_BYTES * size + MORE_BYTES, dtype=torch.uint8, device=parcel.device
            )
            kept = self._kept[size] = _Size(memory)
        given = parcel.send(kept.memory)[:count]
        kept.seen += 1
        if kept.replay is None and kept.seen > EAGER and self.off is None:
            self._capture(kept, lambda: step(*given))
        if kept.replay is None or kept.out is None:
            return step(*given)
        kept.replay()
        return kept.out

    def forget(self) -> None:
        """Drop all that was captured, with its memory."""
        self._kept.clear()
        self._record = None

    def _capture(self, kept: _Size, work: Callable[[], Tensor]) -> None:
        try:
            if self._record is None:
                self._record = self._make()
            kept.replay, kept.out = self._record(work)
            self.captured += 1
        except RuntimeError as fault:  # torch's own errors are of this kind, memory among them
            self.off = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:200]
            self.forget()
            warnings.warn(
                f"engine: decode steps are not captured as CUDA graphs, every kernel is launched "
                f"on its own: {self.off}",
                stacklevel=2,
            )
