"""Who the papers of a world are: topic, methods, kind, date, and how each names its concepts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .parameters import WorldParameters

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
PAPER, SURVEY, DATASET = 0, 1, 2
KINDS = ("paper", "survey", "dataset")
NONE = -1
_DAYS_A_YEAR = 365.25


@dataclass(frozen=True, slots=True)
class Columns:
    """One entry per paper, in the order of dates and ids.

    Attributes:
        years: Date in years.
        days: Date as ``YYYYMMDD``.
        kinds: ``PAPER``, ``SURVEY`` or ``DATASET``.
        subtopics: Number of its subtopic.
        fields: Number of the subtopic's field.
        methods: Its two methods ``[papers, 2]``; ``NONE`` where it has fewer.
        topic_methods: Methods that each subtopic uses ``[subtopics, methods]``.
        field_alias: Which name it calls its field by; likewise the others.
        subtopic_alias: Of its subtopic.
        method_alias: Of each method of the world ``[papers, methods]``.
        visible: False where its text names neither subtopic nor method.
        hidden_title: True where the title names neither.
    """

    years: Floats
    days: Ints
    kinds: Ints
    subtopics: Ints
    fields: Ints
    methods: Ints
    topic_methods: Ints
    field_alias: Ints
    subtopic_alias: Ints
    method_alias: Ints
    visible: Flags
    hidden_title: Flags


def _weights(count: int, exponent: float) -> Floats:
    ranks = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return ranks / ranks.sum()


def _dates(p: WorldParameters, rng: np.random.Generator) -> tuple[Floats, Ints]:
    span = p.last_year - p.first_year
    grown = np.expm1(p.growth * span)
    years = p.first_year + np.log1p(np.sort(rng.random(p.papers)) * grown) / p.growth
    start = np.datetime64(f"{int(p.first_year)}-01-01", "D")
    passed = ((years - int(p.first_year)) * _DAYS_A_YEAR).astype(np.int64)
    dates = start + passed.astype("timedelta64[D]")
    months = dates.astype("datetime64[M]")
    year = dates.astype("datetime64[Y]").astype(np.int64) + 1970
    month = months.astype(np.int64) % 12 + 1
    day = (dates - months).astype(np.int64) + 1
    return years, year * 10_000 + month * 100 + day


def draw_columns(p: WorldParameters, rng: np.random.Generator) -> Columns:
    """Papers of a world.

    A second method is any of the others of the subtopic, equally often.

    Args:
        p: The parameters.
        rng: Source of the draws.
    """
    n = p.papers
    years, days = _dates(p, rng)
    popularity = rng.permutation(_weights(p.topics, p.topic_zipf))
    subtopics = rng.choice(p.topics, size=n, p=popularity)
    topic_methods = np.stack(
        [rng.permutation(p.methods)[: p.subtopic_methods] for _ in range(p.topics)]
    )
    within = _weights(p.subtopic_methods, p.method_zipf)
    first = rng.choice(p.subtopic_methods, size=n, p=within)
    second = (first + rng.integers(1, max(2, p.subtopic_methods), size=n)) % p.subtopic_methods
    two = (rng.random(n) < p.second_method) & (second != first)
    kinds = rng.choice(3, size=n, p=[1 - p.surveys - p.datasets, p.surveys, p.datasets])
    methods = np.stack([topic_methods[subtopics, first], topic_methods[subtopics, second]], axis=1)
    methods[~two, 1] = NONE
    methods[kinds != PAPER] = NONE
    plain = _aliases(p, rng, (n, 2))
    return Columns(
        years=years,
        days=days,
        kinds=kinds,
        subtopics=subtopics,
        fields=subtopics // p.subtopics,
        methods=methods,
        topic_methods=topic_methods,
        field_alias=plain[:, 0],
        subtopic_alias=plain[:, 1],
        method_alias=_aliases(p, rng, (n, p.methods)),
        visible=(rng.random(n) >= p.invisible) | (kinds != PAPER),
        hidden_title=(rng.random(n) < p.hidden_titles) & (kinds == PAPER),
    )


def _aliases(p: WorldParameters, rng: np.random.Generator, shape: tuple[int, int]) -> Ints:
    """Name 0 with probability ``canonical``, the others equally often."""
    if p.aliases == 1:
        return np.zeros(shape, dtype=np.int64)
    other = rng.integers(1, p.aliases, size=shape)
    return np.where(rng.random(shape) < p.canonical, 0, other)
