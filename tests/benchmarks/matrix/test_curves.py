"""Values of and areas under learning curves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.benchmarks.matrix.curves import area_under, value_at
from turngym.envs.core.errors import BadValueError

NUMBER = st.floats(-100, 100)


def test_areas_by_hand() -> None:
    assert area_under([0, 10], [0, 1], 10) == 0.5
    assert area_under([0, 5], [0, 1], 10) == 0.75  # half a budget's ramp, then flat
    assert area_under([0, 20], [0, 1], 10) == 0.25  # what lies beyond does not count
    assert area_under([4], [3], 10) == 3
    assert value_at([0, 10], [0, 1], 2.5) == 0.25
    assert value_at([0, 5, 5], [0, 1, 3], 5) == 3  # of equal places the last


@given(st.lists(st.tuples(st.integers(0, 50), NUMBER), min_size=1, max_size=8), st.integers(1, 60))
def test_an_area_lies_within_and_a_point_on_the_line_changes_nothing(
    points: list[tuple[int, float]], limit: int
) -> None:
    points = sorted(dict(points).items())
    xs, ys = [float(x) for x, _ in points], [y for _, y in points]
    got = area_under(xs, ys, limit)
    assert min(ys) - 1e-6 <= got <= max(ys) + 1e-6
    middle = (xs[0] + xs[-1]) / 2 + 0.25
    more = sorted([*zip(xs, ys, strict=True), (middle, value_at(xs, ys, middle))])
    again = area_under([x for x, _ in more], [y for _, y in more], limit)
    assert again == pytest.approx(got, abs=1e-6)


def test_no_curves() -> None:
    with pytest.raises(BadValueError, match="decreases"):
        area_under([1, 0], [0, 0], 1)
    with pytest.raises(BadValueError, match="equally many"):
        value_at([1, 2], [0], 1)
    with pytest.raises(BadValueError, match="limit"):
        area_under([0], [0], 0)
