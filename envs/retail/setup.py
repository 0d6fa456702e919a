"""From settings to a shop: which tasks, in which tables, with which tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from ..errors import BadValueError, DataError, UnknownNameError
from ..tasks import TaskSource
from .customer.proposals import STRICTNESS
from .customer.rules import RuleCustomer
from .customer.turns import Customer
from .shop.build import SIZES
from .shop.desk import Changes, Desk
from .shop.tables import Shop
from .shop.toolset import MICRO, Toolset, toolset
from .tasks.payload import RetailTask, after, replayed


class ShopSource(TaskSource[RetailTask], Protocol):
    """Tasks with the shops that they happen in."""

    def shop(self, name: str) -> Shop:
        """The shop of this name."""
        ...


@dataclass(frozen=True, kw_only=True)
class Knowledge:
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

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Knowledge:
        return self

    def __reduce__(self) -> Any:
        return _again, (self.size, self.source, self.tools)

    def right(self, task_id: str, task: RetailTask) -> tuple[Changes, ...]:
        """The final states that are right for a task; made once.

        Raises:
            DataError: No accepted sequence of writes can be carried out.
        """
        if (known := self._right.get(task_id)) is not None:
            return known
        desk = Desk(self.source.shop(task.shop))
        ends = [after(desk, self.tools, way) for way in task.accepted]
        if task.scenario is None:
            ends = [replayed(desk, self.tools, task.gold)]
        found = tuple(end.changes() for end in ends if end is not None)
        if not found:
            raise DataError(f"Retail: no accepted way of task {task_id!r} can be carried out.")
        self._right[task_id] = found
        return found


def _again(size: str | None, source: ShopSource, tools: Toolset) -> Knowledge:
    return Knowledge(size=size, source=source, tools=tools)


def generated(
    *,
    size: str | None,
    tiers: int | Sequence[int] | None,
    world_seed: int | None,
    mode: str,
) -> Knowledge:
    """The generated shop.

    Raises:
        UnknownNameError: An unknown size.
        BadValueError: Tiers that do not exist, or a negative seed.
    """
    from .tasks.source import made_tasks

    size = "full" if size is None else size
    if size not in SIZES:
        raise UnknownNameError("size", size, SIZES, "Retail")
    if world_seed is None:
        world_seed = 0
    if isinstance(world_seed, bool) or not isinstance(world_seed, int) or world_seed < 0:
        raise BadValueError(f"Retail: world_seed is {world_seed!r}; expected an integer from 0.")
    names = MICRO if size == "micro" else None
    return Knowledge(
        size=size,
        source=made_tasks(size, world_seed, _tiers(tiers, size)),
        tools=toolset(mode, names),
    )


def _tiers(tiers: int | Sequence[int] | None, size: str) -> tuple[int, ...]:
    known = (1, 2) if size == "micro" else (1, 2, 3, 4, 5)
    if tiers is None:
        return known
    asked = (tiers,) if isinstance(tiers, int) else tuple(tiers)
    if not asked or not set(asked) <= set(known) or any(isinstance(t, bool) for t in asked):
        raise BadValueError(f"Retail: tiers is {tiers!r}; expected some of {known} ({size}).")
    return tuple(sorted(set(asked)))


def chosen_customer(customer: Any, strictness: str, patience_turns: int) -> Customer:
    """The customer of a setting: ``"rules"``, a model behind an address, or an object.

    Raises:
        UnknownNameError: Another name, or an unknown strictness.
        BadValueError: Something that is no customer, or no patience.
    """
    if strictness not in STRICTNESS:
        raise UnknownNameError("strictness", strictness, STRICTNESS, "Retail")
    if isinstance(patience_turns, bool) or not isinstance(patience_turns, int):
        patience_turns = 0
    if patience_turns < 1:
        raise BadValueError("Retail: patience_turns must be an integer of at least 1.")
    if isinstance(customer, Mapping):
        return _model(customer)
    if isinstance(customer, str):
        if customer != "rules":
            raise UnknownNameError("customer", customer, ("rules",), "Retail")
        return RuleCustomer(strictness, patience_turns)
    if not callable(getattr(customer, "reply", None)) or not callable(
        getattr(customer, "begin", None)
    ):
        raise BadValueError(
            f"Retail: customer is {customer!r}; expected 'rules', {{'url': ..., 'model': ...}}, or "
            "an object with begin and reply."
        )
    return customer


def _model(given: Mapping[str, Any]) -> Customer:
    """A customer that a language model plays, from ``{"url": ..., "model": ..., ...}``."""
    from .customer.chat import ChatEndpoint
    from .customer.llm import LlmCustomer

    link = {f.name for f in fields(ChatEndpoint)}
    own = {f.name for f in fields(LlmCustomer)} - {"answers"}
    for name in given:
        if name not in link | own:
            raise UnknownNameError("setting", name, sorted(link | own), "Retail customer")
    for name in ("url", "model"):
        if name not in given:
            raise BadValueError(f"Retail: customer={dict(given)!r} lacks {name!r}.")
    answers = ChatEndpoint(**{key: value for key, value in given.items() if key in link})
    return LlmCustomer(answers=answers, **{k: v for k, v in given.items() if k in own})
