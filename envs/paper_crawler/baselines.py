"""Scripted crawlers: the expert that knows the labels, and those that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from ..api import Policy
from ..digest import digest_of
from ..erring import checked_mistakes
from .crawl.grammar import MARKERS, STOPS
from .papers import Judged, Paper, Request

if TYPE_CHECKING:
    from .env import PaperCrawler


class CrawlPolicy:
    """Plans the rest of the present session from the environment's state, and writes it.

    It remembers nothing, so it can take over in the middle of anybody's episode.

    Args:
        seed: Of what it draws.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def queries(self, env: PaperCrawler, request: Request) -> Iterable[str]:
        """What it searches for: the scripted queries."""
        return scripted_queries(env, request)

    def sections(self, env: PaperCrawler, request: Request, paper: Paper) -> Iterable[str]:  # noqa: ARG002
        """Headings of ``paper`` that it opens: none."""
        return ()

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:  # noqa: ARG002
        """The next action, or the rest of the session."""
        world: PaperCrawler = env.unwrapped  # pyright: ignore[reportAssignmentType]
        crawl, request = world.episode.world, world.episode.task.payload
        paper = world.library.find(crawl.here) if crawl.here else None
        if paper is None:
            args = self.queries(world, request)
        else:
            args = self.sections(world, request, paper)
        left = [a for a in args if a not in crawl.said and "[" not in a]
        left = left[: world.rules.cap(crawl.kind) - len(crawl.said)]
        marker, stop = MARKERS[crawl.kind], STOPS[crawl.kind]
        if world.rules.granularity == "session":
            return "".join(f"{marker} {arg}\n" for arg in left) + stop
        return f"{marker} {left[0]}\n" if left else stop

    def draw(self, env: PaperCrawler, *about: object) -> float:
        """A number in [0, 1) that depends on the seed, the task and ``about`` alone."""
        name = digest_of((self.seed, env.episode.task.id, about))
        return int(name[:12], 16) / 16**12


class SearchOnly(CrawlPolicy):
    """Scripted queries, no section."""


class ExpandAll(CrawlPolicy):
    """Scripted queries, and every section."""

    def sections(self, env: PaperCrawler, request: Request, paper: Paper) -> Iterable[str]:  # noqa: ARG002
        """All of them."""
        return paper.sections


class ExpandAtRandom(CrawlPolicy):
    """Scripted queries, and each section with probability 0.3."""

    def sections(self, env: PaperCrawler, request: Request, paper: Paper) -> Iterable[str]:  # noqa: ARG002
        """Some of them."""
        return [name for name in paper.sections if self.draw(env, paper.id, name) < 0.3]


class Heuristic(CrawlPolicy):
    """Scripted queries, and the sections whose headings name what the request names.

    In a generated world it knows all names of its concepts; elsewhere a heading must share a word
    of four letters or more with the request.
    """

    def sections(self, env: PaperCrawler, request: Request, paper: Paper) -> Iterable[str]:
        """Those that name a concept of the request."""
        return [name for name in paper.sections if env.crawled.names_concept(request, name, paper)]


class Expert(CrawlPolicy):
    """Knows the labels: opens the sections whose new papers are worth more than they cost.

    Args:
        mistakes: Probability of opening another section, and of leaving out a scripted query.
        seed: Of the mistakes.
    """

    def __init__(self, mistakes: float = 0.0, seed: int = 0) -> None:
        super().__init__(seed)
        self.mistakes = checked_mistakes(mistakes)

    def queries(self, env: PaperCrawler, request: Request) -> Iterable[str]:
        """The scripted queries, save mistakes; at least the request itself."""
        first, *others = scripted_queries(env, request)
        return [first, *(q for q in others if self.draw(env, q) >= self.mistakes)]

    def sections(self, env: PaperCrawler, request: Request, paper: Paper) -> Iterable[str]:
        """Those that pay, in their order, and mistakes."""
        desk, seen, opened = env.desk, set(env.episode.world.queue), []
        for name in paper.sections:
            papers = [p for p in desk.section(request, paper, name) if p.id not in seen]
            scores = desk.selector.probabilities([Judged(request, p) for p in papers])
            new = {p.id: score for p, score in zip(papers, scores, strict=True)}
            worth = env.rules.alpha * desk.relevant(request, new) > env.rules.cost_expand
            if worth or (self.mistakes and self.draw(env, paper.id, name) < self.mistakes):
                opened.append(name)
                seen |= set(new)
        return opened


def scripted_queries(env: PaperCrawler, request: Request) -> list[str]:
    """Queries that need no model: the request itself first."""
    return list(dict.fromkeys([request.text, *env.crawled.queries(request)]))


BASELINES: Mapping[str, Callable[[int], Policy]] = {
    "search-only": SearchOnly,
    "expand-all": ExpandAll,
    "expand-at-random": ExpandAtRandom,
    "heuristic": Heuristic,
}
