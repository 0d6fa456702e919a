"""The state of a crawl: its queue of papers, the sessions that wait, what was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import UnknownNameError
from ..randomness import EpisodeRandom
from .grammar import Move, SessionKind
from .papers import Paper
from .rules import Rules


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
        said: Arguments of the actions in this session.
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
    said: tuple[str, ...] = ()
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
            self.said,
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
            self.said += (record.move.arg,)
            self.actions += 1
            self.useful += record.move.kind == "search" or bool(record.new)

    def rank(self, paper: str) -> tuple[float, str]:
        """Sorts papers: the most probable first, equal ones by their ids."""
        return -self.queue[paper].score, paper


class Agenda:
    """Decides which session is opened next.

    Args:
        rules: The schedule and its bounds.
        find: The library's papers.
    """

    def __init__(self, rules: Rules, find: Callable[[str], Paper | None]) -> None:
        self._rules = rules
        self._find = find

    def can_open(self, crawl: Crawl, paper: str) -> bool:
        """Whether a session of this paper can still come: it has sections and is not too deep."""
        if crawl.queue[paper].depth >= self._rules.layers:
            return False
        return bool((found := self._find(paper)) and found.sections)

    def next(self, crawl: Crawl, random: EpisodeRandom) -> str | None:
        """Take the paper whose session comes next out of those that wait; None at the end."""
        while True:
            if self._rules.schedule in ("fifo", "best_first"):
                self._merge(crawl)
            elif not crawl.waiting and not self._descend(crawl, random):
                return None
            if not crawl.waiting:
                return None
            paper = crawl.waiting.pop(0)
            if self.can_open(crawl, paper):
                return paper

    def open(self, crawl: Crawl, paper: str) -> None:
        """Make the session of ``paper`` the present one."""
        crawl.here, crawl.said = paper, ()
        crawl.numbers.setdefault(paper, len(crawl.numbers))

    def openable(self, crawl: Crawl) -> list[str]:
        """Papers whose sessions can be opened, in the schedule's order; an untouched one first."""
        fresh = [crawl.here] if crawl.here and not crawl.said else []
        later = crawl.later
        if self._rules.schedule in ("layered", "best_first"):
            later = sorted(later, key=crawl.rank)
        if self._rules.schedule == "layered":
            later = self._capped(crawl, later)
        waiting = [p for p in (*crawl.waiting, *later) if self.can_open(crawl, p)]
        return fresh + waiting

    def enter(self, crawl: Crawl, paper: str) -> None:
        """Open a waiting session out of turn; an untouched present one waits again.

        Raises:
            UnknownNameError: No such session waits.
        """
        if paper not in (known := self.openable(crawl)):
            raise UnknownNameError("session", paper, known, "PaperCrawler")
        if crawl.here and not crawl.said:
            crawl.waiting.insert(0, crawl.here)
        (crawl.waiting if paper in crawl.waiting else crawl.later).remove(paper)
        self.open(crawl, paper)

    def _merge(self, crawl: Crawl) -> None:
        crawl.waiting += crawl.later
        crawl.later = []
        if self._rules.schedule == "best_first":
            crawl.waiting.sort(key=crawl.rank)

    def _descend(self, crawl: Crawl, random: EpisodeRandom) -> bool:
        """Go to the next layer; False when there is none."""
        crawl.layer += 1
        if crawl.layer >= self._rules.layers or not crawl.later:
            return False
        if self._rules.schedule == "sampled":
            order = random.generator.permutation(len(crawl.later))[: self._rules.per_layer]
            crawl.waiting = [crawl.later[int(i)] for i in order]
        else:
            crawl.waiting = self._capped(crawl, sorted(crawl.later, key=crawl.rank))
        crawl.later = []
        return True

    def _capped(self, crawl: Crawl, ranked: list[str]) -> list[str]:
        """The best of a layer below the first; the first layer is opened whole."""
        searched = [p for p in ranked if crawl.queue[p].depth == 0]
        deeper = [p for p in ranked if crawl.queue[p].depth > 0]
        return searched + deeper[: self._rules.layer_cap]
