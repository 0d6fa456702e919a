"""Everything that a citation world depends on, beside its seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ...core.errors import BadValueError, UnknownNameError
from ...core.settings import check_integer, check_number

SIZES = ("full", "micro")
PRESETS = ("default", "easy", "hard", "deep")
_WHERE = "citation world"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldParameters:
    """The settings of a citation world.

    Attributes:
        size: ``"full"`` or ``"micro"``: lexicon, outline of papers and wording.
        papers: Number of papers.
        domains: Domains of the topic tree.
        fields: Fields per domain.
        subtopics: Subtopics per field.
        methods: Methods in all.
        subtopic_methods: Methods that a subtopic uses.
        topic_zipf: Exponent of the subtopics' popularity.
        method_zipf: Exponent of a method's popularity within its subtopic.
        second_method: Share of papers with two methods.
        aliases: Names per concept.
        canonical: Probability of a concept's first name; the others are equally likely.
        hidden_titles: Share of visible papers whose title names neither subtopic nor method.
        invisible: Share of papers that only citations lead to.
        method_in_abstract: Probability that an abstract names a method.
        surveys: Share of surveys.
        datasets: Share of papers that present a data set.
        fillers_low: Fewest filler words of an abstract.
        fillers_high: Most filler words of an abstract.
        first_year: Where dates begin, in years.
        last_year: Where dates end, in years.
        growth: Growth rate of publication per year.
        references: Median number of references, before shares.
        references_sigma: Their spread on the logarithmic scale.
        references_low: Fewest references.
        references_high: Most references.
        attachment: Exponent of a paper's citations in its chance to be cited.
        recency: Rate at which that chance falls with age, per year.
        named_headings: Probability that a heading names its theme.
        unresolved: Probability that a citation resolves to nothing.
        requests_after: Requests are made from papers after this point in time, in years.
        plain_requests: Share of requests that use the first names.
        cell_power: Exponent of a cell's citations in its chance to become a request.
        fewest_answers: Annotated answers that a request has at least.
        held_out: Share of subtopics of the dev split, and of the test split.
        train_requests: Requests of the train split.
        held_out_requests: Requests of the dev split, and of the test split.
    """

    size: str = "full"
    papers: int = 8000
    domains: int = 6
    fields: int = 4
    subtopics: int = 5
    methods: int = 30
    subtopic_methods: int = 7
    topic_zipf: float = 0.35
    method_zipf: float = 0.8
    second_method: float = 0.35
    aliases: int = 8
    canonical: float = 0.25
    hidden_titles: float = 0.55
    invisible: float = 0.25
    method_in_abstract: float = 0.5
    surveys: float = 0.02
    datasets: float = 0.04
    fillers_low: int = 8
    fillers_high: int = 16
    first_year: float = 2014.0
    last_year: float = 2024.5
    growth: float = 0.25
    references: float = 24.0
    references_sigma: float = 0.35
    references_low: int = 8
    references_high: int = 60
    attachment: float = 0.55
    recency: float = 0.18
    named_headings: float = 0.7
    unresolved: float = 0.18
    requests_after: float = 2019.0
    plain_requests: float = 0.6
    cell_power: float = 1.5
    fewest_answers: int = 2
    held_out: float = 1 / 6
    train_requests: int = 10_000
    held_out_requests: int = 1000

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise UnknownNameError("size", self.size, SIZES, _WHERE)
        for name, (low, high) in {**_RANGES, **_SIZE_RANGES[self.size]}.items():
            value = getattr(self, name)
            if name in _WHOLE:
                check_integer(name, value, _WHERE, min=int(low), max=int(high))
            else:
                check_number(name, value, _WHERE, min=low, max=high)
        for low, high in _ORDERED:
            if getattr(self, low) > getattr(self, high):
                raise BadValueError(
                    f"{_WHERE}: {low} is {getattr(self, low)!r} and {high} is "
                    f"{getattr(self, high)!r}; expected {low} to be at most {high}."
                )
        if self.surveys + self.datasets > 0.5:
            raise BadValueError(
                f"{_WHERE}: surveys and datasets are {self.surveys + self.datasets:.2f} of all "
                "papers; expected at most half."
            )

    @property
    def topics(self) -> int:
        """Subtopics in all."""
        return self.domains * self.fields * self.subtopics


_SHARES = (
    "second_method", "canonical", "hidden_titles", "invisible", "method_in_abstract", "surveys",
    "datasets", "named_headings", "plain_requests",
)  # fmt: skip
_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(_SHARES, (0.0, 1.0)),
    "fields": (1, 4),
    "subtopics": (1, 5),
    "subtopic_methods": (1, 12),
    "topic_zipf": (0.0, 3.0),
    "method_zipf": (0.0, 3.0),
    "fillers_low": (0, 60),
    "fillers_high": (0, 60),
    "first_year": (1992.0, 2090.0),
    "last_year": (1992.0, 2090.0),
    "growth": (0.01, 2.0),
    "references": (1.0, 200.0),
    "references_sigma": (0.0, 2.0),
    "references_low": (1, 200),
    "references_high": (1, 200),
    "attachment": (0.0, 2.0),
    "recency": (0.0, 5.0),
    "unresolved": (0.0, 0.9),
    "requests_after": (1992.0, 2090.0),
    "cell_power": (0.0, 10.0),
    "fewest_answers": (1, 20),
    "held_out": (0.01, 0.4),
    "train_requests": (1, 200_000),
    "held_out_requests": (1, 20_000),
}
_SIZE_RANGES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "full": {"papers": (200, 16_000), "domains": (1, 6), "methods": (1, 30), "aliases": (1, 12)},
    "micro": {"papers": (100, 1_500), "domains": (1, 2), "methods": (1, 12), "aliases": (1, 9),
              "fields": (1, 3)},
}  # fmt: skip
_WHOLE = frozenset(f.name for f in fields(WorldParameters) if f.type == "int")
_ORDERED = (
    ("fillers_low", "fillers_high"),
    ("references_low", "references_high"),
    ("requests_after", "last_year"),
    ("first_year", "requests_after"),
    ("subtopic_methods", "methods"),
)
_MICRO = {
    "size": "micro",
    "papers": 700,
    "domains": 2,
    "fields": 3,
    "methods": 12,
    "subtopic_methods": 4,
    "aliases": 9,
    "canonical": 0.7,
    "hidden_titles": 0.6,
    "fillers_low": 2,
    "fillers_high": 4,
    "references": 12.0,
    "references_low": 4,
    "references_high": 30,
    "train_requests": 4000,
    "held_out_requests": 300,
}
_CHANGES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "full": {
        "default": {},
        "easy": {"aliases": 4, "canonical": 0.4, "hidden_titles": 0.35, "invisible": 0.0,
                 "papers": 6000},
        "hard": {"aliases": 12, "canonical": 0.15, "hidden_titles": 0.65,
                 "method_in_abstract": 0.4, "invisible": 0.0},
        "deep": {"invisible": 0.3, "recency": 0.5, "references": 16.0},
    },
    "micro": {
        "default": {},
        "easy": {"aliases": 2, "canonical": 0.85, "hidden_titles": 0.35, "invisible": 0.0},
        "hard": {"canonical": 0.34, "hidden_titles": 0.75, "method_in_abstract": 0.3},
        "deep": {"invisible": 0.3, "recency": 0.5, "references": 8.0},
    },
}  # fmt: skip


def world_parameters(
    size: str = "full", preset: str = "default", **changes: Any
) -> WorldParameters:
    """The parameters of a size and a difficulty, with single values changed.

    Args:
        size: ``"full"`` or ``"micro"``.
        preset: ``"default"``, ``"easy"`` (search finds most), ``"hard"`` (many names, few of them
            in titles) or ``"deep"`` (answers lie further away).
        **changes: Fields of :class:`WorldParameters` to set after that.

    Raises:
        UnknownNameError: An unknown size, preset or field.
        BadValueError: A value out of range.
    """
    if size not in SIZES:
        raise UnknownNameError("size", size, SIZES, _WHERE)
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS, _WHERE)
    known = {field.name for field in fields(WorldParameters)} - {"size"}
    for name in changes:
        if name not in known:
            raise UnknownNameError("parameter", name, known, _WHERE)
    start = {} if size == "full" else _MICRO
    return replace(WorldParameters(**start), **_CHANGES[size][preset], **changes)
