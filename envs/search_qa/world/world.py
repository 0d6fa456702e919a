"""A generated world, shared by everything in the process that asks for the same one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.fork import Shared
from ...tools.retrieval.base import Corpus
from ...tools.retrieval.bm25 import Bm25
from ...utils.disk_cache import (
    cache_arrays,
    name_seed,
    pack_strings,
    source_digest,
    unpack_strings,
)
from .articles import Articles, write_articles
from .full import FULL
from .graph import NONE, Graph, build_graph
from .micro import MICRO
from .schema import Schema

SCHEMAS: Mapping[str, Schema] = {"full": FULL, "micro": MICRO}
SIZES = tuple(SCHEMAS)
_SOURCES = (
    "schema.py",
    "micro.py",
    "full.py",
    "relations/people.py",
    "relations/places.py",
    "relations/works.py",
    "vocabulary.py",
    "graph.py",
    "wording.py",
    "articles.py",
    "world.py",
)
_THREE_TEXTS = ("names", "titles", "aliases")


class Pointing(NamedTuple):
    """Which facts lead to each thing: those from ``starts[thing]`` to ``starts[thing + 1]``."""

    starts: list[int]
    relations: list[int]  # places in the schema
    subjects: list[int]


class World(Shared):
    """Facts, passages and their index. Read-only; pickles as its key.

    Args:
        size: Name of the schema.
        seed: Seed of the facts and wordings.
        distractors: Near misses per thing.
    """

    def __init__(self, size: str, seed: int, distractors: float) -> None:
        self.key = (size, seed, distractors)
        self.schema = SCHEMAS[size]
        made_by = source_digest(Path(__file__).parent, *_SOURCES)
        self.name = f"searchqa-{size}-s{name_seed(seed)}-d{distractors!r}-{made_by}"
        stored = cache_arrays(self.name, lambda: _pack(*_generate(self.schema, seed, distractors)))
        self.graph, articles = _unpack(stored)
        self.places = articles.places
        count = len(articles.texts)
        self.corpus = Corpus(
            ids=[str(i) for i in range(count)],
            titles=[f'"{title}"' for title in articles.titles],
            texts=articles.texts,
        )
        self.index = Bm25(self.corpus, name=self.name, reload=(_load_index, self.key))

    @cached_property
    def pointing(self) -> Pointing:
        """The facts read backwards."""
        rows = [r for r in self.schema.relations if r.literal is None]
        objects = np.concatenate([self.graph.facts[r.key] for r in rows])
        places = [self.schema.relations.index(r) for r in rows]
        count = len(self.graph.names)
        known = np.flatnonzero(objects != NONE)
        order = known[np.argsort(objects[known], kind="stable")]
        starts = np.searchsorted(objects[order], np.arange(count + 1))
        return Pointing(
            starts=starts.tolist(),
            relations=[places[i] for i in (order // count).tolist()],
            subjects=(order % count).tolist(),
        )

    def __reduce__(self) -> Any:
        return load_world, self.key


@lru_cache(maxsize=4)
def load_world(size: str, seed: int, distractors: float) -> World:
    """The world of this key: the one in memory, else from the disk cache, else generated."""
    return World(size, seed, distractors)


def _load_index(size: str, seed: int, distractors: float) -> Bm25:
    return load_world(size, seed, distractors).index


def _generate(schema: Schema, seed: int, distractors: float) -> tuple[Graph, Articles]:
    facts, wording = np.random.SeedSequence(seed).spawn(2)
    graph = build_graph(schema, np.random.default_rng(facts), distractors)
    return graph, write_articles(schema, graph, np.random.default_rng(wording))


def _pack(graph: Graph, articles: Articles) -> dict[str, np.ndarray]:
    arrays = {"kinds": graph.kinds, "pools": graph.pools, "female": graph.female}
    texts = {key: getattr(graph, key) for key in _THREE_TEXTS}
    texts |= {"passage_titles": articles.titles, "passage_texts": articles.texts}
    for key, strings in texts.items():
        for part, array in pack_strings(strings).items():
            arrays[f"{key}.{part}"] = array
    arrays |= {f"fact.{key}": row for key, row in graph.facts.items()}
    arrays |= {f"place.{key}": row for key, row in articles.places.items()}
    for key, lists in graph.lists.items():
        sizes = [len(group) for group in lists.values()]
        arrays[f"list.{key}"] = np.array([*lists, *sizes], dtype=np.int32)
        arrays[f"members.{key}"] = np.array(
            [m for group in lists.values() for m in group], dtype=np.int32
        )
    return arrays


def _unpack(arrays: Mapping[str, np.ndarray]) -> tuple[Graph, Articles]:
    def strings(key: str) -> list[str]:
        return unpack_strings(arrays[f"{key}.bytes"], arrays[f"{key}.ends"])

    def rows(prefix: str) -> dict[str, np.ndarray]:
        return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

    lists: dict[str, dict[int, list[int]]] = {}
    for key, flat in rows("list.").items():
        heads, sizes = np.split(flat, 2)
        groups = np.split(arrays[f"members.{key}"], np.cumsum(sizes)[:-1])
        lists[key] = {h: g.tolist() for h, g in zip(heads.tolist(), groups, strict=True)}
    graph = Graph(
        names=strings("names"),
        titles=strings("titles"),
        aliases=strings("aliases"),
        kinds=arrays["kinds"],
        pools=arrays["pools"],
        female=arrays["female"],
        facts=rows("fact."),
        lists=lists,
    )
    articles = Articles(
        titles=strings("passage_titles"), texts=strings("passage_texts"), places=rows("place.")
    )
    return graph, articles
