"""What a generated world is like, measured: its graph, its requests, and what rules reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..papers import Request
from .crawls import (
    CrawlResult,
    ExpandAll,
    ExpandRandom,
    NameHeuristic,
    Rule,
    SearchOnly,
    SearchRaw,
    SectionOracle,
    crawl,
)
from .outline import RELATED
from .requests import GeneratedRequests
from .selector import RuleSelector
from .world import GeneratedLibrary, World

BREAK_EVEN = 0.1 / 1.5
"""Relevant papers that pay for an action: cost over reward."""
_DEPTHS = (10, 20, 50, 100)
_KINDS = {
    "related subtopic": "other related work",
    "related method": "other related work",
    "related second": "other related work",
    "introduction": "introduction",
    "survey introduction": "introduction",
    "survey taxonomy": "survey taxonomy",
    "survey applications": "survey applications",
    "experiments": "experiments",
    "methods": "method sections",
}


def sample_requests(source: GeneratedRequests, count: int) -> list[Request]:
    """``count`` requests, evenly from all splits."""
    sizes = source.sizes()
    places = [(split, i) for split in sizes for i in range(sizes[split] or 0)]
    chosen = np.linspace(0, len(places) - 1, min(count, len(places))).astype(int)
    return [source.task(*places[i]).payload for i in chosen.tolist()]


def list_rules(world: World) -> dict[str, Rule]:
    """The rules of the table, by name."""
    names = world.names
    return {
        "raw query": SearchRaw(),
        "search only": SearchOnly(names),
        "expand all": ExpandAll(names),
        "expand random": ExpandRandom(names),
        "name heuristic": NameHeuristic(names),
        "section oracle": SectionOracle(names),
    }


def compute_graph_statistics(world: World) -> dict[str, float]:
    """References, sections and citations."""
    cites, count = world.citations, len(world)
    cited = np.bincount(cites.cited[cites.resolved], minlength=count)
    top = np.sort(cited)[-max(1, count // 100) :]
    return {
        "references raw": len(cites.cited) / count,
        "references resolved": float(cites.resolved.sum()) / count,
        "sections": sum(len(world.paper(row).sections) for row in range(count)) / count,
        "cited mean": float(cited.mean()),
        "cited p50": float(np.median(cited)),
        "cited p99": float(np.percentile(cited, 99)),
        "cited max": float(cited.max()),
        "cited top 1 %": float(top.sum() / max(cited.sum(), 1)),
    }


def compute_label_statistics(requests: Sequence[Request]) -> dict[str, float]:
    """How many answers requests have."""
    values: dict[str, float] = {}
    for name, counts in (
        ("answers", [len(r.answers) for r in requests]),
        ("all answers", [len(r.oracle) for r in requests]),
    ):
        values[f"{name} mean"] = float(np.mean(counts))
        values[f"{name} p50"] = float(np.median(counts))
        values[f"{name} p90"] = float(np.percentile(counts, 90))
    values["answers max"] = float(max(len(r.answers) for r in requests))
    return values


def _compute_recall(found: Iterable[str], request: Request) -> float:
    return len(set(found).intersection(request.answers)) / len(request.answers)


def compute_search_statistics(world: World, requests: Sequence[Request]) -> dict[str, float]:
    """Recall of the plain request at several depths, and of all pairs of names."""
    sums: defaultdict[str, float] = defaultdict(float)
    for request in requests:
        found = world.engine.search(request.text, max(_DEPTHS), request.date)
        for k in _DEPTHS:
            sums[f"raw recall@{k}"] += _compute_recall((world.ids[i] for i in found[:k]), request)
        pairs = {
            world.ids[i]
            for text in world.names.all_pairs(request)
            for i in world.engine.search(text, 10, request.date)
        }
        sums["all pairs recall"] += _compute_recall(pairs, request)
    return {name: value / len(requests) for name, value in sums.items()}


def compute_reach_statistics(world: World, requests: Sequence[Request]) -> dict[str, float]:
    """Where answers are first met when every section of every paper is opened."""
    counts = np.zeros(4)
    for request in requests:
        met = {
            row
            for text in world.names.queries(request)
            for row in world.engine.search(text, 10, request.date)
        }
        missing = {world.rows[i] for i in request.answers}
        layer = met
        for depth in range(3):
            counts[depth] += len(missing & layer)
            missing -= layer
            layer = {j for row in layer for j in world.cited_by(row)} - met if depth < 2 else set()
            met = met | layer
        counts[3] += len(missing)
    names = ("by search", "in layer 1", "in layer 2", "never")
    return {f"reached {n}": float(v) for n, v in zip(names, counts / counts.sum(), strict=True)}


class Yields:
    """How many answers sections of each kind bring beyond what the searches found.

    A section is looked at alone: what other sections brought does not matter. Papers are on the
    topic when they share subtopic or method with the request.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._brought: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, request: Request, done: CrawlResult) -> None:
        """Count the opened sections of a crawl."""
        world = self.world
        subtopic, method = world.names.concepts_of(request)
        wanted = set(request.oracle)
        wanted -= {paper for paper, depth in done.depths.items() if depth == 0}
        for opened in done.opened:
            paper = opened.paper
            row = world.rows[paper.id]
            on = world.columns.subtopics[row] == subtopic or method in world.columns.methods[row]
            kind = world.section_kinds(row)[opened.heading]
            name = _KINDS[kind] if on else "off the topic"
            if on and kind in RELATED and world.names.names_concept(request, opened.heading):
                name = "related work naming it"
            self._brought[name].append(len(wanted.intersection(paper.sections[opened.heading])))

    def values(self) -> dict[str, float]:
        """Mean per kind, and the share of sections that are of a kind that pays."""
        means = {name: float(np.mean(brought)) for name, brought in self._brought.items()}
        total = sum(map(len, self._brought.values()))
        paying = sum(len(b) for n, b in self._brought.items() if means[n] > BREAK_EVEN)
        return {
            **{f"yield {name}": mean for name, mean in sorted(means.items())},
            "sections that pay": paying / max(total, 1),
        }


def compute_rule_statistics(
    world: World, requests: Sequence[Request], rules: Mapping[str, Rule] | None = None
) -> dict[str, float]:
    """Metrics of whole crawls by each rule, and the yields of sections."""
    library = GeneratedLibrary(world)
    selector = RuleSelector(library)
    yields = Yields(world)
    values: dict[str, float] = {}
    for name, rule in (list_rules(world) if rules is None else rules).items():
        sums: defaultdict[str, float] = defaultdict(float)
        for request in requests:
            done = crawl(library, selector, rule, request)
            for key, value in done.metrics(request.answers).items():
                sums[f"{name}: {key}"] += value / len(requests)
            if isinstance(rule, ExpandAll):
                yields.add(request, done)
        values |= sums
    return values | yields.values()


def compute_world_statistics(world: World, count: int = 240) -> dict[str, float]:
    """Everything about a world.

    Args:
        world: The world.
        count: Requests that are crawled for; what costs less is measured on four times as many.
    """
    source = GeneratedRequests(world)
    requests = sample_requests(source, 4 * count)
    return {
        **compute_graph_statistics(world),
        **compute_label_statistics(requests),
        **compute_search_statistics(world, requests),
        **compute_reach_statistics(world, requests),
        **compute_rule_statistics(world, sample_requests(source, count)),
    }


def average_statistics(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean of each value over several worlds; values that a world lacks are left out there."""
    names = dict.fromkeys(name for values in measured for name in values)
    return {
        name: float(np.mean([values[name] for values in measured if name in values]))
        for name in names
    }
