"""Actions of the crawler: which ones a text holds, and what each of them finds and earns."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...core.episode import Call
from ..papers import (
    Judged,
    Library,
    Paper,
    Request,
    Search,
    Selector,
    check_probabilities,
    make_title_key,
)
from ..scores import select_rewarded
from .grammar import Move, SessionKind, read_action, read_session
from .rules import Rules
from .state import Crawl, Record


class Ruling(NamedTuple):
    """What is decided about a new paper.

    Attributes:
        paper: The paper.
        score: The selector's probability, which the queue keeps.
        pays: Whether the crawler is paid for it.
    """

    paper: Paper
    score: float
    pays: bool


@dataclass(frozen=True)
class JudgePapers:
    """A selector as the ``serve`` of a :class:`~turngym.envs.core.env.Call`.

    A request is a list of papers to judge; those of all callers go to the selector at once. Two
    are equal when they ask the same selector, so that a batched environment asks once.
    """

    selector: Selector

    def __call__(self, requests: Sequence[Sequence[Judged]]) -> list[list[float]]:
        """Probabilities for each request, in its order.

        Raises:
            EnvFault: The selector is broken.
        """
        flat = [judged for request in requests for judged in request]
        given = self.selector.probabilities(flat)
        scores = iter(check_probabilities(given, len(flat), "PaperCrawler: the selector"))
        return [[next(scores) for _ in request] for request in requests]


@dataclass(frozen=True)
class SearchLibrary:
    """A library's search engine as the ``serve`` of a :class:`~turngym.envs.core.env.Call`."""

    library: Library

    def __call__(self, requests: Sequence[Search]) -> list[list[str]]:
        """Ids for each request."""
        return self.library.search(requests)


class ActionExecutor:
    """Carries out actions.

    Args:
        rules: What they cost and bring.
        library: Papers and their search engine.
        selector: Judges what was found.
    """

    def __init__(self, rules: Rules, library: Library, selector: Selector) -> None:
        self.rules = rules
        self.library = library
        self.selector = selector
        self._search = SearchLibrary(library)
        self._judge = JudgePapers(selector)

    def execute(self, crawl: Crawl, request: Request, move: Move) -> Generator[Call, Any, Record]:
        """Carry ``move`` out and put what it found into the queue.

        Raises:
            EnvFault: The library or the selector is broken.
        """
        found, error = yield from self.find_results(crawl, request, move)
        papers = self.select_new(crawl, found)
        scores: Sequence[float] = ()
        if papers:
            scores = yield Call(self._judge, [Judged(request, paper) for paper in papers])
        return self.record(crawl, move, (len(found), error), self.rule_on(request, papers, scores))

    def find_results(
        self, crawl: Crawl, request: Request, move: Move
    ) -> Generator[Call, Any, tuple[list[Paper], str]]:
        """Return the papers that an action finds, each once, and why it failed if it did."""
        if move.kind == "search":
            ids = yield Call(self._search, Search(move.arg, self.rules.top_k, request.date))
            return self.look_up(request, ids), ""
        if move.kind != "expand":
            return [], move.error
        paper = self.library.find(crawl.here)
        heading = find_heading(paper.sections, move.arg) if paper else None
        if paper is None or heading is None:
            return [], f"the paper has no section {move.arg!r}"
        return self.read_section(request, paper, heading), ""

    def read_section(self, request: Request, paper: Paper, heading: str) -> list[Paper]:
        """Return the papers that a section cites, from before the day of the request."""
        return self.look_up(request, paper.sections[heading])

    def select_new(self, crawl: Crawl, found: Iterable[Paper]) -> list[Paper]:
        """Return the papers of ``found`` that are not in the queue."""
        return [paper for paper in found if paper.id not in crawl.queue]

    def record(
        self,
        crawl: Crawl,
        move: Move,
        brought: tuple[int, str],
        rulings: Sequence[Ruling],
    ) -> Record:
        """Put judged papers into the queue, and say what the action did.

        Args:
            crawl: Changed in place.
            move: The action.
            brought: Number of its results, and why it failed.
            rulings: The new papers, in order, and what is decided about them.
        """
        relevant = sum(ruling.pays for ruling in rulings)
        cost = self.rules.cost(move.kind, crawl.kind)
        record = Record(
            move=move,
            error=brought[1],
            cost=cost,
            results=brought[0],
            new=tuple((paper.id, score) for paper, score, _ in rulings),
            relevant=relevant,
            reward=self.rules.alpha * relevant - cost,
        )
        crawl.add(record)
        return record

    def rule_on(
        self, request: Request, papers: Sequence[Paper], scores: Sequence[float]
    ) -> list[Ruling]:
        """Return what the label and these probabilities decide about new papers."""
        new = {paper.id: float(score) for paper, score in zip(papers, scores, strict=True)}
        paying = self.select_paying(request, new)
        return [Ruling(paper, new[paper.id], paper.id in paying) for paper in papers]

    def select_paying(self, request: Request, new: Mapping[str, float]) -> list[str]:
        """Return which of the new papers count under the label (PaSa, equation 2)."""
        wanted = request.oracle if self.rules.label == "oracle" else request.answers
        scores = new if self.rules.label == "annotated_or_selector" else None
        return select_rewarded(new, (), wanted, scores)

    def look_up(self, request: Request, ids: Iterable[str]) -> list[Paper]:
        """Return the papers that the library has from before the day of the request, each once."""
        found = []
        for paper_id in dict.fromkeys(ids):
            paper = None if paper_id == request.source else self.library.find(paper_id)
            if paper is not None and paper.date < request.date:
                found.append(paper)
        return found


def find_heading(sections: Iterable[str], name: str) -> str | None:
    """Return the heading that ``name`` means: the same text, else the first with its letters."""
    headings = list(sections)
    if name in headings:
        return name
    key = make_title_key(name)
    return next((h for h in headings if key and make_title_key(h) == key), None)


class StepPlan(NamedTuple):
    """What a text of the crawler will do, as far as it does not depend on what is found.

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
        """Return the price of all of it."""
        stops = () if self.stop is None else (self.stop,)
        paid = (*self.moves, *self.beyond, *stops)
        return sum(rules.cost(move.kind, session) for move in paid)


def make_plan(rules: Rules, crawl: Crawl, action: str) -> StepPlan:
    """Return what ``action`` will do in the present session."""
    moves, stop = _read(rules, crawl.kind, action)
    room = rules.cap(crawl.kind) - len(crawl.args_taken)
    left = len(moves) if rules.max_actions is None else rules.max_actions - crawl.actions
    taken = tuple(moves[: min(room, left)])
    limit = rules.max_actions is not None and crawl.actions + len(taken) >= rules.max_actions
    beyond = moves[len(taken) :] if rules.over_cap == "charge" and not limit else ()
    if len(taken) >= room:
        return StepPlan(taken, tuple(beyond), None, "cap")
    if limit:
        return StepPlan(taken, (), None, "limit")
    if stop is not None:
        return StepPlan(taken, (), stop, "stop")
    return StepPlan(taken, (), None, "eos" if rules.granularity == "session" else "")


def _read(rules: Rules, kind: SessionKind, action: str) -> tuple[Sequence[Move], Move | None]:
    """Return the actions of a text, and its stop."""
    if rules.granularity == "session":
        session = read_session(action, kind)
        return session.moves, session.stop and Move("stop", "", session.stop)
    move, stopped = read_action(action, kind)
    if move.kind == "stop":
        return (), move
    at = action.find("]", move.span[1])
    return (move,), Move("stop", "", (move.span[1], at + 1)) if stopped else None
