"""Recipes: the papers' settings, refusals with the reason, settings by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from turngym.algos.core.annotators import CriticValues, OldLogprobs, RefLogprobs, SpawnedValues
from turngym.algos.core.recipe import Optim, Recipe
from turngym.algos.core.schedule import warmup_factor, warmup_steps
from turngym.algos.credit import Gae, GroupCredit
from turngym.algos.losses import ActorCriticLoss, Kl, PathMeanConstant, PolicyLoss, StepDpoLoss
from turngym.algos.recipes import RECIPES, arpo, grpo, make_recipe, ppo, settings_of, with_settings
from turngym.algos.rewards.judges import RuleJudge
from turngym.algos.rewards.shaping import MultiToolBonus, Overlong, VerdictRewards
from turngym.algos.rollouts import Chains, Demonstrations
from turngym.envs.core.errors import BadValueError, UnknownNameError

PPO_NOTES = (OldLogprobs(), RefLogprobs(), CriticValues())


def build(**parts: Any) -> Recipe:
    defaults: dict[str, Any] = {
        "name": "mine",
        "paper": "none",
        "rollout": Chains(n=4),
        "credit": GroupCredit(),
        "loss": PolicyLoss(),
    }
    return Recipe(**(defaults | parts))


@pytest.mark.parametrize(
    ("total", "ratio", "expected"),
    [(1005, 0.285, 286), (1005, 0.015, 15), (180, 0.285, 51), (180, 0.5, 90)],
)
def test_e27_warmup_lengths(total: int, ratio: float, expected: int) -> None:
    assert warmup_steps(ratio, total) == expected


def test_e27_the_rate_rises_linearly_from_zero() -> None:
    assert [1e-6 * warmup_factor(s, 286) for s in (0, 143, 286, 9999)] == [0.0, 5e-7, 1e-6, 1e-6]
    assert warmup_factor(0, 0) == 1.0
    with pytest.raises(BadValueError, match="ratio"):
        warmup_steps(1.5, 10)


def test_grpo_has_search_r1_s_settings() -> None:
    made = settings_of(grpo())
    assert made["rollout.n"] == 5
    assert made["loss.aggregate"] == "token-mean"
    assert (made["loss.kl.kind"], made["loss.kl.coef"]) == ("k3", 0.001)
    assert (made["optim.lr"], made["optim.warmup_steps"]) == (1e-6, 286)
    assert (grpo().critic, grpo().reference) == (False, True)


def test_ppo_has_search_r1_s_settings() -> None:
    made = settings_of(ppo())
    assert (made["credit.gamma"], made["credit.lam"], made["credit.kl_coef"]) == (1.0, 1.0, 0.001)
    assert (made["optim.lr"], made["optim.critic_lr"]) == (1e-6, 1e-5)
    assert made["loss.value.clip"] == 0.5
    assert (ppo().critic, ppo().reference) == (True, True)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_documented_and_has_a_small_form(name: str) -> None:
    entry = RECIPES[name]
    for word in ("arXiv", "Differs from the paper:", "Degenerate cases:"):
        assert word in (entry.factory.__doc__ or "")
    recipe = make_recipe(name.upper(), small=True)
    assert recipe.name == name
    assert recipe.reference == entry.factory().reference  # with the paper's KL, if smaller
    for key, value in entry.small.items():
        assert settings_of(recipe)[key] == value


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (
            {"loss": PolicyLoss(kl=Kl(coef=0.1))},
            r"PolicyLoss needs 'ref_logprobs'.*RefLogprobs\(\)",
        ),
        (
            {"credit": Gae(), "loss": ActorCriticLoss()},
            r"Gae and ActorCriticLoss needs? 'values'.*CriticValues\(\)",
        ),
        (
            {"credit": Gae(kl_coef=0.1), "loss": ActorCriticLoss(), "annotators": PPO_NOTES[1:]},
            "Gae needs 'old_logprobs'",
        ),
        ({"loss": ActorCriticLoss(), "annotators": PPO_NOTES}, "gives it no value targets"),
        ({"credit": Gae(), "annotators": PPO_NOTES}, "PolicyLoss would never train"),
        ({"loss": StepDpoLoss(reference=False)}, r"needs 'pair'.*StepPairs\(\) as the credit"),
        (
            {
                "rollout": Demonstrations(n=2),
                "annotators": (OldLogprobs(source="sampled"),),
            },
            "samples none",
        ),
        ({"rollout": Chains(n=1)}, "every advantage would be 0"),
        (
            {"shapers": (VerdictRewards(), RuleJudge())},
            "RuleJudge judges after VerdictRewards has read.*Put the judge first",
        ),
        ({"groups_per_step": 0}, "groups_per_step is 0"),
        ({"temperature": 0.0}, "greedy sampling has no gradient"),
    ],
)
def test_illegal_combinations_are_refused_with_the_reason(
    parts: dict[str, Any], reason: str
) -> None:
    with pytest.raises(BadValueError, match=reason):
        build(**parts)


def test_a_lone_path_is_fine_where_its_return_is_its_credit() -> None:
    for credit in (GroupCredit(singleton="raw"), GroupCredit(baseline="none", scale="none")):
        assert build(rollout=Chains(n=1), credit=credit).credit is credit


def test_only_annotators_that_are_read_are_run() -> None:
    lean = build(annotators=(RefLogprobs(), OldLogprobs(source="sampled")))
    assert lean.used_annotators == (OldLogprobs(source="sampled"),)
    assert not lean.reference
    assert with_settings(lean, {"loss.kl.coef": 0.1}).used_annotators == lean.annotators


@pytest.mark.parametrize("name", RECIPES)
def test_settings_round_trip(name: str) -> None:
    for recipe in (make_recipe(name), make_recipe(name, small=True)):
        assert with_settings(recipe, settings_of(recipe)) == recipe
        texts = {k: str(v) for k, v in settings_of(recipe).items()}
        assert with_settings(recipe, texts) == recipe


@pytest.mark.parametrize("order", [1, -1])
def test_settings_that_depend_on_each_other_come_in_any_order(order: int) -> None:
    for name, changes in (
        ("arpo", {"rollout.initial": 20, "rollout.budget": 40}),
        ("spo", {"rho_min": 0.97, "rho_max": 0.99}),
    ):
        made = make_recipe(name, dict(list(changes.items())[::order]))
        assert (
            changes.items()
            <= {k.removeprefix("tracker."): v for k, v in settings_of(made).items()}.items()
        )
    before = arpo()
    with pytest.raises(BadValueError, match="initial"):
        with_settings(before, {"rollout.initial": 20})
    assert before == arpo()


def test_hooks_and_annotators_are_set_by_their_names() -> None:
    made = make_recipe("dapo", {"overlong.limit": "512", "shapers.overlong.cache": 64})
    assert made.shapers == (Overlong(limit=512, cache=64),)
    made = make_recipe("arpo", {"tools": "search, lookup", "multi_tool_bonus.bonus": 0.2})
    assert made.shapers == (MultiToolBonus(bonus=0.2, tools=("search", "lookup")),)
    assert make_recipe("arpo", {"tools": ["search"]}).shapers == (
        MultiToolBonus(tools=("search",)),
    )
    made = make_recipe("tarl", {"turn_budget": 1, "outcome_weight": 5})
    assert made.shapers == (RuleJudge(), VerdictRewards(turn_budget=1.0, outcome_weight=5.0))
    made = make_recipe("pasa", {"spawned_values.max_sessions": 3, "old_logprobs.source": "sampled"})
    assert SpawnedValues(max_sessions=3) in made.annotators
    assert OldLogprobs(source="sampled") in made.annotators
    with pytest.raises(BadValueError, match="cache"):
        make_recipe("dapo", {"overlong.limit": 10})


@pytest.mark.parametrize(
    ("name", "text", "path", "value"),
    [
        ("lr", "3e-4", "optim.lr", 3e-4),
        ("optim.betas", "0.9, 0.95", "optim.betas", (0.9, 0.95)),
        ("dual", "3", "loss.clip.dual", 3.0),
        ("dual", "none", "loss.clip.dual", None),
        ("rollout.n", "16", "rollout.n", 16),
        ("scale", "none", "credit.scale", "none"),
        ("ratio", "sequence", "loss.ratio", "sequence"),
    ],
)
def test_a_setting_is_read_from_its_text(name: str, text: str, path: str, value: Any) -> None:
    assert settings_of(make_recipe("grpo", {name: text}))[path] == value


def test_a_switch_is_read_from_its_text() -> None:
    assert settings_of(make_recipe("ppo", {"bootstrap": "true"}))["credit.bootstrap"] is True


def test_a_part_is_exchanged_by_its_name_and_then_set() -> None:
    dr = make_recipe("grpo", {"aggregate": "constant", "length": "64", "scale": "none"})
    assert isinstance(dr.loss, PolicyLoss)
    assert dr.loss.aggregate == PathMeanConstant(length=64)
    again = with_settings(grpo(), {"aggregate": PathMeanConstant(length=64)})
    assert again.loss == dr.loss


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"optim.lrr": 1}, UnknownNameError, "Did you mean 'optim.lr'"),
        ({"aggregate": "tokenmean"}, UnknownNameError, "Did you mean 'token-mean'"),
        ({"scale": "sdt"}, UnknownNameError, "Did you mean 'std'"),
        ({"name": "x"}, UnknownNameError, "unknown setting 'name'"),
        ({"filter": "none"}, UnknownNameError, "unknown setting 'filter'"),
        ({"lr": "abc"}, BadValueError, "optim.lr: got 'abc'; expected a number"),
        ({"epochs": "1.5"}, BadValueError, "expected a whole number"),
        ({"epochs": 1.5}, BadValueError, "expected a whole number"),
        ({"epochs": True}, BadValueError, "expected a whole number"),
        ({"epochs": float("inf")}, BadValueError, "expected a whole number"),
        ({"temperature": "inf"}, BadValueError, "temperature is inf; expected a finite"),
        ({"lr": 10**400}, BadValueError, r"optim\.lr: got 1000.*expected a number"),
        ({"betas": "0.9"}, BadValueError, "optim.betas"),
        ({"lr": -1}, BadValueError, "Optim.lr is -1"),
        ({"rollout.n": 1}, BadValueError, "every advantage would be 0"),
    ],
)
def test_a_bad_setting_is_refused(
    settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_recipe("grpo", settings)


@pytest.mark.parametrize(
    ("recipe", "name", "listed"),
    [
        ("ppo", "clip", r"loss\.value\.clip or loss\.policy\.clip\.low or"),
        ("ppo", "coef", r"loss\.policy\.kl\.coef or loss\.value\.coef"),
        ("grpo", "loss.clip", r"loss\.clip\.low or loss\.clip\.high or loss\.clip\.dual"),
    ],
)
def test_a_name_that_fits_several_settings_must_be_spelled_out(
    recipe: str, name: str, listed: str
) -> None:
    with pytest.raises(BadValueError, match=f"could be {listed}.*say which"):
        make_recipe(recipe, {name: 0.3})


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'grpo'"):
        make_recipe("grpoo")


def test_optim_refuses_what_cannot_be() -> None:
    for f in dataclasses.fields(Optim):
        if f.name != "betas":
            with pytest.raises(BadValueError, match=f.name):
                Optim(**{f.name: -1})
    with pytest.raises(BadValueError, match="betas"):
        Optim(betas=(0.9, 1.0))


def test_a_recipe_that_is_not_known_is_perhaps_a_plugin_s() -> None:
    with pytest.raises(UnknownNameError, match="--plugin FILE"):
        make_recipe("mine")


def test_a_recipe_as_a_value_is_no_name() -> None:
    with pytest.raises(BadValueError, match=r"got a Recipe; expected the name .*TrainConfig"):
        make_recipe(grpo())  # type: ignore[arg-type]
