import copy
import hashlib
import os
import pickle
import subprocess
import sys
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.troubled_library import TroubledLibrary
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.core.errors import BadValueError, EnvFault, UnknownNameError
from turngym.envs.paper_crawler.papers import Search, make_title_key
from turngym.envs.paper_crawler.world.engine import list_searched_words
from turngym.envs.paper_crawler.world.graph import NONE, PAPER, SURVEY
from turngym.envs.paper_crawler.world.names import names_of
from turngym.envs.paper_crawler.world.parameters import PRESETS, SIZES, world_parameters
from turngym.envs.paper_crawler.world.world import (
    GeneratedLibrary,
    World,
    load_generated_library,
    load_world,
)
from turngym.envs.tools.retrieval.base import words

MICRO = world_parameters("micro")


@pytest.fixture(scope="module")
def full() -> World:
    return load_world(world_parameters("full"), 0)


@pytest.fixture(scope="module")
def micro() -> World:
    return load_world(MICRO, 0)


def fingerprint(world: World) -> str:
    lines = [repr(world.paper(row)) for row in range(len(world))]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"papers": 3}, "papers is 3; expected an integer from"),
        ({"papers": 9.5}, "expected an integer"),
        ({"invisible": 1.5}, "invisible is 1.5"),
        ({"canonical": True}, "expected a number"),
        ({"references_low": 50, "references_high": 40}, "at most references_high"),
        ({"surveys": 0.4, "datasets": 0.4}, "at most half"),
        ({"aliases": 13}, "from 1 to 12"),
    ],
)
def test_bad_parameters(change: dict[str, float], named: str) -> None:
    with pytest.raises(BadValueError, match=named):
        world_parameters("full", **change)


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'micro'"):
        world_parameters("mikro")
    with pytest.raises(UnknownNameError, match="Did you mean 'hard'"):
        world_parameters("full", "hardd")
    with pytest.raises(UnknownNameError, match="Did you mean 'papers'"):
        world_parameters("full", "default", paper=700)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_name_means_one_concept(size: str, preset: str) -> None:
    parameters = world_parameters(size, preset)
    names = names_of(parameters)
    concepts = [*names.subtopics, *names.methods]
    assert {len(known) for known in concepts} == {parameters.aliases}
    phrases = [tuple(words(alias)) for known in concepts for alias in known]
    assert len(phrases) == len(set(phrases))
    for number, known in enumerate(names.methods):
        for alias in known:
            text = f"all about {alias} and {names.subtopics[3][-1]}"
            assert names.mentions(text).methods == {number}
            assert names.mentions(text).subtopics == {3}


def test_titles_and_headings_have_keys_of_their_own(full: World, micro: World) -> None:
    for world in (full, micro):
        papers = [world.paper(row) for row in range(len(world))]
        assert len({make_title_key(paper.title) for paper in papers}) == len(papers)
        for paper in papers:
            keys = {make_title_key(heading) for heading in paper.sections}
            assert len(keys) == len(paper.sections)
            assert all(paper.sections.values())


def test_citations_lead_to_earlier_days(full: World, micro: World) -> None:
    for world in (full, micro):
        assert world.ids == sorted(world.ids)
        assert world.days == sorted(world.days)
        for row in range(len(world)):
            paper = world.paper(row)
            for cited in paper.sections.values():
                assert len(set(cited)) == len(cited)
                assert all(world.paper(world.rows[i]).date < paper.date for i in cited)


def test_what_each_section_cites(full: World) -> None:
    c = full.columns
    pools = {"related subtopic": 0, "related method": 0, "experiments": 0}
    for row in range(0, len(full), 7):
        paper, kinds = full.paper(row), full.section_kinds(row)
        for heading, cited in paper.sections.items():
            rows = [full.rows[i] for i in cited]
            if kinds[heading] == "related subtopic":
                assert (c.subtopics[rows] == c.subtopics[row]).all()
            elif kinds[heading] == "related method":
                assert (c.methods[rows] == c.methods[row, 0]).any(axis=1).all()
            elif heading.endswith("Datasets"):
                assert (c.fields[rows] == c.fields[row]).all()
                assert {full.paper(j).kind for j in rows} == {"dataset"}
            elif kinds[heading] == "survey taxonomy":
                assert (c.subtopics[rows] == c.subtopics[row]).all()
            pools[kinds[heading]] = pools.get(kinds[heading], 0) + 1
    assert min(pools.values()) > 0


def test_invisible_papers_name_nothing(full: World, micro: World) -> None:
    for world in (full, micro):
        c, names = world.columns, world.names
        hidden = np.flatnonzero(~c.visible)
        assert len(hidden) > 0.2 * len(world)
        for row in hidden.tolist():
            paper = world.paper(row)
            said = set(list_searched_words(f"{paper.title} {paper.abstract}"))
            own = [*names.subtopics[c.subtopics[row]]]
            own += [alias for m in c.methods[row] if m != NONE for alias in names.methods[m]]
            assert said.isdisjoint(word for alias in own for word in words(alias))


def test_papers_name_their_concepts(full: World) -> None:
    c = full.columns
    for row in range(0, len(full), 11):
        if not c.visible[row]:
            continue
        paper = full.paper(row)
        assert c.subtopics[row] in full.names.mentions(paper.abstract).subtopics
        named = full.names.mentions(paper.title)
        if c.kinds[row] == SURVEY:
            assert paper.title.startswith("A Survey Of")
        if c.kinds[row] == PAPER:
            assert (c.subtopics[row] in named.subtopics) != bool(c.hidden_title[row])


def test_micro_is_small(micro: World) -> None:
    papers = [micro.paper(row) for row in range(len(micro))]
    said = [
        word
        for paper in papers
        for text in (paper.title, paper.abstract, *paper.sections)
        for word in words(text)
    ]
    assert 600 <= len(papers) <= 800
    assert len(set(said)) < 500
    assert max(len(words(paper.abstract)) for paper in papers) <= 14
    assert max(len(words(heading)) for paper in papers for heading in paper.sections) <= 4
    assert 3 <= np.mean([len(paper.sections) for paper in papers]) <= 5


def test_same_world_in_another_process(tmp_path: Path, micro: World) -> None:
    code = (
        "from turngym.envs.paper_crawler.world.world import load_world;"
        "from turngym.envs.paper_crawler.world.parameters import world_parameters; import hashlib;"
        "w = load_world(world_parameters('micro'), 0);"
        "lines = [repr(w.paper(i)) for i in range(len(w))];"
        "print(hashlib.blake2b('\\n'.join(lines).encode(), digest_size=8).hexdigest())"
    )
    env = os.environ | {"TURNGYM_CACHE": str(tmp_path), "PYTHONHASHSEED": "77"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == fingerprint(micro)


def test_stored_equals_built_and_seeds_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    built, stored, other = World(MICRO, 5), World(MICRO, 5), World(MICRO, 6)
    assert len(list(tmp_path.iterdir())) == 4
    assert fingerprint(built) == fingerprint(stored)
    assert fingerprint(built) != fingerprint(other)
    assert built.identity != other.identity


def test_library_is_shared_and_light(full: World) -> None:
    library = GeneratedLibrary(full)
    assert copy.deepcopy(library) is library
    assert copy.deepcopy(full) is full
    pickled = pickle.dumps(library)
    assert len(pickled) < 2000
    assert pickle.loads(pickled).world is full
    assert library.find("9999.00001") is None
    assert library.find(full.ids[3]) is full.paper(3)


def test_search_obeys_the_date(full: World) -> None:
    library = GeneratedLibrary(full)
    text = f"{full.names.methods[0][0]} {full.names.subtopics[0][0]}"
    day = full.days[4000]
    asked = [Search(text, 10, 20300101), Search(text, 10, day), Search(text, 100, day)]
    late, early, many = library.search(asked)
    assert len(late) == 10
    assert early == many[:10]
    assert all(full.paper(full.rows[i]).date < day for i in many)
    assert library.search([Search(text, 10, 0), Search("", 10, 20300101)]) == [[], []]
    assert library.search([Search("zzz ???", 10, 20300101)]) == [[]]
    with pytest.raises(BadValueError, match="k is 0"):
        library.search([Search(text, 0, day)])


@lru_cache(maxsize=1)
def micro_documents() -> list[list[str]]:
    papers = map(load_world(MICRO, 0).paper, range(MICRO.papers))
    return [list_searched_words(f"{p.title} {p.title} {p.abstract}") for p in papers]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_search_equals_the_formula(data: st.DataObject) -> None:
    world = load_world(MICRO, 0)
    said = sorted({w for t in world.names.subtopics for alias in t for w in words(alias)})
    query = data.draw(
        st.lists(st.sampled_from([*said, "survey", "unheard"]), min_size=1, max_size=5)
    )
    k = data.draw(st.integers(1, 40))
    day = world.days[data.draw(st.integers(0, len(world) - 1))]
    documents = micro_documents()
    mean = np.mean([len(d) for d in documents])
    scores = np.zeros(len(documents))
    for word in query:
        counts = np.array([d.count(word) for d in documents], dtype=float)
        df = (counts > 0).sum()
        idf = np.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
        lengths = np.array([len(d) for d in documents])
        scores += idf * counts / (counts + 1.2 * (1 - 0.75 + 0.75 * lengths / mean))
    found = world.engine.search(" ".join(query), k, day)
    before = np.array(world.days) < day
    assert all(before[found])
    positive = np.flatnonzero(before & (scores > 0))
    assert len(found) == min(k, len(positive))
    best = np.sort(scores[positive])[::-1][: len(found)]
    np.testing.assert_allclose(scores[found], best, rtol=1e-5)


def test_equal_papers_come_in_the_order_of_ids(micro: World) -> None:
    found = micro.engine.search("survey", 100, 20300101)
    pairs = pairwise(found)
    documents = [micro.paper(row) for row in found]
    lengths = [len(list_searched_words(f"{p.title} {p.title} {p.abstract}")) for p in documents]
    same = [(a, b) for (a, b), m, n in zip(pairs, lengths, lengths[1:], strict=False) if m == n]
    assert same
    assert all(a < b for a, b in same)


def test_a_broken_library_is_a_fault(micro: World) -> None:
    library = TroubledLibrary(load_generated_library(MICRO, 0), wait_s=0.001, period=2)
    assert library.blocking
    assert library.find(micro.ids[0]) is micro.paper(0)
    with pytest.raises(EnvFault, match="call 2"):
        library.search([Search("x", 5, 20300101)])
