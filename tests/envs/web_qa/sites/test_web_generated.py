"""The generated site: pages, links, snippets."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from turngym.envs.search_qa.world.world import load_world
from turngym.envs.web_qa.sites.generated import GeneratedSite, load_generated_site, make_slug
from turngym.envs.web_qa.sites.pages import NoPage, Page, strip_links

FULL = ("full", 0, 0.2)
MICRO = ("micro", 0, 0.0)


def opened(site: GeneratedSite, address: str) -> Page:
    page = site.page(address)
    assert isinstance(page, Page)
    return page


@pytest.mark.parametrize("key", [FULL, MICRO])
def test_every_passage_stands_on_one_page(key: tuple[str, int, float]) -> None:
    site = load_generated_site(key, "first", 200)
    corpus = load_world(*key).corpus
    some = range(0, len(corpus.texts), 97)
    for passage in some:
        page = opened(site, site.address_of(str(passage)))
        (span,) = (s for s in page.spans if s.passage == str(passage))
        assert strip_links(page.text[span.start : span.end]) == corpus.texts[passage]
        assert f'"{page.title}"' == corpus.titles[passage]
    addresses = {site.address_of(str(p)) for p in range(len(corpus.texts))}
    assert len(addresses) == len(set(corpus.titles))
    assert all(re.fullmatch(r"https://wiki\.test/[a-z0-9-]+", a) for a in addresses)


@pytest.mark.parametrize("key", [FULL, MICRO])
def test_links_lead_to_pages_of_what_they_name(key: tuple[str, int, float]) -> None:
    site = load_generated_site(key, "first", 200)
    graph = load_world(*key).graph
    found = 0
    for passage in range(0, 3000, 61):
        page = opened(site, site.address_of(str(passage)))
        for words, address in re.findall(r"\[([^\]]*)\]\(([^)]*)\)", page.text):
            found += 1
            thing = graph.titles.index(opened(site, address).title)
            assert words in (graph.names[thing], graph.aliases[thing]) or (
                words.startswith("the ") and words.endswith(graph.names[thing])
            )
    assert found > 50


def test_a_page_opens_with_what_its_subject_is() -> None:
    site = load_generated_site(FULL, "first", 200)
    for passage in range(0, 3000, 61):
        page = opened(site, site.address_of(str(passage)))
        name = re.escape(re.sub(r" \(.*\)$", "", page.title))
        assert re.match(rf"{name}(, also known as .+?,)? (is|was) an? ", page.text)


def test_addresses_are_forgiving_and_others_are_none() -> None:
    site = load_generated_site(MICRO, "first", 200)
    page = opened(site, site.address_of("5"))
    assert page.title == "Gwen Frost"
    for address in ("http://wiki.test/gwen-frost/", "wiki.test/Gwen-Frost#x", "gwen-frost"):
        assert site.page(address) == page
    for address in ("https://wiki.test/", "https://other.test/gwen-frost", "x", "../gwen-frost"):
        missing = site.page(address)
        assert isinstance(missing, NoPage)
        assert "There is no page" in missing.reason
    assert site.open(["gwen-frost", "x"])[0] == page


def test_snippets_show_a_sentence_of_each_page_once() -> None:
    first, fitting = (load_generated_site(MICRO, kind, 200) for kind in ("first", "fitting"))
    (hits,) = fitting.search(["Gwen Frost rival"], 3)
    assert hits[0][:3] == (
        "https://wiki.test/gwen-frost",
        "Gwen Frost",
        "The rival of Gwen Frost is Iris Hill.",
    )
    assert len({hit.id for hit in hits}) == len(hits) == 3
    (hits,) = first.search(["Gwen Frost rival"], 3)
    assert hits[0].text == strip_links(opened(first, hits[0].id).text.partition("\n")[0])
    short = load_generated_site(FULL, "fitting", 40)
    assert all(len(h.text) <= 40 for hits in short.search(["novelist", "river"], 10) for h in hits)
    assert first.search(["", "zzzz"], 3) == [[], []]


def test_copies_are_the_same_site() -> None:
    site = load_generated_site(MICRO, "first", 200)
    assert copy.deepcopy(site) is site
    assert pickle.loads(pickle.dumps(site)) is site
    assert load_generated_site(MICRO, "first", 201) is not site


def test_titles_as_addresses() -> None:
    assert make_slug("Ada Brook (chemist)") == "ada-brook-chemist"
    assert make_slug("Zoë O'Neill & Söhne") == "zoe-oneill-sohne"
    assert make_slug("漢字") == ""
