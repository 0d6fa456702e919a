"""Customers that wait for another machine answer many episodes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..errors import EnvFault
from .customer.scenario import Scenario
from .customer.turns import Customer, Event, Mind, UserTurn

_PARALLEL = 16


@dataclass(frozen=True, slots=True)
class Ask:
    """A message that waits for an answer; ``mind`` is a copy that belongs to this question."""

    customer: Customer
    scenario: Scenario
    mind: Mind
    message: str
    events: Sequence[Event]


def serve_replies(asks: Sequence[Ask]) -> list[Any]:
    """(turn, mind) for every question, or the :class:`EnvFault` that it ended with."""
    if len(asks) == 1:
        return [_reply(asks[0])]
    with ThreadPoolExecutor(min(_PARALLEL, len(asks))) as pool:
        return list(pool.map(_reply, asks))


def _reply(ask: Ask) -> tuple[UserTurn, Mind] | EnvFault:
    try:
        turn = ask.customer.reply(ask.scenario, ask.mind, ask.message, ask.events)
    except EnvFault as fault:
        return fault
    return turn, ask.mind
