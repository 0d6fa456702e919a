"""What a crawl reports: its info after every step, its account for readers, its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypedDict

from ..episode import Episode, Maybe
from ..errors import EnvFault
from .crawl.grammar import SessionKind
from .crawl.state import Crawl, Record
from .papers import Paper, Request, title_key
from .scores import SELECTED_ABOVE, crawl_metrics

if TYPE_CHECKING:
    from .env import PaperCrawler


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


def crawl_info(env: PaperCrawler, episode: Episode[Crawl]) -> CrawlInfo:
    """The report on the state after the last step."""
    crawl, request = episode.world, episode.task.payload
    paper = crawl.acting
    parent = crawl.parent(paper)
    return {
        "session_id": crawl.numbers[paper],
        "session_kind": "expand" if paper else "search",
        "paper_id": paper,
        "depth": crawl.queue[paper].depth if paper else -1,
        "parent_session": None if parent is None else Maybe(parent),
        "prompt": env.expand_prompt(request, paper) if paper else env.search_prompt(request),
        "actions": [_action(env, episode, record) for record in crawl.last],
        "session_end": bool(crawl.ended),
        "context_reset": bool(crawl.ended) and episode.status == "running",
        "end_reason": crawl.ended,
        "valid_args": env.valid_args(),
        "queue_size": len(crawl.queue),
        "frontier_size": len(crawl.waiting) + len(crawl.later),
        "n_actions_total": crawl.actions,
        "layer": crawl.layer,
    }


class FoundAccount(TypedDict):
    """A paper that an action put into the queue, as people want to see it."""

    id: str
    title: str
    score: float  # the selector's probability
    selected: bool  # whether the selector takes it
    answer: bool  # whether it is an annotated answer
    depth: int


class DeedAccount(TypedDict):
    """One action, with what it found."""

    kind: str  # search, expand, stop or invalid
    arg: str
    error: str
    cost: float
    relevant: int
    results: int
    found: list[FoundAccount]


class CrawlAccount(TypedDict):
    """What :meth:`PaperCrawler.account` tells of a crawl's last step."""

    request: str
    answers: int
    session: int
    paper: str  # empty in the search session
    title: str
    deeds: list[DeedAccount]
    queue: int  # papers found so far
    waiting: int  # papers that wait for a session
    ended: str  # how the session ended; empty while it goes on


def crawl_account(env: PaperCrawler, episode: Episode[Crawl]) -> CrawlAccount:
    """The last step for a reader: titles, and which papers are answers."""
    crawl, request = episode.world, episode.task.payload
    answers = frozenset(request.answers)

    def title(paper: str) -> str:
        try:
            known = env.library.find(paper) if paper else None
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
        "deeds": [
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


def _action(env: PaperCrawler, episode: Episode[Crawl], record: Record) -> ActionInfo:
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
        "spawned": [_spawned(env, episode, paper, score) for paper, score in record.new],
    }


def _spawned(env: PaperCrawler, episode: Episode[Crawl], paper: str, score: float) -> SpawnInfo:
    crawl = episode.world
    can = episode.status == "running" and env.agenda.can_open(crawl, paper)
    return {
        "paper_id": paper,
        "prompt": env.expand_prompt(episode.task.payload, paper) if can else "",
        "depth": crawl.queue[paper].depth,
        "expandable": can,
        "relevance": score,
    }


Find = Callable[[str], Paper | None]


def crawl_measures(crawl: Crawl, request: Request, find: Find) -> Mapping[str, float]:
    """Measures of a crawl against the annotated answers.

    ``crawler_recall``, ``precision``, ``recall``, ``f1``, ``recall_at_20``, ``_50`` and ``_100``;
    the same with the prefix ``oracle_`` where all relevant papers are known, and with ``title_``
    where the answers' titles are (PaSa compares letters of titles, ids are stricter). ``actions``
    counts as PaSa does: searches, and expansions that found something new; ``all_actions`` counts
    every one; ``sessions`` and ``papers`` (in the queue) say how large the crawl was.
    """
    scores = {paper: found.score for paper, found in crawl.queue.items()}
    measures = _with_f1(scores, request.answers)
    if request.oracle:
        measures |= _named("oracle_", _with_f1(scores, request.oracle))
    if request.titles:
        measures |= _named("title_", _by_title(scores, request.titles, find))
    measures["actions"] = float(crawl.useful)
    measures["all_actions"] = float(crawl.actions)
    measures["sessions"] = float(len(crawl.numbers))
    measures["papers"] = float(len(scores))
    return measures


def union(first: Crawl, second: Crawl) -> dict[str, float]:
    """Scores of an ensemble's papers: the first run's where both found one (PaSa, section 5)."""
    merged = {paper: found.score for paper, found in first.queue.items()}
    for paper, found in second.queue.items():
        merged.setdefault(paper, found.score)
    return merged


def _with_f1(scores: Mapping[str, float], wanted: tuple[str, ...]) -> dict[str, float]:
    measures = crawl_metrics(scores, frozenset(wanted))
    both = measures["precision"] + measures["recall"]
    measures["f1"] = 2 * measures["precision"] * measures["recall"] / both if both else 0.0
    return measures


def _by_title(scores: Mapping[str, float], titles: tuple[str, ...], find: Find) -> dict[str, float]:
    keyed: dict[str, float] = {}
    for paper_id, score in scores.items():
        paper = find(paper_id)
        keyed.setdefault(title_key(paper.title) if paper else paper_id, score)
    return _with_f1(keyed, tuple(dict.fromkeys(map(title_key, titles))))


def _named(prefix: str, measures: Mapping[str, float]) -> dict[str, float]:
    return {f"{prefix}{name}": value for name, value in measures.items()}
