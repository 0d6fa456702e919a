"""What a crawl reports: its info after every step, its account for readers, its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

from ..core.episode import Maybe
from ..core.errors import EnvFault
from .crawl.agenda import Agenda
from .crawl.grammar import SessionKind
from .crawl.state import Crawl, Record
from .papers import Library, Paper, Request, make_title_key
from .scores import SELECTED_ABOVE, recall_and_precision


class SpawnInfo(TypedDict):
    """A paper that an action found: the state in which its session would begin."""

    paper_id: str
    prompt: str  # empty where no session of it can come
    depth: int
    expandable: bool  # False where no session of it can come: it has no value of its own
    relevance: float  # the selector's probability


class ActionInfo(TypedDict):
    """One action of the last step."""

    kind: str  # search, expand, stop or invalid
    arg: str
    span: tuple[int, int]  # its place in the action's text
    valid: bool
    error: str
    cost: float
    n_results: int
    n_new: int
    n_relevant: int
    reward: float
    new_ids: list[str]
    new_scores: list[float]
    spawned: list[SpawnInfo]


class CrawlInfo(TypedDict):
    """``info["crawl"]``; before the first step it describes the search session."""

    session_id: int  # the session that the last action belonged to
    session_kind: SessionKind
    paper_id: str  # empty in the search session
    depth: int  # -1 in the search session
    parent_session: int | None
    prompt: str  # with which that session began
    actions: list[ActionInfo]
    session_end: bool
    context_reset: bool  # the returned observation begins a new context
    end_reason: str  # stop, cap, eos or limit; empty while the session goes on
    valid_args: list[str]  # names of sections that can be expanded next
    queue_size: int
    frontier_size: int  # papers that wait for a session
    n_actions_total: int
    layer: int


def make_crawl_info(
    crawl: Crawl,
    request: Request,
    library: Library,
    agenda: Agenda,
    *,
    prompt: Callable[[Request, str], str],
    running: bool,
) -> CrawlInfo:
    """Return the report on the state after the last step.

    Args:
        crawl: The state.
        request: What is looked for.
        library: The papers.
        agenda: Says which sessions can still come.
        prompt: Writes what the session of a paper, or the search session, begins with.
        running: Whether the episode goes on.
    """

    def describe_spawn(paper: str, score: float) -> SpawnInfo:
        can = running and agenda.can_open(crawl, paper)
        return {
            "paper_id": paper,
            "prompt": prompt(request, paper) if can else "",
            "depth": crawl.queue[paper].depth,
            "expandable": can,
            "relevance": score,
        }

    def describe_action(record: Record) -> ActionInfo:
        move = record.move
        return {
            "kind": move.kind,
            "arg": move.arg,
            "span": move.span,
            "valid": move.kind != "invalid" and not record.error,
            "error": record.error,
            "cost": record.cost,
            "n_results": record.results,
            "n_new": len(record.new),
            "n_relevant": record.relevant,
            "reward": record.reward,
            "new_ids": [paper for paper, _ in record.new],
            "new_scores": [score for _, score in record.new],
            "spawned": [describe_spawn(paper, score) for paper, score in record.new],
        }

    paper = crawl.acting
    parent = crawl.parent(paper)
    return {
        "session_id": crawl.numbers[paper],
        "session_kind": "expand" if paper else "search",
        "paper_id": paper,
        "depth": crawl.queue[paper].depth if paper else -1,
        "parent_session": None if parent is None else Maybe(parent),
        "prompt": prompt(request, paper),
        "actions": [describe_action(record) for record in crawl.last],
        "session_end": bool(crawl.ended),
        "context_reset": bool(crawl.ended) and running,
        "end_reason": crawl.ended,
        "valid_args": list_sections(crawl, library),
        "queue_size": len(crawl.queue),
        "frontier_size": len(crawl.waiting) + len(crawl.later),
        "n_actions_total": crawl.actions,
        "layer": crawl.layer,
    }


def list_sections(crawl: Crawl, library: Library) -> list[str]:
    """Return the present paper's sections that were not opened in this session."""
    paper = library.find(crawl.here) if crawl.here else None
    return [name for name in paper.sections if name not in crawl.args_taken] if paper else []


class FoundAccount(TypedDict):
    """A paper that an action put into the queue, as people want to see it."""

    id: str
    title: str
    score: float  # the selector's probability
    selected: bool  # whether the selector takes it
    answer: bool  # whether it is an annotated answer
    depth: int


class ActionAccount(TypedDict):
    """One action, with what it found."""

    kind: str  # search, expand, stop or invalid
    arg: str
    error: str
    cost: float
    relevant: int
    results: int
    found: list[FoundAccount]


class CrawlAccount(TypedDict):
    """A crawl's last step, as people want to see it."""

    request: str
    answers: int
    session: int
    paper: str  # empty in the search session
    title: str
    actions: list[ActionAccount]
    queue: int  # papers found so far
    waiting: int  # papers that wait for a session
    ended: str  # how the session ended; empty while it goes on


def make_crawl_account(crawl: Crawl, request: Request, library: Library) -> CrawlAccount:
    """Return the last step for a reader: titles, and which papers are answers."""
    answers = frozenset(request.answers)

    def title(paper: str) -> str:
        try:
            known = library.find(paper) if paper else None
        except EnvFault:  # an account is no reason to end an episode
            known = None
        return known.title if known else paper

    def found(paper: str, score: float) -> FoundAccount:
        return {
            "id": paper,
            "title": title(paper),
            "score": score,
            "selected": score > SELECTED_ABOVE,
            "answer": paper in answers,
            "depth": crawl.queue[paper].depth,
        }

    return {
        "request": request.text,
        "answers": len(answers),
        "session": crawl.numbers[crawl.acting],
        "paper": crawl.acting,
        "title": title(crawl.acting),
        "actions": [
            {
                "kind": record.move.kind,
                "arg": record.move.arg,
                "error": record.error,
                "cost": record.cost,
                "relevant": record.relevant,
                "results": record.results,
                "found": [found(paper, score) for paper, score in record.new],
            }
            for record in crawl.last
        ],
        "queue": len(crawl.queue),
        "waiting": len(crawl.waiting) + len(crawl.later),
        "ended": crawl.ended,
    }


Find = Callable[[str], Paper | None]


def compute_crawl_metrics(crawl: Crawl, request: Request, find: Find) -> Mapping[str, float]:
    """Return the metrics of a crawl against the annotated answers.

    ``crawler_recall``, ``precision``, ``recall``, ``f1``, ``recall_at_20``, ``_50`` and ``_100``;
    the same with the prefix ``oracle_`` where all relevant papers are known, and with ``title_``
    where the answers' titles are (PaSa compares letters of titles, ids are stricter). ``actions``
    counts as PaSa does: searches, and expansions that found something new; ``all_actions`` counts
    every one; ``sessions`` and ``papers`` (in the queue) say how large the crawl was.
    """
    scores = {paper: found.score for paper, found in crawl.queue.items()}
    metrics = _compute_metrics(scores, request.answers)
    if request.oracle:
        metrics |= _add_prefix("oracle_", _compute_metrics(scores, request.oracle))
    if request.titles:
        metrics |= _add_prefix("title_", _compute_title_metrics(scores, request.titles, find))
    metrics["actions"] = float(crawl.useful)
    metrics["all_actions"] = float(crawl.actions)
    metrics["sessions"] = float(len(crawl.numbers))
    metrics["papers"] = float(len(scores))
    return metrics


def merge_scores(first: Crawl, second: Crawl) -> dict[str, float]:
    """Return an ensemble's scores: the first run's where both found a paper (PaSa, section 5)."""
    merged = {paper: found.score for paper, found in first.queue.items()}
    for paper, found in second.queue.items():
        merged.setdefault(paper, found.score)
    return merged


def _compute_metrics(scores: Mapping[str, float], wanted: tuple[str, ...]) -> dict[str, float]:
    metrics = recall_and_precision(scores, frozenset(wanted))
    both = metrics["precision"] + metrics["recall"]
    metrics["f1"] = 2 * metrics["precision"] * metrics["recall"] / both if both else 0.0
    return metrics


def _compute_title_metrics(
    scores: Mapping[str, float], titles: tuple[str, ...], find: Find
) -> dict[str, float]:
    keyed: dict[str, float] = {}
    for paper_id, score in scores.items():
        paper = find(paper_id)
        keyed.setdefault(make_title_key(paper.title) if paper else paper_id, score)
    return _compute_metrics(keyed, tuple(dict.fromkeys(map(make_title_key, titles))))


def _add_prefix(prefix: str, metrics: Mapping[str, float]) -> dict[str, float]:
    return {f"{prefix}{name}": value for name, value in metrics.items()}
