"""Precision, recall and calibration, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.agents.paper_selector.calibration import draw_calibration, selector_scores
from turngym.envs.core.errors import BadValueError


def test_by_hand():
    scores = selector_scores([0.9, 0.8, 0.5, 0.1, 0.15], [True, False, True, False, False])
    assert (scores.n, scores.positives) == (5, 2)
    assert scores.precision == scores.recall == scores.f1 == 0.5  # 0.5 itself is not selected
    assert scores.accuracy == pytest.approx(3 / 5)
    # ranges: .1 and .15 together, .5, .8, .9
    assert scores.ece == pytest.approx((2 * 0.125 + 0.5 + 0.8 + 0.1) / 5)
    assert scores.brier == pytest.approx((0.01 + 0.64 + 0.25 + 0.01 + 0.0225) / 5)
    assert scores.bins[1] == (0.1, 0.2, 2, pytest.approx(0.125), 0.0)
    assert scores.bins[9] == (0.9, 1.0, 1, 0.9, 1.0)


def test_nothing_selected_and_nothing_right():
    scores = selector_scores([0.2, 0.3], [True, False])
    assert (scores.precision, scores.recall, scores.f1) == (0.0, 0.0, 0.0)
    assert selector_scores([0.9, 1.0], [False, False]).f1 == 0.0


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_laws(judged):
    p, y = zip(*judged, strict=True)
    scores = selector_scores(p, y)
    assert sum(b.n for b in scores.bins) == scores.n == len(judged)
    assert sum(b.n * b.true for b in scores.bins) == pytest.approx(scores.positives)
    assert 0 <= scores.ece <= 1
    assert scores.ece >= abs(sum(p) - sum(y)) / len(p) - 1e-9  # at least the overall distance
    assert selector_scores([float(v) for v in y], y).accuracy == 1.0


@pytest.mark.parametrize(
    ("p", "y"), [([], []), ([0.5], [True, False]), ([1.5], [True]), ([float("nan")], [True])]
)
def test_refusals(p, y):
    with pytest.raises(BadValueError):
        selector_scores(p, y)


def test_the_picture(tmp_path):
    from matplotlib.image import imread

    path = tmp_path / "calibration.png"
    draw_calibration(
        selector_scores([0.9, 0.2, 0.6], [True, False, True]), path, "three papers, $\\frac{$"
    )
    picture = imread(path)[:, :, :3]
    assert picture.shape[0] > 600
    assert picture.min() < 0.5 < picture.max()
    blue = (picture[:, :, 2] - picture[:, :, 0]) > 0.4
    assert blue.sum() > 1000  # points and bars
