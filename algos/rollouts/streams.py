"""Order on a GPU between the learner and an engine that plays in another thread.

A GPU works through queues, called streams. Threads share one unless they ask for their own: the
engine, which waits for the device twice a token, would then wait for whole micro batches of the
learner. On streams of their own nothing orders the two, so weights that are handed over are waited
for explicitly, by the host: an engine may read them on any stream it likes, as vLLM does.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol


class Streams(Protocol):
    """What a pipeline asks for."""

    def playing(self) -> AbstractContextManager[Any]:
        """Enclose what the engine does, in its thread."""
        ...

    def mark(self) -> Any:
        """Return a mark behind all that the calling thread has asked the device for."""
        ...

    def wait_for(self, mark: Any) -> None:
        """Wait until the device has done all before the mark."""
        ...

    def finish(self) -> None:
        """Wait until the device has done all that was asked of it, on whatever stream."""
        ...


class NoStreams:
    """On a CPU a call returns when its work is done."""

    def playing(self) -> AbstractContextManager[Any]:
        """Enclose nothing."""
        return nullcontext()

    def mark(self) -> None:
        """Return nothing."""

    def wait_for(self, mark: Any) -> None:
        """Return at once."""

    def finish(self) -> None:
        """Return at once."""


class OneSetting(NoStreams):
    """On a CPU, for an engine beside a learner that switches the precision of the process.

    Whether the learner computes at that moment must not change what is sampled.
    """

    def playing(self) -> AbstractContextManager[Any]:
        """Enclose what the engine does with the learner's setting."""
        import torch

        from ..learner.scoring.scoring import quick_cpu_maths

        return quick_cpu_maths(torch.device("cpu"))


class CudaStreams:
    """A stream for the engine, and events at the hand-over of weights.

    Args:
        device: Of engine and learner.
        cuda: Offers what ``torch.cuda`` does.
    """

    def __init__(self, device: Any, cuda: Any) -> None:
        self._device, self._cuda = device, cuda
        self._own = cuda.Stream(device)

    def playing(self) -> AbstractContextManager[Any]:
        """Enclose what the engine does: the thread's work goes to a stream of its own."""
        return self._cuda.stream(self._own)

    def mark(self) -> Any:
        """Return an event at the end of the calling thread's stream."""
        event = self._cuda.Event()
        event.record(self._cuda.current_stream(self._device))
        return event

    def wait_for(self, mark: Any) -> None:
        """Wait for the event, the calling thread and with it every stream that it uses next."""
        mark.synchronize()

    def finish(self) -> None:
        """Wait for all streams of the device."""
        self._cuda.synchronize(self._device)


def streams_for(device: Any, *, beside: bool) -> Streams:
    """Return what orders engine and learner on a torch device.

    Args:
        device: Of the learner.
        beside: Whether the engine plays while the learner computes.
    """
    if device.type != "cuda":
        return OneSetting() if beside and device.type == "cpu" else NoStreams()
    import torch

    return CudaStreams(device, torch.cuda)
