"""The engine: numbers equal teacher forcing, and nothing but the request decides what is drawn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.engine_help import FAMILIES, TOKENIZER, ask, engine, prompts, request, same, teacher
from helpers.small_models import model
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.base import Completion, Request
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.local.numba_decoder import NativeDecoder
from turngym.agents.engines.local.packed_decoder import FastDecoder
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.envs.core.errors import BadValueError, EngineFault

pytestmark = pytest.mark.usefixtures("loops")


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_equal_teacher_forcing_of_the_saved_model(
    family: str, tmp_path: Path, loops: str
) -> None:
    path, more = FAMILIES[family]
    if path is NativeDecoder and loops == "torch":
        path = FastDecoder
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


def test_a_request_that_waits_for_a_place_may_be_cancelled() -> None:
    eng = engine(max_batch=2)
    asked = [request(p, seed=i, max_tokens=12) for i, p in enumerate(prompts(4))]

    async def main() -> list[Any]:
        tasks = [asyncio.create_task(eng.generate(r)) for r in asked]
        for _ in range(3):
            await asyncio.sleep(0)
        tasks[2].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    done = asyncio.run(main())
    assert isinstance(done.pop(2), asyncio.CancelledError)
    for r, d in zip([*asked[:2], asked[3]], done, strict=True):
        same(d, ask(_ALONE, r)[0])
    assert not any(row is not None and row.busy for row in eng._pool._slots)


def test_who_cannot_be_forgotten_hands_over_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    eng = engine()
    leave, faults = eng._leave, [RuntimeError("a worker is gone")]

    def failing(given: Any) -> None:
        leave(given)
        if faults:
            raise faults.pop()

    monkeypatch.setattr(eng, "_leave", failing)

    async def main() -> list[Any]:
        asked = (request([5, 6], max_tokens=12), request([7], max_tokens=12))
        first, other = (asyncio.create_task(eng.generate(r)) for r in asked)
        for _ in range(4):
            await asyncio.sleep(0)
        first.cancel()  # it drives
        return await asyncio.wait_for(asyncio.gather(first, other, return_exceptions=True), 30)

    gone, done = asyncio.run(main())
    assert str(gone) == "a worker is gone"
    same(done, ask(_ALONE, request([7], max_tokens=12))[0])


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


def ask_for_faults(eng: TransformersEngine, count: int) -> list[Any]:
    """What requests came to nothing; none of them may wait for longer than this takes."""
    asked = [request(p, seed=i) for i, p in enumerate(prompts(count))]

    async def main() -> list[Any]:
        answers = asyncio.gather(*(eng.generate(r) for r in asked), return_exceptions=True)
        return await asyncio.wait_for(answers, 30)

    return asyncio.run(main())


def test_a_pass_with_prompts_that_fails_is_told_to_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    eng = engine(max_batch=3)

    def broken(*_: Any) -> torch.Tensor:
        raise RuntimeError("no memory left")

    with monkeypatch.context() as patch:
        patch.setattr(eng._forward, "feed", broken)
        faults = ask_for_faults(eng, 5)  # two of them have no place yet
    assert all(isinstance(f, EngineFault) and "no memory left" in str(f) for f in faults)
    same(ask(eng, request([5, 6]))[0], ask(_ALONE, request([5, 6]))[0])


def test_a_device_that_cannot_even_be_wiped_fails_every_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    eng = engine()

    def broken(*_: Any) -> Any:
        raise RuntimeError("CUDA error: an illegal memory access")

    monkeypatch.setattr(eng._forward, "decode", broken)
    monkeypatch.setattr(eng._pool, "wipe", broken)
    faults = ask_for_faults(eng, 4)
    assert all(isinstance(f, EngineFault) and "illegal memory" in str(f) for f in faults)


def test_settings_that_do_not_fit_the_model_are_refused() -> None:
    assert engine(max_context=20).max_context == 20
    with pytest.raises(BadValueError, match="at most 160, the context of this model"):
        engine(max_context=161)
    with pytest.raises(BadValueError, match="max_batch is 0"):
        engine(max_batch=0)
    with pytest.raises(BadValueError, match="vocabulary only 100 rows"):
        engine(model("Qwen2", vocab_size=100))


def test_models_that_keep_other_state_are_refused_with_the_reason() -> None:
    with pytest.raises(BadValueError, match="cannot sample from it"):
        engine(model("Mamba", state_size=4, max_context=64), max_context=None)


def test_angles_that_depend_on_the_batch_are_refused_beyond_their_limit() -> None:
    rope = {"rope_type": "longrope", "rope_theta": 10_000.0, "factor": 2.0}
    rope |= {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
    rope |= {"original_max_position_embeddings": 32}
    net = model("Llama", rope_parameters=rope, max_position_embeddings=64, num_attention_heads=2)
    with pytest.raises(BadValueError, match="max_context is 64, expected at most 32"):
        engine(net, max_context=64)
    short, long = request([5, 6, 7, 8], max_tokens=8), request(range(2, 22), max_tokens=8)
    eng = engine(net, max_context=32)
    same(ask(eng, short)[0], ask(eng, short, long)[0])


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
