"""The learner: rows, exact accumulation, critic, what is left out, what is refused."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.grown import forest
from helpers.nets import small
from transformers import AutoModelForCausalLM

from turngym.algos.core.forest import Forest
from turngym.algos.core.protocols import Credits
from turngym.algos.core.recipe import Recipe
from turngym.algos.learner.batching.rows import rows_of
from turngym.algos.learner.learner import Learner, LossNotFiniteError
from turngym.algos.learner.scoring import scoring
from turngym.algos.learner.scoring.scoring import TokenModel, quick_cpu_maths
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.losses import Clip, Kl, MaskedLoss, PolicyLoss
from turngym.algos.recipes.grpo import grpo
from turngym.algos.recipes.ppo import ppo
from turngym.envs.core.errors import BadValueError


def simple_grpo(**optim: Any) -> Recipe:
    recipe = grpo()
    return replace(
        recipe,
        loss=PolicyLoss(clip=Clip(low=0.2, high=0.2), kl=Kl(coef=0.0)),
        optim=replace(recipe.optim, lr=1e-2, warmup_steps=0, minibatches=1, **optim),
    )


def load(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder)


def learner(folder: Path, recipe: Recipe, **settings: Any) -> Learner:
    return Learner(
        load(folder),
        recipe,
        pad_id=0,
        settings=LearnerSettings(**{"precision": "float32", **settings}),
        seed=3,
    )


def credits_for(grown: Forest, seed: int = 1) -> Credits:
    rng = np.random.default_rng(seed)
    return Credits([rng.normal(size=grown.n_act(p)).astype(np.float32) for p in grown])


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def gradient(model: Any) -> torch.Tensor:
    """Of the last step; AdamW's first step would blow the rounding of small entries up."""
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def same_gradient(one: Learner, other: Learner) -> bool:
    a, b = gradient(one.policy), gradient(other.policy)
    return bool((a - b).norm() <= 1e-5 * a.norm())


# ---------------------------------------------------------------- scoring


def test_scores_equal_the_models_own(tiny_model: Path) -> None:
    grown = forest()
    mine = learner(tiny_model, simple_grpo()).logprobs(grown)
    model = load(tiny_model)
    for row, got in zip(rows_of(grown), mine, strict=True):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor(row.ids)[None]).logits[0]
        table = logits.log_softmax(-1)
        want = [float(table[p - 1, row.ids[p]]) for p in row.at]
        np.testing.assert_allclose(got, want, atol=2e-5)


def test_temperature_tempers(tiny_model: Path) -> None:
    grown = forest()
    hot = learner(tiny_model, replace(simple_grpo(), temperature=2.0)).logprobs(grown)
    row = rows_of(grown)[0]
    with torch.no_grad():
        logits = load(tiny_model)(input_ids=torch.tensor(row.ids)[None]).logits[0] / 2.0
    want = logits.log_softmax(-1)[row.at[0] - 1, row.ids[row.at[0]]]
    assert hot[0][0] == pytest.approx(float(want), abs=2e-5)


def test_logits_in_pieces_give_the_same_scores_and_gradients(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown, made = forest(), []
    for limit in (2**24, 300 * 3):
        monkeypatch.setattr("turngym.algos.learner.scoring.scoring.LOGITS_PER_CHUNK", limit)
        one = learner(tiny_model, simple_grpo())
        one.update(grown, {}, credits_for(grown))
        made.append(one)
    assert same_gradient(*made)


def test_a_head_with_more_than_a_layer_is_run_whole(tiny_model: Path) -> None:
    class Capped(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner, self.config = inner, inner.config

        def get_decoder(self) -> Any:
            return self.inner.get_decoder()

        def get_output_embeddings(self) -> Any:
            return self.inner.get_output_embeddings()

        def forward(self, **inputs: Any) -> Any:
            out = self.inner(**inputs)
            out.logits = 3.0 * torch.tanh(out.logits * 5.0)
            return out

    assert TokenModel(load(tiny_model), 1.0).separable
    model = TokenModel(Capped(load(tiny_model)), 1.0)
    assert not model.separable


@pytest.mark.parametrize(("exact", "chosen"), [(True, "medium"), (False, "highest")])
def test_global_precision_setting_is_put_back(
    exact: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "_is_medium_exact", lambda: exact)
    before = torch.get_float32_matmul_precision()
    with quick_cpu_maths(torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == chosen
    assert torch.get_float32_matmul_precision() == before


def test_the_last_of_several_threads_puts_the_precision_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scoring, "_is_medium_exact", lambda: True)
    before = torch.get_float32_matmul_precision()
    one, two = (quick_cpu_maths(torch.device("cpu")) for _ in range(2))
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == "medium"
    two.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == before


def test_float32_products_are_float32_on_any_processor() -> None:
    """With matrix units "medium" alone rounds to bfloat16, which is 2e-3 off."""
    torch.manual_seed(0)
    x, w = torch.randn(96, 128), torch.randn(128, 64)
    with quick_cpu_maths(torch.device("cpu")):
        found = x @ w
    exact = x.double() @ w.double()
    assert ((found - exact).abs().max() / exact.abs().max()).item() < 1e-5


def test_values_are_read_before_each_token_and_after_the_last(tiny_model: Path) -> None:
    one = learner(tiny_model, ppo())
    assert one.critic is not None
    torch.nn.init.normal_(one.critic.head.weight)
    grown = forest()
    row = rows_of(grown)[0]
    assert one.critic.backbone is not None
    with torch.no_grad():
        states = one.critic.backbone(input_ids=torch.tensor(row.ids)[None]).last_hidden_state
        table = one.critic(states)[0].numpy()
    got = one.values(grown)[0]
    want = table[[*(row.at - 1), row.at[-1]]]
    np.testing.assert_allclose(got, want, atol=2e-5)


# ---------------------------------------------------------------- updates


@pytest.mark.parametrize("tokens", [1, 20, 45])
def test_gradient_accumulation_is_exact(tiny_model: Path, tokens: int) -> None:
    grown = forest()
    whole = learner(tiny_model, simple_grpo())
    parts = learner(tiny_model, simple_grpo(), micro_batch_tokens=tokens)
    logs = [one.update(grown, {}, credits_for(grown)) for one in (whole, parts)]
    assert same_gradient(whole, parts)
    for key in ("update/loss", "update/grad_norm", "loss/entropy_nats", "loss/ratio_mean"):
        assert logs[0][key] == pytest.approx(logs[1][key], rel=1e-4, abs=1e-6)


def test_paths_without_advantage_are_left_out_exactly(tiny_model: Path) -> None:
    grown = forest()
    credit = credits_for(grown)
    for i in (0, 2, 3):
        credit.advantages[i][:] = 0.0
    quick = learner(tiny_model, simple_grpo())
    assert quick.loss_is_silent
    slow = learner(tiny_model, simple_grpo())
    slow.loss_is_silent = False
    seen = [one.update(grown, {}, credit) for one in (quick, slow)]
    assert seen[0]["update/paths_left_out_frac"] == 0.5
    assert seen[1]["update/paths_left_out_frac"] == 0.0
    assert same_gradient(quick, slow)
    assert seen[0]["loss/ratio_mean"] == pytest.approx(1.0, abs=1e-5)


def test_paths_count_when_the_loss_has_another_term(tiny_model: Path) -> None:
    assert not learner(tiny_model, grpo()).loss_is_silent  # KL and entropy
    assert not learner(tiny_model, ppo()).loss_is_silent  # the critic


def test_a_batch_without_signal_moves_by_momentum_only(tiny_model: Path) -> None:
    grown = forest()
    zeros = Credits([np.zeros(grown.n_act(p), np.float32) for p in grown])
    recipe = simple_grpo(weight_decay=0.0)
    one = learner(tiny_model, recipe)
    before = weights(one.policy).clone()
    row = one.update(grown, {}, zeros)
    assert row["update/paths_left_out_frac"] == 1.0
    assert row["update/optimizer_steps"] == 1.0
    assert torch.equal(before, weights(one.policy))


def test_better_tokens_become_likelier(tiny_model: Path) -> None:
    grown = forest()
    one = learner(tiny_model, simple_grpo())
    credit = Credits(
        [np.full(grown.n_act(p), (-1.0) ** i, np.float32) for i, p in enumerate(grown)]
    )
    before = one.logprobs(grown)
    one.update(grown, {}, credit)
    after = one.logprobs(grown)
    change = [float((a - b).mean()) for a, b in zip(after, before, strict=True)]
    assert all(c > 0 for c in change[::2])
    assert all(c < 0 for c in change[1::2])


def test_first_step_of_a_warm_up_has_rate_zero_as_in_the_papers(tiny_model: Path) -> None:
    recipe = simple_grpo()
    recipe = replace(recipe, optim=replace(recipe.optim, warmup_steps=4))
    one = learner(tiny_model, recipe)
    grown = forest()
    before = weights(one.policy).clone()
    rates = [one.update(grown, {}, credits_for(grown))["update/lr"] for _ in range(1)]
    assert torch.equal(before, weights(one.policy))
    rates += [one.update(grown, {}, credits_for(grown))["update/lr"] for _ in range(4)]
    assert rates == pytest.approx([0.0, 0.0025, 0.005, 0.0075, 0.01])


def test_epochs_and_mini_batches_are_seeded(tiny_model: Path) -> None:
    grown = forest(groups=5)
    recipe = simple_grpo()
    recipe = replace(recipe, optim=replace(recipe.optim, epochs=2, minibatches=4))
    made = []
    for seed in (3, 3, 4):
        one = Learner(load(tiny_model), recipe, pad_id=0, seed=seed)
        row = one.update(grown, {}, credits_for(grown))
        assert row["update/optimizer_steps"] == 8.0
        made.append(weights(one.policy))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def test_difference_between_engine_and_learner_is_measured(tiny_model: Path) -> None:
    grown = forest()
    one = learner(tiny_model, simple_grpo())
    gaps = [
        np.abs(row.sampled - own)
        for row, own in zip(rows_of(grown), one.logprobs(grown), strict=True)
    ]
    row = one.update(grown, {}, credits_for(grown))
    flat = np.concatenate(gaps)
    assert row["update/logprob_diff_mean_nats"] == pytest.approx(float(flat.mean()), rel=1e-4)
    assert row["update/logprob_diff_max_nats"] == pytest.approx(float(flat.max()), rel=1e-4)


@pytest.mark.parametrize("kind", ["own", "shared"])
def test_critic_learns_its_targets(tiny_model: Path, kind: Any) -> None:
    recipe = ppo()
    recipe = replace(
        recipe,
        optim=replace(recipe.optim, lr=1e-9, critic_lr=3e-2, warmup_steps=0, minibatches=1),
    )
    one = learner(tiny_model, recipe, critic=kind)
    grown = forest()
    targets = [np.full(grown.n_act(p), 0.3, np.float32) for p in grown]
    credit = Credits(credits_for(grown).advantages, targets)
    errors = []
    for _ in range(12):
        annotations = {"values": one.values(grown), "old_logprobs": one.logprobs(grown)}
        errors.append(one.update(grown, annotations, credit)["loss/value"])
    assert errors[0] == pytest.approx(0.5 * 0.3**2, rel=1e-4)
    assert errors[-1] < 0.2 * errors[0]


def test_reference_stays_where_it_started(tiny_model: Path) -> None:
    recipe = grpo()
    recipe = replace(recipe, optim=replace(recipe.optim, lr=1e-2, warmup_steps=0, minibatches=1))
    one = learner(tiny_model, recipe)
    grown = forest()
    start = one.ref_logprobs(grown)
    row = one.update(grown, {"ref_logprobs": start}, credits_for(grown))
    assert row["loss/kl_nats"] == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_array_equal(np.concatenate(start), np.concatenate(one.ref_logprobs(grown)))
    assert not np.allclose(np.concatenate(start), np.concatenate(one.logprobs(grown)))


def test_what_nobody_needs_is_not_held(tiny_model: Path) -> None:
    one = learner(tiny_model, simple_grpo())
    assert one.critic is None
    assert one.models.reference is None
    with pytest.raises(BadValueError, match="no reference"):
        one.ref_logprobs(forest())
    with pytest.raises(BadValueError, match="no critic"):
        one.values(forest())


def test_gradient_that_is_not_finite_is_skipped_and_counted(tiny_model: Path) -> None:
    one = learner(tiny_model, simple_grpo())
    before = weights(one.policy).clone()
    parameter = next(one.policy.parameters())
    parameter.register_hook(lambda g: torch.full_like(g, torch.inf))
    grown = forest()
    row = one.update(grown, {}, credits_for(grown))
    assert row["update/skipped_steps"] == 1.0
    assert row["update/optimizer_steps"] == 0.0
    assert torch.equal(before, weights(one.policy))


def test_a_loss_that_is_not_finite_stops_before_any_change(tiny_model: Path) -> None:
    one = learner(tiny_model, simple_grpo())
    before = weights(one.policy).clone()
    grown = forest()
    credit = credits_for(grown)
    credit.advantages[1][:] = np.nan
    with pytest.raises(LossNotFiniteError, match="in a new run from the last checkpoint"):
        one.update(grown, {}, credit)
    assert torch.equal(before, weights(one.policy))


def test_credit_of_the_wrong_shape_is_refused(tiny_model: Path) -> None:
    grown = forest()
    short = Credits([a[:-1] for a in credits_for(grown).advantages])
    with pytest.raises(BadValueError, match="one value per action token"):
        learner(tiny_model, simple_grpo()).update(grown, {}, short)


def test_missing_stream_is_named(tiny_model: Path) -> None:
    grown = forest()
    with pytest.raises(BadValueError, match="ref_logprobs"):
        learner(tiny_model, grpo()).update(grown, {}, credits_for(grown))


def test_an_empty_forest_changes_nothing(tiny_model: Path) -> None:
    one = learner(tiny_model, simple_grpo())
    before = copy.deepcopy(one.optimizer.state_dict())
    assert one.update(Forest.of([]), {}, Credits([])) == {}
    assert one.optimizer.state_dict() == before


def test_bfloat16_autocast_stays_close(tiny_model: Path) -> None:
    grown = forest()
    exact = learner(tiny_model, simple_grpo()).logprobs(grown)
    rough = learner(tiny_model, simple_grpo(), precision="bfloat16").logprobs(grown)
    gap = np.abs(np.concatenate(exact) - np.concatenate(rough))
    assert 0 < gap.max() < 0.1


def test_rows_that_a_loss_masks_are_as_if_they_were_not_there() -> None:
    """Weights and counts after a step are those of a forest without them."""
    recipe = replace(simple_grpo(), loss=MaskedLoss(delta=0.05, unit="path"))
    grown = forest(groups=2, chains=2)
    credits = Credits(
        [
            np.full(grown.n_act(p), w, np.float32)
            for p, w in zip(grown, (-1, -1, 1, -1), strict=True)
        ]
    )
    made = [Learner(small("qwen2"), recipe, pad_id=0) for _ in range(2)]
    now = made[0].logprobs(grown)
    # the first path has fallen by .1 nats a token, the third too but it is praised
    old = [row + np.float32(w) for row, w in zip(now, (0.1, 0.0, 0.1, 0.02), strict=True)]
    row = made[0].update(grown, {"old_logprobs": old}, credits)
    fewer = Forest(grown.groups, grown.paths[1:])
    other = made[1].update(fewer, {"old_logprobs": old[1:]}, Credits(list(credits.advantages[1:])))
    counts = [grown.n_act(p) for p in grown]
    assert row["update/masked_frac"] == pytest.approx(counts[0] / sum(counts))
    assert row["update/paths_left_out_frac"] == 0.25
    assert (other["update/masked_frac"], other["update/paths_left_out_frac"]) == (0.0, 0.0)
    for key in ("update/loss", "update/grad_norm", "loss/ratio_mean"):
        assert row[key] == pytest.approx(other[key], rel=1e-4), key
    for mine, theirs in zip(made[0].policy.parameters(), made[1].policy.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    # all of them: nothing but momentum, which is 0 in a first step
    fallen = [row + np.float32(0.1) for row in made[0].logprobs(grown)]
    worst = Credits([-np.ones(grown.n_act(p), np.float32) for p in grown])
    row = made[0].update(grown, {"old_logprobs": fallen}, worst)
    assert (row["update/masked_frac"], row["update/grad_norm"]) == (1.0, 0.0)
