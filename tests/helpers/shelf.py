"""A small library made by hand, and requests for it."""

from __future__ import annotations

import numpy as np

from turngym.envs.core.tasks import Task
from turngym.envs.paper_crawler.papers import Paper, Request


class Shelf:
    """Papers in memory; a search finds those that share words with the query, most words first."""

    identity = "shelf"
    blocking = False

    def __init__(self, papers):
        self.papers = {paper.id: paper for paper in papers}

    def find(self, paper_id):
        return self.papers.get(paper_id)

    def search(self, requests):
        return [self._search(*request) for request in requests]

    def _search(self, text, k, before):
        words = set(text.lower().split())
        shared = {
            p.id: len(words & set(f"{p.title} {p.abstract}".lower().split()))
            for p in self.papers.values()
            if p.date < before
        }
        return [p for p in sorted(shared, key=lambda p: (-shared[p], p)) if shared[p]][:k]


class Table:
    """A selector that reads its probabilities from a table."""

    identity = "table"
    blocking = False

    def __init__(self, scores):
        self.scores = scores
        self.calls = []

    def probabilities(self, judged):
        self.calls.append(len(judged))
        return [self.scores.get(paper.id, 0.0) for _, paper in judged]


class Requests:
    """Requests as a task source: all in ``train``."""

    def __init__(self, *requests):
        self.requests = requests

    def sizes(self):
        return {"train": len(self.requests)}

    def task(self, split, index):
        return Task(f"r{index}", split, index, self.requests[index])

    def index_of(self, split, task_id):
        index = int(task_id[1:])
        return index if index < len(self.requests) else None


def paper(number, title="", sections=None, date=20200101, abstract=""):
    return Paper(
        id=f"p{number}",
        title=title or f"Paper {number}",
        abstract=abstract,
        date=date,
        sections={h: tuple(f"p{i}" for i in cited) for h, cited in (sections or {}).items()},
    )


def example_four():
    """The queue of worked example 4: two papers found, then what three sections cite."""
    papers = [paper(1, "start here", {"A": [1, 3, 4, 6], "B": [4, 5, 3], "C": [5]})]
    papers += [paper(2, "start too"), *(paper(i) for i in (3, 4, 5, 6))]
    scores = {"p1": 0.99, "p2": 0.1, "p3": 0.20, "p4": 0.81, "p5": 0.70, "p6": 0.50}
    request = Request("start", 20230101, ("p3", "p5"))
    return Shelf(papers), Table(scores), request


def random_shelf(seed, papers=40, requests=3):
    """A shelf with random citations, cycles, self-citations and missing papers among them."""
    rng = np.random.default_rng(seed)
    words = ["gold", "iron", "salt", "wood", "clay"]
    made = []
    for i in range(papers):
        sections = {
            f"{n} {words[int(rng.integers(5))]}": [
                int(j) for j in rng.integers(papers + 5, size=int(rng.integers(1, 6)))
            ]
            for n in range(int(rng.integers(0, 5)))
        }
        title = " ".join(words[int(j)] for j in rng.integers(5, size=2)) + f" {i}"
        made.append(paper(i, title, sections, 20100101 + int(rng.integers(12)) * 10000))
    asked = [
        Request(
            words[int(rng.integers(5))],
            20200601,
            tuple(f"p{int(j)}" for j in rng.permutation(papers)[:4]),
            source=f"p{int(rng.integers(papers))}",
        )
        for _ in range(requests)
    ]
    scores = {f"p{i}": float(rng.random()) for i in range(papers)}
    return Shelf(made), Table(scores), Requests(*asked)
