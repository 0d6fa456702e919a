"""Claims of Tree-GRPO (arXiv 2509.21240)."""

from __future__ import annotations

from typing import Any

from ..matrix.starts import KNOWS_PLACES, letters_start
from ..matrix.suite import SuiteEnv, TaughtStart
from .claim import Claim, Rerun, Source, above, equal
from .experiments import (
    GUESS,
    PlayedArm,
    TrainedArm,
    Training,
    letters,
    play_search,
    search,
    taught,
    train_arm,
)

_TREE = "Tree-GRPO, arXiv 2509.21240"
RERUNS = (
    Rerun(
        paper="AT2PO, arXiv 2601.04767, table 1",
        figure="Tree-GRPO below GRPO: multi-hop 39.8 against 44.5, single-hop 52.0 against 55.2; "
        "unstable with Qwen3, it collapsed early",
        where="Qwen2.5-7B, one run, best checkpoint",
    ),
    Rerun(
        paper="RAPO, arXiv 2603.03078, table 1",
        figure="Tree-GRPO above GRPO: mean of ten sets 43.7 against 40.7 (3B) and 49.1 against "
        "46.7 (7B)",
        where="Qwen2.5-Instruct, one run",
    ),
    Rerun(
        paper="VAPA, manuscript under review",
        figure="Tree-GRPO above GRPO: MedAgentBench 39.5 (deviation 2.7) against 32.5 (3.9)",
        where="Qwen3.5-9B, five seeds, clinical records",
    ),
)
_PLACES = letters_start(3, {"luck": 0.8, "free": 3, "doors": 3}, **KNOWS_PLACES)
"""The start of the ladder's family: from random letters most runs settle on one for all doors."""
_LOTTERY = taught(letters("Lottery-v0", 12_000, 312, lr=2e-3, luck=0.8), _PLACES)
_NO_LUCK = taught(letters("Lottery-v0", 12_000, 312, lr=2e-3, luck=0.0), _PLACES)
_TOY = (
    "A diagnostic environment in which most of the return hangs on a prefix that cannot be "
    "learned, and a model of 0.1M parameters: what holds there is the mechanism, not its size in a "
    "language model. One update a step, equal tokens a step; start, rate and tokens are those of "
    "the ladder's Lottery."
)
_SMALL = (
    "One small generated world and a model of under a million parameters; one update a step, equal "
    "tokens a step, 10,000 tokens, before the curves meet at the ceiling."
)


def _tree(name: str, column: SuiteEnv, trees: int = 2, nodes: int = 2, **more: Any) -> TrainedArm:
    """Make an arm of trees, each expanded once from ``nodes`` points."""
    changes = {"rollout__trees": trees, "rollout__nodes": nodes, **more}
    return train_arm(name, "treegrpo", column, loss__kl__coef=0.0, **changes)


def _chains(name: str, column: SuiteEnv, n: int) -> TrainedArm:
    return train_arm(name, "grpo", column, loss__kl__coef=0.0, rollout__n=n)


_PAIRS = (
    _tree("tree, 2 a prompt", _LOTTERY, trees=1),
    _chains("chains, 2 a prompt", _LOTTERY, 2),
    _tree("tree, 8 a prompt", _LOTTERY, trees=4),
    _chains("chains, 8 a prompt", _LOTTERY, 8),
)
_BOTH, _INTER, _INTRA = (
    _tree(terms, _LOTTERY, credit__terms=terms) for terms in ("both", "inter", "intra")
)
_CHAINS = _chains("chains, 4 a prompt", _LOTTERY, 4)
_EVEN = (
    _tree("tree without luck", _NO_LUCK),
    _chains("chains without luck", _NO_LUCK, 4),
    _tree("inter without luck", _NO_LUCK, credit__terms="inter"),
)
_SEARCH = search()
_WEAK = search(
    start=TaughtStart(settings={"mistakes": 0.5}, world={"size": "micro", "hops": (1, 2)})
)
_LONG = search(max_turns=6)

TREE_CLAIMS = (
    Claim(
        name="tree-above-grpo",
        statement="At an equal budget Tree-GRPO trains a better agent than GRPO on chains, where "
        "much of the return is settled by an unlearnable prefix.",
        source=Source(
            paper=_TREE,
            where="main table, Qwen2.5-3B",
            figure="multi-hop exact match 36.8 against 31.8, single-hop 50.0 against 48.1",
        ),
        experiment=Training(arms=(_BOTH, _CHAINS)),
        comparisons=(above(_BOTH.name, _CHAINS.name, 0.05, "area_right", floor=GUESS),),
        minutes=3,
        weaker=_TOY,
        reruns=RERUNS,
    ),
    Claim(
        name="tree-control",
        statement="Without luck trees have nothing to compare: Tree-GRPO, its inter-tree term and "
        "GRPO are equal.",
        source=Source(
            paper=_TREE,
            where="a control of tree-above-grpo, not in the paper",
            figure="none",
        ),
        experiment=Training(arms=_EVEN),
        comparisons=(
            equal(_EVEN[0].name, _EVEN[1].name, 0.03, "area_right", floor=GUESS),
            equal(_EVEN[0].name, _EVEN[2].name, 0.03, "area_right", floor=GUESS),
        ),
        minutes=3,
        weaker=_TOY,
    ),
    Claim(
        name="tree-smallest-budget",
        statement="Tree-GRPO leads GRPO at two rollouts a prompt, and by more than at eight.",
        source=Source(
            paper=_TREE,
            where="table 7, budgets of 2 to 16 chains per prompt",
            figure="largest gain at 2 per prompt",
        ),
        experiment=Training(arms=_PAIRS),
        comparisons=(
            above(_PAIRS[0].name, _PAIRS[1].name, 0.05, "area_right", floor=GUESS),
            above(
                _PAIRS[0].name,
                _PAIRS[1].name,
                0.05,
                "area_right",
                floor=GUESS,
                beyond=(_PAIRS[2].name, _PAIRS[3].name),
            ),
        ),
        minutes=5,
        weaker=_TOY,
    ),
    Claim(
        name="tree-two-hop",
        statement="At two rollouts a prompt Tree-GRPO trains a better searching agent than GRPO on "
        "two-hop questions, from a weak start.",
        source=Source(
            paper=_TREE,
            where="table 7 and the main table's smaller models",
            figure="the smaller the budget and the model, the larger the gain",
        ),
        experiment=Training(
            arms=(
                _tree("tree, weak start", _WEAK, trees=1),
                _chains("chains, weak start", _WEAK, 2),
            )
        ),
        comparisons=(above("tree, weak start", "chains, weak start", 0.03, "area"),),
        minutes=8,
        weaker=_SMALL + " Three hops would be the floor: the starter never reads so far.",
        reruns=RERUNS,
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
        minutes=2,
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
        experiment=Training(arms=(_BOTH, _INTER, _INTRA)),
        comparisons=(
            above(_BOTH.name, _INTER.name, 0.03, "area_right", floor=GUESS),
            above(_INTER.name, _INTRA.name, 0.03, "area_right", floor=GUESS),
        ),
        minutes=4,
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
        comparisons=(above("turns", "tokens", 0.03, "area"),),
        minutes=8,
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
        experiment=Training(arms=(_tree("tree", _LONG), _chains("chains", _LONG, 4))),
        comparisons=(above("tree", "chains", 0.1, "turns", unit="plain"),),
        minutes=8,
        weaker=_SMALL + " A two-hop question needs three turns and seldom profits from more.",
    ),
)
