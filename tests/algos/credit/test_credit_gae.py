"""Generalised advantage estimation against worked numbers and the slow definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.forests import forests, tree, turn
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.forest import Edge, Forest, Group
from turngym.algos.credit import Gae
from turngym.algos.credit.gae import whitened
from turngym.envs.core.errors import BadValueError

VALUES = [0.5, 0.6, 0.9, 0.7, 9.0]  # the last must not matter after a verdict


def one_path(*rewards: list[float], status: str = "solved") -> Forest:
    """A path whose turns have these token rewards."""
    turns = [
        turn(r, parent=i - 1, status=status if i == len(rewards) - 1 else "running")
        for i, r in enumerate(rewards)
    ]
    return Forest.of([Group("u", "t", [tree(*turns)])])


def floats(*values: float) -> list[Any]:
    return [np.array(values, np.float32)]


def test_e17_with_lambda_one_and_below() -> None:
    forest = one_path([0, 0, 0, 1.0])
    annotations = {"values": floats(*VALUES)}
    got = Gae(lam=1.0, whiten=False)(forest, annotations)
    assert got.advantages[0] == pytest.approx([0.5, 0.4, 0.1, 0.3], abs=1e-6)
    got = Gae(lam=0.95, whiten=False)(forest, annotations)
    assert got.advantages[0] == pytest.approx([0.461712, 0.380750, 0.085, 0.3], abs=1e-6)
    assert got.value_targets[0] == pytest.approx([0.961712, 0.98075, 0.985, 1.0], abs=1e-6)


def test_e17_observation_tokens_are_skipped() -> None:
    """Token 1 of the worked example is an observation: here it is not an action token at all."""
    forest = one_path([0.0], [0.0, 1.0])
    got = Gae(lam=0.95, whiten=False)(forest, {"values": floats(0.5, 0.9, 0.7, 0.0)})
    assert got.advantages[0] == pytest.approx([0.48075, 0.085, 0.3], abs=1e-6)


def test_e18_whitening_over_policy_tokens() -> None:
    rows = [np.array([1.0, 2.0]), np.array([3.0])]
    assert np.concatenate(whitened(rows)) == pytest.approx([-1, 0, 1])
    assert [r.tolist() for r in whitened([np.array([2.0])])] == [[0.0]]
    assert [r.tolist() for r in whitened([np.full(3, 0.1), np.full(2, 0.1)])] == [[0.0] * 3, [0, 0]]
    assert whitened([]) == []


@pytest.mark.parametrize("status", ["solved", "failed"])
def test_a_verdict_ends_the_return(status: str) -> None:
    got = Gae(whiten=False)(one_path([0, 0.5], status=status), {"values": floats(0, 0, 4)})
    assert got.advantages[0].tolist() == [0.5, 0.5]


def test_a_truncated_path_goes_on_with_the_critic_s_value() -> None:
    forest = one_path([0, 0.5], status="truncated")
    annotations = {"values": floats(0, 0, 4)}
    assert Gae(whiten=False)(forest, annotations).advantages[0].tolist() == [4.5, 4.5]
    assert Gae(whiten=False, bootstrap=False)(forest, annotations).advantages[0].tolist() == [
        0.5,
        0.5,
    ]


@pytest.mark.parametrize(("status", "after"), [("running", 0.0), ("truncated", 4.0)])
def test_a_session_that_ends_ends_at_nothing(status: str, after: float) -> None:
    """Its last turn is running, as that of an episode left there; a limit is told from that."""
    turns = [
        turn([1.0], parent=-1),
        turn([0.5], parent=0, edge=Edge.SPAWN),
        turn([0.25], parent=0, previous=1, status=status),
    ]
    forest = Forest.of([Group("u", "t", [tree(*turns)])])
    values = {"values": [np.array([0.0] * len(p.turns) + [4.0], np.float32) for p in forest.paths]}
    got = Gae(whiten=False)(forest, values).advantages
    by_path = {p.turns: a.tolist() for p, a in zip(forest.paths, got, strict=True)}
    assert by_path == {(0, 2): [1.25 + after, 0.25 + after], (1,): [0.5]}


@given(forests(), st.floats(0, 1), st.floats(0, 1), st.data())
def test_equals_the_sum_of_discounted_errors(
    forest: Forest, gamma: float, lam: float, data: st.DataObject
) -> None:
    seed = data.draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=forest.n_act(p) + 1).astype(np.float32) for p in forest]
    got = Gae(gamma=gamma, lam=lam, whiten=False)(forest, {"values": values})
    for path, v, advantage, target in zip(
        forest, values, got.advantages, got.value_targets, strict=True
    ):
        turns = forest.turns(path)
        r = np.concatenate([t.rewards for t in turns]).astype(np.float64)
        v = v.astype(np.float64)
        spawned = any(
            t.edge is Edge.SPAWN for t in forest.groups[path.group].trees[path.tree].turns
        )
        status = turns[-1].status
        if status in ("solved", "failed") or (status == "running" and spawned):
            v[-1] = 0.0
        delta = r + gamma * v[1:] - v[:-1]
        slow = [
            sum((gamma * lam) ** (u - t) * delta[u] for u in range(t, len(r)))
            for t in range(len(r))
        ]
        np.testing.assert_allclose(advantage, slow, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(target, np.array(slow) + v[:-1], rtol=1e-4, atol=1e-4)


def test_with_gamma_and_lambda_one_it_is_the_return_minus_the_value() -> None:
    forest = one_path([0.0, 0.5], [0.25, 1.0])
    values = floats(0.1, 0.2, 0.3, 0.4, 7.0)
    got = Gae(gamma=1.0, lam=1.0, whiten=False)(forest, {"values": values})
    to_go = np.array([1.75, 1.75, 1.25, 1.0])
    np.testing.assert_allclose(got.advantages[0], to_go - values[0][:-1], atol=1e-6)


def test_e21_the_penalty_is_taken_off_every_token_s_reward() -> None:
    forest = one_path([0, 0, 0, 1.0])
    annotations = {
        "values": floats(0, 0, 0, 0, 0),
        "old_logprobs": floats(-1.0, -1.0, -1.0, -1.0),
        "ref_logprobs": floats(-1.1, -1.2, -1.0, -1.3),
    }
    rule = Gae(whiten=False, kl_coef=0.01)
    assert rule.needs == {"values", "old_logprobs", "ref_logprobs"}
    assert rule(forest, annotations).advantages[0] == pytest.approx([0.994, 0.995, 0.997, 0.997])


def test_value_targets_are_not_whitened() -> None:
    forest = one_path([0, 0, 0, 1.0])
    annotations = {"values": floats(*VALUES)}
    plain, white = Gae(whiten=False)(forest, annotations), Gae()(forest, annotations)
    np.testing.assert_array_equal(plain.value_targets[0], white.value_targets[0])
    assert white.advantages[0].mean() == pytest.approx(0, abs=1e-6)
    assert white.advantages[0].std(ddof=1) == pytest.approx(1, abs=1e-6)


def test_a_perfect_critic_explains_everything() -> None:
    forest = Forest.of([Group("u", "t", [tree(turn(r, status="solved")) for r in (0.0, 1.0)])])
    values = [np.array([r, 0], np.float32) for r in (0.0, 1.0)]
    assert Gae()(forest, {"values": values}).metrics == {"value_explained_frac": 1.0}
    assert Gae()(Forest.of([]), {"values": []}).metrics == {}


def test_values_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(BadValueError, match=r"shape \(2,\); expected \(3,\)"):
        Gae()(one_path([0, 1.0]), {"values": floats(0, 0)})


@pytest.mark.parametrize("bad", [{"gamma": 1.5}, {"lam": -0.1}, {"kl_coef": -1.0}])
def test_settings_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadValueError, match=next(iter(bad))):
        Gae(**bad)
