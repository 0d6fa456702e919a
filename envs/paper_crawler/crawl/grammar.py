"""How a crawler writes: ``[Search] query``, ``[Expand] section``, ``[StopSearch]``.

PaSa's markers (arXiv 2501.10120, tables 3 and 11; released code). A marker is ordinary text. An
action's argument runs from its marker to the next ``[``; blanks around it are dropped and those
within it become one space.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

SessionKind = Literal["search", "expand"]
MoveKind = Literal["search", "expand", "stop", "invalid"]
MARKERS: Mapping[SessionKind, str] = {"search": "[Search]", "expand": "[Expand]"}
STOPS: Mapping[SessionKind, str] = {"search": "[StopSearch]", "expand": "[StopExpand]"}
ALL_STOPS = (*STOPS.values(), "[Stop]")
_MARKER = re.compile(r"\[(?:Search|Expand|StopSearch|StopExpand|Stop)\]")


class Move(NamedTuple):
    """One action of a crawler.

    Attributes:
        kind: What it does; ``invalid`` when it cannot be read.
        arg: The query or the section's name; empty for the other kinds.
        span: Its place ``(start, end)`` in the text, marker included.
        error: What was wrong with an invalid one.
    """

    kind: MoveKind
    arg: str
    span: tuple[int, int]
    error: str = ""


class Session(NamedTuple):
    """A whole session as it was read.

    Attributes:
        moves: Searches, expansions and invalid actions in order, without the stop.
        stop: Place ``(start, end)`` of the stop marker; None when the text ends without one.
    """

    moves: tuple[Move, ...]
    stop: tuple[int, int] | None


def read_session(text: str, kind: SessionKind) -> Session:
    """All actions of a session's text, up to its first stop marker.

    Markers of the other kind of session are free text, and so is everything before the first
    marker. A last action that no ``[`` follows was cut off by the token limit: it is dropped. A
    text without any marker of its kind and without a stop is one invalid action.
    """
    own = MARKERS[kind]
    moves: list[Move] = []
    marked = False
    for mark in _MARKER.finditer(text):
        if mark[0] in ALL_STOPS:
            return Session(tuple(moves), mark.span())
        if mark[0] != own:
            continue
        marked = True
        if (end := text.find("[", mark.end())) >= 0:
            moves.append(_make_move(text, kind, mark.start(), mark.end(), end))
    if not marked:
        moves.append(_make_unread(text, kind))
    return Session(tuple(moves), None)


def read_action(text: str, kind: SessionKind) -> tuple[Move, bool]:
    """The first action of a text, and whether a stop marker follows it.

    The argument may run to the end of the text. A text whose first marker is a stop is a ``stop``.
    """
    own = MARKERS[kind]
    move: Move | None = None
    for mark in _MARKER.finditer(text):
        if mark[0] in ALL_STOPS:
            if move is None:
                return Move("stop", "", mark.span()), True
            return move, True
        if mark[0] == own and move is None:
            end = text.find("[", mark.end())
            move = _make_move(text, kind, mark.start(), mark.end(), len(text) if end < 0 else end)
    return move or _make_unread(text, kind), False


def write_action(kind: SessionKind, arg: str) -> str:
    """The action that is read as ``kind`` and ``arg``, with the line's end that closes it."""
    return f"{MARKERS[kind]} {arg}\n"


def _make_move(text: str, kind: SessionKind, start: int, inner: int, end: int) -> Move:
    arg = " ".join(text[inner:end].split())
    if not arg:
        what = "a query" if kind == "search" else "a section's name"
        return Move("invalid", "", (start, end), f"{MARKERS[kind]} is empty; expected {what}")
    return Move(kind, arg, (start, end))


def _make_unread(text: str, kind: SessionKind) -> Move:
    what = "query" if kind == "search" else "section's name"
    expected = f"expected {MARKERS[kind]} {what}, or {STOPS[kind]}"
    return Move("invalid", "", (0, len(text)), f"no action could be read; {expected}")
