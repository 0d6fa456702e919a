"""Settings of algorithm parts that are given in Python, of another kind than declared."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from turngym.algos.core.recipe import Optim
from turngym.algos.credit import GroupCredit
from turngym.algos.credit.hindsight import HindsightCredit
from turngym.algos.losses import Clip, PolicyLoss
from turngym.algos.losses.surrogates import Cispo
from turngym.algos.recipes import grpo
from turngym.algos.rollouts import Chains
from turngym.algos.rollouts.value_tracker import BetaTracker
from turngym.envs.core.errors import BadValueError


@pytest.mark.parametrize("value", ["16", None, 2.5, True])
@pytest.mark.parametrize(
    ("make", "name", "expected"),
    [
        (Optim, "minibatches", "Optim.minibatches is {}; expected an integer"),
        (Optim, "betas", "Optim.betas are {}; expected two values"),
        (partial(replace, grpo()), "groups_per_step", "groups_per_step is {}; expected an integer"),
        (Chains, "n", "Chains.n is {}; expected an integer"),
        (PolicyLoss, "clip", "PolicyLoss.clip is {}; expected a part such as Clip"),
        (PolicyLoss, "kl", "PolicyLoss.kl is {}; expected a part such as Kl"),
        (BetaTracker, "pool", "BetaTracker.pool is {}; expected an integer"),
        (HindsightCredit, "clip", "HindsightCredit: clip is {}; expected bounds"),
    ],
)
def test_values_of_another_kind_are_refused_in_python_too(
    make: Callable[..., Any], name: str, expected: str, value: object
) -> None:
    with pytest.raises(BadValueError, match=re.escape(expected.format(repr(value)))):
        make(**{name: value})


@pytest.mark.parametrize("value", ["1e-3", None, True])
@pytest.mark.parametrize(
    ("make", "name", "expected"),
    [
        (Optim, "lr", "Optim.lr is {}; expected a number"),
        (Clip, "low", "Clip.low is {}; expected a number"),
        (Cispo, "low", "Cispo.low is {}; expected a number"),
        (GroupCredit, "eps", "GroupCredit.eps is {}; expected a number"),
        (partial(replace, grpo()), "temperature", "temperature is {}; expected a finite number"),
    ],
)
def test_numbers_given_as_texts_are_refused_in_python_too(
    make: Callable[..., Any], name: str, expected: str, value: object
) -> None:
    with pytest.raises(BadValueError, match=re.escape(expected.format(repr(value)))):
        make(**{name: value})


def test_numbers_of_numpy_are_taken() -> None:
    optim = Optim(lr=np.float32(0.5), minibatches=np.int64(2))  # pyright: ignore[reportArgumentType]
    assert (optim.lr, optim.minibatches) == (0.5, 2)
    assert replace(grpo(), groups_per_step=2, tokens_per_step=np.int64(9)).tokens_per_step == 9  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("given", [{"name": 3}, {"name": ""}, {"paper": None}])
def test_a_recipe_is_named_by_texts(given: dict[str, Any]) -> None:
    with pytest.raises(BadValueError, match="expected two texts, the first one not empty"):
        replace(grpo(), **given)
