"""What every engine in this process must hold to; a test file names the engine and its model.

A subclass is a test class whose module has the fixtures ``net`` (a model of 420 tokens and 160
positions) and ``eng`` (an engine over its weights in float32, shared by the tests).
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
import torch
from helpers.engine_help import TOKENIZER, ask, engine, prompts, request, same, teacher

from turngym.agents.engines.base import Completion, Request
from turngym.agents.rendering.token_text import TokenText
from turngym.envs.core.errors import BadValueError, ContextFullError, EpisodeError


class EngineLaws:
    def test_numbers_equal_teacher_forcing(self, net: Any, eng: Any) -> None:
        asked = [
            request(p, seed=i, temperature=t, max_tokens=9, top_p=q, top_k=k)
            for i, (p, t, q, k) in enumerate(
                zip(prompts(9), [1.0, 0.7, 1.6] * 3, [1, 0.8, 1] * 3, [0, 0, 5] * 3, strict=True)
            )
        ]
        for r, done in zip(asked, ask(eng, *asked), strict=True):
            logprobs, entropies = teacher(net, r.ids, done.ids, r.sampling.temperature)
            np.testing.assert_allclose(done.logprobs, logprobs, atol=3e-5)
            np.testing.assert_allclose(done.entropies, entropies, atol=3e-5)
            assert done.stop in ("length", "eos")

    def test_a_seed_means_the_same_with_every_engine(self, net: Any, eng: Any) -> None:
        reference = engine(net)
        asked = [
            request(p, seed=100 + i, temperature=t, top_p=q, top_k=k, max_tokens=8)
            for i, (p, t, q, k) in enumerate(
                zip(prompts(6, seed=3), [1.0, 0.0, 1.3] * 2, [1, 1, 0.9] * 2, [0, 0, 7] * 2,
                    strict=True)
            )
        ]  # fmt: skip
        for there, here in zip(ask(eng, *asked), ask(reference, *asked), strict=True):
            assert there.ids.tolist() == here.ids.tolist()
            np.testing.assert_allclose(there.logprobs, here.logprobs, atol=3e-5)

    def test_batch_mates_and_arrival_do_not_matter(self, eng: Any) -> None:
        rng = np.random.default_rng(4)
        asked = [
            request(p, seed=int(rng.integers(2**40)), max_tokens=int(rng.integers(1, 9)))
            for p in prompts(9, seed=5)
        ]
        delays = rng.integers(0, 12, size=len(asked))

        async def late(r: Request, steps: int) -> Completion:
            for _ in range(steps):
                await asyncio.sleep(0)
            return await eng.generate(r)

        async def main() -> list[Completion]:
            todo = (late(r, int(d)) for r, d in zip(asked, delays, strict=True))
            return list(await asyncio.gather(*todo))

        for r, done in zip(asked, asyncio.run(main()), strict=True):
            alone = ask(eng, r)[0]
            assert done.ids.tolist() == alone.ids.tolist()
            np.testing.assert_allclose(done.logprobs, alone.logprobs, atol=3e-5)

    def test_no_barrier_between_turns(self, eng: Any) -> None:
        log: list[str] = []
        many = (request([7, 8, 9], seed=s, max_tokens=30) for s in range(99))
        lengthy = next(r for r in many if ask(eng, r)[0].stop == "length")

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

    def test_cancelled_requests_leave_the_others_alone(self, eng: Any) -> None:
        asked = [request(p, seed=i, max_tokens=12) for i, p in enumerate(prompts(6))]

        async def main() -> list[Any]:
            tasks = [asyncio.create_task(eng.generate(r)) for r in asked]
            for _ in range(3):
                await asyncio.sleep(0)
            tasks[0].cancel()  # drives
            tasks[1].cancel()  # rides along
            return await asyncio.gather(*tasks, return_exceptions=True)

        done = asyncio.run(main())
        assert all(isinstance(d, asyncio.CancelledError) for d in done[:2])
        for r, d in zip(asked[2:], done[2:], strict=True):
            same(d, ask(eng, r)[0])

    def test_stop_strings_stay_and_end_the_action(self, eng: Any) -> None:
        text = TokenText(TOKENIZER)
        reasons = set()
        for seed in range(40):
            done = ask(eng, request([5, 6], seed=seed, stop=("a", "e", "th"), max_tokens=20))[0]
            said = text.decode(done.ids.tolist())
            before = text.decode(done.ids[:-1].tolist())
            reasons.add(done.stop)
            assert not any(s in before for s in ("a", "e", "th"))
            ended = int(done.ids[-1]) in eng.eos_ids
            assert (done.stop == "eos") == ended
            assert ended or (done.stop == "stop") == any(s in said for s in ("a", "e", "th"))
        assert "stop" in reasons

    def test_likeliest_tokens_are_reported(self, net: Any, eng: Any) -> None:
        r = request([5, 9, 30], seed=2, top_logprobs=3, max_tokens=4)
        done = ask(eng, r)[0]
        assert done.top_logprobs is not None
        assert done.top_logprobs.shape == (len(done.ids), 3)
        with torch.no_grad():
            logits = net(torch.tensor([[5, 9, 30, *done.ids.tolist()]])).logits[0, 2:-1]
        expected = logits.log_softmax(-1).topk(3).values.numpy()
        np.testing.assert_allclose(done.top_logprobs, expected, atol=3e-5)

    def test_the_context_bounds_the_action(self, eng: Any) -> None:
        assert eng.max_context == 160
        asked = (request(list(range(5, 163)), seed=s, max_tokens=50) for s in range(9))
        done = next(d for r in asked if (d := ask(eng, r)[0]).stop == "length")
        assert len(done.ids) == 2
        with pytest.raises(ContextFullError, match="no room for a single token"):
            ask(eng, request(list(range(5, 165))))

    def test_bad_input_is_refused_before_any_work(self, eng: Any) -> None:
        with pytest.raises(BadValueError, match="at least one token"):
            ask(eng, request([]))
        with pytest.raises(BadValueError, match="holds id 420; expected 0 to 419"):
            ask(eng, request([5, 420]))
        with pytest.raises(BadValueError, match="holds id -1"):
            ask(eng, request([-1]))
        with pytest.raises(BadValueError, match="non-empty strings"):
            ask(eng, request([5], stop=("",)))

    def test_the_caller_s_random_state_is_untouched(self, eng: Any) -> None:
        torch.manual_seed(5)
        before = torch.get_rng_state()
        numpy_before = np.random.get_state()[1].tolist()  # noqa: NPY002 - to see that it stays
        precision = torch.get_float32_matmul_precision()
        ask(eng, *(request(p, seed=i) for i, p in enumerate(prompts(4))))
        assert torch.equal(torch.get_rng_state(), before)
        assert np.random.get_state()[1].tolist() == numpy_before  # noqa: NPY002
        assert torch.get_float32_matmul_precision() == precision
        assert torch.is_grad_enabled()

    def test_forks_reuse_their_prefix(self, eng: Any) -> None:
        trunk = list(range(10, 90))
        first = ask(eng, request(trunk, seed=1, max_tokens=4))[0]
        base = [*trunk, *first.ids.tolist()]
        before = eng.stats
        tails = [[9], [10, 11], [12, 13, 14]]
        asked = [
            request([*base, *t], seed=i, cache=first.cache, max_tokens=3)
            for i, t in enumerate(tails)
        ]
        ask(eng, *asked)
        counted = eng.stats - before
        assert counted.prompt_tokens == sum(len(r.ids) for r in asked)
        assert 0.5 < counted.prefix_hit_frac < 1

    def test_sync_takes_new_weights_drops_caches_and_counts(self, net: Any, eng: Any) -> None:
        context = list(range(20, 60))
        r = request(context, seed=4)
        before = ask(eng, r)[0]
        kept = {k: v.clone() for k, v in net.state_dict().items()}
        version = eng.version
        rng = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for p in net.parameters():
                p.add_(0.2 * torch.randn(p.shape, generator=rng))
        try:
            same(ask(eng, r)[0], before)  # nothing changes until the weights are handed over
            eng.sync(net)
            assert eng.version == version + 1
            done = ask(eng, r)[0]
            logprobs, _ = teacher(net, r.ids, done.ids)
            np.testing.assert_allclose(done.logprobs, logprobs, atol=2e-4)
            assert abs(done.entropies[0] - before.entropies[0]) > 0.01
        finally:
            net.load_state_dict(kept)
            eng.sync(net, version=version)
        same(ask(eng, r)[0], before)
        assert eng.version == version

    def test_sync_while_sampling_is_refused(self, net: Any, eng: Any) -> None:
        async def main() -> None:
            task = asyncio.create_task(eng.generate(request([5, 6], max_tokens=20)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            with pytest.raises(EpisodeError, match="1 requests are being sampled"):
                eng.sync(net)
            await task

        asyncio.run(main())
