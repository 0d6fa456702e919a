"""The cache on a device that a learner fills too: one piece of memory, decided once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.allocations import peak_bytes
from helpers.engine_help import ask, engine, prompts, request, same
from helpers.small_models import model
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.local import engine as module
from turngym.agents.engines.local.engine import CacheNeeds, TransformersEngine
from turngym.agents.engines.local.kv_cache import CacheShape, KvPool
from turngym.envs.core.errors import BadValueError, EpisodeError

SHAPE = CacheShape(4, 2, 8, torch.float32, torch.device("cpu"))
TOKEN = SHAPE.bytes_per_token


def mark(pool: KvPool, index: int, length: int, name: float) -> None:
    """Write into a row what tells it apart, position by position and layer by layer."""
    at = torch.arange(length, dtype=torch.float32)
    for layer in range(SHAPE.layers):
        pool.data[layer, :, index, :, :length] = (name + layer * 1000 + at)[:, None]
    pool.tokens[index, :length] = np.arange(length) + int(name)
    pool.lengths[index] = length


@given(st.lists(st.integers(1, 300), min_size=1, max_size=9), st.integers(0, 2**20))
@settings(max_examples=25, deadline=None)
def test_rows_keep_their_numbers_however_they_are_laid_out_again(
    lengths: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pool = KvPool(SHAPE, 6, 6 * 200 * TOKEN, fixed=True)
    rows: dict[float, tuple[Any, int]] = {}
    for i, length in enumerate(lengths):
        row = pool.acquire(length)
        if row is None:
            continue
        mark(pool, row.index, length, 100.0 * (i + 1))
        rows[100.0 * (i + 1)] = row, length
        if rng.random() < 0.3:
            name = float(rng.choice(list(rows)))
            pool.drop(rows.pop(name)[0])
        for name, (held, size) in rows.items():
            for layer in range(SHAPE.layers):
                found = pool.data[layer, 0, held.index, 0, :size, 0]
                assert found.tolist() == [name + layer * 1000 + t for t in range(size)]
            assert pool.tokens[held.index, :size].tolist() == [int(name) + t for t in range(size)]


def test_a_new_layout_never_lies_beside_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(shape: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=device)  # as on CUDA, so that it is counted

    cpu = torch.device("cpu")
    home = "turngym.agents.engines.local.kv_cache"
    monkeypatch.setattr(f"{home}._zeros", zeros)
    monkeypatch.setattr(f"{home}._in_small_pages", lambda shape, kind: zeros(shape, kind, cpu))
    budget = 8 * 320 * TOKEN

    def work(fixed: bool) -> None:
        pool = KvPool(SHAPE, 8, budget, fixed=fixed)
        for length in (60, 60, 120, 120, 250, 250, 300, 300):
            assert pool.acquire(length) is not None

    kept, growing = peak_bytes(lambda: work(True)), peak_bytes(lambda: work(False))
    assert budget <= kept <= budget * (1 + 1.1 / SHAPE.layers)  # and one layer on its way
    assert growing > 1.5 * budget  # as it was: the new one beside the old one


def fixed(eng: TransformersEngine, max_bytes: int) -> TransformersEngine:
    """Return the engine with a pool as on CUDA."""
    eng._pool = KvPool(eng._forward.shape, 2 * eng._max_batch, max_bytes, fixed=True)
    return eng


@pytest.mark.parametrize("family", ["Qwen2", "Gemma"])
def test_an_engine_over_a_fixed_cache_samples_the_same(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compiled_loops", lambda: None)  # torch, as on CUDA
    net = model(family, **({"head_dim": 8} if family == "Gemma" else {}))
    plain, eng = engine(net), engine(net, max_batch=3)
    fixed(eng, 5 * 128 * eng._forward.shape.bytes_per_token)
    contexts = [p.tolist() for p in prompts(6, high=30)]
    handles: list[int | None] = [None] * 6
    for turn in range(3):
        asked = [
            request(c, seed=10 * turn + i, cache=h, max_tokens=5 + 4 * turn)
            for i, (c, h) in enumerate(zip(contexts, handles, strict=True))
        ]
        for i, done in enumerate(ask(eng, *asked)):
            same(
                done,
                ask(plain, request(contexts[i], seed=10 * turn + i, max_tokens=5 + 4 * turn))[0],
            )
            eng.release(handles[i])
            handles[i] = done.cache
            contexts[i] += [*done.ids.tolist(), 7, 8, 9]


# ---------------------------------------------------------------- how much

NEEDS = CacheNeeds(row=10**9, rows=128, given=False)


def test_the_cache_gets_what_the_learner_leaves() -> None:
    # a 3B model in float32 on 80 GB: weights, reference and engine are there already
    free, total = 80 * 10**9 - 32 * 10**9, 80 * 10**9
    learner = 12.3e9 + 24.7e9  # gradients and moments to come
    room = NEEDS.settled(free, total, int(learner))
    assert room == free - int(learner) - int(0.08 * total)
    # what it was: half of what is free, so that the first step of the optimiser had no room
    assert free // 2 + learner > free > room + learner


def test_no_more_than_all_contexts_need_and_no_less_than_one() -> None:
    assert NEEDS.settled(300 * 10**9, 300 * 10**9, 0) == 128 * 10**9
    with pytest.raises(BadValueError, match=r"0\.6 GB are left .* takes 1\.0 GB.*--offload"):
        NEEDS.settled(20 * 10**9, 80 * 10**9, 13 * 10**9)


def test_an_engine_settles_and_gives_back_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    net = model("Qwen2")
    eng = engine(net)
    before = eng._pool.max_bytes
    eng.settle(10**9, in_turn=True)  # nothing on a CPU
    assert eng._pool.max_bytes == before
    done = ask(eng, request([5, 6]))[0]
    eng.rest()
    assert eng._pool.alive(done.cache)
    # as on CUDA
    fixed(eng, before)
    monkeypatch.setattr(eng, "_device", torch.device("cuda"))
    monkeypatch.setattr(module, "device_memory", lambda _device: (2 * 10**7, 2 * 10**7))
    eng.settle(10**7, in_turn=True)
    assert eng._pool.max_bytes == min(10**7 - int(0.08 * 2 * 10**7), eng._cache.most)
    done = ask(eng, request([5, 6, 7]))[0]
    assert eng._pool._room is not None
    eng.rest()
    assert eng._pool._room is None
    assert not eng._pool.alive(done.cache)
    longer = [5, 6, 7, *done.ids.tolist(), 9]
    same(ask(eng, request(longer, cache=done.cache))[0], ask(engine(net), request(longer))[0])
    eng.settle(0)
    done = ask(eng, request([5, 6, 7]))[0]
    eng.rest()
    assert eng._pool.alive(done.cache)


def test_a_size_that_was_asked_for_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    eng = engine(cache_gib=0.01)
    before = eng._pool.max_bytes
    monkeypatch.setattr(eng, "_device", torch.device("cuda"))
    eng.settle(10**15)
    assert eng._pool.max_bytes == before


def test_memory_in_use_is_not_given_back() -> None:
    pool = KvPool(SHAPE, 2, 2**20, fixed=True)
    row = pool.acquire(10)
    assert row is not None
    with pytest.raises(EpisodeError, match="while requests use it"):
        pool.give_back()
    pool.drop(row)
    pool.give_back()
    assert pool.rows == 0
