"""CISPO, SAPO, DPPO, ratios of turns and the row mask: worked numbers and laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from helpers.loss_batches import batch
from hypothesis import given
from hypothesis import strategies as st

from turngym.algos.core.protocols import Norm
from turngym.algos.losses import (
    Cispo,
    Clip,
    DppoLoss,
    KeptClip,
    MaskedLoss,
    PathMeanTokenMean,
    PolicyLoss,
    Sapo,
)
from turngym.algos.losses.dppo import binary_kl
from turngym.envs.core.errors import BadValueError


def gradient(loss: Any, b: Any) -> list[list[float]]:
    """Return d loss / d logprob of the real tokens."""
    loss(b).loss.backward()
    lengths = b.mask.sum(1).int().tolist()
    return [row[:n].tolist() for row, n in zip(b.logprobs.grad, lengths, strict=True)]


@pytest.mark.parametrize(
    ("ratio", "advantage", "ppo", "cispo", "sapo"),
    [
        (1.5, 1.0, 0.0, -1.5, -1.410022),
        (1.5, -1.0, 1.5, 1.5, 1.401210),
        (0.5, -1.0, 0.0, 0.5, 0.467070),
        (6.0, 1.0, 0.0, -5.0, -0.159553),
        (6.0, -1.0, 0.0, 5.0, 0.124629),
    ],
)
def test_d1_gradients(
    ratio: float, advantage: float, ppo: float, cispo: float, sapo: float
) -> None:
    for clip, expected in (
        (Clip(low=0.2, high=0.28, dual=3.0), ppo),
        (Cispo(), cispo),
        (Sapo(), sapo),
    ):
        b = batch([[math.log(ratio)]], [[advantage]])
        ((found,),) = gradient(PolicyLoss(clip=clip), b)
        assert found == pytest.approx(expected, abs=1e-6)


def test_a_bound_of_cispo_is_told_and_a_gate_of_sapo_is_none() -> None:
    rows, ones = [[math.log(6.0), math.log(0.5)]], [[1.0, 1.0]]
    assert float(PolicyLoss(clip=Cispo())(batch(rows, ones)).metrics["clip_frac"]) == 0.5
    narrow = Cispo(low=0.2, high=0.2)
    assert float(PolicyLoss(clip=narrow)(batch(rows, ones)).metrics["clip_frac"]) == 1.0
    assert float(PolicyLoss(clip=Sapo())(batch(rows, ones)).metrics["clip_frac"]) == 0.0


@given(
    st.lists(st.lists(st.floats(-2, 2), min_size=1, max_size=4), min_size=1, max_size=4),
    st.sampled_from(["token", "turn", "sequence"]),
)
def test_at_ratio_one_all_surrogates_have_one_gradient(rows: list[list[float]], level: Any) -> None:
    """The policy gradient, whatever the level; the squared tie of DPPO has none there."""
    on_policy = [[0.0] * len(row) for row in rows]
    found = [
        gradient(loss, batch(on_policy, rows))
        for loss in (
            PolicyLoss(ratio=level),
            PolicyLoss(ratio=level, clip=Cispo()),
            PolicyLoss(ratio=level, clip=Sapo()),
            PolicyLoss(ratio=level, clip=KeptClip()),
            MaskedLoss(of=PolicyLoss(ratio=level), unit="path"),
            DppoLoss(),
        )
    ]
    n = sum(map(len, rows))
    for row, *others in zip(rows, *found, strict=True):
        for other in others:
            assert other == pytest.approx([-a / n for a in row], abs=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "advantage", "keeps", "nats", "ppo"),
    [
        (0.05, 0.10, 1.0, True, 0.016707, False),
        (0.75, 0.50, -1.0, False, 0.130812, False),
        (0.75, 0.50, 1.0, True, 0.130812, True),
        (0.95, 0.80, -1.0, True, 0.093943, True),
        (0.50, 0.75, 1.0, False, 0.143841, False),
        (0.05, 0.10, -1.0, True, 0.016707, True),
    ],
)
def test_d2_dppo(
    old: float, new: float, advantage: float, keeps: bool, nats: float, ppo: bool
) -> None:
    b = batch([[0.0]], [[advantage]])
    b.logprobs.data.fill_(math.log(new))
    b.old_logprobs.fill_(math.log(old))
    ((found,),) = gradient(DppoLoss(), b)
    ratio = new / old
    expected = -advantage * ratio * keeps + 2e-3 * math.log(ratio)
    assert found == pytest.approx(expected, abs=1e-6)
    assert (found == pytest.approx(-1.998614, abs=1e-6)) == ((old, advantage) == (0.05, 1.0))
    pair = torch.tensor([old]), torch.tensor([new])
    assert float(binary_kl(*pair)) == pytest.approx(nats, abs=1e-6)
    # PPO judges by the ratio: it drops what moved by .05 and keeps what moved by .15
    ((plain,),) = gradient(PolicyLoss(), batch([[math.log(ratio)]], [[advantage]]))
    assert (plain != 0) == ppo
    loose = DppoLoss(measure="binary-kl", bound=nats + 1e-4)
    tight = DppoLoss(measure="binary-kl", bound=nats - 1e-4)
    args = b.logprobs, b.old_logprobs, b.advantages
    assert not bool(loose.drops(*args).any())
    assert bool(tight.drops(*args).any()) == ((new - old) * advantage > 0)


@pytest.mark.parametrize(("level", "loss"), [("turn", -0.102500), ("sequence", -0.085216)])
def test_d3_ratios_of_turns_and_of_paths(level: Any, loss: float) -> None:
    b = batch(
        [[0.1, 0.3, -0.2, -0.4, 0.0]],
        [[1.0, 1.0, -0.5, -0.5, -0.5]],
        turns=[[0, 0, 1, 1, 1]],
    )
    made = PolicyLoss(ratio=level, clip=Clip(low=3e-3, high=4e-3), aggregate=PathMeanTokenMean())
    assert made(b).loss.item() == pytest.approx(loss, abs=1e-6)
    wide = PolicyLoss(ratio=level, clip=Clip(low=0.9, high=9.0), aggregate=PathMeanTokenMean())
    expected = {"turn": (2 * 1.221403 - 1.5 * 0.818731) / 5, "sequence": 0.960789 * 0.5 / 5}[level]
    assert wide(b).loss.item() == pytest.approx(-expected, abs=1e-6)


def test_e2_the_upper_bound_of_aepo_keeps_a_gradient() -> None:
    clip = PolicyLoss(clip=KeptClip(low=0.2, high=0.28))
    for ratio, advantage, loss, slope in (
        (1.5, 1.0, -1.28, -1.28),
        (1.5, -1.0, 1.5, 1.5),
        (0.5, 1.0, -0.5, -0.5),
        (0.5, -1.0, 0.8, 0.0),
        (1.1, 1.0, -1.1, -1.1),
    ):
        b = batch([[math.log(ratio)]], [[advantage]])
        out = clip(b)
        assert out.loss.item() == pytest.approx(loss)
        assert float(out.metrics["clip_frac"]) == (slope == 0.0)
        assert gradient(clip, b) == [[pytest.approx(slope)]]


ROWS = [[-0.01, -0.03], [0.02, 0.04], [-0.01, -0.03], [0.0, 0.0]]
SIGNS = [-1.0, -1.0, 1.0, -1.0]


@pytest.mark.parametrize("unit", ["turn", "path"])
def test_d4_rows_that_fell_and_were_punished_are_dropped(unit: Any) -> None:
    loss = MaskedLoss(delta=3e-3, unit=unit)
    turns = np.zeros(2, np.int64)
    kept = [
        loss.keeps(np.array(row, np.float32), np.full(2, sign, np.float32), turns).tolist()
        for row, sign in zip(ROWS, SIGNS, strict=True)
    ]
    assert kept == [[False] * 2, [True] * 2, [True] * 2, [True] * 2]
    assert (
        MaskedLoss(delta=None).keeps(-np.ones(2, np.float32), -np.ones(2, np.float32), turns).all()
    )
    assert not MaskedLoss(delta=None).masks


def test_a_turn_is_dropped_alone_and_a_path_as_a_whole() -> None:
    ratios, worth = np.array([-0.2, -0.2, 0.3, 0.3, 0.3], np.float32), np.full(5, -1.0, np.float32)
    turns = np.array([0, 0, 1, 1, 1])
    assert MaskedLoss(unit="turn").keeps(ratios, worth, turns).tolist() == [False] * 2 + [True] * 3
    assert MaskedLoss(unit="path").keeps(ratios, worth, turns).all()
    assert not MaskedLoss(unit="path").keeps(-ratios, worth, turns).any()
    assert math.log(1.25) == pytest.approx(0.223, abs=2e-4)  # ARL-Arena's default


def test_dropped_rows_leave_the_denominator() -> None:
    """What is left of the batch is the loss of the batch without them."""
    rows = [[*r] for r in ROWS]
    advantages = [[s] * 2 for s in SIGNS]
    whole = batch(rows, advantages, norm=Norm.of([0, 2, 2, 2]))
    whole.mask[0] = 0.0
    left = batch(rows[1:], advantages[1:])
    for aggregate in (PathMeanTokenMean(), PolicyLoss().aggregate):
        loss = MaskedLoss(of=PolicyLoss(aggregate=aggregate))
        assert loss(whole).loss.item() == pytest.approx(loss(left).loss.item())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cispo(low=0.0),
        lambda: Cispo(high=0.0),
        lambda: Sapo(positive=0.0),
        lambda: KeptClip(low=0.0),
        lambda: KeptClip(high=0.0),
        lambda: DppoLoss(bound=0.0),
        lambda: DppoLoss(tie=-1.0),
        lambda: DppoLoss(measure="kl"),  # type: ignore[arg-type]
        lambda: MaskedLoss(delta=0.0),
        lambda: MaskedLoss(unit="row"),  # type: ignore[arg-type]
    ],
)
def test_settings_out_of_range_are_refused(make: Any) -> None:
    with pytest.raises(BadValueError, match="expected"):
        make()


def test_turns_are_not_taken_out_of_a_path_with_one_ratio() -> None:
    with pytest.raises(BadValueError, match="unit='path'"):
        MaskedLoss(of=PolicyLoss(ratio="sequence"))
    MaskedLoss(of=PolicyLoss(ratio="sequence"), delta=None)
    MaskedLoss(of=PolicyLoss(ratio="sequence"), unit="path")
