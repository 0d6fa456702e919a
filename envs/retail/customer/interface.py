"""What every customer implements: what it hears and says, and its state."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ...core.errors import EnvFault
from .scenario import Scenario

STOP, TRANSFERRED, OUT_OF_SCOPE = "###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"
END_OF_TOKEN = {STOP: "stop", TRANSFERRED: "transfer", OUT_OF_SCOPE: "out_of_scope"}
_MAX_THREADS = 16


class Event(NamedTuple):
    """Something that the assistant's tools did since the customer's last turn."""

    tool: str
    ok: bool
    order_id: str = ""


class UserTurn(NamedTuple):
    """What the customer says.

    Attributes:
        text: The words; a token alone at the end.
        end: Empty while the talk goes on; ``"stop"``, ``"transfer"`` or ``"gave_up"``.
        acts: What was meant, for reports.
    """

    text: str
    end: str = ""
    acts: tuple[str, ...] = ()


@dataclass(slots=True)
class CustomerState:
    """The state of a customer; forks by :meth:`fork`.

    Attributes:
        key: Where the wording comes from.
        goals: How many goals there are.
        turn: Customer's turns so far.
        at: The present goal.
        stage: Per goal, how many fallbacks were taken.
        phase: Per goal: open, agreed, done, denied, transferred, dropped, claimed, untold or
            wrongly_denied.
        pressed: Per goal, how often the customer insisted or contested.
        given: Slots that were told, as ``"goal.slot"``.
        granted: (goal, stage) that got a yes.
        idle: Turns without progress.
        last: The last message.
        repeats: How often it came in a row.
        doubted: Whether the customer has asked if it went through.
        end: How the talk ended.
        notes: Words that a customer of another kind keeps.
    """

    key: int
    goals: int
    turn: int = 0
    at: int = 0
    stage: list[int] = field(default_factory=list)
    phase: list[str] = field(default_factory=list)
    pressed: list[int] = field(default_factory=list)
    given: frozenset[str] = frozenset()
    granted: frozenset[tuple[int, int]] = frozenset()
    idle: int = 0
    last: str = ""
    repeats: int = 0
    doubted: bool = False
    end: str = ""
    notes: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.phase:
            self.stage = [0] * self.goals
            self.phase = ["open"] * self.goals
            self.pressed = [0] * self.goals

    def fork(self) -> CustomerState:
        """Return an independent copy."""
        return CustomerState(
            self.key,
            self.goals,
            self.turn,
            self.at,
            self.stage.copy(),
            self.phase.copy(),
            self.pressed.copy(),
            self.given,
            self.granted,
            self.idle,
            self.last,
            self.repeats,
            self.doubted,
            self.end,
            self.notes,
        )


class Customer(Protocol):
    """Any customer: scripted, played by a language model, or by hand."""

    @property
    def blocking(self) -> bool:
        """Tell whether a reply waits for another machine."""
        ...

    def begin(self, scenario: Scenario, key: int, brief: str) -> tuple[CustomerState, UserTurn]:
        """Return the first message; ``brief`` is the scenario in prose."""
        ...

    def reply(
        self, scenario: Scenario, state: CustomerState, message: str, events: Sequence[Event]
    ) -> UserTurn:
        """Return the answer to a message; ``state`` is changed in place."""
        ...


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """A message that waits for an answer; ``state`` is a copy that belongs to this request."""

    customer: Customer
    scenario: Scenario
    state: CustomerState
    message: str
    events: Sequence[Event]


def serve_replies(
    requests: Sequence[ReplyRequest],
) -> list[tuple[UserTurn, CustomerState] | EnvFault]:
    """Ask blocking customers side by side.

    Returns:
        The turn and the changed state for every request, or the fault that it ended with.
    """
    if len(requests) == 1:
        return [_serve_reply(requests[0])]
    with ThreadPoolExecutor(min(_MAX_THREADS, len(requests))) as pool:
        return list(pool.map(_serve_reply, requests))


def _serve_reply(request: ReplyRequest) -> tuple[UserTurn, CustomerState] | EnvFault:
    try:
        turn = request.customer.reply(
            request.scenario, request.state, request.message, request.events
        )
    except EnvFault as fault:
        return fault
    return turn, request.state
