"""Search queries that a script writes, and which concepts a request is about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...digest import digest_of
from ..papers import Request
from .names import Names

PARAPHRASES = 3


class Concepts(NamedTuple):
    """What a request asks for; ``None`` where its text names none."""

    subtopic: int | None
    method: int | None


def request_random(request: Request, purpose: str) -> np.random.Generator:
    """A stream of random numbers that belongs to a request and a purpose."""
    seed = int(digest_of((purpose, request.text, request.date, request.source)), 16)
    return np.random.Generator(np.random.PCG64(seed))


def concepts_of(names: Names, request: Request) -> Concepts:
    """Subtopic and method that the text of a request names."""
    named = names.mentions(request.text)
    return Concepts(
        subtopic=min(named.subtopics, default=None), method=min(named.methods, default=None)
    )


def scripted_queries(names: Names, request: Request) -> list[str]:
    """The request itself, three paraphrases by other names, and one query for surveys.

    A text that names no subtopic or method gives fewer queries.
    """
    subtopic, method = concepts_of(names, request)
    if subtopic is None or method is None:
        return [request.text]
    rng = request_random(request, "queries")
    text = request.text
    topics = [name for name in names.subtopics[subtopic] if name not in text]
    methods = [name for name in names.methods[method] if name not in text]
    queries = [text]
    if topics and methods:
        topics = rng.permutation(topics).tolist()
        methods = rng.permutation(methods).tolist()
        queries += [
            f"{methods[i % len(methods)]} {topics[i % len(topics)]}"
            for i in range(min(PARAPHRASES, max(len(methods), len(topics))))
        ]
    queries.append(f"survey {names.subtopics[subtopic][0]}")
    return queries


def all_name_pairs(names: Names, request: Request) -> list[str]:
    """Every name of the method with every name of the subtopic."""
    subtopic, method = concepts_of(names, request)
    if subtopic is None or method is None:
        return [request.text]
    return [f"{m} {s}" for s in names.subtopics[subtopic] for m in names.methods[method]]
