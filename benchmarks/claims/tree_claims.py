"""Claims of Tree-GRPO and of Search-R1 (arXiv 2509.21240, 2503.09516)."""

from __future__ import annotations

from typing import Any

from ..matrix.suite import SuiteEnv
from .claim import Claim, Source, above
from .experiments import PlayedArm, TrainedArm, Training, play_search, probe, search, train_arm

_TREE = "Tree-GRPO, arXiv 2509.21240"
_R1 = "Search-R1, arXiv 2503.09516"
_FORK = probe("Fork-v0", 9_000)
_TOY = (
    "The environment is a toy that separates trees from chains, the model has 0.1M parameters; "
    "what holds there need not hold for a language model."
)
_SMALL = "One small generated world and a model of under a million parameters."


def _tree(name: str, column: SuiteEnv, **settings: Any) -> TrainedArm:
    return train_arm(name, "treegrpo", column, **settings)


def _chains(name: str, column: SuiteEnv, n: int, groups: int) -> TrainedArm:
    return train_arm(name, "grpo", column, rollout__n=n, groups_per_step=groups)


_PAIRS = (
    _tree("tree, 2 a prompt", _FORK, rollout__trees=1, rollout__nodes=2, groups_per_step=24),
    _chains("chains, 2 a prompt", _FORK, 2, 24),
    _tree("tree, 8 a prompt", _FORK, rollout__trees=4, rollout__nodes=2, groups_per_step=6),
    _chains("chains, 8 a prompt", _FORK, 8, 6),
)
_SEARCH = search(30_000, hops=2)
_LONG = search(30_000, hops=2, max_turns=6)

TREE_CLAIMS = (
    Claim(
        name="tree-above-grpo",
        statement="At an equal budget Tree-GRPO trains a better agent than GRPO on chains.",
        source=Source(
            paper=_TREE,
            where="main table, Qwen2.5-3B",
            figure="multi-hop exact match 36.8 against 31.8, single-hop 50.0 against 48.1",
        ),
        experiment=Training(arms=_PAIRS),
        comparisons=(
            above(_PAIRS[0].name, _PAIRS[1].name),
            above(_PAIRS[2].name, _PAIRS[3].name),
        ),
        minutes=4,
        weaker=_TOY,
    ),
    Claim(
        name="tree-smallest-budget",
        statement="Tree-GRPO's lead over GRPO is largest at the smallest budget per prompt.",
        source=Source(
            paper=_TREE,
            where="table 7, budgets of 2 to 16 chains per prompt",
            figure="largest gain at 2 per prompt",
        ),
        experiment=Training(arms=_PAIRS),
        comparisons=(
            above(_PAIRS[0].name, _PAIRS[1].name, beyond=(_PAIRS[2].name, _PAIRS[3].name)),
        ),
        minutes=4,
        weaker=_TOY + " The arms are those of tree-above-grpo and are computed once.",
    ),
    Claim(
        name="tree-leaves",
        statement="A tree of the default shape (2, 2, 1) grows 1.5 times the paths of chains for "
        "the same tokens.",
        source=Source(
            paper=_TREE,
            where="section 3.2, expected budget",
            figure="6 paths for the price of 4 chains: 1.5",
        ),
        experiment=play_search(
            PlayedArm(name="tree", rollout="expand"),
            PlayedArm(name="chains", rollout="chains", settings={"n": 6}),
        ),
        comparisons=(
            above("tree", "chains", 0.152, "leaves_per_token", margin=0.433, unit="times"),
        ),
        minutes=1,
        weaker="Paths of three turns. The margin is 1.35 times (a tenth below the claim); the "
        "paper's formula leaves out that the start of a tree is a point of expansion too.",
    ),
    Claim(
        name="tree-advantages",
        statement="Comparing within the prompt and within the tree is better than within the "
        "prompt alone, and that is better than within the tree alone.",
        source=Source(
            paper=_TREE,
            where="ablation of the advantage, multi-hop, Qwen2.5-3B",
            figure="both 36.8, inter-tree 33.8, intra-tree 1.2",
        ),
        experiment=Training(
            arms=(
                _tree("both", _FORK, groups_per_step=12),
                _tree("inter", _FORK, groups_per_step=12, credit__terms="inter"),
                _tree("intra", _FORK, groups_per_step=12, credit__terms="intra"),
            )
        ),
        comparisons=(
            above("both", "inter"),
            above("inter", "intra"),
        ),
        minutes=3,
        weaker=_TOY,
    ),
    Claim(
        name="tree-step-level",
        statement="Branching at whole turns is better than branching at tokens inside them.",
        source=Source(
            paper=_TREE,
            where="ablation of the node, Qwen2.5-3B",
            figure="multi-hop 36.8 against 22.2, single-hop 50.0 against 46.2",
        ),
        experiment=Training(
            arms=(
                _tree("turns", _SEARCH),
                _tree("tokens", _SEARCH, rollout__granularity="tokens", rollout__span=3),
            )
        ),
        comparisons=(above("turns", "tokens", 0.03),),
        minutes=5,
        weaker=_SMALL + " Actions are about five tokens long, so a fork inside one is near a turn.",
    ),
    Claim(
        name="tree-longer-interaction",
        statement="Agents trained with Tree-GRPO take more turns than agents trained with GRPO.",
        source=Source(
            paper=_TREE,
            where="analysis of the number of actions",
            figure="more actions per question; the figure is not at hand",
        ),
        experiment=Training(
            arms=(
                _tree("tree", _LONG),
                _chains("chains", _LONG, 8, 16),
            )
        ),
        comparisons=(above("tree", "chains", 0.1, "turns", unit="plain"),),
        minutes=5,
        weaker=_SMALL + " A two-hop question needs three turns and seldom profits from more.",
    ),
)
