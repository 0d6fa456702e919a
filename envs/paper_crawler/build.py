"""From settings to what a crawl runs on: requests, a library of papers, and a selector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from ..core.errors import BadValueError, UnknownNameError
from ..core.settings import check_integer, check_number
from ..core.tasks import TaskSource
from .papers import Judged, Library, Request, Selector
from .prompts import PROMPTS
from .world.parameters import world_parameters
from .world.requests import load_generated_requests
from .world.selector import RuleSelector
from .world.world import load_generated_library

_LEAST_WORD = 4
_OF_SELECTORS = ("probabilities", "blocking")
_REAL_SETTINGS = ("search_settings", "data_settings", "papers_settings")


SELECTORS = {"lm": "turngym.agents.paper_selector.model:open_selector"}
"""Selectors by name: what stands before the colon, and the entry point that opens the rest."""


class WordKnowledge(Protocol):
    """What is known about the words of requests and headings."""

    def queries(self, request: Request) -> list[str]:
        """Return queries for a request that need no model: the request itself first."""
        ...

    def names_concept(self, request: Request, heading: str) -> bool:
        """Return whether a heading names a concept of the request."""
        ...


class SharedWords:
    """What can be said about real papers: which words a heading shares with the request."""

    def queries(self, request: Request) -> list[str]:
        """Return the request, and a search for surveys of it."""
        return [request.text, f"survey of {request.text}"]

    def names_concept(self, request: Request, heading: str) -> bool:
        """Return whether they share a word of four letters or more."""
        return bool(_list_long_words(request.text) & _list_long_words(heading))


class LabelSelector:
    """Probability 1 for an annotated answer, 0 for any other paper.

    With it ``label="annotated_or_selector"`` is ``"annotated"``; the frontier's order is not
    informed by it beyond the labels.
    """

    identity = "labels"
    blocking = False

    def probabilities(self, judged: Sequence[Judged]) -> list[float]:
        """Return 1 or 0 for each paper."""
        return [float(paper.id in request.answers) for request, paper in judged]


@dataclass(frozen=True, kw_only=True)
class CrawlParts:
    """What a crawl runs on.

    Attributes:
        size: Of the generated world; None for real papers.
        source: The requests.
        library: The papers.
        selector: Judges them.
        names: What is known about words.
    """

    size: str | None
    source: TaskSource[Request]
    library: Library
    selector: Selector
    names: WordKnowledge


def build_parts(
    *,
    made: Mapping[str, Any],
    real: Mapping[str, Any],
    selector: Selector | str | None,
    noise: float | None,
    label: str,
) -> CrawlParts:
    """Build what the settings describe.

    Args:
        made: Settings of the generated world.
        real: Settings of real papers.
        selector: One that the caller brings, or its name.
        noise: Of the simulated selector.
        label: What is relevant.

    Raises:
        UnknownNameError: An unknown size, preset or search engine.
        BadValueError: Settings that exclude each other.
        DataError: A file that does not hold what it should.
    """
    if selector is not None and noise is not None:
        raise BadValueError(
            "PaperCrawler: selector and selector_noise were both given; the noise is that of the "
            "simulated selector. Leave one out."
        )
    if noise is not None:
        check_number("selector_noise", noise, "PaperCrawler", min=0)
    if isinstance(selector, str):
        selector = open_named_selector(selector)
    elif selector is not None and not all(hasattr(selector, name) for name in _OF_SELECTORS):
        raise BadValueError(
            f"PaperCrawler: selector is {selector!r:.100}; expected 'lm:FOLDER', or an object with "
            f"{', '.join(_OF_SELECTORS)}, as Selector has them."
        )
    if all(value is None for value in real.values()):
        return _build_generated(made, selector, 1.0 if noise is None else noise)
    for name, value in made.items():
        if value is not None:
            raise BadValueError(
                f"PaperCrawler: {name}={value!r} describes the generated world, but data or papers "
                f"were given; leave {name} out, or leave data and papers out."
            )
    return _build_real(real, selector, noise, label)


def choose_prompt(prompt: str | None, size: str | None) -> str:
    """Return the name of the prompts: as asked for, else by the size.

    Raises:
        UnknownNameError: There are no such prompts.
    """
    if prompt is None:
        return "short" if size == "micro" else "rules"
    if prompt not in PROMPTS:
        raise UnknownNameError("prompt", prompt, PROMPTS, "PaperCrawler")
    return prompt


def _build_real(
    real: Mapping[str, Any], selector: Selector | None, noise: float | None, label: str
) -> CrawlParts:
    data, papers = real["data"], real["papers"]
    for name, value in (("data", data), ("papers", papers)):
        if value is None:
            raise BadValueError(
                f"PaperCrawler: {name} is missing; real papers need data (request files) and "
                "papers (the folder of the paper database)."
            )
    if label == "oracle":
        raise BadValueError(
            "PaperCrawler: label='oracle' needs all relevant papers, which real requests do not "
            "tell; expected 'annotated' or 'annotated_or_selector'."
        )
    if noise is not None:
        raise BadValueError(
            "PaperCrawler: selector_noise is that of the generated world's selector; for real "
            "papers leave it out, or bring a selector."
        )
    if hasattr(data, "task") and hasattr(papers, "find"):
        source, library = data, papers
        for name in ("search", *_REAL_SETTINGS):
            if real[name] is not None:
                raise BadValueError(
                    f"PaperCrawler: {name}={real[name]!r} is about files, but data and papers are "
                    f"objects, which are taken as they are; leave {name} out."
                )
    else:
        from .real import open_real

        settings = {name: real[name] for name in _REAL_SETTINGS}
        search = "local" if real["search"] is None else real["search"]
        source, library = open_real(data=data, papers=papers, search=search, **settings)
    return CrawlParts(
        size=None,
        source=source,
        library=library,
        selector=LabelSelector() if selector is None else selector,
        names=SharedWords(),
    )


def _build_generated(
    made: Mapping[str, Any], selector: Selector | None, noise: float
) -> CrawlParts:
    seed = 0 if made["world_seed"] is None else made["world_seed"]
    check_integer("world_seed", seed, "PaperCrawler", min=0)
    size = "full" if made["size"] is None else made["size"]
    preset = "default" if made["preset"] is None else made["preset"]
    answers = "annotated" if made["answers"] is None else made["answers"]
    parameters = world_parameters(size, preset)
    library = load_generated_library(parameters, seed)
    return CrawlParts(
        size=size,
        source=load_generated_requests(parameters, seed, answers),
        library=library,
        selector=RuleSelector(library, noise=noise) if selector is None else selector,
        names=library.world.names,
    )


def _list_long_words(text: str) -> set[str]:
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return {word for word in words if len(word) >= _LEAST_WORD}


def open_named_selector(name: str) -> Selector:
    """Open the selector that ``"lm:FOLDER"`` names: a language model that was trained to judge.

    Raises:
        UnknownNameError: No such kind of selector.
        BadValueError: No folder, or not one of a model.
        MissingExtraError: The packages that it needs are not installed.
    """
    kind, colon, rest = name.partition(":")
    if kind not in SELECTORS:
        raise UnknownNameError("selector", kind, SELECTORS, "PaperCrawler")
    if not (colon and rest):
        raise BadValueError(
            f"PaperCrawler: selector is {name!r}; expected {kind}:FOLDER, as 'turngym selector "
            "train' makes it."
        )
    module, _, opener = SELECTORS[kind].partition(":")
    return getattr(import_module(module), opener)(rest)
