"""What the scripted experts share: a share of mistakes."""

from __future__ import annotations

import pytest

from turngym.envs.core.errors import BadValueError
from turngym.envs.core.noisy_expert import NoisyExpert


def test_an_expert_errs_as_often_as_it_is_told() -> None:
    assert not any(NoisyExpert().draw_mistake() for _ in range(50))
    assert all(NoisyExpert(1.0).draw_mistake() for _ in range(50))
    half = NoisyExpert(0.5, seed=2)
    assert 800 < sum(half.draw_mistake() for _ in range(2000)) < 1200


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_of_mistakes_is_a_probability(share: float) -> None:
    with pytest.raises(BadValueError, match="expected a number from 0 to 1"):
        NoisyExpert(share)
