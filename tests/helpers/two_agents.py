"""Both versions on small shelves, and how to play them with scripted agents."""

from __future__ import annotations

from itertools import chain, repeat

from helpers.shelf import Requests, example_four, random_shelf
from hypothesis import strategies as st

from turngym.envs.paper_crawler.env import PaperCrawler
from turngym.envs.paper_crawler.marl import aec_env, write_decisions

WORDS = st.sampled_from(["gold", "iron salt", "wood", "0 gold", "1 iron", "2 salt", "3 clay", ""])
MARKS = st.sampled_from(["[Search]", "[Expand]", "[Search]", "[Expand]", "[Stop]", "["])
TEXT = st.lists(st.tuples(MARKS, WORDS).map(" ".join), max_size=6).map(" ".join)
TEXTS = st.lists(TEXT, min_size=1, max_size=14)


def ground(world, **rules):
    """Settings from (shelf, selector, request or source)."""
    shelf, table, asked = world
    source = asked if hasattr(asked, "task") else Requests(asked)
    return {"data": source, "papers": shelf, "selector": table, **rules}


def sample(seed=4, **rules):
    return ground(random_shelf(seed), **rules)


def scheduled(schedule):
    """A schedule with few sessions, where it bounds them."""
    bounds = {"layered": {"layer_cap": 3}, "sampled": {"per_layer": 3}}
    return {"schedule": schedule, **bounds.get(schedule, {})}


def to_the_end(texts):
    """The texts, then stops until the episode is over."""
    return chain(texts, repeat("[Stop]"))


def play_alone(settings, texts, seed=0):
    """PaperCrawler-v0 after these texts, and its return."""
    env = PaperCrawler(**settings)
    env.reset(seed=seed)
    total = 0.0
    for text in to_the_end(texts):
        if env.episode.status != "running":
            return env, total
        total += env.step(text)[1]
    raise AssertionError


def decided(env, selector):
    return write_decisions(selector.probabilities(env.asked), batch=env.batch)


def play_turns(env, texts, selector):
    """Go on to the end, the selector in between; what ``last`` told each agent that it got."""
    totals = dict.fromkeys(env.agents, 0.0)
    texts = to_the_end(texts)
    for agent in env.agent_iter():
        _, reward, terminated, truncated, _ = env.last()
        totals[agent] += reward
        if terminated or truncated:
            env.step(None)
        else:
            env.step(decided(env, selector) if agent == "selector" else next(texts))
    return totals


def play_at_once(env, texts, selector, infos):
    """Go on to the end; what both got, and what the crawler saw."""
    totals, seen, texts = dict.fromkeys(env.agents, 0.0), [], to_the_end(texts)
    while env.agents:
        actions = {
            "crawler": "[Search] ignored" if infos["crawler"]["idle"] else next(texts),
            "selector": decided(env, selector) if env.asked else "ignored",
        }
        observations, rewards, _, _, infos = env.step(actions)
        seen.append(observations["crawler"]["text"])
        for agent, reward in rewards.items():
            totals[agent] += reward
    return totals, seen


def four(**rules):
    """Example 4 at the session of its first paper: p1 and p2 are found and judged."""
    settings = ground(example_four(), **rules)
    env = aec_env(**settings)
    env.reset(seed=0)
    env.step("[Search] start [Stop]")
    while env.agent_selection == "selector":
        env.step(decided(env, settings["selector"]))
    return env
