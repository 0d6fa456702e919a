"""The engine: numbers equal teacher forcing, and nothing but the request decides what is drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import byte_level, model

from turngym.agents.engine import Completion, Request, Sampling
from turngym.agents.fast_decoder import FastDecoder
from turngym.agents.hf_forward import HfForward
from turngym.agents.loading import load_model, load_tokenizer
from turngym.agents.transformers_engine import TransformersEngine
from turngym.envs.errors import BadValueError, EpisodeError

TOKENIZER = byte_level()
FAMILIES = {
    "Qwen2": (FastDecoder, {}),
    "Qwen3": (FastDecoder, {"head_dim": 16}),
    "Llama": (FastDecoder, {"attention_bias": True, "mlp_bias": True}),
    "Gemma": (HfForward, {"head_dim": 8}),
    "GPT2": (HfForward, {}),
}


def engine(net: Any = None, **more: Any) -> TransformersEngine:
    return TransformersEngine(net or model("Qwen2"), TOKENIZER, **({"dtype": "float32"} | more))


def ask(eng: TransformersEngine, *requests: Request) -> list[Completion]:
    async def all_of_them() -> list[Completion]:
        return list(await asyncio.gather(*(eng.generate(r) for r in requests)))

    return asyncio.run(all_of_them())


def request(ids: Any, seed: int = 0, cache: int | None = None, **sampling: Any) -> Request:
    sampling = {"max_tokens": 6} | sampling
    return Request(ids=ids, sampling=Sampling(**sampling), seed=seed, cache=cache)


def prompts(n: int, seed: int = 0, low: int = 1, high: int = 30) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(2, 420, size=rng.integers(low, high)) for _ in range(n)]


@torch.no_grad()
def teacher(
    net: Any, context: Sequence[int], action: np.ndarray, temperature: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    ids = torch.tensor([[*map(int, context), *map(int, action)]])
    logits = net(ids).logits[0, len(context) - 1 : -1].double() / temperature
    lp = logits.log_softmax(-1)
    picked = lp.gather(-1, torch.from_numpy(action)[:, None])[:, 0]
    return picked.numpy(), -(lp.exp() * lp).sum(-1).numpy()


def same(a: Completion, b: Completion) -> None:
    assert a.ids.tolist() == b.ids.tolist()
    np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-5)
    np.testing.assert_allclose(a.entropies, b.entropies, atol=1e-5)
    assert a.stop == b.stop


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_equal_teacher_forcing_of_the_saved_model(family: str, tmp_path: Path) -> None:
    path, more = FAMILIES[family]
    model(family, **more).save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    net = load_model(tmp_path)
    eng = TransformersEngine(net, load_tokenizer(tmp_path), dtype="float32")
    assert type(eng._forward) is path
    asked = [
        request(p, seed=i, temperature=t, max_tokens=9)
        for i, (p, t) in enumerate(zip(prompts(9), [1.0, 0.7, 1.6] * 3, strict=True))
    ]
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        logprobs, entropies = teacher(net, r.ids, done.ids, r.sampling.temperature)
        np.testing.assert_allclose(done.logprobs, logprobs, atol=1e-5)
        np.testing.assert_allclose(done.entropies, entropies, atol=1e-5)
        assert (done.entropies >= 0).all()


@pytest.mark.parametrize("family", ["Qwen3", "Gemma"])
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


def test_forks_of_one_handle_are_independent() -> None:
    net = model("Qwen2")
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


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 5))
def test_batch_mates_and_arrival_do_not_matter(seed: int, n: int, max_batch: int) -> None:
    rng = np.random.default_rng(seed)
    eng = engine(_SHARED, max_batch=max_batch)
    asked = [
        request(p, seed=int(rng.integers(2**40)), max_tokens=int(rng.integers(1, 9)))
        for p in prompts(n, seed=seed % 1000)
    ]
    delays = rng.integers(0, 12, size=n)

    async def late(r: Request, steps: int) -> Completion:
        for _ in range(steps):
            await asyncio.sleep(0)
        return await eng.generate(r)

    async def main() -> list[Completion]:
        return list(
            await asyncio.gather(*(late(r, int(d)) for r, d in zip(asked, delays, strict=True)))
        )

    for r, done in zip(asked, asyncio.run(main()), strict=True):
        same(done, ask(_ALONE, r)[0])


_SHARED = model("Qwen2")
_ALONE = engine(_SHARED)


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
        same(d, ask(engine(_SHARED), r)[0])


def test_no_barrier_a_short_row_starts_its_next_turn_while_others_run() -> None:
    eng = engine(max_batch=4)
    log: list[str] = []
    asked = (request([7, 8, 9], seed=s, max_tokens=30) for s in range(99))
    lengthy = next(r for r in asked if ask(eng, r)[0].stop == "length")

    async def short() -> None:
        for i in range(3):
            await eng.generate(request([5, 6], seed=i, max_tokens=2))
            log.append(f"short {i}")

    async def long() -> None:
        await eng.generate(lengthy)
        log.append("long")

    async def main() -> None:
        await asyncio.gather(long(), short())

    asyncio.run(main())
    assert log == ["short 0", "short 1", "short 2", "long"]


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


def test_cancelled_requests_leave_the_others_alone() -> None:
    eng = engine(max_batch=2)
    asked = [request(p, seed=i, max_tokens=12) for i, p in enumerate(prompts(6))]

    async def main() -> list[Any]:
        tasks = [asyncio.create_task(eng.generate(r)) for r in asked]
        for _ in range(3):
            await asyncio.sleep(0)
        tasks[0].cancel()  # drives
        tasks[1].cancel()  # rides along
        tasks[4].cancel()  # waits
        return await asyncio.gather(*tasks, return_exceptions=True)

    done = asyncio.run(main())
    for i, (r, d) in enumerate(zip(asked, done, strict=True)):
        if i in (0, 1, 4):
            assert isinstance(d, asyncio.CancelledError)
        else:
            same(d, ask(engine(), r)[0])
    # and the engine is whole afterwards, in another event loop
    same(ask(eng, asked[0])[0], ask(engine(), asked[0])[0])
    assert not any(row is not None and row.busy for row in eng._pool._slots)


def test_a_broken_model_fails_every_request_with_the_reason() -> None:
    net = model("Qwen2")
    eng = engine(net)
    with torch.no_grad():
        net.model.norm.weight.fill_(float("nan"))
    eng.sync(net)

    async def main() -> list[Any]:
        both = (eng.generate(request([5, 6])), eng.generate(request([7])))
        return await asyncio.gather(*both, return_exceptions=True)

    faults = asyncio.run(main())
    assert all(isinstance(f, (BadValueError, EpisodeError)) for f in faults)
    assert all("not finite" in str(f) for f in faults)
    eng.sync(model("Qwen2"))
    same(ask(eng, request([5, 6]))[0], ask(engine(), request([5, 6]))[0])


def test_the_context_bounds_the_action() -> None:
    eng = engine(max_context=20)
    assert eng.max_context == 20
    done = ask(eng, request(list(range(5, 23)), max_tokens=50))[0]
    assert (len(done.ids), done.stop) == (2, "length")
    with pytest.raises(BadValueError, match="no room for a single token"):
        ask(eng, request(list(range(5, 25))))


def test_bad_input_is_refused_before_any_work() -> None:
    eng = engine()
    with pytest.raises(BadValueError, match="at least one token"):
        ask(eng, request([]))
    with pytest.raises(BadValueError, match="holds id 420; expected 0 to 419"):
        ask(eng, request([5, 420]))
    with pytest.raises(BadValueError, match="holds id -1"):
        ask(eng, request([-1]))
    with pytest.raises(BadValueError, match="non-empty strings"):
        ask(eng, request([5], stop=("",)))
    with pytest.raises(BadValueError, match="at most 160, the context of this model"):
        engine(max_context=161)
    with pytest.raises(BadValueError, match="max_batch is 0"):
        engine(max_batch=0)
    with pytest.raises(BadValueError, match="vocabulary only 100 rows"):
        engine(model("Qwen2", vocab_size=100))


def test_models_that_keep_other_state_are_refused_with_the_reason() -> None:
    sliding = model("Qwen2", use_sliding_window=True, sliding_window=32, max_window_layers=0)
    with pytest.raises(BadValueError, match="sliding window of 32 tokens"):
        engine(sliding)
    # a window that never closes is no window
    r = request(prompts(1, low=10, high=20)[0])
    done = ask(engine(sliding, max_context=32), r)[0]
    logprobs, _ = teacher(sliding, r.ids, done.ids)
    np.testing.assert_allclose(done.logprobs, logprobs, atol=1e-5)
    with pytest.raises(BadValueError, match="cannot sample from it"):
        engine(model("Mamba", state_size=4, max_context=64), max_context=None)


def test_caller_s_random_state_and_precision_are_untouched() -> None:
    eng = engine()
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002, TID251 - to see that nobody touches it
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    precision = torch.get_float32_matmul_precision()
    ask(eng, *(request(p, seed=i) for i, p in enumerate(prompts(4))))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    assert torch.get_float32_matmul_precision() == precision
    assert torch.is_grad_enabled()


def test_bfloat16_is_close_to_float32() -> None:
    net = model("Qwen2", initializer_range=0.06)
    eng = engine(net, dtype="bfloat16")
    asked = [request(p, seed=i) for i, p in enumerate(prompts(8))]
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        logprobs, _ = teacher(net, r.ids, done.ids)
        assert np.abs(done.logprobs - logprobs).max() < 0.05


def test_long_prompts_are_fed_in_chunks() -> None:
    net = model("Qwen2")
    eng = engine(net)
    eng._chunk = 16
    asked = [request(p, seed=i) for i, p in enumerate(prompts(7, low=10, high=60))]
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        same(done, ask(engine(net), r)[0])
