"""Requests with the same context are decoded as one row for as long as they sample the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.engine_help import FAMILIES, ask, engine, prompts, request, same
from helpers.small_models import model
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from turngym.agents.engines.base import Completion
from turngym.agents.engines.local.numba_decoder import NativeDecoder
from turngym.agents.engines.local.numba_kernels import BLOCK, head_kernels
from turngym.agents.engines.local.scheduler import Batch
from turngym.agents.models.loops.parts import bits

_NETS = {"small": model("Qwen2"), "windows": model("Gemma3", **FAMILIES["Gemma3"][1])}


def rows_of_steps(eng: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each decode step computes."""
    decode, rows = eng._forward.decode, []

    def counted(pool: Any, these: Any, tokens: Any, draws: Any = None) -> Any:
        rows.append(len(these))
        return decode(pool, these, tokens, draws)

    monkeypatch.setattr(eng._forward, "decode", counted)
    return rows


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(_NETS)),
    st.integers(0, 2**31),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.floats(0.4, 1.5),
    st.integers(3, 12),
)
def test_every_copy_gets_what_it_gets_in_a_row_of_its_own(
    net: str, seed: int, copies: list[int], temperature: float, max_batch: int
) -> None:
    """In the same batches, and in two turns: the second finds its cache, whoever computed it."""

    def play() -> list[Completion]:
        rng = np.random.default_rng(seed)
        eng = engine(_NETS[net], max_batch=max_batch)
        contexts = [
            ids
            for ids, count in zip(prompts(len(copies), seed % 1000), copies, strict=True)
            for _ in range(count)
        ]
        caches: list[int | None] = [None] * len(contexts)
        every: list[Completion] = []
        for _ in range(2):
            asked = [
                request(
                    ids,
                    seed=int(rng.integers(2**40)),
                    cache=cache,
                    max_tokens=int(rng.integers(1, 9)),
                    temperature=temperature,
                )
                for ids, cache in zip(contexts, caches, strict=True)
            ]
            found = ask(eng, *asked)
            caches = [done.cache for done in found]
            contexts = [
                np.concatenate([ids, done.ids, [7, 8]])
                for ids, done in zip(contexts, found, strict=True)
            ]
            every += found
        return every

    joined = play()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NativeDecoder, "repeat", None)
        apart = play()
    for one, other in zip(joined, apart, strict=True):
        same(one, other)


def test_greedy_copies_are_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    eng = engine(_NETS["small"])
    assert isinstance(eng._forward, NativeDecoder)
    rows = rows_of_steps(eng, monkeypatch)
    (one, other) = prompts(2, low=5)
    asked = [request(ids, seed=i, temperature=0.0) for i, ids in enumerate([one] * 5 + [other] * 3)]
    first, *others = ask(eng, *asked)
    assert set(rows) == {2}
    for done in others[:4]:
        same(done, first)


def test_copies_part_where_they_sample_different_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    eng = engine(_NETS["small"])
    rows = rows_of_steps(eng, monkeypatch)
    done = ask(eng, *(request([5, 6, 7], seed=i, temperature=0.6, max_tokens=8) for i in range(9)))
    for step, computed in enumerate(rows, start=1):
        assert computed == len({d.ids[:step].tobytes() for d in done if len(d.ids) > step})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_repeat_copies_one_position(dtype: torch.dtype) -> None:
    layers, rows, heads, dim = 2, 5, 2, 8
    cache = torch.randn(layers, 2, rows, heads, 2, BLOCK * dim).to(dtype)
    want = cache.clone()
    keys = want[:, 0].unflatten(-1, (dim, BLOCK))
    values = want[:, 1].unflatten(-1, (BLOCK, dim))
    for source, row, at in [(0, 1, 3), (4, 2, BLOCK + 5)]:
        block, inside = divmod(at, BLOCK)
        keys[:, row, :, block, :, inside] = keys[:, source, :, block, :, inside]
        values[:, row, :, block, inside] = values[:, source, :, block, inside]
    places = np.array([[0, 3, 4], [1, 3, 2], [3, 9, BLOCK + 5]])
    head_kernels(dim, 1e-6).repeat(bits(cache), places)
    assert torch.equal(cache, want)


def test_contexts_are_told_apart_across_admissions_and_leavers() -> None:
    """A batch of jobs that hold nothing but what telling contexts apart needs."""
    batch = Batch()
    jobs: Any = [
        type("Job", (), {"limit": 4, "stop_set": 0, "row": None, "request": request([1], i)})()
        for i in range(5)
    ]
    batch.add(jobs[:3], [0, 0, 1])
    first, place = batch.distinct(np.array([3, 3, 3]))
    assert (len(first), place.tolist()) == (2, [0, 0, 1])
    batch.remove(np.array([True, False, False]))
    batch.add(jobs[3:], [0, 0])
    first, place = batch.distinct(np.array([3, 3, 3, 4]))
    assert len(first) == 4
    assert place.tolist() == [0, 1, 2, 3]
