"""Articles about the things of a world, in passages, with a note of where each fact stands."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .graph import NONE, Graph
from .schema import Schema
from .wording import add_article, join_with_and, list_literal_texts, write_date, write_mention

_ALIAS_SHARE = 0.2
"""Share of the mentions of a thing with a second name that use it."""
_CHUNK = 4096


@dataclass(kw_only=True)
class Articles:
    """Passages, and the passage of each fact.

    Attributes:
        titles: Title of each passage, without quotes.
        texts: Text of each passage.
        places: For each relation or listing, the passage that states it for each thing.
    """

    titles: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    places: dict[str, np.ndarray] = field(default_factory=dict)


class _Dice:
    """Uniform numbers drawn in blocks: one call per number would take most of the build."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._block: list[float] = []

    def __call__(self) -> float:
        if not self._block:
            self._block = self._rng.random(_CHUNK).tolist()
        return self._block.pop()

    def pick(self, options: tuple[str, ...]) -> str:
        return options[0] if len(options) == 1 else options[int(self() * len(options))]

    def shuffle(self, items: list[tuple[str, str]]) -> None:
        for i in range(len(items) - 1, 0, -1):
            j = int(self() * (i + 1))
            items[i], items[j] = items[j], items[i]


class _Writer:
    def __init__(self, schema: Schema, graph: Graph, rng: np.random.Generator) -> None:
        self.schema, self.graph, self.dice = schema, graph, _Dice(rng)
        self.kinds = graph.kinds.tolist()
        self.rows = {key: row.tolist() for key, row in graph.facts.items()}
        self.female = graph.female.tolist()

    def sentences(self, thing: int) -> list[tuple[str, str]]:
        """(fact key, template with its object filled in) in the order of telling."""
        kind, dice = self.kinds[thing], self.dice
        sentences = []
        for relation in self.schema.relations_of[kind]:
            value = self.rows[relation.key][thing]
            if value != NONE:
                if relation.literal is None:
                    said = self.object(value)
                elif relation.literal == "date":
                    said = write_date(value, american=dice() < 0.3)
                else:
                    said = list_literal_texts(relation, value)[0]
                sentences.append((relation.key, dice.pick(relation.says).replace("{o}", said)))
        for listing in self.schema.listings_of[kind]:
            members = self.graph.lists[listing.key].get(thing)
            if members:
                said = join_with_and([write_mention(self.schema, self.graph, m) for m in members])
                sentences.append((listing.key, dice.pick(listing.says).replace("{o}", said)))
        dice.shuffle(sentences)
        return sentences

    def object(self, thing: int) -> str:
        alias = self.graph.aliases[thing]
        if alias and self.dice() < _ALIAS_SHARE:
            return alias
        return write_mention(self.schema, self.graph, thing)

    def opening(self, thing: int) -> str:
        """The first sentence of an article: what its subject is, and its second name."""
        alias = self.graph.aliases[thing]
        kind = self.schema.kinds[self.kinds[thing]]
        tense = "was" if kind.category in ("person", "event") else "is"
        also = f", also known as {alias}," if alias else ""
        said = f"{self.graph.names[thing]}{also} {tense} {add_article(kind.name)}."
        if self.graph.titles[thing] != self.graph.names[thing]:
            said += f" This page is not about another {self.graph.names[thing]}."
        return said

    def fill(self, template: str, thing: int, first: bool) -> str:
        """``template`` with its subject in one of several wordings; the name when it is first."""
        name, possessive = self._subject(thing, first or not template.startswith("{s}"), first)
        text = template.replace("{s}", name).replace("{poss}", possessive)
        return text[0].upper() + text[1:]

    def _subject(self, thing: int, named: bool, first: bool) -> tuple[str, str]:
        full = self.graph.names[thing]
        kind = self.schema.kinds[self.kinds[thing]]
        person = kind.category == "person"
        roll = 0.0 if first else self.dice()
        pronoun, his = ("it", "its")
        if person:
            pronoun, his = ("she", "her") if self.female[thing] else ("he", "his")
        if roll < 0.25:
            return full, f"{full}'s"
        if roll < 0.6:
            return (full if named else pronoun), his
        short = full.split()[-1] if person else f"the {kind.name}"
        return (full if named else short), f"{short}'s"


def write_articles(schema: Schema, graph: Graph, rng: np.random.Generator) -> Articles:
    """One article per thing that has facts, in passages of ``schema.style.sentences``."""
    writer = _Writer(schema, graph, rng)
    size = schema.style.sentences
    titles: list[str] = []
    texts: list[str] = []
    keys = [*graph.facts, *graph.lists]
    places = {key: np.full(len(graph.names), NONE, dtype=np.int32) for key in keys}
    for thing in range(len(graph.names)):
        sentences = writer.sentences(thing)
        opening = [writer.opening(thing)] if schema.style.intro else []
        passages = max(1 if opening else 0, -(-len(sentences) // size))
        share = -(-len(sentences) // max(passages, 1))  # evenly, so that no passage is a stub
        for part in range(passages):
            chosen = sentences[part * share : (part + 1) * share]
            lines = opening if part == 0 else []
            said = [writer.fill(t, thing, i == 0 and not lines) for i, (_, t) in enumerate(chosen)]
            for key, _ in chosen:
                places[key][thing] = len(texts)
            titles.append(graph.titles[thing])
            texts.append(" ".join([*lines, *said]))
    # Equal scores keep the order of passages: mix it, so that ties favour nothing.
    order = rng.permutation(len(texts))
    new_place = np.empty(len(texts) + 1, dtype=np.int32)
    new_place[order] = np.arange(len(texts), dtype=np.int32)
    new_place[-1] = NONE
    return Articles(
        titles=[titles[i] for i in order.tolist()],
        texts=[texts[i] for i in order.tolist()],
        places={key: new_place[row] for key, row in places.items()},
    )
