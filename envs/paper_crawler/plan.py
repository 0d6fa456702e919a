"""What a text of the crawler will do, as far as it does not depend on what is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .crawl import Crawl
from .grammar import Move, SessionKind, read_action, read_session
from .rules import Rules


class Plan(NamedTuple):
    """The actions of one step.

    Attributes:
        moves: Searches, expansions and invalid actions that are carried out, in order.
        beyond: Those beyond the session's cap, which are paid for and not carried out.
        stop: The stop that is carried out after them.
        ended: How the session ends with them: ``stop``, ``cap``, ``eos`` or ``limit``; empty when
            it goes on.
    """

    moves: tuple[Move, ...]
    beyond: tuple[Move, ...]
    stop: Move | None
    ended: str

    def cost(self, rules: Rules, session: SessionKind) -> float:
        """Price of all of it."""
        stops = () if self.stop is None else (self.stop,)
        paid = (*self.moves, *self.beyond, *stops)
        return sum(rules.cost(move.kind, session) for move in paid)


def make_plan(rules: Rules, crawl: Crawl, action: str) -> Plan:
    """The plan that ``action`` is in the present session."""
    moves, stop = _read(rules, crawl.kind, action)
    room = rules.cap(crawl.kind) - len(crawl.said)
    left = len(moves) if rules.max_actions is None else rules.max_actions - crawl.actions
    taken = tuple(moves[: min(room, left)])
    limit = rules.max_actions is not None and crawl.actions + len(taken) >= rules.max_actions
    beyond = moves[len(taken) :] if rules.over_cap == "charge" and not limit else ()
    if len(taken) >= room:
        return Plan(taken, tuple(beyond), None, "cap")
    if limit:
        return Plan(taken, (), None, "limit")
    if stop is not None:
        return Plan(taken, (), stop, "stop")
    return Plan(taken, (), None, "eos" if rules.granularity == "session" else "")


def _read(rules: Rules, kind: SessionKind, action: str) -> tuple[Sequence[Move], Move | None]:
    """The actions of a text, and its stop."""
    if rules.granularity == "session":
        session = read_session(action, kind)
        return session.moves, session.stop and Move("stop", "", session.stop)
    move, stopped = read_action(action, kind)
    if move.kind == "stop":
        return (), move
    at = action.find("]", move.span[1])
    return (move,), Move("stop", "", (move.span[1], at + 1)) if stopped else None
