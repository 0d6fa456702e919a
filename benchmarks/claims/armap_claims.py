"""Claims of ARMAP (arXiv 2502.12130)."""

from __future__ import annotations

from .claim import Claim, Source, above
from .experiments import SEARCH_START, PlannedArm, Planning

_ARMAP = "ARMAP, arXiv 2502.12130"
_PLANS = Planning(
    arms=(
        PlannedArm(name="greedy", planner="greedy"),
        PlannedArm(name="best of n", planner="best-of-n", settings={"n": 8}),
        PlannedArm(name="reflexion", planner="reflexion", settings={"tries": 8, "threshold": 1.0}),
        PlannedArm(name="mcts", planner="mcts"),
    ),
    env_id="SearchQA-v0",
    settings={"size": "micro", "hops": 1},
    start=SEARCH_START,
    tasks=60,
    max_tokens=32,
    token_budget=150,
    pair_tasks=250,
)
_WEAK = (
    "The reward model is the starter itself, trained on some hundred pairs of its own attempts; "
    "the paper's is a 3B model. All planners may sample 150 tokens a question."
)


ARMAP_CLAIMS = (
    Claim(
        name="armap-above-greedy",
        statement="Planning with a learned trajectory reward scores above greedy decoding, with "
        "every planner.",
        source=Source(
            paper=_ARMAP,
            where="main table, mean of three environments, Llama-8B (unverified figures)",
            figure="greedy 28.9, Reflexion 31.3, best of N 34.1, MCTS 32.6",
        ),
        experiment=_PLANS,
        comparisons=tuple(
            above(name, "greedy", 0.03) for name in ("reflexion", "best of n", "mcts")
        ),
        minutes=10,
        weaker=_WEAK,
    ),
    Claim(
        name="armap-order",
        statement="Of the planners MCTS is best on average, then best of N, then Reflexion.",
        source=Source(
            paper=_ARMAP,
            where="main table, means of three environments (unverified figures)",
            figure="with Llama-70B 49.3, 46.1, 43.5; with Llama-8B best of N leads",
        ),
        experiment=_PLANS,
        comparisons=(above("mcts", "best of n", 0.03), above("best of n", "reflexion", 0.03)),
        minutes=10,
        weaker=_WEAK + " The arms are those of armap-above-greedy and are computed once.",
    ),
)
