"""Distillation on the policy's own samples: worked numbers, the exact gradient, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.forests import Fixed, single_turns, tree, turn
from helpers.loss_batches import batch
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.annotators import OldLogprobs
from turngym.algos.core.forest import Forest, Group
from turngym.algos.core.privileged import ContextLogprobs, TeacherLogprobs
from turngym.algos.core.recipe import Recipe
from turngym.algos.credit import GroupCredit, HintedCredit, NoCredit
from turngym.algos.learner.importance_weights import check_importance
from turngym.algos.losses import Kl, PolicyLoss, RefKlLoss, SummedLoss
from turngym.algos.recipes import make_recipe
from turngym.algos.rollouts import Chains
from turngym.envs.core.errors import BadValueError

NOW, OLD = [-0.4, -2.0, -0.1, -1.2], [-0.5, -1.5, -0.1, -0.4]
TEACHER = [-0.2, -3.0, -0.1, -0.3]


def made_batch() -> Any:
    b = batch([[0.0] * 4], [[9.0] * 4], teacher_logprobs=[TEACHER])
    b.logprobs.data[0] = torch.tensor(NOW)
    b.old_logprobs[0] = torch.tensor(OLD)
    return b


def test_c1_ref_kl() -> None:
    b = made_batch()
    out = RefKlLoss()(b)
    losses = [-0.221024, 0.606781, 0.0, 0.000640]
    assert out.loss.item() == pytest.approx(sum(losses) / 4, abs=1e-6)
    assert out.loss.item() == pytest.approx(0.096599, abs=1e-6)
    assert float(out.metrics["distill_dropped_frac"]) == 0.25
    gains = [0.2, -1.0, 0.0, 0.9]
    assert float(out.metrics["teacher_kl_nats"]) == pytest.approx(-sum(gains) / 4)
    out.loss.backward()
    ratio = np.exp(np.array(NOW) - np.array(OLD))
    tie = 2e-3 * (np.array(NOW) - np.array(OLD))
    expected = -np.array(gains) * ratio * [1, 1, 1, 0] + tie
    assert (4 * b.logprobs.grad[0]).tolist() == pytest.approx(expected.tolist(), abs=1e-7)
    assert np.exp(-1.2) - np.exp(-0.4) == pytest.approx(-0.369126, abs=1e-6)


def test_c1_its_expectation_is_the_gradient_of_the_divergence() -> None:
    """E over tokens of (log teacher - log policy) times the score = -grad KL(policy || teacher)."""
    policy, teacher = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.5, 0.3, 0.2])
    logits = policy.log().requires_grad_()
    (logits.log_softmax(0).exp() * (logits.log_softmax(0) - teacher.log())).sum().backward()
    assert logits.grad is not None
    exact = -logits.grad
    given = torch.zeros(3)
    for token in range(3):
        live = policy.log().requires_grad_()
        b = batch([[0.0]], [[0.0]], teacher_logprobs=[[float(teacher[token].log())]])
        b.old_logprobs[0, 0] = float(policy[token].log())
        b = replace(b, logprobs=live.log_softmax(0)[token].double().view(1, 1))
        RefKlLoss()(b).loss.backward()
        assert live.grad is not None
        given -= policy[token] * live.grad
    assert given.tolist() == pytest.approx(exact.tolist(), abs=1e-6)
    assert given.tolist() == pytest.approx([-0.175945, 0.098118, 0.077827], abs=1e-6)


@given(st.lists(st.floats(-3, -0.01), min_size=1, max_size=5))
def test_a_teacher_that_is_the_policy_teaches_nothing(row: list[float]) -> None:
    b = batch([[0.0] * len(row)], [[1.0] * len(row)], teacher_logprobs=[row])
    b.logprobs.data[0] = b.old_logprobs[0] = torch.tensor(row, dtype=torch.float64)
    b.extra["teacher_logprobs"][0] = b.old_logprobs[0]
    RefKlLoss()(b).loss.backward()
    assert not bool(b.logprobs.grad.any())  # pyright: ignore


def test_summed_is_both() -> None:
    b = made_batch()
    policy, distill = PolicyLoss(), RefKlLoss()
    out = SummedLoss(policy=policy, distill=distill, weight=0.5)(b)
    expected = policy(b).loss.item() + 0.5 * distill(b).loss.item()
    assert out.loss.item() == pytest.approx(expected)
    assert {"policy", "distill", "clip_frac", "teacher_kl_nats"} <= out.metrics.keys()
    assert SummedLoss(policy=PolicyLoss(kl=Kl(coef=0.1))).needs == {
        "ref_logprobs",
        "teacher_logprobs",
    }


def build(**parts: Any) -> Recipe:
    defaults: dict[str, Any] = {
        "name": "mine",
        "paper": "none",
        "rollout": Chains(n=4),
        "credit": GroupCredit(),
        "loss": RefKlLoss(),
        "annotators": (TeacherLogprobs(model="x"),),
    }
    return Recipe(**(defaults | parts))


def test_distillation_and_group_credit_are_summed_or_refused() -> None:
    with pytest.raises(BadValueError, match=r"GroupCredit would change nothing.*SummedLoss"):
        build()
    with pytest.raises(BadValueError, match="NoCredit gives none"):
        build(credit=NoCredit(), loss=PolicyLoss())
    assert build(loss=SummedLoss()).teacher == "x"
    assert build(credit=NoCredit(), rollout=Chains(n=1)).used_annotators
    with pytest.raises(BadValueError, match=r"Add ContextLogprobs\(\)"):
        build(credit=NoCredit(), loss=RefKlLoss(target="context_logprobs"))
    with pytest.raises(BadValueError, match="reads no advantages"):
        check_importance(build(credit=NoCredit(), annotators=(TeacherLogprobs(model="x"),)), 2.0)


def test_without_a_teacher_there_is_nothing_to_learn() -> None:
    recipe = make_recipe("opd")
    assert recipe.teacher is None
    env: Any = None
    with pytest.raises(BadValueError, match="Name a model"):
        recipe.used_annotators[1].check(env)


SHIFTS = [1.2, -0.3, 4.0]


def test_c2_opid() -> None:
    rule = HintedCredit(of=GroupCredit(baseline="none", scale="none"), weight=1e-3)
    forest = single_turns([0.5], n=3)
    notes: Any = {
        "old_logprobs": [np.full(3, -5.0, np.float32)],
        "context_logprobs": [np.array(SHIFTS, np.float32) - 5.0],
    }
    found = rule(forest, notes).advantages[0]
    assert found == pytest.approx([0.501200, 0.499700, 0.504000], abs=1e-6)
    wide = HintedCredit(of=rule.of, weight=1.0, clip=2.0)
    assert wide(forest, notes).advantages[0] == pytest.approx([1.7, 0.2, 2.5], abs=1e-6)
    plain = HintedCredit(of=rule.of, weight=0.0)
    assert plain(forest, notes).advantages[0] == pytest.approx([0.5] * 3)
    assert (HintedCredit().min_paths, HintedCredit(weight=0.0).min_paths) == (1, 2)
    assert HintedCredit().needs == {"context_logprobs", "old_logprobs"}


def test_a_demonstration_is_put_in_front_of_all_that_was_seen() -> None:
    """Turn by turn; what two paths share is asked for once, what has none keeps its own."""
    hints = np.array([9, 1, 2]), np.array([8, 1, 2])
    first = turn(obs_ids=np.array([1, 2]), n=2, hinted_prompt=hints[0])
    grown = tree(
        first,
        turn(obs_ids=np.array([3]), n=1, parent=0, status="solved", hinted_prompt=hints[1]),
        turn(obs_ids=np.array([4]), n=1, parent=0, status="failed"),
    )
    forest = Forest.of([Group("g", "t", [grown])])
    seen: list[Forest] = []

    class Scorer(Fixed):
        def logprobs(self, forest: Forest) -> Any:
            seen.append(forest)
            return [np.full(forest.n_act(p), -float(len(seen)), np.float32) for p in forest]

    scorer: Any = Scorer()
    found = ContextLogprobs()(forest, scorer)["context_logprobs"]
    asked, own = seen
    assert own is forest
    contexts = [asked.turns(p)[0].obs_ids.tolist() for p in asked]
    assert contexts == [[9, 1, 2], [8, 1, 2, 1, 2, 3]]
    assert [row.tolist() for row in found] == [[-1, -1, -1], [-1, -1, -2]]

    class Start(Fixed):
        def ref_logprobs(self, forest: Forest) -> Any:
            return [np.full(forest.n_act(p), -7.0, np.float32) for p in forest]

        def logprobs(self, forest: Forest) -> Any:
            return [np.full(forest.n_act(p), -1.0, np.float32) for p in forest]

    start: Any = Start()
    held = ContextLogprobs(weights="start")(forest, start)["context_logprobs"]
    assert [row.tolist() for row in held] == [[-7, -7, -7], [-7, -7, -1]]
    by_start = make_recipe("opsd", {"context_logprobs.weights": "start"})
    assert (by_start.reference, make_recipe("opsd").reference) == (True, False)
    bare = Forest.of([Group("g", "t", [tree(turn(status="solved"))])])
    with pytest.raises(BadValueError, match="no turn has a demonstration"):
        ContextLogprobs()(bare, scorer)
    assert ContextLogprobs()(Forest.of([]), scorer) == {"context_logprobs": []}


@pytest.mark.parametrize(
    "make",
    [
        lambda: RefKlLoss(drop=0.0),
        lambda: RefKlLoss(tie=-1.0),
        lambda: RefKlLoss(target="ref_logprobs"),  # type: ignore[arg-type]
        lambda: SummedLoss(weight=0.0),
        lambda: HintedCredit(clip=0.0),
        lambda: ContextLogprobs(actions=0),
        lambda: ContextLogprobs(mistakes=2.0),
        lambda: ContextLogprobs(weights="ema"),  # type: ignore[arg-type]
    ],
)
def test_settings_out_of_range_are_refused(make: Any) -> None:
    with pytest.raises(BadValueError, match="expected"):
        make()


def test_the_recipes_score_what_was_sampled() -> None:
    for name in ("opd", "opsd"):
        assert make_recipe(name).annotators[0] == OldLogprobs(source="sampled")
