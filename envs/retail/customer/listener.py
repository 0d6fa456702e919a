"""A customer for tasks in prose without a language model: says it all, and ends at the answer."""

from __future__ import annotations

from collections.abc import Sequence

from .scenario import Scenario
from .turns import STOP, TRANSFERRED, Event, Mind, UserTurn


class Listener:
    """Tells the whole instruction at once and stops at the assistant's first message.

    It is a stub: nothing is asked and nothing confirmed, so the score is about the shop's state
    and the words of one message alone.
    """

    blocking = False
    tracks = False
    plays_prose = True

    def begin(self, scenario: Scenario, key: int, brief: str) -> tuple[Mind, UserTurn]:  # noqa: ARG002
        """The instruction."""
        return Mind(key, 1), UserTurn(brief)

    def reply(
        self,
        scenario: Scenario,  # noqa: ARG002 - one answer fits all
        mind: Mind,
        message: str,
        events: Sequence[Event],
    ) -> UserTurn:
        """The end."""
        mind.turn += 1
        mind.last = message
        handed = any(event.tool == "transfer_to_human_agents" for event in events)
        mind.end = "transfer" if handed else "stop"
        return UserTurn(TRANSFERRED if handed else STOP, mind.end)
