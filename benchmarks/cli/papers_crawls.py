"""`turngym papers draw | curve`: pictures of crawls by any agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.markup import escape

from ...agents.scripted import ReplayPolicy, scripted, scripted_names
from ...algos.runs.progress import reporter
from ...envs.core.env import Policy
from ...envs.core.errors import BadValueError
from ...envs.core.tasks import find_task, get_split_size
from ..papers.crawl_figures import crawl_tree, draw_crawl, draw_recall
from ..papers.crawl_trace import Trace, crawler_in, trace
from ..runtime.threads import prepare
from .arguments import values
from .models import model_path
from .papers_options import CrawlOptions, PapersCurve, PapersDraw

PICTURES = (".png", ".svg", ".pdf")
ACTION_TOKENS = 64


def draw(action: PapersDraw) -> None:
    """Crawl for one request, print its tree and draw it."""
    out = _picture(action.out)
    env = _env(action.crawls)
    world = crawler_in(env)
    find_task(world.source, action.crawls.split, action.task, world.name)
    crawl = _crawls(env, action.agent, [action.task], action.crawls)[0]
    Console().print(crawl_tree(crawl))
    draw_crawl(crawl, out)
    Console().print(f"drawn in {escape(str(out))}", highlight=False)


def curve(action: PapersCurve) -> None:
    """Crawl with every agent for the same requests, and draw their recall."""
    out = _picture(action.out)
    env = _env(action.crawls)
    world = crawler_in(env)
    size = get_split_size(world.source, action.crawls.split, world.name)
    if action.n < 1:
        raise BadValueError(f"papers curve: n is {action.n}; expected 1 or more.")
    tasks = range(action.n if size is None else min(action.n, size))
    crawls = {agent: _crawls(env, agent, tasks, action.crawls) for agent in action.agent}
    draw_recall(crawls, out)
    for agent, traces in crawls.items():
        recall = sum(t.recall()[-1] for t in traces) / len(traces)
        actions = sum(len(t.deeds) for t in traces) / len(traces)
        told = f"{agent}: recall {recall:.3f} after {actions:.1f} actions, {len(traces)} requests"
        Console().print(escape(told), highlight=False)
    Console().print(f"drawn in {escape(str(out))}", highlight=False)


def _env(options: CrawlOptions) -> gym.Env[Any, Any]:
    settings = values(options.env_arg, "--env-arg")
    if options.size is not None:
        settings["size"] = options.size
    return gym.make("PaperCrawler-v0", **settings)


def _crawls(
    env: gym.Env[Any, Any], agent: str, tasks: Sequence[int], options: CrawlOptions
) -> list[Trace]:
    policy = _policies(env, agent, options)
    traces = []
    with reporter().bar(f"{agent}") as bar:
        for number, task in enumerate(tasks):
            where = {"split": options.split, "task": task}
            traces.append(trace(env, policy(task), options.seed + task, where))
            bar.update((number + 1) / len(tasks), f"{number + 1} of {len(tasks)}")
    return traces


def _policies(env: gym.Env[Any, Any], agent: str, options: CrawlOptions) -> Callable[[int], Policy]:
    """Makes the policy of one request; a model plays first, and its actions are played again."""
    world = crawler_in(env)
    if agent in scripted_names(world):
        return lambda task: scripted(agent, options.seed + task, world)
    from ...algos.core.protocols import Start
    from ...algos.evaluation.lm_agent import TokenAgent

    prepare(small=False)
    model = TokenAgent(
        model_path(agent, scripted_names(world)),
        max_tokens=ACTION_TOKENS,
        temperature=options.temperature,
        engine=options.sampler,
    )

    def played(task: int) -> Policy:
        start = Start(options.split, task, options.seed + task, f"crawl/{task}")
        return ReplayPolicy([turn.action for turn in model.play(env, start).turns])

    return played


def _picture(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix not in PICTURES:
        raise BadValueError(f"--out {name}: expected a name that ends in {' or '.join(PICTURES)}.")
    return path
