"""The processes of a learner, as far as an engine elsewhere cares: the first one speaks for all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

T = TypeVar("T")


class LearnerProcesses:
    """The processes of a learner that share an engine elsewhere.

    Args:
        first: Whether this is the process that has the engine.
        share: Returns the first process's value in all; None where there is one process only.
    """

    def __init__(self, first: bool = True, share: Callable[[Any], Any] | None = None) -> None:
        self.first = first
        self._share = share

    @classmethod
    def joined(cls) -> LearnerProcesses:
        """Return those of torch's default group, which all must ask; this one where there is none.

        They speak over a group of their own, so that the engine may be used in any thread.
        """
        import torch.distributed as dist

        if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
            return cls()
        # as long as other groups of a run: the first may be behind by an episode
        group: Any = dist.new_group(backend="gloo", timeout=timedelta(hours=2))

        def share(mine: Any) -> Any:
            box = [mine]
            dist.broadcast_object_list(box, src=0, group=group)
            return box[0]

        return cls(dist.get_rank() == 0, share)

    def agreed(self, work: Callable[[], T]) -> T:
        """Return what the first process's ``work`` returns, or raise in all what it raises.

        The others do not run it, and wait.
        """
        if self._share is None:
            return work()
        answer: tuple[Any, Exception | None] = None, None
        if self.first:
            try:
                answer = work(), None
            except Exception as fault:  # noqa: BLE001 - the others wait for an answer
                answer = None, fault
        found, fault = self._share(answer)
        if fault is not None:
            raise fault
        return found
