"""The generated site: every article of SearchQA's world as a page that links to others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...core.fork import Shared
from ...search_qa.questions import Question
from ...search_qa.world.graph import NONE
from ...search_qa.world.queries import Probe
from ...search_qa.world.wording import write_mention
from ...search_qa.world.world import World, load_world
from ...tools.retrieval.base import Hit
from .pages import NoPage, Page, Span, clip, pick_sentence, split_sentences

HOST = "https://wiki.test/"
SNIPPETS = ("fitting", "first")
_PER_PAGE = 3
"""Passages that a page of the full world has at most: what a search asks for per result."""
_BRACKETS = re.compile(r" \([^()]*\)$")


class GeneratedSite(Shared):
    """Pages of a generated world. Read-only; pickles as its key.

    Args:
        world: Its facts and passages.
        snippets: ``"fitting"``: the sentence of the passage found that fits the query best;
            ``"first"``: the first sentence of the page.
        snippet_chars: Most characters of a snippet.
    """

    def __init__(self, world: World, snippets: str, snippet_chars: int) -> None:
        self.world, self.snippets, self.snippet_chars = world, snippets, snippet_chars
        titles = [title.strip('"') for title in world.corpus.titles]
        self._passages: dict[str, list[int]] = {}
        self._addresses: dict[str, str] = {}
        for passage, title in enumerate(titles):
            if title not in self._addresses:
                address = self._fresh(title)
                self._addresses[title] = address
                self._passages[address] = []
            self._passages[self._addresses[title]].append(passage)
        self._of_passage = [self._addresses[title] for title in titles]
        self._titles = {address: title for title, address in self._addresses.items()}
        self._things = {title: thing for thing, title in enumerate(world.graph.titles)}

    def __reduce__(self) -> Any:
        return load_generated_site, (self.world.key, self.snippets, self.snippet_chars)

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The pages of the best passages, best first."""
        found = self.world.index.search(queries, _PER_PAGE * k)
        return [self._hits(query, hits, k) for query, hits in zip(queries, found, strict=True)]

    def open(self, addresses: Sequence[str]) -> list[Page | NoPage]:
        """The page at each address; the scheme, case and a closing slash do not matter."""
        return [self.page(address) for address in addresses]

    def page(self, address: str) -> Page | NoPage:
        """The page at one address."""
        known = f"{HOST}{_strip_address(address)}"
        if known not in self._passages:
            return NoPage(f"There is no page {clip(address, 200)}. Addresses start with {HOST}")
        text, spans = "", []
        for passage in self._in_order(known):
            said = self._linked(known, passage)
            start = len(text) + 1 if text else 0
            text = f"{text}\n{said}" if text else said
            spans.append(Span(start, start + len(said), str(passage)))
        return Page(known, self._titles[known], text, tuple(spans))

    def address_of(self, passage: str) -> str:
        """The address of the page that holds a passage of the world."""
        return self._of_passage[int(passage)]

    def find_revealed(self, hit: Hit, question: Question) -> list[str]:
        """Passages of the question's plan whose fact the snippet of ``hit`` gives away."""
        found: list[str] = []
        for probe in question.plan:
            here = [p for p in probe.passages if self.address_of(p) == hit.id]
            if here and any(
                _names(hit.text, said) for said in _list_telling_texts(probe, question)
            ):
                found += here
        return found

    def _hits(self, query: str, passages: Sequence[Hit], k: int) -> list[Hit]:
        hits: dict[str, Hit] = {}
        for passage in passages:
            address = self.address_of(passage.id)
            if address in hits:
                continue
            title = self._titles[address]
            if self.snippets == "first":
                text = self.world.corpus.texts[self._in_order(address)[0]]
                snippet = next(split_sentences(text), "")
            else:
                snippet = pick_sentence(passage.text, query, but=title)
            hits[address] = Hit(address, title, clip(snippet, self.snippet_chars), passage.score)
            if len(hits) == k:
                break
        return list(hits.values())

    def _in_order(self, address: str) -> list[int]:
        """The passages of a page as they were written: the one that opens the article first."""
        places = self._passages[address]
        if not self.world.schema.style.intro:
            return places
        thing = self._things[self._titles[address]]
        kind = self.world.schema.kinds[self.world.graph.kinds[thing]].name
        opening = re.compile(
            rf"{re.escape(self.world.graph.names[thing])}(, also known as .*?,)? (was|is) an? "
            rf"{re.escape(kind)}\."
        )
        return sorted(places, key=lambda p: opening.match(self.world.corpus.texts[p]) is None)

    def _linked(self, address: str, passage: int) -> str:
        """The passage's text with links to the pages of the things that it names."""
        text = self.world.corpus.texts[passage]
        links = self._links(self._things[self._titles[address]], passage)
        if not links:
            return text
        names = "|".join(re.escape(name) for name in sorted(links, key=len, reverse=True))
        return re.sub(rf"(?<!\w)({names})(?!\w)", lambda m: f"[{m[1]}]({links[m[1]]})", text)

    def _links(self, thing: int, passage: int) -> dict[str, str]:
        graph, schema = self.world.graph, self.world.schema
        others: list[int] = []
        for key, places in self.world.places.items():
            if places[thing] != passage:
                continue
            if key in graph.lists:
                others += graph.lists[key].get(thing, [])
            elif schema.by_key[key].literal is None and graph.facts[key][thing] != NONE:
                others.append(int(graph.facts[key][thing]))
        links: dict[str, str] = {}
        for other in others:
            if (address := self._addresses.get(graph.titles[other])) is not None:
                names = (write_mention(schema, graph, other), graph.aliases[other])
                links.update((name, address) for name in names if name)
        return links

    def _fresh(self, title: str) -> str:
        slug = make_slug(title) or "page"
        taken = f"{HOST}{slug}"
        number = 2
        while taken in self._passages:
            taken = f"{HOST}{slug}-{number}"
            number += 1
        return taken


@lru_cache(maxsize=8)
def load_generated_site(
    key: tuple[str, int, float], snippets: str, snippet_chars: int
) -> GeneratedSite:
    """The site of these settings, one per process."""
    return GeneratedSite(load_world(*key), snippets, snippet_chars)


def make_slug(title: str) -> str:
    """A title as the last part of an address: "Ada Brook (chemist)" is "ada-brook-chemist"."""
    parts = unicodedata.normalize("NFKD", title.lower()).encode("ascii", "ignore").decode()
    return "-".join(re.findall(r"[a-z0-9]+", parts.replace("'", "")))


def _strip_address(address: str) -> str:
    """The part of an address after scheme and host, as it is filed."""
    bare = address.strip().lower().removeprefix("http://").removeprefix("https://")
    bare = bare.partition("#")[0].partition("?")[0]
    return bare.removeprefix(HOST.removeprefix("https://")).strip("/")


def _names(text: str, name: str) -> bool:
    """Whether a text holds a name or number as words of its own: no 6 in 1969."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _list_telling_texts(probe: Probe, question: Question) -> list[str]:
    """What a text that states the probe's fact names: an answer, or what is asked about next."""
    later = question.plan[question.plan.index(probe) + 1 :]
    return [*question.answers, *(_BRACKETS.sub("", p.subject) for p in later)]
