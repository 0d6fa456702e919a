"""Scripted crawlers: the expert that knows the labels, and those that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from ..core.digest import digest_of
from ..core.env import Policy
from ..core.noisy_expert import check_mistakes
from .build import WordKnowledge
from .crawl.actions import ActionExecutor
from .crawl.grammar import STOPS, write_action
from .crawl.rules import Rules
from .crawl.state import Crawl
from .papers import Judged, Paper, Request


@dataclass(frozen=True, slots=True)
class CrawlView:
    """What a scripted crawler sees of the environment.

    Attributes:
        crawl: The state of the crawl.
        request: What is looked for.
        task_id: Id of the request.
        rules: How the crawl goes and what it pays.
        executor: Carries out actions; holds library and selector.
        names: What is known about words.
    """

    crawl: Crawl
    request: Request
    task_id: str
    rules: Rules
    executor: ActionExecutor
    names: WordKnowledge


class CrawlPolicy:
    """Plans the rest of the present session from the state of the crawl, and writes it.

    It remembers nothing, so it can take over in the middle of anybody's episode.

    Args:
        seed: Of what it draws.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def queries(self, view: CrawlView) -> Iterable[str]:
        """Return what it searches for: the scripted queries."""
        return view.names.queries(view.request)

    def sections(self, view: CrawlView, paper: Paper) -> Iterable[str]:  # noqa: ARG002
        """Return the headings of ``paper`` that it opens: none."""
        return ()

    def __call__(self, env: gym.Env[str, str], observation: str, info: Mapping[str, Any]) -> str:  # noqa: ARG002
        """Return the next action, or the rest of the session."""
        crawler: Any = env.unwrapped
        view: CrawlView = crawler.view()
        crawl, rules = view.crawl, view.rules
        paper = view.executor.library.find(crawl.here) if crawl.here else None
        args = self.queries(view) if paper is None else self.sections(view, paper)
        left = [a for a in args if a not in crawl.args_taken and "[" not in a]
        left = left[: rules.cap(crawl.kind) - len(crawl.args_taken)]
        actions = [write_action(crawl.kind, arg) for arg in left]
        actions.append(STOPS[crawl.kind])
        return "".join(actions) if rules.granularity == "session" else actions[0]

    def draw(self, view: CrawlView, *about: object) -> float:
        """Draw a number in [0, 1) that depends on the seed, the task and ``about`` alone."""
        name = digest_of((self.seed, view.task_id, about))
        return int(name[:12], 16) / 16**12


class SearchOnly(CrawlPolicy):
    """Scripted queries, no section."""


class ExpandAll(CrawlPolicy):
    """Scripted queries, and every section."""

    def sections(self, view: CrawlView, paper: Paper) -> Iterable[str]:  # noqa: ARG002
        """Return all of them."""
        return paper.sections


class ExpandAtRandom(CrawlPolicy):
    """Scripted queries, and each section with probability 0.3."""

    def sections(self, view: CrawlView, paper: Paper) -> Iterable[str]:
        """Return some of them."""
        return [name for name in paper.sections if self.draw(view, paper.id, name) < 0.3]


class Heuristic(CrawlPolicy):
    """Scripted queries, and the sections whose headings name what the request names.

    In a generated world it knows all names of its concepts; elsewhere a heading must share a word
    of four letters or more with the request.
    """

    def sections(self, view: CrawlView, paper: Paper) -> Iterable[str]:
        """Return those that name a concept of the request."""
        return [name for name in paper.sections if view.names.names_concept(view.request, name)]


class Expert(CrawlPolicy):
    """Knows the labels: opens the sections whose new papers are worth more than they cost.

    Args:
        mistakes: Probability of opening another section, and of leaving out a scripted query (0.1
            is PaSa's rule for imitation data, section 4.1 of the paper).
        seed: Of the mistakes.
    """

    def __init__(self, mistakes: float = 0.0, seed: int = 0) -> None:
        super().__init__(seed)
        self.mistakes = check_mistakes(mistakes)

    def queries(self, view: CrawlView) -> Iterable[str]:
        """Return the scripted queries, save mistakes; at least the request itself."""
        first, *others = view.names.queries(view.request)
        return [first, *(q for q in others if self.draw(view, q) >= self.mistakes)]

    def sections(self, view: CrawlView, paper: Paper) -> Iterable[str]:
        """Return those that pay, in their order, and mistakes."""
        executor, request, rules = view.executor, view.request, view.rules
        seen, opened = set(view.crawl.queue), []
        for name in paper.sections:
            papers = [p for p in executor.read_section(request, paper, name) if p.id not in seen]
            scores = executor.selector.probabilities([Judged(request, p) for p in papers])
            new = {p.id: score for p, score in zip(papers, scores, strict=True)}
            worth = rules.alpha * len(executor.select_paying(request, new)) > rules.cost_expand
            if worth or (self.mistakes and self.draw(view, paper.id, name) < self.mistakes):
                opened.append(name)
                seen |= set(new)
        return opened


BASELINES: Mapping[str, Callable[[int], Policy]] = {
    "search-only": SearchOnly,
    "expand-all": ExpandAll,
    "expand-at-random": ExpandAtRandom,
    "heuristic": Heuristic,
}
