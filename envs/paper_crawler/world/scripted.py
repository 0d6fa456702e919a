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
    """The request itself, three paraphrases by other pairs of names, and one query for surveys.

    A text that names no subtopic or method gives fewer queries.
    """
    subtopic, method = concepts_of(names, request)
    if subtopic is None or method is None:
        return [request.text]
    rng = request_random(request, "queries")
    topics, methods = names.subtopics[subtopic], names.methods[method]
    places = rng.permutation(len(methods) * len(topics))[:PARAPHRASES].tolist()
    paraphrases = [f"{methods[i % len(methods)]} {topics[i // len(methods)]}" for i in places]
    survey = f"survey {topics[int(rng.integers(len(topics)))]}"
    return list(dict.fromkeys([request.text, *paraphrases, survey]))


def all_name_pairs(names: Names, request: Request) -> list[str]:
    """Every name of the method with every name of the subtopic."""
    subtopic, method = concepts_of(names, request)
    if subtopic is None or method is None:
        return [request.text]
    return [f"{m} {s}" for s in names.subtopics[subtopic] for m in names.methods[method]]


def names_concept(names: Names, request: Request, heading: str) -> bool:
    """Whether a heading names the subtopic or the method of a request."""
    wanted, named = concepts_of(names, request), names.mentions(heading)
    return wanted.subtopic in named.subtopics or wanted.method in named.methods
