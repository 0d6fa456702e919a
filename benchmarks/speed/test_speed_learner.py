"""One update with shared prefixes against padded rows, in turns on the same forest and model.

Run with ``pytest benchmarks/speed/test_speed_learner.py --benchmark-only -s``. The ideal is the
number
of padded tokens by the number of distinct ones: every token once, and nothing else to pay.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from turngym.algos.core.forest import ROOT, Forest, Group, Tree, Turn, last_token_reward  # noqa: E402
from turngym.algos.core.protocols import Credits  # noqa: E402
from turngym.algos.learner.batching.rows import distinct_tokens, rows_of  # noqa: E402
from turngym.algos.learner.learner import Learner  # noqa: E402
from turngym.algos.learner.settings import LearnerSettings  # noqa: E402
from turngym.algos.recipes import make_recipe  # noqa: E402

VOCABULARY = 1536
SIZES: dict[str, dict[str, int]] = {
    "0.7m": {
        "hidden_size": 128,
        "num_hidden_layers": 3,
        "intermediate_size": 384,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
    },
    "5m": {
        "hidden_size": 256,
        "num_hidden_layers": 6,
        "intermediate_size": 768,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
}


class Grower:
    """Grows trees of random tokens."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def ids(self, n: int) -> Any:
        return self.rng.integers(4, VOCABULARY, n)

    def turn(self, parent: int, observed: Any, n_act: int, *, last: bool = False) -> Turn:
        return Turn(
            parent=parent,
            obs_ids=observed,
            act_ids=self.ids(n_act),
            logprobs=np.full(n_act, -7.0, np.float32),
            entropies=np.full(n_act, 7.0, np.float32),
            rewards=last_token_reward(0.0, n_act),
            status="solved" if last else "running",
        )


def tree_grpo(groups: int = 2) -> Forest:
    """2 trees of 3 leaves: prompts of 256, 3 turns of 64 action and 128 observation tokens.

    After the first chain each tree forks twice, in front of a turn of that chain drawn at random.
    """
    grow = Grower(0)
    made = []
    for g in range(groups):
        prompt = grow.ids(256)
        trees = []
        for _ in range(2):
            seen = [prompt, grow.ids(128), grow.ids(128)]
            tree = Tree()
            for depth in range(3):
                tree.add(grow.turn(depth - 1, seen[depth], 64, last=depth == 2))
            for _ in range(2):
                first = int(grow.rng.integers(3))
                parent = first - 1 if first else ROOT
                for depth in range(first, 3):
                    observed = seen[depth] if depth == first else grow.ids(128)
                    parent = tree.add(grow.turn(parent, observed, 64, last=depth == 2))
            trees.append(tree)
        made.append(Group(f"u{g}", f"t{g}", trees))
    return Forest.of(made)


def bushy(groups: int = 1) -> Forest:
    """A tree of 16 leaves: each path is 700 tokens, of which it shares 560 with all others."""
    grow = Grower(1)
    made = []
    for g in range(groups):
        tree = Tree()
        root = tree.add(grow.turn(ROOT, grow.ids(496), 64))
        observed = grow.ids(12)
        for _ in range(16):
            tree.add(grow.turn(root, observed, 128, last=True))
        made.append(Group(f"u{g}", f"t{g}", [tree]))
    return Forest.of(made)


def chains(prompt: int, groups: int) -> Forest:
    """8 single turns of 64 tokens per group."""
    grow = Grower(2)
    made = []
    for g in range(groups):
        observed = grow.ids(prompt)
        trees = [Tree([grow.turn(ROOT, observed, 64, last=True)]) for _ in range(8)]
        made.append(Group(f"u{g}", f"t{g}", trees))
    return Forest.of(made)


CASES: dict[str, tuple[str, Any, float]] = {
    # what it runs on, and the least ratio of the step times; the first as a part of the ideal
    "tree-grpo": ("5m", tree_grpo, 0.8),
    "16-leaves": ("5m", bushy, 3.0),
    "grpo-prompt-256": ("5m", lambda: chains(256, 4), 2.0),
    "grpo-prompt-12": ("0.7m", lambda: chains(12, 8), 0.9),
}


def learner(size: str, shared: bool, precision: Any) -> Learner:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.Qwen2Config(
            vocab_size=VOCABULARY,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            **SIZES[size],
        )
        model = transformers.Qwen2ForCausalLM(config)
    recipe = make_recipe("grpo", {"optim.minibatches": 1, "optim.warmup_steps": 0, "kl.coef": 0.0})
    recipe = replace(recipe, annotators=())
    settings = LearnerSettings(precision=precision, shared_prefix=shared)
    return Learner(model, recipe, pad_id=0, settings=settings)


@pytest.fixture
def threads(request: Any) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("threads", [1, 2], indirect=True)
@pytest.mark.parametrize("precision", ["auto", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_update(benchmark: Any, case: str, precision: str, threads: int) -> None:
    """Median update of padded rows over median update with shared prefixes."""
    size, grow, least = CASES[case]
    forest = grow()
    rows = rows_of(forest)
    padded = len(rows) * max(len(row.ids) for row in rows)
    ideal = padded / distinct_tokens(rows)
    rng = np.random.default_rng(0)
    credits = Credits([rng.normal(size=row.n_act).astype(np.float32) for row in rows])
    sides = {shared: learner(size, shared, precision) for shared in (True, False)}
    assert sides[True].models.unshared_because is None
    times: dict[bool, list[float]] = {True: [], False: []}

    def step(shared: bool) -> None:
        began = time.perf_counter()
        sides[shared].update(forest, {}, credits)
        times[shared].append(time.perf_counter() - began)

    benchmark.pedantic(
        step, args=(True,), setup=lambda: step(False), rounds=5, warmup_rounds=1, iterations=1
    )
    ours, rival = (statistics.median(times[shared][1:]) for shared in (True, False))
    ratio = rival / ours
    benchmark.extra_info |= {"padded_s": rival, "shared_s": ours, "ratio": ratio, "ideal": ideal}
    print(
        f"\n{case}, {size}, {precision}, {threads} thread(s): {padded} padded and "
        f"{distinct_tokens(rows)} distinct tokens; {rival:.3f} s and {ours:.3f} s, "
        f"ratio {ratio:.2f}, ideal {ideal:.2f}: {ratio / ideal:.0%}"
    )
    assert ratio > (least * ideal if case == "tree-grpo" else least)
