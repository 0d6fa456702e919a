"""Pairs of a partial crawl."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from helpers.bookcase import Asked, Bookcase, bookcase

from turngym.agents.paper_selector.examples import (
    PairSettings,
    partial_crawl,
    rows_of,
    selector_pairs,
)
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.core.tasks import Task
from turngym.envs.paper_crawler.env import PaperCrawler
from turngym.envs.paper_crawler.papers import Paper, Request


@pytest.fixture(scope="module")
def world():
    return bookcase()


def test_balanced_and_true(world):
    pairs = selector_pairs(world, "train", PairSettings(n=100))
    assert len(pairs) == 100
    assert sum(pair.label for pair in pairs) == 50
    for request, paper, label in pairs:
        assert label == (paper.id in request.answers)
        assert label or paper.id not in request.oracle
    per = Counter((id(pair.request), pair.label) for pair in pairs)
    assert all(per[key, True] == per[key, False] <= 3 for key, _ in per)


def test_seeds(world):
    first = selector_pairs(world, "train", PairSettings(n=60))
    assert selector_pairs(bookcase(), "train", PairSettings(n=60)) == first
    assert selector_pairs(world, "train", PairSettings(n=60, seed=1)) != first
    dev = selector_pairs(world, "dev", PairSettings(n=60))
    assert not {pair.request for pair in dev} & {pair.request for pair in first}


def test_half_of_what_is_met_enters(world):
    request = world.source.task("train", 0).payload
    whole, half, none = (
        [
            paper.id
            for seed in range(40)
            for paper in partial_crawl(
                world,
                request,
                np.random.default_rng(seed),
                PairSettings(enter=enter, layers=0),
            )
        ]
        for enter in (1.0, 0.5, 0.0)
    )
    assert set(half) <= set(whole)
    assert 0.4 < len(half) / len(whole) < 0.6
    assert none == []


def test_sections_that_cite_answers_are_opened():
    answer = Paper("a", "answer", date=20200101)
    late = Paper("l", "late", date=20240101)
    other = Paper("o", "other", date=20200101)
    start = Paper(
        "s", "start", date=20200101, sections={"1": ("a", "l", "gone"), "2": ("o",), "3": ("s",)}
    )
    request = Request("start", 20230101, ("a",))
    world = PaperCrawler(data=Asked(train=[request]), papers=Bookcase([answer, late, other, start]))
    settings = PairSettings(enter=1.0, other_sections=0.0)
    met = partial_crawl(world, request, np.random.default_rng(0), settings)
    assert [paper.id for paper in met] == ["s", "a"]
    pairs = selector_pairs(world, "train", settings)
    assert sorted((pair.paper.id, pair.label) for pair in pairs) == [("a", True), ("s", False)]


def test_others_can_be_answers_of_other_requests():
    papers = [Paper(name, f"start {name}", date=20200101) for name in "abc"]
    asked = [Request("start a", 20230101, ("a",)), Request("start b", 20230101, ("b",))]
    later = Request("start c", 20230101, ("c",))
    world = PaperCrawler(data=Asked(train=asked, dev=[later]), papers=Bookcase(papers))

    def shown(others):
        settings = PairSettings(enter=1.0, others=others, per_request=9)
        drawn = (selector_pairs(world, "train", replace(settings, seed=i)) for i in range(9))
        return {(p.request.text, p.paper.id) for pairs in drawn for p in pairs if not p.label}

    assert shown("answers") == {("start a", "b"), ("start b", "a")}
    assert ("start a", "c") in shown("met")


def test_all_answers_of_a_split_without_end(world, monkeypatch):
    monkeypatch.setattr(type(world.source), "sizes", lambda _: {"train": None})
    with pytest.raises(BadValueError, match="has no end"):
        selector_pairs(world, "train", PairSettings(others="answers"))


@pytest.mark.parametrize(("enter", "some"), [(0.0, False), (1.0, True)])
def test_a_split_without_end_that_gives_no_more_pairs_ends(world, monkeypatch, enter, some):
    monkeypatch.setattr("turngym.agents.paper_selector.examples.PATIENCE", 20)
    first, asked = world.source.task("train", 0).payload, []

    def draw(_, split, index):
        asked.append(index)
        found = first if len(asked) == 1 else replace(first, answers=(), oracle=())
        return Task(f"train/{index}", split, index, found)

    monkeypatch.setattr(type(world.source), "sizes", lambda _: {"train": None})
    monkeypatch.setattr(type(world.source), "task", draw)
    settings = PairSettings(enter=enter)
    if some:
        assert {pair.request for pair in selector_pairs(world, "train", settings)} == {first}
    else:
        with pytest.raises(BadValueError, match="gave one"):
            selector_pairs(world, "train", settings)
    assert len(asked) == 20 + some


def test_rows_say_why(world):
    pairs = selector_pairs(world, "train", PairSettings(n=2))
    for pair, row in zip(pairs, rows_of(pairs, "short"), strict=True):
        assert row.prompt == world_prompt(pair)
        assert row.label == pair.label
        verb = "meets" if pair.label else "does not meet"
        assert row.reason == f"the paper is about {pair.paper.topic}, which {verb} the request."
        assert row.answer == f"{pair.label}\nReason: {row.reason}"


def world_prompt(pair):
    request, paper, _ = pair
    return f"request: {request.text}\npaper: {paper.title}\n{paper.abstract}\nDecision:"


def test_refusals(world):
    with pytest.raises(UnknownNameError, match="split"):
        selector_pairs(world, "night")
    lonely = PaperCrawler(
        data=Asked(train=[Request("x", 20230101, ("gone",))]), papers=Bookcase([])
    )
    with pytest.raises(BadValueError, match="no request of split 'train' gave one"):
        selector_pairs(lonely, "train")
    with pytest.raises(UnknownNameError, match="others"):
        PairSettings(others="all")
    for wrong in ({"n": 1}, {"enter": 1.5}, {"per_request": 0}, {"layers": -1}):
        with pytest.raises(BadValueError, match=next(iter(wrong))):
            PairSettings(**wrong)
