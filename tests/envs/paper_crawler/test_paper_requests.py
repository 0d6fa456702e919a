import copy
import pickle

import numpy as np
import pytest

from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.core.tasks import SPLITS, draw_task, find_task
from turngym.envs.paper_crawler.papers import Judged, Paper, Request
from turngym.envs.paper_crawler.world.parameters import world_parameters
from turngym.envs.paper_crawler.world.requests import GeneratedRequests, load_generated_requests
from turngym.envs.paper_crawler.world.selector import RuleSelector
from turngym.envs.paper_crawler.world.world import GeneratedLibrary, World, load_world

FULL, MICRO = world_parameters("full"), world_parameters("micro")


@pytest.fixture(scope="module")
def micro() -> World:
    return load_world(MICRO, 0)


@pytest.fixture(scope="module", params=["full", "micro"])
def source(request: pytest.FixtureRequest) -> GeneratedRequests:
    return load_generated_requests(world_parameters(request.param), 0)


def test_splits_share_neither_topics_nor_sources(source: GeneratedRequests) -> None:
    sizes = source.sizes()
    assert sizes["train"] >= 4000
    assert sizes["dev"] == sizes["test"] >= 200
    topics, sources, cells = {}, {}, set()
    for split in SPLITS:
        drawn = [source.drawn(split, i) for i in range(sizes[split])]
        topics[split] = {d.subtopic for d in drawn}
        sources[split] = {d.source for d in drawn}
        assert len({(d.source, d.text) for d in drawn}) == len(drawn)
        cells |= {(d.subtopic, d.method) for d in drawn}
    for a, b in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert topics[a].isdisjoint(topics[b])
        assert sources[a].isdisjoint(sources[b])
    assert min(map(len, topics.values())) >= 4
    assert len(cells) > 50


def test_words_of_held_out_topics_occur_in_training(micro: World) -> None:
    source = load_generated_requests(MICRO, 0)
    parts = micro.names.parts

    def said(split: str) -> set[str]:
        rows = range(source.sizes()[split] or 0)
        return {part for i in rows for part in parts[source.drawn(split, i).subtopic]}

    assert said("dev") | said("test") <= said("train")


def test_answers(source: GeneratedRequests) -> None:
    world = source.world
    for split in SPLITS:
        for index in range(0, source.sizes()[split], 13):
            drawn = source.drawn(split, index)
            request = source.task(split, index).payload
            assert len(request.answers) >= 2
            assert set(request.answers) <= set(request.oracle)
            assert request.source not in request.oracle
            assert request.date == world.paper(drawn.source).date
            assert world.paper(drawn.source).kind == "paper"
            papers = [world.paper(world.rows[i]) for i in request.oracle]
            topic = world.names.subtopics[drawn.subtopic][0]
            method = world.names.methods[drawn.method][0]
            assert all(p.date < request.date and p.topic == topic for p in papers)
            assert all(method in p.methods for p in papers)
            titles = [world.paper(world.rows[i]).title for i in request.answers]
            assert list(request.titles) == titles
            assert world.names.concepts_of(request) == (drawn.subtopic, drawn.method)


def test_no_paper_that_answers_is_left_out(micro: World) -> None:
    source = load_generated_requests(MICRO, 0)
    for index in range(0, 300, 10):
        drawn, request = source.drawn("test", index), source.task("test", index).payload
        topic = micro.names.subtopics[drawn.subtopic][0]
        method = micro.names.methods[drawn.method][0]
        papers = map(micro.paper, range(len(micro)))
        wanted = [
            p.id for p in papers
            if p.topic == topic and method in p.methods and p.date < request.date
        ]  # fmt: skip
        assert list(request.oracle) == wanted


def test_all_answers_as_labels(source: GeneratedRequests) -> None:
    p = source.world.parameters
    real = load_generated_requests(p, 0, "all")
    a, b = source.task("dev", 7).payload, real.task("dev", 7).payload
    assert b.answers == b.oracle == a.oracle
    assert (a.text, a.date, a.source) == (b.text, b.date, b.source)
    assert len(b.titles) == len(b.answers)
    with pytest.raises(UnknownNameError, match="labels 'al'"):
        load_generated_requests(p, 0, "al")


def test_tasks_by_id(source: GeneratedRequests) -> None:
    for split in SPLITS:
        task = source.task(split, 5)
        assert source.index_of(split, task.id) == 5
        assert find_task(source, None, task.id, "test").digest == task.digest
    for wrong in ("dev/05", "dev/-1", "dev/x", "dev/99999", "train/3", "dev/²"):
        assert source.index_of("dev", wrong) is None
    drawn = draw_task(source, "test", np.random.default_rng(3), "test")
    assert drawn.split == "test"
    assert copy.deepcopy(source) is source
    assert pickle.loads(pickle.dumps(source)) is source


def test_a_world_with_too_few_topics() -> None:
    small = world_parameters(
        "micro", domains=1, fields=1, subtopics=2, papers=100, subtopic_methods=2
    )
    with pytest.raises(BadValueError, match="2 subtopics cannot be shared out"):
        GeneratedRequests(load_world(small, 0))


def test_a_world_without_requests() -> None:
    late = world_parameters("micro", papers=100, requests_after=2024.49)
    with pytest.raises(BadValueError, match="no request of split"):
        GeneratedRequests(load_world(late, 0))


def test_scripted_queries(source: GeneratedRequests) -> None:
    names = source.world.names
    request = source.task("dev", 3).payload
    queries = names.queries(request)
    assert queries == names.queries(request)
    assert len(queries) == 5
    assert queries[0] == request.text
    assert queries[4].startswith("survey ")
    wanted = names.concepts_of(request)
    for query in queries[1:4]:
        assert names.concepts_of(Request(query, 0, ())) == wanted
    pairs = names.all_pairs(request)
    assert len(set(pairs)) == source.world.parameters.aliases**2
    assert names.queries(Request("nothing known", 20200101, ())) == ["nothing known"]


def test_selector_without_noise_is_the_label(source: GeneratedRequests) -> None:
    library = GeneratedLibrary(source.world)
    selector = RuleSelector(library, noise=0)
    for index in range(20):
        request = source.task("test", index).payload
        papers = [source.world.paper(row) for row in range(0, len(source.world), 3)]
        scores = selector.probabilities([Judged(request, paper) for paper in papers])
        for paper, score in zip(papers, scores, strict=True):
            assert (score > 0.5) == (paper.id in request.oracle)
            assert 0.01 <= score <= 0.45 or 0.55 <= score <= 0.99


def test_selector_errs_as_often_as_it_should() -> None:
    source = load_generated_requests(FULL, 0)
    world = source.world
    selector = RuleSelector(GeneratedLibrary(world))
    said: dict[str, list[bool]] = {"hit": [], "near": [], "far": []}
    for index in range(300):
        drawn, request = source.drawn("train", index), source.task("train", index).payload
        relevant = set(request.oracle)
        rows = [world.rows[i] for i in request.oracle] + list(range(index, len(world), 97))
        rows += np.flatnonzero(world.columns.subtopics == drawn.subtopic).tolist()[:20]
        papers = [world.paper(row) for row in rows]
        scores = selector.probabilities([Judged(request, paper) for paper in papers])
        for row, paper, score in zip(rows, papers, scores, strict=True):
            near = world.columns.subtopics[row] == drawn.subtopic
            near |= drawn.method in world.columns.methods[row]
            kind = "hit" if paper.id in relevant else "near" if near else "far"
            said[kind].append(score > 0.5)
    assert min(map(len, said.values())) > 3000
    # papers of the topic that answer nothing also share the topic of papers of a later day
    assert np.mean(said["hit"]) == pytest.approx(0.78, abs=0.025)
    assert np.mean(said["near"]) == pytest.approx(0.06, abs=0.012)
    assert np.mean(said["far"]) == pytest.approx(0.004, abs=0.002)


def test_selector_is_stable_and_shared(micro: World) -> None:
    source = load_generated_requests(MICRO, 0)
    request, paper = source.task("test", 0).payload, micro.paper(60)
    judged = [Judged(request, paper)]
    selector = RuleSelector(GeneratedLibrary(micro))
    again = pickle.loads(pickle.dumps(selector))
    assert copy.deepcopy(selector) is selector
    assert selector.probabilities(judged) == again.probabilities(judged)
    assert selector.identity == again.identity
    other = RuleSelector(GeneratedLibrary(micro), seed=1)
    assert other.identity != selector.identity
    assert other.probabilities(judged) != selector.probabilities(judged)
    with pytest.raises(BadValueError, match="noise is -1"):
        RuleSelector(GeneratedLibrary(micro), noise=-1)


def test_selector_of_a_request_without_answers(micro: World) -> None:
    selector = RuleSelector(GeneratedLibrary(micro), noise=0)
    nothing = Request("anything", 20240101, ())
    unknown = Paper("1.1", "no topic", topic="", methods=())
    judged = [Judged(nothing, micro.paper(3)), Judged(nothing, unknown)]
    assert max(selector.probabilities(judged)) < 0.5
