"""A generated citation world and the library over it.

Everything in a process that asks for the same parameters and seed shares one world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...core.digest import digest_of
from ...core.fork import Shared
from ...utils.disk_cache import (
    cache_arrays,
    name_seed,
    pack_strings,
    source_digest,
    unpack_strings,
)
from ..papers import Paper, Search
from .engine import DatedBm25
from .graph import KINDS, NONE, Citations, Columns, draw_citations, draw_columns
from .names import Names, names_of
from .outline import OUTLINES
from .parameters import WorldParameters
from .texts import write_texts

_SOURCES = (
    "parameters.py", "vocabulary.py", "names.py", "outline.py", "graph.py",
    "texts.py", "engine.py", "requests.py", "world.py",
)  # fmt: skip
_TEXTS = ("titles", "abstracts", "headings")


class World(Shared):
    """Papers and the engine that searches them. Read-only; pickles as its parameters and seed.

    Args:
        parameters: The settings.
        seed: Seed of all draws.

    Attributes:
        names: The alias table.
        identity: Text that changes with the papers and with how they are searched.
        columns: Topic, methods, kind and date of each paper.
        citations: Sections and what they cite.
        ids: Of the papers, in order.
        engine: The search engine.
    """

    def __init__(self, parameters: WorldParameters, seed: int) -> None:
        self.parameters, self.seed = parameters, seed
        self.names: Names = names_of(parameters)
        made_by = source_digest(Path(__file__).parent, *_SOURCES)
        mark = f"{digest_of(parameters)[:12]}-s{name_seed(seed)}-{made_by}-numpy{np.__version__}"
        self.identity = f"papers-{parameters.size}-{mark}"
        stored = cache_arrays(self.identity, lambda: _generate(parameters, seed))
        self.columns = _unpack_part(Columns, stored, "paper.")
        self.citations = _unpack_part(Citations, stored, "cite.")
        titles, abstracts, headings = (
            unpack_strings(stored[f"{key}.bytes"], stored[f"{key}.ends"]) for key in _TEXTS
        )
        self._titles, self._abstracts = titles, abstracts
        self._headings = [headings[i] for i in stored["heading_of"].tolist()]
        self.days: list[int] = self.columns.days.tolist()
        self.ids = _make_ids(self.days)
        self.rows = {paper: i for i, paper in enumerate(self.ids)}
        index = f"{self.identity}-bm25s{version('bm25s')}"
        self.engine = DatedBm25(index, titles, abstracts, self.days)
        self._section_starts: list[int] = self.citations.section_starts.tolist()
        self._cite_starts: list[int] = self.citations.cite_starts.tolist()
        cites = self.citations
        self._cited: list[int] = np.where(cites.resolved, cites.cited, NONE).tolist()
        self._papers: list[Paper | None] = [None] * len(titles)

    def __len__(self) -> int:
        return len(self.ids)

    def paper(self, row: int) -> Paper:
        """The paper in a row."""
        made = self._papers[row]
        if made is None:
            made = self._papers[row] = self._make(row)
        return made

    def _make(self, row: int) -> Paper:
        c, ids, cites = self.columns, self.ids, self._cite_starts
        a, b = self._section_starts[row], self._section_starts[row + 1]
        cited = self._cited[cites[a] : cites[b]]
        sections = {
            self._headings[s]: tuple(
                [ids[j] for j in cited[cites[s] - cites[a] : cites[s + 1] - cites[a]] if j != NONE]
            )
            for s in range(a, b)
        }
        return Paper(
            id=ids[row],
            title=self._titles[row],
            abstract=self._abstracts[row],
            date=self.days[row],
            sections={heading: cited for heading, cited in sections.items() if cited},
            topic=self.names.subtopics[c.subtopics[row]][0],
            methods=tuple(self.names.methods[m][0] for m in c.methods[row].tolist() if m != NONE),
            kind=KINDS[c.kinds[row]],
        )

    def section_kinds(self, row: int) -> dict[str, str]:
        """Kind of each section of a paper by its heading, as the outline names it."""
        kinds = OUTLINES[self.parameters.size].kinds
        a, b = self._section_starts[row], self._section_starts[row + 1]
        plans = self.citations.plans[a:b].tolist()
        return {self._headings[a + i]: kinds[plan] for i, plan in enumerate(plans)}

    def cited_by(self, row: int) -> list[int]:
        """Rows of the papers that a paper cites, with repetitions, unresolved ones left out."""
        a, b = self._section_starts[row], self._section_starts[row + 1]
        cites = self._cite_starts
        return [j for j in self._cited[cites[a] : cites[b]] if j != NONE]

    @cached_property
    def cells(self) -> Mapping[tuple[int, int], np.ndarray]:
        """Rows of the papers of each subtopic and method, ascending."""
        groups: dict[tuple[int, int], list[int]] = {}
        methods = self.columns.methods.tolist()
        for row, subtopic in enumerate(self.columns.subtopics.tolist()):
            for method in methods[row]:
                if method != NONE:
                    groups.setdefault((subtopic, method), []).append(row)
        return {cell: np.array(rows, dtype=np.int64) for cell, rows in groups.items()}

    def __reduce__(self) -> Any:
        return load_world, (self.parameters, self.seed)


@lru_cache(maxsize=6)
def load_world(parameters: WorldParameters, seed: int) -> World:
    """The world of this key: the one in memory, else from the disk cache, else generated."""
    return World(parameters, seed)


def _make_ids(days: list[int]) -> list[str]:
    ids, month, number = [], 0, 0
    for day in days:
        if day // 100 != month:
            month, number = day // 100, 0
        number += 1
        ids.append(f"{month % 10_000:04d}.{number:05d}")
    return ids


def _generate(p: WorldParameters, seed: int) -> dict[str, np.ndarray]:
    who, links, wording = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    columns = draw_columns(p, who)
    citations = draw_citations(p, columns, links)
    texts = write_texts(p, columns, citations, wording)
    arrays = {f"paper.{f.name}": getattr(columns, f.name) for f in fields(Columns)}
    arrays |= {f"cite.{f.name}": getattr(citations, f.name) for f in fields(Citations)}
    for key in _TEXTS:
        for part, array in pack_strings(getattr(texts, key)).items():
            arrays[f"{key}.{part}"] = array
    return arrays | {"heading_of": texts.heading_of}


def _unpack_part(kind: type[Any], stored: Mapping[str, np.ndarray], prefix: str) -> Any:
    return kind(**{f.name: stored[prefix + f.name] for f in fields(kind)})


class GeneratedLibrary(Shared):
    """The papers of a generated world and their search engine; never waits.

    Attributes:
        world: The world.
        identity: Text that changes with the papers and with how they are searched.
        blocking: False.
    """

    blocking = False

    def __init__(self, world: World) -> None:
        self.world = world
        self.identity = world.identity

    def find(self, paper_id: str) -> Paper | None:
        """The paper, None when the world does not have it."""
        row = self.world.rows.get(paper_id)
        return None if row is None else self.world.paper(row)

    def search(self, requests: Sequence[Search]) -> list[list[str]]:
        """Ids of found papers for each request, best first."""
        world = self.world
        search, ids = world.engine.search, world.ids
        return [[ids[row] for row in search(text, k, day)] for text, k, day in requests]

    def __reduce__(self) -> Any:
        return load_generated_library, (self.world.parameters, self.world.seed)


def load_generated_library(parameters: WorldParameters, seed: int) -> GeneratedLibrary:
    """The library of these parameters and seed."""
    return GeneratedLibrary(load_world(parameters, seed))
