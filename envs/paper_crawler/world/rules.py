"""The rules that statistics compare: from one search to an oracle of sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..papers import Paper, Request
from .names import Names
from .scripted import all_name_pairs, names_concept, request_random, scripted_queries


@dataclass(frozen=True, slots=True)
class SearchRaw:
    """Searches for the request as it is."""

    def queries(self, request: Request) -> Sequence[str]:
        """The request's text."""
        return [request.text]

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:
        """None."""
        del request, paper, found
        return ()


@dataclass(frozen=True, slots=True)
class SearchPairs:
    """Searches for every pair of names."""

    names: Names

    def queries(self, request: Request) -> Sequence[str]:
        """All pairs."""
        return all_name_pairs(self.names, request)

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:
        """None."""
        del request, paper, found
        return ()


@dataclass(frozen=True, slots=True)
class SearchOnly:
    """The scripted queries, and nothing else."""

    names: Names

    def queries(self, request: Request) -> Sequence[str]:
        """The scripted queries."""
        return scripted_queries(self.names, request)

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:
        """None."""
        del request, paper, found
        return ()


@dataclass(frozen=True, slots=True)
class ExpandAll(SearchOnly):
    """The scripted queries, then every section."""

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:
        """All of them."""
        del request, found
        return tuple(paper.sections)


@dataclass(frozen=True, slots=True)
class ExpandRandom(SearchOnly):
    """The scripted queries, then sections at random.

    Attributes:
        names: The alias table.
        chance: Probability of each section.
    """

    chance: float = 0.3

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:
        """The drawn ones; the draw depends on request and paper alone."""
        del found
        rng = request_random(request, f"sections {paper.id}")
        coins = rng.random(len(paper.sections)).tolist()
        return [h for h, coin in zip(paper.sections, coins, strict=True) if coin < self.chance]


@dataclass(frozen=True, slots=True)
class NameHeuristic(SearchOnly):
    """Sections whose heading names what the request names, by any of its names."""

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:
        """Those headings."""
        del found
        return [h for h in paper.sections if names_concept(self.names, request, h)]


@dataclass(frozen=True, slots=True)
class SectionOracle(SearchOnly):
    """Sections that bring a paper that answers the request and was not found before."""

    def sections(self, request: Request, paper: Paper, found: Mapping[str, float]) -> Iterable[str]:
        """Those sections, looked at one after the other."""
        wanted = frozenset(request.oracle or request.answers)
        for heading, cited in paper.sections.items():
            if any(i in wanted and i not in found for i in cited):
                yield heading
