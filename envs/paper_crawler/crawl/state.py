"""The state of a crawl: its queue of papers, the sessions that wait, what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .grammar import Move, SessionKind


class Found(NamedTuple):
    """A paper in the queue.

    Attributes:
        score: The selector's probability.
        depth: 0 when a search found it, one more than the paper that cites it otherwise.
        asker: Number of the session that found it.
    """

    score: float
    depth: int
    asker: int


class Record(NamedTuple):
    """What one action did.

    Attributes:
        move: The action as it was read.
        error: Why it brought nothing, where it could be carried out at all.
        cost: Its price.
        results: How many papers it returned.
        new: Those that were not in the queue, in order, with their scores.
        relevant: How many of these count under the label.
        reward: ``alpha * relevant - cost``.
    """

    move: Move
    error: str
    cost: float
    results: int
    new: tuple[tuple[str, float], ...]
    relevant: int
    reward: float


@dataclass(slots=True)
class Crawl:
    """What changes during an episode.

    Attributes:
        queue: Every paper that was found, in order.
        here: The paper whose session it is; empty in the search session.
        args_taken: Arguments of the actions in this session.
        layer: Depth of the papers that the schedule is at; -1 during the search.
        waiting: Papers whose sessions the schedule opens next, the next one first.
        later: Papers that wait for the next layer, in the order found.
        numbers: Numbers of the sessions that were opened, by paper.
        actions: Actions taken, stops left out.
        useful: Searches, and expansions that found something new: PaSa's count of actions.
        acting: The paper whose session the last step was in.
        last: What the last step did.
        ended: How that session ended: ``stop``, ``cap``, ``eos`` or ``limit``; empty while it goes
            on.
    """

    queue: dict[str, Found] = field(default_factory=dict)
    here: str = ""
    args_taken: tuple[str, ...] = ()
    layer: int = -1
    waiting: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=lambda: {"": 0})
    actions: int = 0
    useful: int = 0
    acting: str = ""
    last: tuple[Record, ...] = ()
    ended: str = ""

    @property
    def kind(self) -> SessionKind:
        """What the present session does."""
        return "expand" if self.here else "search"

    @property
    def number(self) -> int:
        """Number of the present session."""
        return self.numbers[self.here]

    @property
    def depth(self) -> int:
        """Depth of the present session's paper; -1 in the search session."""
        return self.queue[self.here].depth if self.here else -1

    def parent(self, paper: str) -> int | None:
        """Number of the session that found ``paper``; None for the search session."""
        return self.queue[paper].asker if paper else None

    def fork(self) -> Crawl:
        """An independent copy."""
        return Crawl(
            self.queue.copy(),
            self.here,
            self.args_taken,
            self.layer,
            self.waiting.copy(),
            self.later.copy(),
            self.numbers.copy(),
            self.actions,
            self.useful,
            self.acting,
            self.last,
            self.ended,
        )

    def add(self, record: Record) -> None:
        """Put what an action found into the queue."""
        depth, number = self.depth + 1, self.number
        for paper, score in record.new:
            self.queue[paper] = Found(score, depth, number)
            self.later.append(paper)
        if record.move.kind != "stop":
            self.args_taken += (record.move.arg,)
            self.actions += 1
            self.useful += record.move.kind == "search" or bool(record.new)

    def rank(self, paper: str) -> tuple[float, str]:
        """Sorts papers: the most probable first, equal ones by their ids."""
        return -self.queue[paper].score, paper
