"""The engine: numbers equal teacher forcing, and nothing but the request decides what is drawn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engine_help import FAMILIES, TOKENIZER, ask, engine, prompts, request, same, teacher
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import model

from turngym.agents.engine import Completion, Request
from turngym.agents.loading import load_model, load_tokenizer
from turngym.agents.transformers_engine import TransformersEngine
from turngym.envs.errors import BadValueError, ContextFullError, EngineFault


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
    assert all(isinstance(f, (BadValueError, EngineFault)) for f in faults)
    assert all("not finite" in str(f) for f in faults)
    eng.sync(model("Qwen2"))
    same(ask(eng, request([5, 6]))[0], ask(engine(), request([5, 6]))[0])


def test_the_context_bounds_the_action() -> None:
    eng = engine(max_context=20)
    assert eng.max_context == 20
    done = ask(eng, request(list(range(5, 23)), max_tokens=50))[0]
    assert (len(done.ids), done.stop) == (2, "length")
    with pytest.raises(ContextFullError, match="no room for a single token"):
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


@pytest.mark.gpu
@pytest.mark.parametrize("family", ["Qwen3", "Gemma"])
def test_numbers_on_a_gpu_equal_those_of_the_cpu(family: str) -> None:
    net = model(family, **FAMILIES[family][1])
    asked = [request(p, seed=i) for i, p in enumerate(prompts(8))]
    on_cpu = ask(engine(net), *asked)
    eng = engine(net.cuda(), max_batch=4)
    for r, there, here in zip(asked, ask(eng, *asked), on_cpu, strict=True):
        assert there.ids.tolist() == here.ids.tolist()
        np.testing.assert_allclose(there.logprobs, here.logprobs, atol=1e-3)
        longer = [*r.ids.tolist(), *there.ids.tolist(), 5]
        again = ask(eng, request(longer, cache=there.cache))[0]
        logprobs, _ = teacher(net.cpu(), longer, again.ids)
        np.testing.assert_allclose(again.logprobs, logprobs, atol=1e-3)
        net.cuda()
