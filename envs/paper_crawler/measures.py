"""How a finished crawl is measured (PaSa's released metrics)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..paper_scores import crawl_metrics
from .crawl import Crawl
from .papers import Paper, Request
from .titles import title_key

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
