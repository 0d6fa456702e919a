"""Requests of a world and their answers, in splits that share neither topics nor sources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import BadValueError, UnknownNameError
from ...core.fork import Shared
from ...core.tasks import SPLITS, Task, parse_index
from ...utils.disk_cache import cache_arrays, pack_strings, unpack_strings
from ..papers import Request
from .graph import NONE, PAPER
from .outline import OUTLINES, RELATED
from .parameters import WorldParameters
from .world import World, load_world

LABELS = ("annotated", "all")
_ROUNDS = 40
# hardly a word beside the names stands in the papers: it would only blur a search
_TEMPLATES = {
    "full": (
        "Which papers use {method} when addressing {subtopic}?",
        "Has anyone combined {method} with {subtopic}?",
        "Please list papers that apply {method} to {subtopic}.",
        "Are there works that bring {method} to {subtopic}?",
        "Where is {subtopic} tackled by {method}?",
        "Could you list publications that handle {subtopic} through {method}?",
    ),
    "micro": (
        "papers about {subtopic} using {method}",
        "find {method} applied to {subtopic}",
        "who tried {method} at {subtopic} ?",
        "{subtopic} through {method} ?",
    ),
}


class Drawn(NamedTuple):
    """A request as rows of the world.

    Attributes:
        source: Row of the paper that it was made from.
        subtopic: The subtopic that is asked for.
        method: The method that is asked for.
        answers: Rows of the annotated answers, ascending.
        text: What the user wrote.
    """

    source: int
    subtopic: int
    method: int
    answers: tuple[int, ...]
    text: str


def split_topics(world: World, rng: np.random.Generator) -> np.ndarray:
    """Number of the split of each subtopic.

    A word that several subtopics share stays in one of the train split at least, so that what a
    held-out request is made of was seen in training.
    """
    p, parts = world.parameters, world.names.parts
    count = max(1, round(p.topics * p.held_out))
    if p.topics < 3:
        raise BadValueError(
            f"citation world: {p.topics} subtopics cannot be shared out to three splits; "
            "expected at least 3."
        )
    splits = np.zeros(p.topics, dtype=np.int64)
    left: dict[str, int] = {}
    for words in parts:
        for word in words:
            left[word] = left.get(word, 0) + 1
    wanted = [split for split in (1, 2) for _ in range(count)]
    order = rng.permutation(p.topics).tolist()
    for strict in (True, False):
        for topic in order:
            enough = all(left[word] > 1 for word in parts[topic])
            if wanted and splits[topic] == 0 and (enough or not strict):
                splits[topic] = wanted.pop(0)
                for word in parts[topic]:
                    left[word] -= 1
    return splits


class _Maker:
    """Makes requests from the sections on related work."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.world, self.rng = world, rng
        p, c, cites = world.parameters, world.columns, world.citations
        kinds = OUTLINES[p.size].kinds
        related = [i for i, kind in enumerate(kinds) if kind in RELATED]
        owners = np.repeat(np.arange(len(world)), np.diff(cites.section_starts))
        fits = np.isin(cites.plans, related)
        fits &= (c.kinds[owners] == PAPER) & (c.years[owners] > p.requests_after)
        self.sections = np.flatnonzero(fits)
        self.owners = owners
        self.subtopics, self.methods = c.subtopics.tolist(), c.methods.tolist()
        self.templates = _TEMPLATES[p.size]

    def make(self, section: int) -> Drawn | None:
        """A request from a section; None when no cell of its references suits."""
        world = self.world
        source = int(self.owners[section])
        starts = world.citations.cite_starts
        cited = np.unique(world.citations.cited[starts[section] : starts[section + 1]]).tolist()
        found: dict[tuple[int, int], list[int]] = {}
        for row in cited:
            for method in self.methods[row]:
                if method != NONE:
                    found.setdefault((self.subtopics[row], method), []).append(row)
        fewest = world.parameters.fewest_answers
        found = {
            cell: rows
            for cell, rows in found.items()
            if len(rows) >= fewest and len(all_rows(world, cell, source)) > 1
        }
        if not found:
            return None
        weights = np.array([len(rows) for rows in found.values()]) ** world.parameters.cell_power
        place = int(np.searchsorted(np.cumsum(weights), self.rng.random() * weights.sum()))
        subtopic, method = cell = list(found)[min(place, len(found) - 1)]
        return Drawn(source, subtopic, method, tuple(found[cell]), self._text(subtopic, method))

    def _text(self, subtopic: int, method: int) -> str:
        p, names = self.world.parameters, self.world.names
        plain = self.rng.random() < p.plain_requests
        first, second = (0, 0) if plain else self.rng.integers(p.aliases, size=2).tolist()
        template = self.templates[int(self.rng.integers(len(self.templates)))]
        return template.format(
            subtopic=names.subtopics[subtopic][first], method=names.methods[method][second]
        )


def all_rows(world: World, cell: tuple[int, int], source: int) -> np.ndarray:
    """Rows of the papers of a cell that are of an earlier day than the source."""
    rows = world.cells[cell]
    before = world.engine.rows_before(world.days[source])
    return rows[: int(np.searchsorted(rows, before))]


def _draw(world: World) -> list[list[Drawn]]:
    p = world.parameters
    rng = np.random.default_rng(np.random.SeedSequence(world.seed, spawn_key=(1,)))
    splits = split_topics(world, rng)
    maker = _Maker(world, rng)
    quotas = (p.train_requests, p.held_out_requests, p.held_out_requests)
    made: list[list[Drawn]] = [[], [], []]
    seen: set[tuple[int, str]] = set()
    taken: dict[int, int] = {}
    for _ in range(_ROUNDS):
        for section in rng.permutation(maker.sections).tolist():
            if all(len(m) >= q for m, q in zip(made, quotas, strict=True)):
                return made
            drawn = maker.make(section)
            if drawn is None:
                continue
            split = int(splits[drawn.subtopic])
            key = (drawn.source, drawn.text)
            wanted = len(made[split]) < quotas[split] and key not in seen
            if wanted and taken.setdefault(drawn.source, split) == split:
                seen.add(key)
                made[split].append(drawn)
    empty = [name for name, m in zip(SPLITS, made, strict=True) if not m]
    if empty:
        raise BadValueError(
            f"citation world: no request of split {empty[0]!r} could be made from "
            f"{p.papers} papers after {p.requests_after}; use more papers or an earlier "
            "requests_after."
        )
    return made


def _pack(world: World) -> dict[str, np.ndarray]:
    made = _draw(world)
    flat = [drawn for split in made for drawn in split]
    texts = pack_strings([drawn.text for drawn in flat])
    return {
        "sizes": np.array([len(split) for split in made]),
        "plain": np.array([drawn[:3] for drawn in flat], dtype=np.int64),
        "answers": np.array([row for drawn in flat for row in drawn.answers], dtype=np.int64),
        "ends": np.cumsum([len(drawn.answers) for drawn in flat], dtype=np.int64),
        "texts.bytes": texts["bytes"],
        "texts.ends": texts["ends"],
    }


class GeneratedRequests(Shared):
    """Requests of a world as tasks.

    Two requests of different splits share neither the subtopic that they ask for nor the paper
    that they were made from. No two are the same text from the same paper.

    Args:
        world: The world.
        labels: ``"annotated"``: the answers are those that the source cites in the section that
            the request was made from; ``"all"``: all papers that answer it.

    Raises:
        UnknownNameError: Unknown labels.
    """

    def __init__(self, world: World, labels: str = "annotated") -> None:
        if labels not in LABELS:
            raise UnknownNameError("labels", labels, LABELS, "citation world")
        self.world, self.labels = world, labels
        stored = cache_arrays(f"{world.identity}-requests", lambda: _pack(world))
        sizes = stored["sizes"].tolist()
        firsts = np.cumsum([0, *sizes[:-1]]).tolist()
        self._sizes: dict[str, int] = dict(zip(SPLITS, sizes, strict=True))
        self._first: dict[str, int] = dict(zip(SPLITS, firsts, strict=True))
        self._plain = stored["plain"].tolist()
        self._answers = stored["answers"].tolist()
        self._ends = [0, *stored["ends"].tolist()]
        self._texts = unpack_strings(stored["texts.bytes"], stored["texts.ends"])

    def __reduce__(self) -> Any:
        return load_generated_requests, (self.world.parameters, self.world.seed, self.labels)

    def sizes(self) -> Mapping[str, int | None]:
        """Tasks per split."""
        return dict(self._sizes)

    def drawn(self, split: str, index: int) -> Drawn:
        """The request at ``index`` as rows of the world."""
        place = self._first[split] + index
        source, subtopic, method = self._plain[place]
        answers = tuple(self._answers[self._ends[place] : self._ends[place + 1]])
        return Drawn(source, subtopic, method, answers, self._texts[place])

    def task(self, split: str, index: int) -> Task[Request]:
        """The request at ``index``."""
        drawn, world = self.drawn(split, index), self.world
        rows = all_rows(world, (drawn.subtopic, drawn.method), drawn.source).tolist()
        oracle = tuple([world.ids[row] for row in rows])
        annotated = self.labels == "annotated"
        wanted = list(drawn.answers) if annotated else rows
        request = Request(
            text=drawn.text,
            date=world.days[drawn.source],
            answers=tuple([world.ids[row] for row in wanted]),
            oracle=oracle,
            source=world.ids[drawn.source],
            titles=tuple([world.paper(row).title for row in wanted]),
        )
        return Task(f"{split}/{index}", split, index, request)

    def index_of(self, split: str, task_id: str) -> int | None:
        """The index that a task id names."""
        return parse_index(split, task_id, self._sizes[split])


@lru_cache(maxsize=16)
def _requests(parameters: WorldParameters, seed: int, labels: str) -> GeneratedRequests:
    return GeneratedRequests(load_world(parameters, seed), labels)


def load_generated_requests(
    parameters: WorldParameters, seed: int, labels: str = "annotated"
) -> GeneratedRequests:
    """The requests of these settings, one object per process."""
    return _requests(parameters, seed, labels)
