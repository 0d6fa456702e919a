"""Drawing by inverse CDF: the right distribution, cuts, greedy, and per-request streams."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.crossings import Crossings, Waits
from hypothesis import example, given, settings
from hypothesis import strategies as st

from turngym.agents.engines import sampling
from turngym.agents.engines.sampling import (
    Draws,
    DrawSettings,
    draw,
    drawn_side_by_side,
    uniforms,
)
from turngym.envs.core.errors import BadValueError

pytestmark = pytest.mark.usefixtures("loops")


def knobs(n: int, temperature: float = 1.0, top_p: float = 1.0, top_k: int = 0) -> DrawSettings:
    return DrawSettings(
        np.full(n, temperature, np.float32), np.full(n, top_p, np.float32), np.full(n, top_k)
    )


def grid(n: int) -> np.ndarray:
    return ((np.arange(n) + 0.5) / n).astype(np.float32)


@pytest.mark.parametrize("size", [2, 7, 64, 66, 130, 1000])
def test_tokens_lie_side_by_side_where_the_next_number_draws_the_next(size: int) -> None:
    tokens = draw(torch.zeros(size, size), knobs(size), grid(size)).tokens.tolist()
    assert sorted(tokens) == list(range(size))
    for i, a in enumerate(tokens):
        near = [b for b in tokens if drawn_side_by_side(a, b, size)]
        assert sorted(near) == sorted(tokens[max(0, i - 1) : i] + tokens[i + 1 : i + 2])


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([2, 7, 63, 64, 66, 130, 200]),
    st.booleans(),
)
def test_an_even_grid_of_uniforms_gives_the_distribution(
    seed: int, temperature: float, size: int, compiled: bool
) -> None:
    logits = torch.randn(size, generator=torch.Generator().manual_seed(seed)) * 2
    n = 4000
    draws = Draws(knobs(n, temperature), grid(n))
    drawn = (draws.sample if compiled else draws._sample)(logits.expand(n, -1))
    probs = (logits.double() / temperature).softmax(-1).numpy()
    assert np.abs(np.bincount(drawn.tokens, minlength=size) / n - probs).max() < 1e-3
    np.testing.assert_allclose(drawn.logprobs, np.log(probs)[drawn.tokens], atol=1e-5)
    np.testing.assert_allclose(drawn.entropies, -(probs * np.log(probs)).sum(), atol=1e-5)


@example([0.0, 1.0, *[0.0] * 7], 8)
@given(st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=9), st.integers(0, 8))
def test_a_token_without_mass_is_never_drawn(values: list[float], banned: int) -> None:
    logits = torch.tensor([values])
    logits[0, banned % len(values)] = -torch.inf
    for u in (0.0, 2.0**-24, 0.5, 1 - 2.0**-24):
        drawn = draw(logits, knobs(1), np.array([u], np.float32))
        assert drawn.tokens[0] != banned % len(values)
        assert np.isfinite(drawn.logprobs).all()
        assert np.isfinite(drawn.entropies).all()


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        ({"top_k": 2}, {1, 3}),
        ({"top_p": 0.75}, {1, 3}),
        ({"top_p": 0.8}, {0, 1, 3}),
        ({"top_p": 1e-6}, {3}),
    ],
)
def test_cuts_keep_the_likeliest_and_report_the_full_distribution(
    cut: dict, kept: set[int]
) -> None:
    probs = np.array([0.15, 0.3, 0.1, 0.45])
    n = 2000
    drawn = draw(torch.tensor(probs).log().float().expand(n, -1), knobs(n, **cut), grid(n))
    assert set(drawn.tokens.tolist()) == kept
    share = probs[sorted(kept)] / probs[sorted(kept)].sum()
    counts = np.bincount(drawn.tokens, minlength=4)[sorted(kept)] / n
    np.testing.assert_allclose(counts, share, atol=2e-3)
    np.testing.assert_allclose(drawn.logprobs, np.log(probs)[drawn.tokens], atol=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 1e9, 1e30])
def test_the_likeliest_are_kept_at_any_temperature(temperature: float) -> None:
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0, 0.5])
    drawn = draw(logits.expand(50, -1), knobs(50, temperature, top_k=2), grid(50))
    assert set(drawn.tokens.tolist()) == {1, 3}


def test_greedy_rows_take_the_maximum_and_report_the_model_s_own_numbers() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    heat = np.array([0, 1], np.float32)
    mixed = DrawSettings(heat, np.ones(2, np.float32), np.zeros(2, np.int64))
    drawn = draw(logits, mixed, np.array([0.999, 0.999], np.float32))
    assert drawn.tokens.tolist() == [1, 2]
    want = logits.log_softmax(-1).numpy()
    np.testing.assert_allclose(drawn.logprobs, want[[0, 1], [1, 2]], atol=1e-6)


def test_streams_depend_on_seed_and_place_alone() -> None:
    long, short = uniforms(7, 50), uniforms(7, 9)
    assert long[:9].tolist() == short.tolist()
    assert not np.isin(uniforms(8, 50), long).any()
    assert (long >= 0).all()
    assert (long < 1).all()
    assert abs(uniforms(-3, 20_000).mean() - 0.5) < 0.01


def test_on_a_gpu_the_host_waits_for_the_results_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 40, generator=draws) * 3
    logits[2, 5:] = -torch.inf
    settings = DrawSettings(
        np.array([1, 0.7, 1, 0, 1, 2], np.float32),
        np.array([1, 1, 1, 1, 0.8, 1], np.float32),
        np.array([0, 0, 0, 0, 0, 5]),
    )
    monkeypatch.setattr(sampling, "compiled_loops", lambda: None)
    found, waits = [], []
    with Waits() as seen:
        found.append(draw(logits, settings, grid(6)))
    waits.append(seen.count)
    crossed = Crossings.recorded(monkeypatch)
    with Waits() as seen:
        found.append(draw(logits, settings, grid(6)))
    waits.append(seen.count)
    assert waits == [1, 0]  # beside the copy of the results
    assert (crossed.there, crossed.back) == (1, 1)
    for name in ("tokens", "logprobs", "entropies"):
        here, there = (getattr(drawn, name) for drawn in found)
        assert here.dtype == there.dtype
        np.testing.assert_array_equal(here, there)


def test_broken_logits_are_still_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.full((1, 4), float("nan"))
    assert draw(logits, knobs(1), grid(1)).tokens[0] < 4
    Crossings.recorded(monkeypatch)
    drawn = draw(logits, knobs(1), grid(1))
    assert drawn.tokens[0] < 4
    with pytest.raises(BadValueError, match="not finite"):
        drawn.check_finite()


@given(st.lists(st.tuples(st.integers(-(2**40), 2**130), st.integers(1, 20)), max_size=4))
def test_a_stream_is_that_of_a_generator_made_for_it(asked: list[tuple[int, int]]) -> None:
    for seed, n in asked:
        raw = np.random.Philox(key=seed % 2**128).random_raw(n)
        assert (uniforms(seed, n) * 2.0**24 == raw >> np.uint64(40)).all()
