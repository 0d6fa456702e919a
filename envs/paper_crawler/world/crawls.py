"""Whole crawls of a generated world by rules, with which its statistics are measured.

They follow the same steps as the environment, without its texts: searches first, then two layers of
papers, the second one cut to the papers that the selector likes best. The rules range from one
search to an oracle of sections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..papers import Judged, Library, Paper, Request, Search, Selector
from ..scores import recall_and_precision, select_rewarded
from .names import Names, request_random


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlLimits:
    """How far a crawl goes, and what it earns.

    Attributes:
        layers: Layers of papers that are expanded.
        layer_cap: Papers of each layer but the first.
        results: Papers that a search returns.
        searches: Most searches.
        expansions: Most sections of one paper; None for all.
        alpha: Reward of a new relevant paper.
        cost: Cost of an action.
    """

    layers: int = 2
    layer_cap: int = 20
    results: int = 10
    searches: int = 5
    expansions: int | None = None
    alpha: float = 1.5
    cost: float = 0.1


@dataclass(frozen=True, slots=True)
class Opened:
    """A section that was opened.

    Attributes:
        paper: The paper.
        heading: The section.
        found: Papers that it brought, all of them new.
        relevant: How many of them count as relevant.
    """

    paper: Paper
    heading: str
    found: tuple[str, ...]
    relevant: int


@dataclass(slots=True)
class CrawlResult:
    """What a crawl found.

    Attributes:
        scores: The selector's probability of each found paper, in the order of finding.
        depths: 0 for papers that a search found, one more than the citing paper's for others.
        actions: Searches and opened sections.
        relevant: Papers that were relevant when they came.
        value: Undiscounted return.
        opened: The opened sections, in order.
    """

    scores: dict[str, float] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    actions: int = 0
    relevant: int = 0
    value: float = 0.0
    opened: list[Opened] = field(default_factory=list)

    def metrics(self, wanted: Iterable[str]) -> dict[str, float]:
        """Recall, precision, actions and return."""
        return {
            **recall_and_precision(self.scores, frozenset(wanted)),
            "actions": float(self.actions),
            "return": self.value,
        }


class Rule(Protocol):
    """Decides what a crawl does."""

    def queries(self, request: Request) -> Sequence[str]:
        """Queries to search for."""
        ...

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:
        """Headings to open, in order; drawn one at a time while ``found`` grows."""
        ...


class _Crawl:
    def __init__(
        self, library: Library, selector: Selector, request: Request, limits: CrawlLimits
    ) -> None:
        self.library, self.selector = library, selector
        self.request, self.limits = request, limits
        self.wanted = frozenset(request.answers)
        self.done = CrawlResult()

    def add(self, found: Iterable[str], depth: int) -> tuple[tuple[str, ...], int]:
        """Append what is new; pay and earn."""
        done, request = self.done, self.request
        new: dict[str, Paper] = {}
        for paper_id in found:
            if paper_id in done.scores or paper_id in new or paper_id == request.source:
                continue
            paper = self.library.find(paper_id)
            if paper is not None and paper.date < request.date:
                new[paper_id] = paper
        judged = [Judged(request, paper) for paper in new.values()]
        scores = dict(zip(new, self.selector.probabilities(judged), strict=True))
        relevant = len(select_rewarded(new, done.scores, self.wanted, scores))
        done.scores.update(scores)
        done.depths.update(dict.fromkeys(new, depth))
        done.actions += 1
        done.relevant += relevant
        done.value += self.limits.alpha * relevant - self.limits.cost
        return tuple(new), relevant

    def search(self, queries: Sequence[str]) -> None:
        limits, date = self.limits, self.request.date
        asked = [Search(text, limits.results, date) for text in queries[: limits.searches]]
        for found in self.library.search(asked):
            self.add(found, 0)

    def expand(self, rule: Rule, paper: Paper, depth: int) -> list[str]:
        """Open sections of a paper; what was new."""
        new: list[str] = []
        for number, heading in enumerate(rule.sections(self.request, paper, self.done.scores)):
            if number == self.limits.expansions:
                break
            found, relevant = self.add(paper.sections[heading], depth + 1)
            self.done.opened.append(Opened(paper, heading, found, relevant))
            new += found
        return new


def crawl(
    library: Library,
    selector: Selector,
    rule: Rule,
    request: Request,
    limits: CrawlLimits | None = None,
) -> CrawlResult:
    """One crawl from the request to the last layer.

    Args:
        library: The papers.
        selector: Judges them.
        rule: What to search for and which sections to open.
        request: The request.
        limits: How far to go; the usual one by default.
    """
    limits = CrawlLimits() if limits is None else limits
    run = _Crawl(library, selector, request, limits)
    run.search(rule.queries(request))
    scores = run.done.scores
    frontier = list(scores)
    for depth in range(limits.layers):
        frontier.sort(key=lambda paper: (-scores[paper], paper))
        if depth:
            frontier = frontier[: limits.layer_cap]
        new: list[str] = []
        for paper_id in frontier:
            paper = library.find(paper_id)
            if paper is not None and paper.sections:
                new += run.expand(rule, paper, depth)
        frontier = new
    return run.done


class _NoSections:
    """Opens no section."""

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:  # noqa: ARG002
        """Return none."""
        return ()


class SearchRaw(_NoSections):
    """Searches for the request as it is."""

    def queries(self, request: Request) -> Sequence[str]:
        """Return the request's text."""
        return [request.text]


@dataclass(frozen=True)
class SearchOnly(_NoSections):
    """The scripted queries, and nothing else."""

    names: Names

    def queries(self, request: Request) -> Sequence[str]:
        """Return the scripted queries."""
        return self.names.queries(request)


class ExpandAll(SearchOnly):
    """The scripted queries, then every section."""

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:  # noqa: ARG002
        """Return all of them."""
        return tuple(paper.sections)


@dataclass(frozen=True)
class ExpandRandom(SearchOnly):
    """The scripted queries, then sections at random.

    Attributes:
        names: The alias table.
        chance: Probability of each section.
    """

    chance: float = 0.3

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:  # noqa: ARG002
        """Return the drawn ones; the draw depends on request and paper alone."""
        rng = request_random(request, f"sections {paper.id}")
        coins = rng.random(len(paper.sections)).tolist()
        return [h for h, coin in zip(paper.sections, coins, strict=True) if coin < self.chance]


class NameHeuristic(SearchOnly):
    """Sections whose heading names what the request names, by any of its names."""

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:  # noqa: ARG002
        """Return those headings."""
        return [h for h in paper.sections if self.names.names_concept(request, h)]


class SectionOracle(SearchOnly):
    """Sections that bring a paper that answers the request and was not found before."""

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:
        """Yield those sections, looked at one after the other."""
        wanted = frozenset(request.oracle or request.answers)
        for heading, cited in paper.sections.items():
            if any(i in wanted and i not in found for i in cited):
                yield heading
