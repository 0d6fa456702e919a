"""Which paper's session is opened next."""

from __future__ import annotations

from collections.abc import Callable

from ...core.errors import UnknownNameError
from ...core.randomness import EpisodeRandom
from ..papers import Paper
from .rules import Rules
from .state import Crawl


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
        crawl.here, crawl.args_taken = paper, ()
        crawl.numbers.setdefault(paper, len(crawl.numbers))

    def openable(self, crawl: Crawl) -> list[str]:
        """Papers whose sessions can be opened, in the schedule's order; an untouched one first."""
        fresh = [crawl.here] if crawl.here and not crawl.args_taken else []
        later = crawl.later
        if self._rules.schedule in ("layered", "best_first"):
            later = sorted(later, key=crawl.rank)
        if self._rules.schedule == "layered":
            later = self._apply_cap(crawl, later)
        waiting = [p for p in (*crawl.waiting, *later) if self.can_open(crawl, p)]
        return fresh + waiting

    def enter(self, crawl: Crawl, paper: str) -> None:
        """Open a waiting session out of turn; an untouched present one waits again.

        Raises:
            UnknownNameError: No such session waits.
        """
        if paper not in (known := self.openable(crawl)):
            raise UnknownNameError("session", paper, known, "PaperCrawler")
        if crawl.here and not crawl.args_taken:
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
            crawl.waiting = self._apply_cap(crawl, sorted(crawl.later, key=crawl.rank))
        crawl.later = []
        return True

    def _apply_cap(self, crawl: Crawl, ranked: list[str]) -> list[str]:
        """The best of a layer below the first; the first layer is opened whole."""
        searched = [p for p in ranked if crawl.queue[p].depth == 0]
        deeper = [p for p in ranked if crawl.queue[p].depth > 0]
        return searched + deeper[: self._rules.layer_cap]
