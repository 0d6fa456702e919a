"""The state of an episode in the shop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .customer.interface import CustomerState, Event
from .shop.overlay import Overlay


@dataclass(slots=True)
class RetailState:
    """The shop as the episode left it, the customer's state, and what was done.

    Attributes:
        overlay: What was changed in the shop.
        customer: The customer's state.
        user_id: Id of the customer who was found; empty where nobody was.
        searches: Number of searches that found nobody.
        seen: Ids of records that were read.
        events: What happened since the customer's last turn.
        calls: Successful writes: (tool, arguments, whether the customer had said yes).
        violations: (turn, key of the rule) of every rule that was broken.
        errors: Number of tool calls that were refused.
        transferred: Whether the transfer tool was called.
        blamed: Whether the judge has given its one verdict of -1.
        words: The customer's last words.
    """

    overlay: Overlay
    customer: CustomerState
    user_id: str = ""
    searches: int = 0
    seen: frozenset[str] = frozenset()
    events: tuple[Event, ...] = ()
    calls: tuple[tuple[str, Mapping[str, Any], bool], ...] = ()
    violations: tuple[tuple[int, str], ...] = ()
    errors: int = 0
    transferred: bool = False
    blamed: bool = False
    words: str = ""

    @property
    def answer(self) -> str:
        """The customer's last words where they answer the assistant; empty at the beginning."""
        return self.words if self.customer.turn else ""

    def fork(self) -> RetailState:
        """Return an independent copy."""
        return RetailState(
            self.overlay.fork(),
            self.customer.fork(),
            self.user_id,
            self.searches,
            self.seen,
            self.events,
            self.calls,
            self.violations,
            self.errors,
            self.transferred,
            self.blamed,
            self.words,
        )
