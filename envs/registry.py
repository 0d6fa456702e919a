"""Which environments exist: one row each; a new environment adds its own."""

from __future__ import annotations

import gymnasium as gym

from .core.registration import EnvironmentSpec, register_environment
from .core.tasks import SPLITS

register_environment(
    EnvironmentSpec(
        id="SearchQA-v0",
        entry_point="turngym.envs.search_qa.env:SearchQA",
        expert="turngym.envs.search_qa.expert:Expert",
        summary="questions of 1 to 4 hops over a generated world, answered by searching",
    )
)
register_environment(
    EnvironmentSpec(
        id="WebQA-v0",
        entry_point="turngym.envs.web_qa.env:WebQA",
        expert="turngym.envs.web_qa.expert:WebExpert",
        summary="the same questions over a site of linked pages: search, open pages, answer",
    )
)
register_environment(
    EnvironmentSpec(
        id="PaperCrawler-v0",
        entry_point="turngym.envs.paper_crawler.env:PaperCrawler",
        expert="turngym.envs.paper_crawler.baselines:Expert",
        summary="find all papers that answer a request: search, read outlines, follow citations",
        reward_range=(-35.5, 1_500_000.0),
    )
)
register_environment(
    EnvironmentSpec(
        id="Game24-v0",
        entry_point="turngym.envs.game24.env:Game24",
        expert="turngym.envs.game24.expert:Expert",
        summary="make 24 out of four numbers, one exact operation a turn",
    )
)
register_environment(
    EnvironmentSpec(
        id="MathWord-v0",
        entry_point="turngym.envs.math_word.env:MathWord",
        expert="turngym.envs.math_word.expert:Expert",
        summary="word problems of 1 to 6 steps with traps, answered by a number",
    )
)
register_environment(
    EnvironmentSpec(
        id="WebShop-v0",
        entry_point="turngym.envs.web_shop.env:WebShop",
        expert="turngym.envs.web_shop.expert:Expert",
        summary="buy what an instruction describes: search, open items, choose options, buy",
    )
)
register_environment(
    EnvironmentSpec(
        id="MixedTasks-v0",
        entry_point="turngym.envs.mixed_tasks.env:MixedTasks",
        splits=(*SPLITS, "hard"),
        summary="tasks of several environments in one stream, in given shares (members)",
    )
)
gym.register(
    id="PaperCrawlerIndex-v0",
    entry_point="turngym.envs.paper_crawler.index_env:PaperCrawlerIndex",
)
register_environment(
    EnvironmentSpec(
        id="ScienceWorld-v0",
        entry_point="turngym.envs.science_world.env:ScienceWorld",
        summary="science tasks in a simulated house: heat, circuits, plants, animals, mixing",
        reward_range=(-1.0, 1.0),
    )
)
register_environment(
    EnvironmentSpec(
        id="Retail-v0",
        entry_point="turngym.envs.retail.env:Retail",
        expert="turngym.envs.retail.expert:Expert",
        summary="serve a shop's customers with tools, by its rules, and with their consent",
        splits=(*SPLITS, "hard"),
    )
)

for _name, _summary in (
    ("Bandit", "one turn: which arm pays depends on the sign shown"),
    ("Password", "several turns, one reward at the end"),
    ("Recall", "a letter must be named some turns after it was shown"),
    ("Fork", "many rooms, one good door in each: trees see both kinds of door, chains do not"),
):
    register_environment(
        EnvironmentSpec(
            id=f"{_name}-v0",
            entry_point=f"turngym.envs.diagnostic.{_name.lower()}:{_name}",
            summary=_summary,
            sizes=("micro", "full"),
            hidden=True,
        )
    )
register_environment(
    EnvironmentSpec(
        id="Spawn-v0",
        entry_point="turngym.envs.diagnostic.spawn:Spawn",
        summary="boxes that are asked for become sessions; asking costs, coins lie in the boxes",
        sizes=("micro", "full"),
        reward_range=(-0.4, 1.0),
        hidden=True,
    )
)
