"""A library whose papers name their theme, and requests that ask for one."""

from __future__ import annotations

import numpy as np

from turngym.envs.core.tasks import Task
from turngym.envs.paper_crawler.env import PaperCrawler
from turngym.envs.paper_crawler.papers import Paper, Request

THEMES = ("gold", "iron", "salt", "wood", "clay", "glass", "wool", "stone")
FILLERS = ("study", "note", "early", "late", "wide", "small", "work", "plan")


class Bookcase:
    """Papers in memory; a search finds those that share words with the query."""

    identity = "bookcase"
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
            p.id: len(words & set(f"{p.title} {p.abstract}".split()))
            for p in self.papers.values()
            if p.date < before
        }
        return [p for p in sorted(shared, key=lambda p: (-shared[p], p)) if shared[p]][:k]


class Asked:
    """Requests as a task source; the splits share no request."""

    def __init__(self, **splits):
        self.splits = splits

    def sizes(self):
        return {name: len(requests) for name, requests in self.splits.items()}

    def task(self, split, index):
        return Task(f"{split}/{index}", split, index, self.splits[split][index])

    def index_of(self, split, task_id):
        name, _, index = task_id.partition("/")
        return int(index) if name == split and int(index) < len(self.splits[split]) else None


def bookcase(seed=0, papers=160, **settings):
    """A crawl over ``papers`` papers; a request's answers are papers of its theme."""
    rng = np.random.default_rng(seed)

    def words(n):
        return " ".join(FILLERS[int(i)] for i in rng.integers(len(FILLERS), size=n))

    themes = [THEMES[i % len(THEMES)] for i in range(papers)]
    made = [
        Paper(
            id=f"p{i}",
            title=f"{theme} {words(1)}",
            abstract=f"{words(2)} {theme}",
            date=20150101 + int(rng.integers(8)) * 10_000,
            sections={
                f"{n} {words(1)}": tuple(f"p{int(j)}" for j in rng.integers(papers, size=4))
                for n in range(3)
            },
            topic=theme,
        )
        for i, theme in enumerate(themes)
    ]

    def request(theme):
        own = [p.id for p in made if p.topic == theme and p.date < 20230101]
        picked = [own[int(i)] for i in rng.permutation(len(own))[:3]]
        text = f"{words(1)} {theme} {words(1)} papers"
        return Request(text, 20230101, tuple(picked), oracle=tuple(own))

    asked = Asked(
        train=[request(theme) for theme in THEMES for _ in range(12)],
        dev=[request(theme) for theme in THEMES for _ in range(4)],
    )
    return PaperCrawler(data=asked, papers=Bookcase(made), **settings)
