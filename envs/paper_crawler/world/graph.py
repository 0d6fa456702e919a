"""The citation graph of a generated world: what every paper is about, and what it cites.

Papers are drawn with topic, methods, kind, date and the names that they use; then citations are
drawn section by section in the order of dates, always backwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .outline import OUTLINES, Outline
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


def _compute_weights(count: int, exponent: float) -> Floats:
    ranks = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return ranks / ranks.sum()


def _draw_dates(p: WorldParameters, rng: np.random.Generator) -> tuple[Floats, Ints]:
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
    years, days = _draw_dates(p, rng)
    popularity = rng.permutation(_compute_weights(p.topics, p.topic_zipf))
    subtopics = rng.choice(p.topics, size=n, p=popularity)
    topic_methods = np.stack(
        [rng.permutation(p.methods)[: p.subtopic_methods] for _ in range(p.topics)]
    )
    within = _compute_weights(p.subtopic_methods, p.method_zipf)
    first = rng.choice(p.subtopic_methods, size=n, p=within)
    second = (first + rng.integers(1, max(2, p.subtopic_methods), size=n)) % p.subtopic_methods
    two = (rng.random(n) < p.second_method) & (second != first)
    kinds = rng.choice(3, size=n, p=[1 - p.surveys - p.datasets, p.surveys, p.datasets])
    methods = np.stack([topic_methods[subtopics, first], topic_methods[subtopics, second]], axis=1)
    methods[~two, 1] = NONE
    methods[kinds != PAPER] = NONE
    plain = _draw_aliases(p, rng, (n, 2))
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
        method_alias=_draw_aliases(p, rng, (n, p.methods)),
        visible=(rng.random(n) >= p.invisible) | (kinds != PAPER),
        hidden_title=(rng.random(n) < p.hidden_titles) & (kinds == PAPER),
    )


def _draw_aliases(p: WorldParameters, rng: np.random.Generator, shape: tuple[int, int]) -> Ints:
    """Name 0 with probability ``canonical``, the others equally often."""
    if p.aliases == 1:
        return np.zeros(shape, dtype=np.int64)
    other = rng.integers(1, p.aliases, size=shape)
    return np.where(rng.random(shape) < p.canonical, 0, other)


_RECENT_YEARS = 3.0


@dataclass(frozen=True, slots=True)
class Citations:
    """Sections in the order of papers, citations in the order of sections.

    Attributes:
        section_starts: First section of each paper ``[papers + 1]``.
        plans: Which section of the outline it is; from ``len(outline.sections)`` on those of
            surveys: introduction, taxonomy, applications ``[sections]``.
        themes: Method of a survey's section on a method, else ``NONE`` ``[sections]``.
        cite_starts: First citation of each section ``[sections + 1]``.
        cited: Cited papers.
        resolved: Whether the library resolves the citation.
    """

    section_starts: Ints
    plans: Ints
    themes: Ints
    cite_starts: Ints
    cited: Ints
    resolved: Flags


class _Drawer:
    """Draws the citations of one paper after the other; knows how often each was cited."""

    def __init__(self, p: WorldParameters, columns: Columns, rng: np.random.Generator) -> None:
        self.p, self.columns, self.rng = p, columns, rng
        n = p.papers
        self.cited = np.zeros(n, dtype=np.int64)
        # a common factor exp(-recency * year of the citing paper) changes no draw
        self.freshness = np.exp(p.recency * (columns.years - p.first_year))
        self.strength = self.freshness.copy()
        self.first_of_day = np.searchsorted(columns.days, columns.days, side="left")
        self.window = np.searchsorted(columns.years, columns.years - _RECENT_YEARS)
        self.by_subtopic = _groups(columns.subtopics, p.topics)
        self.by_field = _groups(columns.fields, p.domains * p.fields)
        first, second = columns.methods.T
        self.by_method = [np.flatnonzero((first == m) | (second == m)) for m in range(p.methods)]
        data = columns.kinds == DATASET
        self.data_by_field = [pool[data[pool]] for pool in self.by_field]
        self.everyone = np.arange(n)

    def draw(self, pool: Ints, affinity: Ints | np.ndarray | None, count: int) -> Ints:
        """``count`` different papers of ``pool``, or as many as there are."""
        if count <= 0 or not len(pool):
            return pool[:0]
        if len(pool) <= count:
            return pool
        weight = self.strength[pool]
        if affinity is not None:
            weight = weight * affinity
        keys = self.rng.standard_exponential(len(pool)) / weight
        return pool[np.argpartition(keys, count - 1)[:count]]

    def pool(self, name: str, i: int) -> tuple[Ints, np.ndarray | None]:
        """Papers that a section of paper ``i`` may cite, and how much each suits it."""
        c, before = self.columns, int(self.first_of_day[i])
        if name == "recent":
            return self.everyone[int(self.window[i]) : before], None
        if name == "data":
            return _until(self.data_by_field[c.fields[i]], before), None
        same = c.subtopics[i]
        if name == "field":
            pool = _until(self.by_field[c.fields[i]], before)
            return pool, np.where(c.subtopics[pool] == same, 3.0, 1.0)
        if name == "subtopic":
            pool = _until(self.by_subtopic[same], before)
            mine = [m for m in c.methods[i] if m != NONE]
            shared = np.isin(c.methods[pool], mine).any(axis=1)
            return pool, np.where(shared, 4.0, 1.0) * np.where(c.kinds[pool] == SURVEY, 2.0, 1.0)
        method = c.methods[i, 0 if name == "method" else 1]
        if method == NONE:
            return self.everyone[:0], None
        pool = _until(self.by_method[method], before)
        topical = c.subtopics[pool] == same
        if name == "second":
            return pool, np.where(topical, 3.0, 0.8)
        near = np.where(c.fields[pool] == c.fields[i], 1.5, 0.6)
        return pool, np.where(topical, 3.0, near)

    def cell(self, i: int, method: int) -> Ints:
        """Papers of the subtopic of ``i`` that use ``method``, before its day."""
        c = self.columns
        pool = _until(self.by_method[method], int(self.first_of_day[i]))
        return pool[c.subtopics[pool] == c.subtopics[i]]

    def cite(self, papers: Ints) -> None:
        """Count citations."""
        self.cited[papers] += 1
        self.strength[papers] = (
            self.freshness[papers] * (1.0 + self.cited[papers]) ** self.p.attachment
        )


def _groups(labels: Ints, count: int) -> list[Ints]:
    order = np.argsort(labels, kind="stable")
    stops = np.searchsorted(labels[order], np.arange(count + 1))
    return [order[a:b] for a, b in pairwise(stops)]


def _until(pool: Ints, before: int) -> Ints:
    return pool[: int(np.searchsorted(pool, before))]


def _survey(drawer: _Drawer, outline: Outline, i: int) -> list[tuple[int, int, Ints]]:
    c, base = drawer.columns, len(outline.sections)
    field_pool = _until(drawer.by_field[c.fields[i]], int(drawer.first_of_day[i]))
    low, high = outline.taxonomy_size
    drawn = [(base, NONE, drawer.draw(*drawer.pool("field", i), outline.introduction_size))]
    for method in c.topic_methods[c.subtopics[i]].tolist():
        size = int(drawer.rng.integers(low, high + 1))
        drawn.append((base + 1, method, drawer.draw(drawer.cell(i, method), None, size)))
    elsewhere = field_pool[c.subtopics[field_pool] != c.subtopics[i]]
    drawn.append((base + 2, NONE, drawer.draw(elsewhere, None, outline.applications_size)))
    return drawn


def _paper(
    drawer: _Drawer, outline: Outline, i: int, references: float
) -> list[tuple[int, int, Ints]]:
    drawn: list[tuple[int, int, Ints]] = []
    for plan, section in enumerate(outline.sections):
        wanted = references * section.share
        count = int(wanted) + (drawer.rng.random() < wanted % 1.0)
        pool, affinity = drawer.pool(section.pool, i)
        if section.fresh:
            unused = ~np.isin(pool, np.concatenate([papers for _, _, papers in drawn]))
            pool, affinity = pool[unused], None if affinity is None else affinity[unused]
        drawn.append((plan, NONE, drawer.draw(pool, affinity, count)))
    return drawn


def draw_citations(p: WorldParameters, columns: Columns, rng: np.random.Generator) -> Citations:
    """Citations of all papers.

    Args:
        p: The parameters.
        columns: The papers.
        rng: Source of the draws.
    """
    outline = OUTLINES[p.size]
    drawer = _Drawer(p, columns, rng)
    references = np.exp(rng.normal(np.log(p.references), p.references_sigma, size=p.papers))
    references = np.clip(references, p.references_low, p.references_high)
    plans: list[int] = []
    themes: list[int] = []
    cited: list[Ints] = []
    sections = np.zeros(p.papers, dtype=np.int64)
    for i in range(p.papers):
        if columns.kinds[i] == SURVEY:
            drawn = _survey(drawer, outline, i)
        else:
            drawn = _paper(drawer, outline, i, float(references[i]))
        for plan, theme, papers in drawn:
            drawer.cite(papers)
            if len(papers):
                plans.append(plan)
                themes.append(theme)
                cited.append(papers)
                sections[i] += 1
    everything = np.concatenate([*cited, np.zeros(0, dtype=np.int64)])
    return Citations(
        section_starts=np.concatenate([[0], np.cumsum(sections)]),
        plans=np.array(plans, dtype=np.int64),
        themes=np.array(themes, dtype=np.int64),
        cite_starts=np.concatenate([[0], np.cumsum([len(c) for c in cited])]).astype(np.int64),
        cited=everything,
        resolved=rng.random(len(everything)) >= p.unresolved,
    )
