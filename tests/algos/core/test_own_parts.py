"""Parts of one's own that are none, or return something else, are named with what was expected."""

from __future__ import annotations

import asyncio
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.forests import single_turns

from turngym.algos.core.annotators import OldLogprobs
from turngym.algos.core.filters import DynamicSampling
from turngym.algos.core.forest import Forest, Group, Tree
from turngym.algos.core.kinds import play_group
from turngym.algos.core.protocols import (
    Annotator,
    Credit,
    Credits,
    Loss,
    LossBatch,
    LossOut,
    Rollout,
    Shaper,
    Start,
    Unforked,
)
from turngym.algos.core.recipe import Optim, Recipe
from turngym.algos.credit import GroupCredit
from turngym.algos.learner.loss_traits import silent_without_advantage
from turngym.algos.losses import PolicyLoss, TokenMean
from turngym.algos.recipes import make_recipe, recipe
from turngym.algos.recipes.registry import RECIPES
from turngym.algos.rewards.shaping import InvalidActionPenalty
from turngym.algos.rollouts import Chains
from turngym.algos.rollouts.collect import play_step
from turngym.algos.rollouts.step_limits import Played, StepLimits
from turngym.algos.rollouts.task_order import OrderedTasks
from turngym.algos.training.credit_step import assign_credit
from turngym.envs.core.errors import BadValueError, UnknownNameError

START = Start("train", 0, 0, "u")


@dataclass(frozen=True, kw_only=True)
class Own:
    """What every kind of part below has, in place of its call."""

    gives: Any = None

    def __call__(self, *_: Any) -> Any:
        return self.gives


class OwnCredit(Own, Credit): ...


class OwnShaper(Own, Shaper): ...


class OwnLoss(Own, Loss): ...


class OwnAnnotator(Own, Annotator):
    provides = frozenset({"old_logprobs"})


class OwnRollout(Own, Unforked):
    n = 2


class Endless:
    max_rounds = float("inf")

    def keeps(self, returns: Any) -> bool:
        return False


class NoCall(Credit): ...


class Unsaid(Rollout):
    async def __call__(self, runner: Any, start: Start) -> Group:
        return Group(start.uid, "t")


class Named(OwnCredit):
    needs = "values"  # type: ignore[assignment]


def function(*_: Any) -> Any: ...


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"credit": GroupCredit}, r"credit is the class GroupCredit; .*instance: GroupCredit\("),
        ({"credit": function}, "credit is <function .* which has no speaks, .*protocols.Credit"),
        ({"credit": NoCall()}, "which has no __call__; expected an object whose class derives"),
        ({"credit": Named()}, "Named.needs is 'values'; expected a set of names"),
        ({"loss": PolicyLoss}, "loss is the class PolicyLoss; expected an instance"),
        ({"loss": PolicyLoss(aggregate=TokenMean)}, "loss.aggregate is the class TokenMean"),
        ({"loss": "policy"}, "loss is 'policy', which has no .*protocols.Loss"),
        ({"rollout": Chains}, "rollout is the class Chains; expected an instance"),
        ({"rollout": Unsaid()}, "Unsaid.max_paths is None; expected an integer of at least 1"),
        ({"rollout": None}, "rollout is None, which has no .*protocols.Rollout"),
        ({"shapers": InvalidActionPenalty()}, r"shapers is Inv.*tuple of parts.*: \(part,\)"),
        ({"shapers": (InvalidActionPenalty,)}, "shapers is the class InvalidActionPenalty"),
        ({"shapers": (function,)}, "shapers is <function .*protocols.Shaper"),
        ({"annotators": [OldLogprobs()]}, "annotators is .*; expected a tuple of parts"),
        ({"annotators": (OldLogprobs,)}, "annotators is the class OldLogprobs"),
        ({"filter": function}, "filter is <function .* which has no max_rounds, keeps"),
        ({"filter": Endless()}, "Endless.max_rounds is inf; expected an integer of at least 1"),
        ({"tracker": object()}, "tracker is <object .* which has no .*start"),
        ({"optim": Optim}, r"optim is <class .*; expected Optim\("),
    ],
)
def test_what_is_no_part_of_its_kind_is_refused(part: dict[str, Any], reason: str) -> None:
    parts = {"rollout": Chains(n=2), "credit": GroupCredit(), "loss": PolicyLoss(), **part}
    with pytest.raises(BadValueError, match=f"recipe 'mine': .*{reason}"):
        Recipe(name="mine", paper="-", **parts)


async def in_time(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("gives", "reason"),
    [
        (Group("u", "t"), "OwnRollout returned a Group; expected a coroutine.*async def"),
        ([None], "OwnRollout returned a NoneType; expected a Group"),
        ([[Tree()]], "OwnRollout returned a list; expected a Group"),
        ([Group("u", "t", [[]])], "with a list among its trees; expected Trees"),  # type: ignore[list-item]
    ],
)
def test_a_rollout_that_returns_something_else_is_named(gives: Any, reason: str) -> None:
    async def play() -> Group:
        given = in_time(gives[0]) if isinstance(gives, list) else gives
        return await play_group(OwnRollout(gives=given), None, START)

    with pytest.raises(TypeError, match=reason):
        asyncio.run(play())


def credited(**parts: Any) -> Any:
    made = replace(make_recipe("grpo", {"loss.kl.coef": 0.0}), **parts)
    scorer: Any = object()
    forest = single_turns([1.0, 0.0], [0.5], n=2)
    return assign_credit(made, forest, scorer, OrderedTasks(0, "train", 10))


ROW = np.float32([0.5, 0.5])


@pytest.mark.parametrize(
    ("advantages", "reason"),
    [
        (
            None,
            "OwnCredit gave 'advantages' as a NoneType; expected a list of one array per path",
        ),
        ([ROW], "gave 'advantages' as a list of 1; expected a list of one array per path, 3"),
        ([ROW, ROW, [0.5, 0.5]], r"for path 2 as \[0.5, 0.5\], a list; expected a NumPy array"),
        ([ROW, ROW, torch.tensor(ROW)], "for path 2 as .*, a Tensor; expected a NumPy array"),
        ([ROW, ROW, 0.5], "for path 2 as 0.5, a float; expected a NumPy array with one dim"),
        ([ROW, ROW[None], ROW], "for path 1 .* expected a NumPy array with one dimension"),
        ([ROW, ROW[:1], ROW], "for path 1 as 1 values; expected one for each of its 2 action"),
    ],
)
def test_advantages_that_do_not_fit_the_paths_are_named(advantages: Any, reason: str) -> None:
    with pytest.raises((TypeError, BadValueError), match=reason):
        credited(credit=OwnCredit(gives=Credits(advantages=advantages)))
    fine = credited(credit=OwnCredit(gives=Credits(advantages=[ROW] * 3)))
    assert len(fine.credits.advantages) == 3


@dataclass(frozen=True, kw_only=True)
class Careless(Own):
    """Writes into an array of what it is given."""

    name: str

    def __call__(self, forest: Forest, annotations: Any = {}) -> Any:  # noqa: B006
        array = annotations.get(self.name, [None])[0]
        if array is None:
            array = getattr(forest.groups[0].trees[0].turns[0], self.name)
        array += 1
        return self.gives or forest


class CarelessCredit(Careless, Credit): ...


class CarelessShaper(Careless, Shaper): ...


@pytest.mark.parametrize("name", ["rewards", "act_ids", "old_logprobs"])
def test_a_credit_rule_that_changes_what_it_is_given_is_named(name: str) -> None:
    annotator = OwnAnnotator(gives={"old_logprobs": [ROW.copy(), ROW, ROW]})
    careless = CarelessCredit(name=name, gives=Credits(advantages=[ROW] * 3))
    with pytest.raises(BadValueError, match=f"'grpo': CarelessCredit changed '{name}' in place"):
        credited(annotators=(annotator,), credit=careless)


class Pruning(Own, Credit):
    def __call__(self, forest: Forest, annotations: Any) -> Any:
        forest.groups[0].trees[0].turns.pop()
        return self.gives


class Rewriting(Own, Credit):
    def __call__(self, forest: Forest, annotations: Any) -> Any:
        turn: Any = forest.turns(forest.paths[0])[0]
        turn.reward = 1.0


def test_a_credit_rule_that_takes_turns_away_is_named() -> None:
    with pytest.raises(BadValueError, match=r"Pruning changed 'turns' in place.*list\(turns\)"):
        credited(credit=Pruning(gives=Credits(advantages=[ROW] * 3)))


def test_a_turn_says_that_nothing_of_it_can_be_set() -> None:
    with pytest.raises(FrozenInstanceError, match=r"reward cannot be set to 1\.0.*replaced in"):
        credited(credit=Rewriting())


def test_annotations_of_a_task_source_are_arrays() -> None:
    class Ragged(OrderedTasks):
        def annotations(self, forest: Forest) -> dict[str, Any]:
            return {"seen": [[0.1, [0.2]]] * len(forest.paths)}

    made = make_recipe("grpo", {"loss.kl.coef": 0.0})
    scorer: Any = object()
    with pytest.raises(TypeError, match="Ragged gave 'seen' for path 0 as"):
        assign_credit(made, single_turns([1.0, 0.0], [0.5], n=2), scorer, Ragged(0, "train", 10))


def test_a_shaper_that_changes_what_it_is_given_is_named() -> None:
    with pytest.raises(BadValueError, match="'grpo': a shaper changed 'rewards' in place"):
        credited(shapers=(CarelessShaper(name="rewards"),))


@pytest.mark.parametrize(
    ("gives", "reason"),
    [
        (None, r"OwnAnnotator returned NoneType; expected a dictionary of \['old_logprobs'\]"),
        ({"other": [ROW] * 3}, r"OwnAnnotator returned \['other'\]; expected a dictionary of"),
        ({"old_logprobs": [ROW]}, "OwnAnnotator gave 'old_logprobs' as a list of 1; expected"),
        ({"old_logprobs": [None] * 3}, "'old_logprobs' for path 0 as None, a NoneType; expected"),
    ],
)
def test_an_annotator_that_returns_something_else_is_named(gives: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        credited(annotators=(OwnAnnotator(gives=gives),))


class Dropping(Shaper):
    """Leaves a group out, which is a filter's part."""

    def __call__(self, forest: Forest) -> Forest:
        return Forest.of(forest.groups[:1])


class Scalar(Shaper):
    def __call__(self, forest: Forest) -> Forest:
        groups = [
            Group(g.uid, g.task_id, [Tree([replace(t, rewards=1.0) for t in tree.turns])])
            for g in forest.groups
            for tree in g.trees
        ]
        return Forest(groups, Forest.of(groups).paths)


def test_a_shaper_that_leaves_groups_out_is_refused() -> None:
    """It trained on less without a word."""
    with pytest.raises(BadValueError, match=r"Dropping returned Forest\(1 groups, 2 paths\), but"):
        credited(shapers=(Dropping(),))
    with pytest.raises(TypeError, match="OwnShaper returned a NoneType; expected the forest"):
        credited(shapers=(OwnShaper(),))
    made = replace(make_recipe("grpo", {"loss.kl.coef": 0.0}), shapers=(Scalar(),))
    scorer: Any = object()
    with pytest.raises(BadValueError, match=r"tree 0, turn 0 the rewards 1.0; expected an array"):
        assign_credit(made, single_turns([1.0], n=2), scorer, OrderedTasks(0, "train", 10))


@pytest.mark.parametrize(
    ("gives", "reason"),
    [
        (None, r"OwnLoss returned a NoneType; expected LossOut\("),
        (torch.ones(()), r"OwnLoss returned a Tensor; expected LossOut\("),
        (LossOut(loss=0.5, metrics={}), "gave 'loss' as a float .0.5.; expected a tensor of one"),  # type: ignore[arg-type]
        (LossOut(torch.ones(2, 4), {}), r"gave 'loss' as a Tensor .\[2, 4\].; expected a tensor"),
        (LossOut(torch.ones(()), {"a": 0.5}), "gave 'a' as a float .0.5.; expected a tensor of"),  # type: ignore[dict-item]
        (LossOut(torch.ones(()), None), "gave metrics as a NoneType; expected a mapping"),  # type: ignore[arg-type]
    ],
)
def test_a_loss_that_returns_something_else_is_named(gives: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        silent_without_advantage(OwnLoss(gives=gives))


class Reading(Loss):
    """Reads a stream that a credit rule of one's own gives it."""

    needs = frozenset({"my_weights"})  # type: ignore[assignment]

    def __call__(self, batch: LossBatch) -> LossOut:
        terms = batch.extra["my_weights"] * batch.advantages * batch.logprobs
        return LossOut(-(terms * batch.mask).sum(), {})


def test_a_loss_may_read_a_stream_of_its_own() -> None:
    assert silent_without_advantage(Reading())


class Undeclared(Reading):
    needs = frozenset()  # type: ignore[assignment]


class UndeclaredCredit(GroupCredit):
    def __call__(self, forest: Any, annotations: Any) -> Any:
        return annotations["old_logprobs"]


def test_what_reads_an_array_that_it_does_not_ask_for_is_told_to_ask() -> None:
    with pytest.raises(UnknownNameError, match=r"'my_weights'.*needs = frozenset\(\{'my_weights'"):
        silent_without_advantage(Undeclared())
    with pytest.raises(UnknownNameError, match=r"'old_logprobs'.*needs = frozenset\(\{'old_log"):
        credited(credit=UndeclaredCredit())


class Vague(DynamicSampling):
    def keeps(self, returns: Any) -> Any:
        return None


def test_a_filter_says_yes_or_no() -> None:
    class Runner:
        async def groups(self, rollout: Any, starts: Any) -> list[Group]:
            return list(single_turns([1.0]).groups)

    made = replace(make_recipe("grpo", {"groups_per_step": 1}), filter=Vague())
    played = play_step(made, Runner(), OrderedTasks(0, "train", 10), Played(), StepLimits())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Vague\.keeps returned None; expected True or False"):
        asyncio.run(played)


def test_a_recipe_of_one_s_own_is_a_recipe_with_a_summary() -> None:
    with pytest.raises(BadValueError, match=r"the summary is <function function.*expected a text"):
        recipe(function)  # type: ignore[arg-type]
    try:
        recipe("nothing")(function)
        with pytest.raises(BadValueError, match="function returned a NoneType; expected a Recipe"):
            make_recipe("function")
    finally:
        RECIPES.pop("function", None)
