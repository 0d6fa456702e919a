"""The environment over generated worlds: against an independent crawl, measures, baselines."""

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turngym.envs  # noqa: F401 - registers the worlds
from turngym.agents.scripted import run_episode, scripted, scripted_names
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.paper_crawler.crawl.state import Crawl, Found
from turngym.envs.paper_crawler.papers import Paper, Request
from turngym.envs.paper_crawler.report import compute_crawl_metrics, merge_scores
from turngym.envs.paper_crawler.world.crawls import (
    CrawlLimits,
    ExpandAll,
    NameHeuristic,
    SearchOnly,
    crawl,
)

RULES = {"search-only": SearchOnly, "expand-all": ExpandAll, "heuristic": NameHeuristic}


@pytest.fixture(scope="module")
def worlds():
    return {
        (size, granularity): gym.make("PaperCrawler-v0", size=size, granularity=granularity)
        for size in ("micro", "full")
        for granularity in ("action", "session")
    }


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("size", ["micro", "full"])
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 299), st.sampled_from(["action", "session"]))
def test_a_crawl_equals_the_independent_one(worlds, size, name, task, granularity):
    env = worlds[size, granularity]
    world = env.unwrapped
    played = run_episode(env, scripted(name, 0, world), 0, {"split": "dev", "task": task})
    request = world.episode.task.payload
    rule = RULES[name](world.library.world.names)
    rules = world.rules
    schedule = CrawlLimits(
        expansions=rules.max_expand,
        searches=rules.max_search,
        results=rules.top_k,
        layer_cap=rules.layer_cap,
    )
    done = crawl(world.library, world.executor.selector, rule, request, schedule)
    queue = world.episode.state.queue
    assert {p: f.score for p, f in queue.items()} == done.scores
    assert {p: f.depth for p, f in queue.items()} == done.depths
    assert played.episode_return == pytest.approx(done.value)
    wanted = done.metrics(request.answers)
    for key in ("crawler_recall", "precision", "recall", "recall_at_20", "recall_at_100"):
        assert played.metrics[key] == pytest.approx(wanted[key])
    assert played.metrics["all_actions"] == done.actions


def test_measures_of_example_eleven():
    crawled = Crawl(
        queue={
            name: Found(score, 0, 0)
            for name, score in zip("xabycz", (0.9, 0.8, 0.55, 0.52, 0.3, 0.1), strict=True)
        }
    )
    request = Request("q", 20230101, tuple("abcd"), oracle=tuple("abcdxy"))
    got = compute_crawl_metrics(crawled, request, lambda _: None)
    assert got["crawler_recall"] == 0.75
    assert (got["precision"], got["recall"], got["f1"]) == (0.5, 0.5, 0.5)
    assert got["oracle_precision"] == 1.0
    assert got["oracle_recall"] == pytest.approx(4 / 6)


def test_titles_are_matched_by_letters():
    papers = {"1": Paper("1", "GPT-2"), "2": Paper("2", "A Study")}
    crawled = Crawl(queue={"1": Found(0.9, 0, 0), "2": Found(0.2, 0, 0)})
    request = Request("q", 20230101, ("9",), titles=("gpt 3",))
    got = compute_crawl_metrics(crawled, request, papers.get)
    assert (got["crawler_recall"], got["title_crawler_recall"]) == (0.0, 1.0)
    assert got["title_precision"] == 1.0


def test_an_ensemble_keeps_the_first_runs_scores():
    first = Crawl(queue={"a": Found(0.9, 0, 0), "b": Found(0.1, 0, 0)})
    second = Crawl(queue={"b": Found(0.8, 0, 0), "c": Found(0.7, 0, 0)})
    assert merge_scores(first, second) == {"a": 0.9, "b": 0.1, "c": 0.7}


def test_policies_order_by_return_and_by_recall(worlds):
    env = worlds["full", "session"]
    returns, recalls = {}, {}
    for name in ("expert", *env.unwrapped.baselines()):
        played = [
            run_episode(env, scripted(name, t, env.unwrapped), t, {"split": "dev", "task": t})
            for t in range(60)
        ]
        returns[name] = sum(p.episode_return for p in played)
        recalls[name] = sum(p.metrics["crawler_recall"] for p in played)
    order = ["expert", "heuristic", "search-only", "expand-at-random", "expand-all"]
    assert sorted(returns, key=lambda n: -returns[n]) == order
    assert recalls["expand-all"] > recalls["heuristic"] > recalls["expand-at-random"]
    assert recalls["expand-at-random"] > recalls["search-only"]
    assert recalls["expert"] > recalls["heuristic"]


def test_the_expert_opens_more_with_mistakes(worlds):
    env = worlds["micro", "action"]

    def actions(mistakes):
        expert = env.unwrapped.expert(mistakes=mistakes, seed=3)
        played = [run_episode(env, expert, t, {"split": "dev", "task": t}) for t in range(15)]
        return sum(p.metrics["all_actions"] for p in played)

    assert actions(0.5) > 1.5 * actions(0.0)


def test_a_perfect_selector_judges_by_the_labels():
    env = gym.make("PaperCrawler-v0", size="micro", selector_noise=0)
    played = run_episode(env, scripted("expand-all", 0, env.unwrapped), 0, {"task": 0})
    assert played.metrics["oracle_precision"] == 1.0


def test_all_answers_are_more_than_the_annotated():
    some, every = (gym.make("PaperCrawler-v0", size="micro", answers=a) for a in (None, "all"))
    count = {}
    for name, env in (("some", some), ("all", every)):
        source = env.unwrapped.source
        count[name] = [len(source.task("train", i).payload.answers) for i in range(100)]
    assert all(a <= b for a, b in zip(count["some"], count["all"], strict=True))
    assert sum(count["all"]) > 2 * sum(count["some"])


def test_scripted_agents_know_a_worlds_baselines(worlds):
    world = worlds["micro", "action"].unwrapped
    assert scripted_names(world) == ("expert", "random", "null", *world.baselines())
    with pytest.raises(UnknownNameError, match="heuristic"):
        scripted("heuristics", 0, world)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"size": "large"}, UnknownNameError),
        ({"preset": "harder"}, UnknownNameError),
        ({"answers": "none"}, UnknownNameError),
        ({"prompt": "chat"}, UnknownNameError),
        ({"world_seed": -1}, BadValueError),
        ({"selector_noise": -1}, BadValueError),
        ({"selector_noise": "high"}, BadValueError),
        ({"data": "requests.jsonl"}, BadValueError),
        ({"search": "local"}, BadValueError),
    ],
)
def test_bad_settings_are_refused(bad, error):
    with pytest.raises(error):
        gym.make("PaperCrawler-v0", **bad)
