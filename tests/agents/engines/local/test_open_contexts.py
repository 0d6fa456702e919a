"""A large model on a CPU: contexts of open episodes stay in the cache, and prompts are shared.

The engine is played at the sizes of SmolLM2-135M, 23,040 bytes a token and 2 GiB, over a model that
costs nothing; small models show that the tokens are what they are without.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
import torch
from helpers.engine_help import FAMILIES, ask, engine, request, same
from helpers.no_model import NoModel
from helpers.small_models import model

from turngym.agents.engines.local import engine as engine_module
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.local.kv_cache import CacheShape, KvPool

_NET = model("Qwen2")
_TOKEN = 23_040
_END = engine(_NET).eos_ids
SHAPE = CacheShape(1, 1, 1, torch.float32, torch.device("cpu"))


def large_engine(monkeypatch: Any, max_batch: int) -> tuple[TransformersEngine, NoModel]:
    """Return the engine of a model of 135 million weights, without the model."""
    nothing = NoModel(sorted(_END))
    monkeypatch.setattr(engine_module, "is_large", lambda _: True)
    monkeypatch.setattr(engine_module, "choose_forward", lambda *_, **__: nothing)
    gib = 2 * NoModel.shape.bytes_per_token / _TOKEN
    eng = engine(_NET, max_batch=max_batch, cache_gib=gib)
    eng._max_context = 8192
    return eng, nothing


async def episode(
    eng: TransformersEngine, prompt: list[int], turns: int, action: int, heard: int, seed: int
) -> int:
    """Play, and return how many of its tokens behind the prompt have to be read."""
    context, handle, read = prompt, None, 0
    for turn in range(turns):
        limit = action + (seed * 7 + turn) % action // 2  # episodes do not keep step
        asked = request(context, seed=99 * seed + turn, cache=handle, max_tokens=limit)
        done = await eng.generate(asked)
        eng.release(handle)
        handle = done.cache
        context = [*context, *done.ids.tolist(), *[8] * (heard - 1), 9 + turn]
        read += len(done.ids) + heard
    eng.release(handle)
    return read - heard - 1  # nobody reads the last action's last token, or what it is answered


def again(eng: TransformersEngine, nothing: NoModel, **of: Any) -> float:
    """Return the share of tokens that are read again in groups that share parts of their prompts.

    Every distinct token needs to be read once: what all prompts share, what a group's do.
    """

    turns: tuple[int, int, int] = of["turns"]

    async def main() -> int:
        own = [[5 + (g * 7 + i * 3) % 400 for i in range(of["own"])] for g in range(of["groups"])]
        plays = [
            episode(eng, [6] * of["shared"] + own[g], *turns, seed=g * of["size"] + i)
            for g in range(of["groups"])
            for i in range(of["size"])
        ]
        return of["shared"] + of["own"] * of["groups"] + sum(await asyncio.gather(*plays))

    needed = asyncio.run(main())
    return 1 - needed / (nothing.prompt_tokens + sum(nothing.rows))


RETAIL: dict[str, Any] = {
    "shared": 1230,
    "own": 40,
    "turns": (8, 50, 100),
}  # turns, tokens of actions and answers
SEARCH: dict[str, Any] = {"shared": 120, "own": 45, "turns": (2, 26, 250)}


@pytest.mark.parametrize(
    ("of", "most", "rows"),
    [
        (RETAIL | {"groups": 8, "size": 8}, 0.02, 16),
        (RETAIL | {"groups": 60, "size": 1}, 0.02, 16),
        (SEARCH | {"groups": 300, "size": 1}, 0.02, 40),
        (SEARCH | {"groups": 16, "size": 8, "turns": (5, 26, 250)}, 0.2, 24),
    ],
)
def test_hardly_anything_is_read_again(of: Any, most: float, rows: int, monkeypatch: Any) -> None:
    eng, nothing = large_engine(monkeypatch, max_batch=64)
    assert again(eng, nothing, **of) < most
    assert np.mean(nothing.rows) >= rows  # enough to do at a time, the last ones' end included


def test_without_holding_back_a_third_is_read_again(monkeypatch: Any) -> None:
    eng, nothing = large_engine(monkeypatch, max_batch=64)
    eng.holds_back = False
    assert again(eng, nothing, **RETAIL, groups=8, size=8) > 0.3


def test_who_never_comes_back_stops_nobody(monkeypatch: Any) -> None:
    eng, nothing = large_engine(monkeypatch, max_batch=64)

    async def main() -> None:
        async def first(i: int) -> None:
            await eng.generate(request([6] * 900 + [5 + i], seed=i, max_tokens=9))

        # no handle is released: more than the cache holds, and whole episodes behind them
        await asyncio.gather(*map(first, range(60)))
        nothing.rows.clear()
        plays = [episode(eng, [7] * 900, 6, 20, 30, i) for i in range(40)]
        await asyncio.gather(*plays)

    asyncio.run(main())
    assert len(nothing.rows) < 600  # 303 where all is released, 5,000 where one plays at a time


@pytest.mark.parametrize("family", ["Qwen2", "Gemma3", "GPT2"])
def test_tokens_are_what_they_are_without(family: str, monkeypatch: Any) -> None:
    net = model(family, **FAMILIES[family][1])

    def play(held: bool) -> tuple[list[Any], TransformersEngine]:
        monkeypatch.setattr(engine_module, "is_large", lambda _: held)
        monkeypatch.setattr(engine_module, "_LEAST_ROWS", 3)
        monkeypatch.setattr(engine_module, "_SHARED", 8)
        row = 192 * engine(net)._pool.shape.bytes_per_token
        eng = engine(net, max_batch=4, cache_gib=(4 if held else 40) * row / 2**30)
        assert eng.holds_back == held

        async def one(i: int) -> list[Any]:
            context, handle, out = [*range(20, 52), 60 + i // 2], None, []
            for turn in range(3):
                asked = request(context, seed=9 * i + turn, cache=handle, max_tokens=4)
                out.append(await eng.generate(asked))
                eng.release(handle)
                handle = out[-1].cache
                context = [*context, *out[-1].ids.tolist(), *range(70, 82 + 9 * (i % 3)), turn + 5]
            eng.release(handle)
            return out

        async def main() -> list[Any]:
            return [done for each in await asyncio.gather(*map(one, range(12))) for done in each]

        return asyncio.run(main()), eng

    (plain, _), (kept, eng) = play(held=False), play(held=True)
    for a, b in zip(plain, kept, strict=True):
        same(a, b)
    assert eng.stats.cached_tokens > 12 * 32  # the prompt of others, and each one's own past
    assert not any(row is not None for row in eng._pool._slots)


@pytest.mark.parametrize("rests", [False, True])
def test_new_weights_forget_the_layout_and_the_past(rests: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(engine_module, "is_large", lambda _: True)
    eng = engine(_NET, max_batch=2)
    first = ask(eng, request(range(5, 30)), request([7, 8]))
    wide = eng._pool.positions
    ask(eng, request(range(5, 150)))
    assert eng._pool.positions > wide
    if rests:  # as between the rollouts of a run
        eng.rest()
    eng.sync(_NET)
    assert eng._pool.rows == eng._pool.positions == 0
    for a, b in zip(first, ask(eng, request(range(5, 30)), request([7, 8])), strict=True):
        same(a, b)
    assert eng._pool.positions == wide


def test_the_cache_gives_its_memory_to_the_update(monkeypatch: Any) -> None:
    small = engine(_NET, max_batch=2)
    monkeypatch.setattr(engine_module, "is_large", lambda _: True)
    eng = engine(_NET, max_batch=2)
    for each, rows in ((small, small._pool.max_rows), (eng, 0)):
        asked = request(range(5, 30))
        first = ask(each, asked)[0]
        each.settle(10**9)
        each.rest()
        assert each._pool.rows == rows
        assert each._pool.alive(first.cache) is bool(rows)
        each.release(first.cache)
        same(first, ask(each, asked)[0])


# ---------------------------------------------------------------- the pool


def test_layouts_look_ahead_as_far_as_rows_are_left() -> None:
    pool = KvPool(SHAPE, 8, 8 * 4 * 1024, least_rows=4)
    pool.lay_out(100)
    assert pool.positions == 447  # four times as long and rounded up
    pool.lay_out(900)  # only the first layout is laid out ahead
    assert pool.positions == 447
    pool = KvPool(SHAPE, 8, 8 * 4 * 1024, least_rows=4)
    pool.lay_out(700)
    assert pool.positions == 1023  # four rows
    row = pool.acquire(1100)
    assert row is not None
    assert 1100 * 9 // 8 <= pool.positions < 1400
    assert pool.rows == 3
    assert pool.acquire(4000) is None  # while the other one is busy
    pool.drop(row)
    assert pool.acquire(4000) is not None
    plain = KvPool(SHAPE, 8, 8 * 4 * 1024)
    plain.lay_out(100)
    assert plain.rows == plain.positions == 0


def test_the_longest_shared_start_is_found() -> None:
    pool = KvPool(SHAPE, 4, 2**20)
    ids = np.arange(40)
    assert pool.longest_shared(ids) == (None, 0)
    for held, fed in ((20, 20), (30, 8), (10, 10)):  # the second one is still being read
        row = pool.acquire(50)
        assert row is not None
        pool.tokens[row.index, :held], pool.lengths[row.index] = ids[:held], fed
    found, n = pool.longest_shared(ids)
    assert (found and found.index, n) == (0, 20)
    assert pool.longest_shared(ids[:15])[1] == 14  # one is left to feed
    assert pool.longest_shared(np.array([0, 1, 2, 9]))[1] == 3
    assert pool.longest_shared(ids[:1]) == (None, 0)


def test_a_row_is_given_up_when_who_runs_took_two_turns() -> None:
    pool = KvPool(SHAPE, 3, 2**20)
    rows = [row for _ in range(3) if (row := pool.acquire(50))]
    assert not pool.spares(50)  # all are busy
    for row in rows:
        pool.park(row)
    assert not pool.spares(50)
    assert pool.extend(rows[1], 50, 0)
    assert pool.extend(rows[2], 50, 0)
    assert not pool.spares(50)
    for _ in range(2):
        for row in rows[1:]:
            pool.park(row)
            assert pool.extend(row, 50, 0)
    assert pool.spares(50)
