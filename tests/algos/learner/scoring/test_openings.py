"""What all micro batches begin with, computed once: the same states, gradients and updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.branching import branching
from helpers.nets import small
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.algos.core.forest import ROOT, Edge, Forest
from turngym.algos.core.protocols import Credits
from turngym.algos.learner.attention.packing import OPENING, Pack
from turngym.algos.learner.attention.span_attention import SpanAttention, spans_of
from turngym.algos.learner.batching.micro_batch import Batching, MicroBatch
from turngym.algos.learner.batching.rows import Row, distinct_tokens, rows_of
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.scoring import scoring
from turngym.algos.learner.scoring.packed_layers import PackedLayers
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe

CPU = torch.device("cpu")
INSTRUCTIONS = OPENING + 6


def instructed(seed: int, groups: int = 3, n: int = INSTRUCTIONS) -> Forest:
    """A forest whose contexts all begin with the same ``n`` tokens."""
    forest = branching(seed, groups=groups, turns=4)
    opening = np.arange(n, dtype=np.int64) * 7 % 320
    for group in forest.groups:
        for tree in group.trees:
            for i, turn in enumerate(tree.turns):
                if turn.parent == ROOT or turn.edge is Edge.SPAWN:
                    tree.turns[i] = replace(turn, obs_ids=np.concatenate([opening, turn.obs_ids]))
    return forest


@given(seed=st.integers(0, 2**20), first=st.integers(0, INSTRUCTIONS + 4))
@settings(max_examples=15, deadline=None)
def test_later_queries_see_what_they_saw_in_the_whole(seed: int, first: int) -> None:
    pack = Pack.of(*zip(*[(r.ids, r.numbers) for r in rows_of(instructed(seed))], strict=True))
    rng = torch.Generator().manual_seed(seed)
    q, k, v, grad = (torch.randn(2, len(pack), n, generator=rng) for n in (24, 8, 8, 24))
    grad[:, :first] = 0
    spans, some = spans_of(pack.blocks()), spans_of(pack.blocks(), first)
    assert sum(s.stop - s.start for s in some) == len(pack) - first
    whole, behind = SpanAttention(spans), SpanAttention(some, first)
    later, made, own = (q[:, first:], k, v), whole(q, k, v), behind(q[:, first:], k, v)
    torch.testing.assert_close(own[0], made[0][:, first:])
    of_q, of_k, of_v = whole.backward(grad, (q, k, v), made[1])
    mine = behind.backward(grad[:, first:], later, own[1])
    for a, b in zip(mine, (of_q[:, first:], of_k, of_v), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def begun(rows: Sequence[Row], count: int) -> MicroBatch:
    one = np.array([count - 1])
    row = Row(rows[0].ids[:count], one, one * 0, np.zeros(1, np.float32), rows[0].numbers[:count])
    return MicroBatch.packed([row], CPU)


@pytest.mark.parametrize("activation_bytes", [2**30, 0], ids=["kept", "computed again"])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_packs_behind_an_opening_have_the_states_and_gradients_of_whole_ones(
    family: str, activation_bytes: int
) -> None:
    model = small(family)
    rows = rows_of(instructed(1))
    layers = PackedLayers(model, torch.float32, activation_bytes)
    parts = [[r for r in rows if r.group == g] for g in range(3)]

    def gradients(opening: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        model.zero_grad()
        made = layers.open(begun(rows, opening)) if opening else None
        states = []
        with layers.behind(made):
            for part in parts:
                batch = MicroBatch.packed(part, CPU, opening=opening)
                read = batch.read_positions()
                with layers.reading(read):
                    hidden = batch.at(layers(batch), batch.before)
                rng = torch.Generator().manual_seed(0)
                hidden.backward(torch.randn(hidden.shape, generator=rng))
                states.append(hidden.detach())
        if made is not None:
            made.backward()
        return states, [p.grad.clone() for p in model.model.parameters()]

    for mine, theirs in zip(gradients(INSTRUCTIONS - 1), gradients(0), strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert float((a - b).norm()) <= 1e-5 * float(b.norm())


def test_a_pack_without_its_opening_is_refused() -> None:
    layers = PackedLayers(small("llama"), torch.float32)
    rows = rows_of(instructed(1))
    with pytest.raises(AssertionError, match="leaves out 5 tokens, the opening has 0"):
        layers(MicroBatch.packed(rows, CPU, opening=5))


class Counted:
    """Learners of a large model, and the tokens that go through its layers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokens: list[int] = []
        self._patch = monkeypatch
        monkeypatch.setattr(scoring, "is_large", lambda _: True)
        compute = PackedLayers._compute

        def counted(layers: PackedLayers, batch: MicroBatch, **more: Any) -> torch.Tensor:
            self.tokens.append(batch.ids.numel())
            return compute(layers, batch, **more)

        monkeypatch.setattr(PackedLayers, "_compute", counted)

    def learner(self, recipe: str, budget: int, **more: Any) -> Learner:
        changes = {"optim.minibatches": 1, "optim.warmup_steps": 0}
        made = LearnerSettings(precision="bfloat16", micro_batch_tokens=budget, **more)
        learner = Learner(small("llama"), make_recipe(recipe, changes), pad_id=0, settings=made)
        self.tokens.clear()
        return learner

    def whole(self) -> None:
        self._patch.setattr(Batching, "opening", lambda *_: 0)


def test_an_update_is_the_same_and_computes_what_is_shared_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forest = instructed(3)
    rows = rows_of(forest)
    budget = max(distinct_tokens([r for r in rows if r.group == g]) for g in range(3))
    rng = np.random.default_rng(0)
    credits = Credits([rng.normal(size=row.n_act).astype(np.float32) for row in rows])
    seen = Counted(monkeypatch)

    def updated() -> tuple[Learner, dict[str, float], list[Any], int, int]:
        learner = seen.learner("grpo", budget)
        ref = learner.ref_logprobs(forest)
        scored = sum(seen.tokens)
        seen.tokens.clear()
        metrics = learner.update(forest, {"ref_logprobs": ref}, credits)
        return learner, metrics, ref, scored, sum(seen.tokens)

    mine = updated()
    seen.whole()
    whole = updated()
    spared = 2 * INSTRUCTIONS  # of three micro batches
    for a, b in ((mine[3], whole[3]), (mine[4], whole[4])):
        assert b - a == pytest.approx(spared, abs=16)  # but for what lengths are rounded up to
    for a, b in zip(mine[2], whole[2], strict=True):
        np.testing.assert_allclose(a, b, atol=0.03)
    for key in ("update/loss", "update/grad_norm"):
        assert mine[1][key] == pytest.approx(whole[1][key], rel=0.02)
    pairs = zip(mine[0].policy.parameters(), whole[0].policy.parameters(), strict=True)
    moved = [(a.grad - b.grad).norm() / b.grad.norm() for a, b in pairs]
    assert max(moved) < 0.05  # bfloat16


def test_where_there_is_nothing_to_share_everything_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = Counted(monkeypatch)
    forest = instructed(3)
    rows = rows_of(forest)
    every = list(range(len(rows)))
    budget = max(distinct_tokens([r for r in rows if r.group == g]) for g in range(3))

    def shared(recipe: str, forest: Forest, tokens: int, **more: Any) -> int:
        models = seen.learner(recipe, tokens, **more).models
        found = rows_of(forest)
        chosen = range(len(found))
        with models.opening(models.tokens, found, chosen, training=True) as count:
            return count

    assert shared("grpo", forest, budget) >= INSTRUCTIONS
    assert shared("grpo", forest, 10**6) == 0  # one micro batch
    assert shared("grpo", instructed(3, n=OPENING // 2), budget) == 0  # short
    assert shared("grpo", branching(3, groups=3), budget // 4) == 0
    assert shared("ppo", forest, budget) == 0  # the critic's backbone has none
    assert shared("ppo", forest, budget, critic="shared") >= INSTRUCTIONS
    # scored tokens among the first ones
    early = [replace(r, at=np.array([2, *r.at]), turns=np.array([0, *r.turns])) for r in rows]
    batching = seen.learner("grpo", budget).models.batching
    assert batching.opening(early, every) == 0
