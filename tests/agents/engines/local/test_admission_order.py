"""Which requests go first: with many episodes, turns whose cache is alive.

A simulation of the engine itself over a model that costs nothing: episodes of some turns, all of
whose first requests come at once, as a training step hands them in.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from helpers.engine_help import ask, engine, prompts, request, same
from helpers.no_model import NoModel
from helpers.small_models import model

from turngym.agents.engines.base import open_episodes
from turngym.agents.engines.local import engine as engine_module
from turngym.agents.engines.local.scheduler import Job

ROWS = 64
_NET = model("Qwen2")


def live_share(
    episodes: int, turns: int, *, live_first: bool, limit: int | None, monkeypatch: Any
) -> float:
    """Play, and return the share of later turns whose cache was there."""
    eng = engine(_NET, max_batch=ROWS)
    eng.live_first = live_first
    eng._forward = NoModel(sorted(eng.eos_ids))
    found: list[bool] = []
    place = eng._place

    def spy(job: Job) -> int | None:
        cut = place(job)
        if cut is not None and job.request.cache is not None:
            found.append(cut > 0)
        return cut

    monkeypatch.setattr(eng, "_place", spy)
    gate = nullcontext() if limit is None else asyncio.Semaphore(limit)

    async def episode(number: int) -> None:
        async with gate:
            context, handle = [5, 6 + number % 400, 7 + number // 400], None
            for turn in range(turns):
                asked = request(context, seed=number * 9 + turn, cache=handle, max_tokens=3)
                done = await eng.generate(asked)
                eng.release(handle)
                handle = done.cache
                context = [*context, *done.ids.tolist(), 8, 9]
            eng.release(handle)

    async def main() -> None:
        await asyncio.gather(*map(episode, range(episodes)))

    asyncio.run(main())
    assert len(found) == episodes * (turns - 1)
    return float(np.mean(found))


@pytest.mark.parametrize(("episodes", "turns"), [(160, 4), (640, 3), (2560, 2)])
def test_later_turns_find_their_cache(episodes: int, turns: int, monkeypatch: Any) -> None:
    assert open_episodes(ROWS) == 96
    share = live_share(episodes, turns, live_first=True, limit=None, monkeypatch=monkeypatch)
    assert share >= 0.95
    if episodes < 1000:
        share = live_share(episodes, turns, live_first=True, limit=96, monkeypatch=monkeypatch)
        assert share >= 0.95


@pytest.mark.parametrize(("episodes", "most"), [(160, 0.5), (640, 0.1)])
def test_in_the_order_of_arrival_they_lose_it(episodes: int, most: float, monkeypatch: Any) -> None:
    share = live_share(episodes, 4, live_first=False, limit=None, monkeypatch=monkeypatch)
    assert share <= most
    # a limit of open episodes is enough by itself: the pool has a row for each
    share = live_share(episodes, 2, live_first=False, limit=96, monkeypatch=monkeypatch)
    assert share >= 0.95


def test_up_to_two_batches_nothing_is_lost_in_either_order(monkeypatch: Any) -> None:
    for live_first in (False, True):
        share = live_share(128, 3, live_first=live_first, limit=None, monkeypatch=monkeypatch)
        assert share == 1.0


def test_the_order_changes_no_token() -> None:
    def play(live_first: bool) -> list[Any]:
        eng = engine(_NET, max_batch=4)
        eng.live_first = live_first

        async def episode(number: int, context: list[int]) -> list[Any]:
            handle, out = None, []
            for turn in range(3):
                done = await eng.generate(request(context, seed=10 * number + turn, cache=handle))
                eng.release(handle)
                handle = done.cache
                out.append(done)
                context = [*context, *done.ids.tolist(), 8, 9]
            eng.release(handle)
            return out

        async def main() -> list[Any]:
            contexts = [p.tolist() for p in prompts(30, high=20)]
            played = [episode(i, context) for i, context in enumerate(contexts)]
            return [done for each in await asyncio.gather(*played) for done in each]

        return asyncio.run(main())

    for a, b in zip(play(live_first=False), play(live_first=True), strict=True):
        same(a, b)


def test_a_cpu_keeps_to_the_order_of_arrival_and_has_no_limit() -> None:
    eng = engine(_NET, max_batch=2)
    assert not eng.live_first
    assert not eng.holds_back
    assert eng.max_open is None
    done = ask(eng, request([5, 6, 7]))[0]
    other = Job(request([7, 8]), np.array([7, 8]), 3, 0)
    later = Job(request([5, 6, 7, *done.ids], cache=done.cache), np.array([5, 6, 7]), 3, 0)
    eng._waiting = [other, later]
    assert eng._queue() == [other, later]
    eng.live_first = True
    assert eng._queue() == [later, other]


def test_a_large_model_has_living_caches_first_on_a_cpu_too(monkeypatch: Any) -> None:
    monkeypatch.setattr(engine_module, "is_large", lambda _: True)
    eng = engine(_NET, max_batch=2)
    assert eng.live_first
    assert eng.holds_back
    assert eng.max_open is None
