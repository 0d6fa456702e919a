"""What an environment knows of its shop: tasks, tables, tools and the right final states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.errors import DataError
from ..core.fork import Shared
from ..core.tasks import TaskSource
from .shop.overlay import Changes, Overlay
from .shop.tables import Shop
from .shop.toolset import Toolset
from .tasks.payload import RetailTask, apply_calls, replay_gold


class ShopSource(TaskSource[RetailTask], Protocol):
    """Tasks with the shops that they happen in."""

    @property
    def rules(self) -> str:
        """Return the rules that replace the shop's own policy; empty where none do."""
        ...

    def shop(self, name: str) -> Shop:
        """Return the shop of this name."""
        ...


@dataclass(frozen=True, kw_only=True)
class Knowledge(Shared):
    """All that an environment shares with its forks.

    Attributes:
        size: ``"full"`` or ``"micro"``; None for files.
        source: The tasks and their shops.
        tools: The tools.
    """

    size: str | None
    source: ShopSource
    tools: Toolset
    _right: dict[str, tuple[Changes, ...]] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> Any:
        return _rebuild, (self.size, self.source, self.tools)

    def find_right_states(self, task_id: str, task: RetailTask) -> tuple[Changes, ...]:
        """Return the final states that are right for a task; they are computed once.

        Raises:
            DataError: No accepted sequence of writes can be carried out.
        """
        if (known := self._right.get(task_id)) is not None:
            return known
        overlay = Overlay(self.source.shop(task.shop))
        ends = [apply_calls(overlay, self.tools, way) for way in task.accepted]
        if task.scenario is None:
            ends = [replay_gold(overlay, self.tools, task.gold)]
        found = tuple(end.changes() for end in ends if end is not None)
        if not found:
            raise DataError(f"Retail: no accepted way of task {task_id!r} can be carried out.")
        self._right[task_id] = found
        return found


def _rebuild(size: str | None, source: ShopSource, tools: Toolset) -> Knowledge:
    return Knowledge(size=size, source=source, tools=tools)
