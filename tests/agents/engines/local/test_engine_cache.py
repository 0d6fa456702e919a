"""The kept key-value cache: continued, forked, evicted, dropped; the numbers never change."""

from __future__ import annotations

import asyncio
import errno
import resource
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.engine_help import FAMILIES, TOKENIZER, ask, engine, prompts, request, same
from helpers.small_models import model

from turngym.agents.engines.factory import EngineSettings, build_engine
from turngym.agents.engines.local.kv_cache import CacheShape, KvPool
from turngym.agents.models.out_of_memory import MemoryFullError
from turngym.envs.core.errors import BadValueError, EpisodeError

pytestmark = pytest.mark.usefixtures("loops")


@pytest.mark.parametrize("family", ["Qwen3", "Gemma3", "Gemma"])
def test_a_continued_cache_equals_a_fresh_start_over_many_turns(family: str) -> None:
    net = model(family, **FAMILIES[family][1])
    warm, cold = engine(net, max_batch=3), engine(net)
    contexts = [p.tolist() for p in prompts(5, high=9)]
    handles: list[int | None] = [None] * 5
    for turn in range(4):
        asked = [
            request(c, seed=10 * turn + i, cache=h)
            for i, (c, h) in enumerate(zip(contexts, handles, strict=True))
        ]
        got = ask(warm, *asked)
        for i, done in enumerate(got):
            same(done, ask(cold, request(contexts[i], seed=10 * turn + i))[0])
            warm.release(handles[i])
            handles[i] = done.cache
            contexts[i] += [*done.ids.tolist(), *prompts(1, seed=turn * 7 + i, high=12)[0].tolist()]


def test_only_new_tokens_are_fed_and_a_chain_copies_nothing(monkeypatch: Any) -> None:
    eng = engine()
    fed: list[int] = []
    feed = eng._forward.feed

    def counting(pool: Any, pieces: Any) -> Any:
        fed.extend(len(p.ids) for p in pieces)
        return feed(pool, pieces)

    monkeypatch.setattr(eng._forward, "feed", counting)
    monkeypatch.setattr(eng._pool, "copy", None)
    context = list(range(5, 35))
    done = ask(eng, request(context))[0]
    for _ in range(3):
        context += [*done.ids.tolist(), 7, 8]
        done = ask(eng, request(context, cache=done.cache))[0]
    # the last sampled token was never fed, the two observation tokens are new
    assert fed == [30, 3, 3, 3]


@pytest.mark.parametrize("family", ["Qwen2", "Gemma3"])
def test_forks_of_one_handle_are_independent(family: str) -> None:
    net = model(family, **FAMILIES[family][1])
    eng, cold = engine(net), engine(net)
    context = prompts(1, low=20)[0].tolist()
    trunk = ask(eng, request(context, seed=3))[0]
    base = [*context, *trunk.ids.tolist()]
    tails = [[9], [10, 11], [9], [12, 13, 14], []]
    asked = [request(base + t, seed=i, cache=trunk.cache) for i, t in enumerate(tails)]
    first = ask(eng, *asked)
    for i, done in enumerate(first):
        same(done, ask(cold, request(base + tails[i], seed=i))[0])
    # the trunk and every branch can still be continued, in any order
    again = ask(eng, request([*base, 50], seed=8, cache=trunk.cache))[0]
    same(again, ask(cold, request([*base, 50], seed=8))[0])
    for i in (3, 0):
        longer = [*base, *tails[i], *first[i].ids.tolist(), 60]
        same(
            ask(eng, request(longer, seed=i, cache=first[i].cache))[0],
            ask(cold, request(longer, seed=i))[0],
        )


def test_equal_prompts_of_one_step_are_prefilled_once(monkeypatch: Any) -> None:
    eng = engine()
    fed: list[int] = []
    feed = eng._forward.feed

    def counting(pool: Any, pieces: Any) -> Any:
        fed.append(len(pieces))
        return feed(pool, pieces)

    monkeypatch.setattr(eng._forward, "feed", counting)
    a, b = prompts(2, low=5)
    asked = [request(p, seed=i) for i, p in enumerate([a, b, a, a, b, a])]
    done = ask(eng, *asked)
    assert fed == [2]
    assert len({tuple(d.ids.tolist()) for d in done}) == 6
    for r, d in zip(asked, done, strict=True):
        same(d, ask(engine(model("Qwen2")), r)[0])


def test_eviction_costs_time_never_truth() -> None:
    net = model("Llama")
    eng, cold = engine(net, max_batch=2), engine(net)
    contexts = prompts(12, low=4)
    done = ask(eng, *(request(c, seed=i) for i, c in enumerate(contexts)))
    assert eng._pool.rows <= 4
    for i, (c, d) in enumerate(zip(contexts, done, strict=True)):
        longer = [*c.tolist(), *d.ids.tolist(), 33]
        same(
            ask(eng, request(longer, seed=i, cache=d.cache))[0],
            ask(cold, request(longer, seed=i))[0],
        )


def test_a_tight_memory_budget_makes_requests_wait() -> None:
    net = model("Qwen2")
    per_token = engine(net)._forward.shape.bytes_per_token
    eng = engine(net, cache_gib=per_token * 64 * 3 / 2**30)
    asked = [request(p, seed=i, max_tokens=12) for i, p in enumerate(prompts(9))]
    for r, d in zip(asked, ask(eng, *asked), strict=True):
        same(d, ask(engine(net), r)[0])
    assert eng._pool.rows <= 3
    # a longer row leaves room for one row only; the others are evicted
    long = request(prompts(1, low=120, high=121)[0], max_tokens=5)
    same(ask(eng, long)[0], ask(engine(net), long)[0])
    with pytest.raises(BadValueError, match="cache_gib"):
        ask(engine(net, cache_gib=per_token * 70 / 2**30), long)


def test_the_settings_bound_the_cache_of_this_engine_alone() -> None:
    net = model("Qwen2")
    row = engine(net)._forward.shape.bytes_per_token * 64
    settings = EngineSettings(cache_gib=3 * row / 2**30, device="cpu", engine_dtype="float32")
    eng: Any = build_engine("", TOKENIZER, settings, learner=net)
    asked = [request(p, seed=i, max_tokens=12) for i, p in enumerate(prompts(9))]
    for r, d in zip(asked, ask(eng, *asked), strict=True):
        same(d, ask(engine(net), r)[0])
    assert 1 <= eng._pool.rows <= 3
    with pytest.raises(BadValueError, match=r"cache_gib is 0; expected more"):
        EngineSettings(cache_gib=0)
    with pytest.raises(BadValueError, match=r"the engine is 'vllm'.*--vllm\.gpu-memory-frac"):
        EngineSettings(engine="vllm", cache_gib=4.0)


def test_a_wrong_handle_is_harmless() -> None:
    eng = engine()
    a, b = prompts(2, low=8)
    done = ask(eng, request(a))[0]
    same(ask(eng, request(b, cache=done.cache))[0], ask(engine(), request(b))[0])
    same(ask(eng, request(b, cache=987654))[0], ask(engine(), request(b))[0])
    half = [*a[:4].tolist(), 3, 2]
    same(ask(eng, request(half, cache=done.cache))[0], ask(engine(), request(half))[0])


def test_sync_takes_new_weights_drops_caches_and_counts() -> None:
    for family in ("Qwen2", "Gemma"):
        old, new = (
            model(family, **FAMILIES[family][1]),
            model(family, seed=1, **FAMILIES[family][1]),
        )
        eng = engine(old)
        context = prompts(1, low=9)[0].tolist()
        before = ask(eng, request(context))[0]
        with torch.no_grad():
            for mine, yours in zip(old.parameters(), new.parameters(), strict=True):
                mine.copy_(yours)
        longer = [*context, *before.ids.tolist(), 5]
        # training the model changes nothing until the weights are handed over
        same(ask(eng, request(context))[0], before)
        eng.sync(old)
        assert eng.version == 1
        got = ask(eng, request(longer, cache=before.cache))[0]
        same(got, ask(engine(new), request(longer))[0])
        eng.sync(old, version=7)
        assert eng.version == 7


def test_sync_while_sampling_is_refused() -> None:
    eng = engine()

    async def main() -> None:
        task = asyncio.create_task(eng.generate(request([5, 6], max_tokens=20)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(EpisodeError, match="1 requests are being sampled"):
            eng.sync(model("Qwen2"))
        await task

    asyncio.run(main())


def test_long_prompts_are_fed_in_chunks() -> None:
    net = model("Qwen2")
    eng = engine(net)
    eng._chunk = 16
    asked = [request(p, seed=i) for i, p in enumerate(prompts(7, low=10, high=60))]
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        same(done, ask(engine(net), r)[0])


def test_a_branch_without_room_beside_its_trunk_starts_from_nothing() -> None:
    net = model("Qwen2")
    per_token = engine(net)._forward.shape.bytes_per_token
    eng = engine(net, cache_gib=per_token * 64 / 2**30)
    context = prompts(1, low=9)[0].tolist()
    trunk = ask(eng, request(context))[0]
    for tail in ([5], [6, 7]):
        r = request([*context, *trunk.ids.tolist()[:2], *tail], cache=trunk.cache)
        same(ask(eng, r)[0], ask(engine(net), r)[0])
    assert eng._pool.rows == 1


def test_a_pool_on_a_cpu_moves_its_rows_only_when_they_grow_long() -> None:
    shape = CacheShape(2, 1, 4, torch.float32, torch.device("cpu"))
    pool = KvPool(shape, 20, 2**62)
    first = pool.acquire(3)
    assert first is not None
    place = pool.data.data_ptr()
    pool.data[:, :, first.index, :, :3] = 1.5
    pool.data[:, :, first.index, :, 3] = torch.nan  # rubbish behind the end
    pool.lengths[first.index] = 3
    assert all(pool.acquire(200) is not None for _ in range(19))
    assert pool.data.data_ptr() == place
    first.busy = False
    assert pool.extend(first, 2_000, 3)  # longer than what rows begin with
    assert pool.data.data_ptr() != place
    assert (pool.data[:, :, first.index, :, :3] == 1.5).all()
    assert (pool.data[:, :, first.index, :, 3:] == 0).all()


def test_a_wiped_pool_holds_nothing_and_a_cleared_one_is_written_again() -> None:
    shape = CacheShape(1, 1, 2, torch.float32, torch.device("cpu"))
    pool = KvPool(shape, 2, 2**62)
    row = pool.acquire(3)
    assert row is not None
    pool.data[:, :, row.index] = torch.nan
    pool.lengths[row.index] = 3
    handle = pool.park(row)
    pool.clear()
    assert pool.reusable(handle, pool.tokens[0]) == (None, 0)
    assert not pool.lengths.any()
    pool.wipe()
    assert not pool.data.any()


def test_memory_that_nobody_has_is_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    home = "turngym.agents.engines.local.kv_cache"
    monkeypatch.setattr(f"{home}.mmap.mmap", refuse)
    shape = CacheShape(2, 2, 8, torch.float32, torch.device("cpu"))
    pool = KvPool(shape, 4, 2**20)
    assert pool.acquire(20) is not None, "numpy had it"
    eng = engine()
    monkeypatch.setattr(f"{home}._zeros", full)
    with pytest.raises(MemoryFullError):
        ask(eng, request([5, 6]))


def resident() -> int:
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells it")
def test_short_contexts_of_a_small_model_take_a_part_of_the_caches_memory() -> None:
    shape = CacheShape(4, 2, 32, torch.float32, torch.device("cpu"))
    pool = KvPool(shape, 128, 2**30)
    before = resident()
    rows = [pool.acquire(60) for _ in range(128)]
    assert pool.positions >= 500
    for row in rows:
        assert row is not None
        pool.data[:, :, row.index, :, :60] = 1.0
    whole = pool.data.numel() * pool.data.itemsize
    assert whole >= 2**27
    assert resident() - before < whole / 3, "only what was written"
    assert pool.data[:, :, :, :, 61:].count_nonzero() == 0
