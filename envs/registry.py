"""Which environments exist: one row each; a new environment adds its own.

A row holds all that other parts of turngym know about an environment: what `turngym envs` lists,
what a small model imitates before training, its columns in the suites of the benchmark matrix
(``quick``, ``standard``, ``full``) and its cell in the leaderboard's suites. Matrix suites list
their columns in the order of these rows.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from .core.registration import (
    EnvironmentSpec,
    LeaderboardCell,
    MatrixColumn,
    WarmStart,
    register_environment,
    register_installed,
)
from .core.tasks import SPLITS


def _quick(tokens: int, calls: int, max_tokens: int, **settings: Any) -> MatrixColumn:
    """Return a column of a few training steps; the settings keep its episodes short."""
    return MatrixColumn(tokens=tokens, calls=calls, max_tokens=max_tokens, settings=settings)


def _diagnostic(name: str, summary: str, module: str = "", **fields: Any) -> EnvironmentSpec:
    return EnvironmentSpec(
        id=f"{name}-v0",
        entry_point=f"turngym.envs.diagnostic.{module or name.lower()}:{name}",
        summary=summary,
        sizes=("micro", "full"),
        hidden=True,
        **fields,
    )


_ENVIRONMENTS = (
    _diagnostic(
        "Bandit",
        "one turn: which arm pays depends on the sign shown",
        matrix={"quick": _quick(4_800, 1_200, 3)},
    ),
    _diagnostic(
        "Password",
        "several turns, one reward at the end",
        matrix={"quick": _quick(12_000, 3_000, 3)},
    ),
    _diagnostic("Recall", "a letter must be named some turns after it was shown"),
    _diagnostic("Fork", "many rooms of equal worth, one good door in each"),
    _diagnostic(
        "Spawn",
        "boxes that are asked for become sessions; asking costs, coins lie in the boxes",
        reward_range=(-0.4, 1.0),
    ),
    _diagnostic("Lottery", "free letters draw a lot, the doors behind them earn the rest"),
    _diagnostic("Corridor", "the first letter decides, the reward comes many turns later"),
    _diagnostic("Keys", "rooms in a row that are visited again and again", "rooms"),
    _diagnostic("Aliases", "rooms that look the same and need different letters", "rooms"),
    _diagnostic(
        "Noise",
        "a password with a noisy reward",
        "password_variants",
        reward_range=(-4.0, 5.0),
    ),
    _diagnostic(
        "Fog", "looks at a hidden letter that may err, then naming it", reward_range=(-0.06, 1.0)
    ),
    _diagnostic(
        "Judge", "a password, all or nothing, with a verdict per door", "password_variants"
    ),
    _diagnostic(
        "Rare", "a password, all or nothing, that is almost never right", "password_variants"
    ),
    EnvironmentSpec(
        id="SearchQA-v0",
        entry_point="turngym.envs.search_qa.env:SearchQA",
        expert="turngym.envs.search_qa.expert:Expert",
        breakdown=("hops",),
        summary="questions of 1 to 4 hops over a generated world, answered by searching",
        warm_start=WarmStart(settings={"size": "micro", "hops": (1, 2)}),
        matrix={
            "quick": _quick(2_500, 400, 16, hops=1),
            "standard": MatrixColumn(
                tokens=80_000,
                calls=16_000,
                settings={"hops": 1},
                eval_tasks=200,
                limit_steps=False,
                own_starter=True,
            ),
            "full": MatrixColumn(calls=250_000),
        },
        leaderboard=LeaderboardCell(),
    ),
    EnvironmentSpec(
        id="WebQA-v0",
        entry_point="turngym.envs.web_qa.env:WebQA",
        expert="turngym.envs.web_qa.expert:WebExpert",
        breakdown=("hops",),
        summary="questions of 1 to 4 hops over a site of linked pages: search, open pages, answer",
        # A page states six facts, and finding the one that was asked for takes longer to form than
        # searching, opening and copying. The starter has the answer before its eyes in 98 % of the
        # episodes, but copies another fact in most: 15 % are solved (200 dev questions,
        # temperature 1), so it need not be taught mistakes.
        warm_start=WarmStart(starter={"read_steps": 700, "read_least": 0.15, "err_steps": 0}),
        matrix={
            "quick": _quick(2_500, 400, 16, hops=1, max_turns=5),
            "standard": MatrixColumn(tokens=200_000, calls=30_000),
            "full": MatrixColumn(calls=250_000),
        },
        leaderboard=LeaderboardCell(),
    ),
    EnvironmentSpec(
        id="PaperCrawler-v0",
        entry_point="turngym.envs.paper_crawler.env:PaperCrawler",
        expert="turngym.envs.paper_crawler.baselines:Expert",
        summary="find all papers that answer a request: search, read outlines, follow citations",
        reward_range=(-35.5, 1_500_000.0),
        # Which sections of a paper lead to answers cannot be told from what is shown, so imitating
        # the expert alone teaches how often to open a section, and not to compare its heading with
        # the request. The starter reads from the heuristic, which compares, and then learns PaSa's
        # imitation data (arXiv 2501.10120, section 4.1: sections that cite an answer, others with
        # probability 0.1).
        warm_start=WarmStart(
            settings={"size": "micro", "schedule": "sampled", "per_layer": 3},
            starter={
                "vocab_size": 512,
                "reader": "heuristic",
                "read_steps": 1800,
                "read_until": 0.55,
                "read_least": 0.4,
                "mistakes": 0.1,
                "err_steps": 30,
            },
        ),
        matrix={
            "quick": _quick(2_500, 400, 12, max_actions=6),
            "standard": MatrixColumn(
                tokens=400_000,
                calls=80_000,
                max_tokens=32,
                settings={"schedule": "sampled", "per_layer": 3},
                own_starter=True,
            ),
            "full": MatrixColumn(calls=400_000, max_tokens=256),
        },
        leaderboard=LeaderboardCell(metric="recall"),  # finding papers is a matter of degree
    ),
    EnvironmentSpec(
        id="ScienceWorld-v0",
        entry_point="turngym.envs.science_world.env:ScienceWorld",
        expert="turngym.envs.science_world.expert:ScienceExpert",
        summary="science tasks in a simulated house: heat, circuits, plants, animals, mixing",
        reward_range=(-1.0, 1.0),
        # The looker is imitated, not the expert, who names animals that nobody was shown: from the
        # expert 500 steps learn to solve 30 % of the dev variations, from the looker as many learn
        # 90. The starter then learns a wrong strategy: not to look around, in 97 % of the episodes.
        warm_start=WarmStart(
            starter={
                "reader": "looker",
                "vocab_size": 512,
                "texts": 500,
                "batch": 16,
                "read_steps": 1000,
                "read_until": 0.9,
                "held_out": 97,
                "mistakes": 0.0,
                "habits": {"shown": True, "haste": 0.97},
                "err_steps": 100,
            }
        ),
        matrix={
            "quick": _quick(4_000, 500, 12, max_turns=6),
            "standard": MatrixColumn(
                tokens=400_000, calls=60_000, max_tokens=32, settings={"max_turns": 20}
            ),
            "full": MatrixColumn(calls=400_000, max_tokens=128),
        },
        leaderboard=LeaderboardCell(every_kind=True),
    ),
    EnvironmentSpec(
        id="Retail-v0",
        entry_point="turngym.envs.retail.env:Retail",
        expert="turngym.envs.retail.expert:Expert",
        breakdown=("tier",),
        summary="serve a shop's customers with tools, by its rules, and with their consent",
        splits=(*SPLITS, "hard"),
        # Serving a customer takes five to ten actions, and one bad action spoils the episode. A
        # reader that reproduces 80 % of the dialogues is a good player without being taught
        # mistakes (80 % of 200 test tasks at temperature 1).
        warm_start=WarmStart(starter={"read_until": 0.8, "err_steps": 0}),
        matrix={
            "quick": _quick(4_000, 400, 24, max_turns=5),
            "standard": MatrixColumn(tokens=400_000, calls=30_000, max_tokens=96),
            "full": MatrixColumn(calls=200_000),
        },
        leaderboard=LeaderboardCell(),
    ),
    EnvironmentSpec(
        id="MathWord-v0",
        entry_point="turngym.envs.math_word.env:MathWord",
        expert="turngym.envs.math_word.expert:Expert",
        breakdown=("steps",),
        summary="word problems of 1 to 6 steps with traps, answered by a number",
        warm_start=WarmStart(),
        matrix={
            "quick": _quick(2_500, 160, 24),
            "standard": MatrixColumn(tokens=200_000, calls=8_000, max_tokens=96),
            "full": MatrixColumn(calls=100_000),
        },
        leaderboard=LeaderboardCell(),
    ),
    EnvironmentSpec(
        id="Game24-v0",
        entry_point="turngym.envs.game24.env:Game24",
        expert="turngym.envs.game24.expert:Expert",
        summary="make 24 out of four numbers, one exact operation a turn",
        warm_start=WarmStart(
            starter={
                "context": 512,
                "vocab_size": 300,
                "texts": 500,
                "read_steps": 150,
                "read_until": 0.9,
                "read_least": 0.05,
                "held_out": 32,
                "err_steps": 0,
            }
        ),
        matrix={
            "quick": _quick(4_000, 400, 12),
            "standard": MatrixColumn(tokens=200_000, calls=16_000, max_tokens=32),
            "full": MatrixColumn(calls=250_000, max_tokens=128),
        },
        leaderboard=LeaderboardCell(),
    ),
    EnvironmentSpec(
        id="WebShop-v0",
        entry_point="turngym.envs.web_shop.env:WebShop",
        expert="turngym.envs.web_shop.expert:Expert",
        summary="buy what an instruction describes: search, open items, choose options, buy",
        # Reading levels off at 35 to 45 % of the dialogues from 300 steps on.
        warm_start=WarmStart(starter={"read_steps": 400, "read_least": 0.25}),
        matrix={
            "quick": _quick(2_500, 400, 12, max_turns=5),
            "standard": MatrixColumn(tokens=200_000, calls=30_000, max_tokens=32),
            "full": MatrixColumn(calls=250_000, max_tokens=128),
        },
        leaderboard=LeaderboardCell(),
    ),
    EnvironmentSpec(
        id="Household-v0",
        entry_point="turngym.envs.household.env:Household",
        expert="turngym.envs.household.expert:Expert",
        breakdown=("kind",),
        summary="find, change and place things in a room: ALFWorld's game and generated houses",
        # The searcher is imitated, not the expert, who goes straight to what nobody was shown. The
        # starter first learns to copy names, and then a wrong strategy: to put things down as they
        # are, in 65 % of the episodes, whatever is asked for. Noise in its place, as of a reader
        # that copies badly, was not unlearned.
        warm_start=WarmStart(
            starter={
                "reader": "searcher",
                "context": 1024,
                "vocab_size": 400,
                "texts": 800,
                "batch": 32,
                "read_steps": 600,
                "read_until": 0.9,
                "held_out": 96,
                "mistakes": 0.0,
                "habits": {"shown": True, "haste": 0.65},
                "err_steps": 60,
            }
        ),
        matrix={
            "quick": _quick(4_000, 500, 12, max_steps=8),
            "standard": MatrixColumn(tokens=400_000, calls=60_000, max_tokens=16),
            "full": MatrixColumn(calls=400_000, max_tokens=64),
        },
        leaderboard=LeaderboardCell(),
    ),
    EnvironmentSpec(
        id="MixedTasks-v0",
        entry_point="turngym.envs.mixed_tasks.env:MixedTasks",
        splits=(*SPLITS, "hard"),
        summary="tasks of several environments in one stream, in given shares (members)",
        # The starter of shop and maths stops earlier than the shop's and learns some mistakes, so
        # that there is more to unlearn: 29 % of the shop's test tasks; with 16 steps of mistakes it
        # would be 60, with 32 steps 9 %.
        warm_start=WarmStart(
            starter={"read_until": 0.6, "read_least": 0.4, "mistakes": 0.15, "err_steps": 24}
        ),
        matrix={
            "quick": _quick(2_500, 400, 16),
            "standard": MatrixColumn(tokens=200_000, calls=30_000, max_tokens=96),
            "full": MatrixColumn(calls=250_000),
        },
    ),
)
for _spec in _ENVIRONMENTS:
    register_environment(_spec)
gym.register(
    id="PaperCrawlerIndex-v0",
    entry_point="turngym.envs.paper_crawler.index_env:PaperCrawlerIndex",
)
register_installed()
