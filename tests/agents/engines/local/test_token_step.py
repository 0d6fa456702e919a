"""A token step on a GPU, rehearsed in main memory: one copy there, one wait, graphs that replay."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.crossings import Crossings, Graphs, Waits
from helpers.engine_help import TOKENIZER, ask, engine, prompts, request, same
from helpers.small_models import model

from turngym.agents.engines import factory, transfers
from turngym.agents.engines.base import Completion
from turngym.agents.engines.local import engine as module
from turngym.agents.engines.local import packed_weights
from turngym.agents.engines.local.decode_graphs import EAGER, DecodeGraphs
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.local.forward import GRAIN
from turngym.agents.engines.local.kv_cache import KvPool
from turngym.agents.engines.local.paged_attention import paged_reference
from turngym.agents.engines.transfers import Parcel
from turngym.envs.core.errors import BadValueError

FORMS = ("masks", "pages", "own forward")


@pytest.fixture(autouse=True)
def plain_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode by torch from weights that lie plainly, as on CUDA."""
    monkeypatch.setattr(module, "compiled_loops", lambda: None)
    monkeypatch.setattr(packed_weights, "can_prepack", lambda _dtype: False)


def net_of(form: str, seed: int = 0) -> Any:
    if form == "own forward":
        return model("Gemma", head_dim=8, seed=seed)
    return model("Qwen2", seed=seed, max_position_embeddings=1024)


def on_gpu(form: str, net: Any, **more: Any) -> TransformersEngine:
    """Return an engine in the form that it has on CUDA."""
    eng = engine(net, **more)
    forward: Any = eng._forward
    forward._grain = GRAIN
    if form != "own forward":
        forward._as_rows = True
    if form == "pages":
        forward._kernel = paged_reference
        eng._pool = KvPool(forward.shape, 2 * eng._max_batch, 2**26, fixed=True)
    return eng


def talk(eng: TransformersEngine, **how: Any) -> list[Completion]:
    """Play two turns of five contexts, drawn in different ways, that end at different times."""
    contexts = [p.tolist() for p in prompts(5, low=3, high=20)]
    handles: list[int | None] = [None] * 5
    said: list[Completion] = []
    for turn in range(2):
        asked = [
            request(
                c,
                seed=10 * turn + i,
                cache=h,
                max_tokens=4 + 2 * i,
                temperature=(1.0, 0.7, 0.0)[i % 3],
                **({"top_p": 0.9, "top_k": 30} if i % 2 else {}),
                **how,
            )
            for i, (c, h) in enumerate(zip(contexts, handles, strict=True))
        ]
        for i, done in enumerate(ask(eng, *asked)):
            said.append(done)
            handles[i] = done.cache
            contexts[i] += [*done.ids.tolist(), *range(20 + i, 24 + 2 * i)]
    return said


def watch(eng: TransformersEngine, crossed: Crossings) -> list[tuple[str, int, int, int]]:
    """Note of every step what passes it took, copies there and back, and other waits."""
    steps: list[tuple[str, int, int, int]] = []
    step, forward = eng._step, eng._forward
    passes: list[str] = []
    for name in ("feed", "decode"):
        real = getattr(forward, name)
        setattr(
            forward, name, lambda *a, n=name, real=real, **k: (passes.append(n), real(*a, **k))[1]
        )

    def watched() -> None:
        passes.clear()
        before = crossed.there, crossed.back
        with Waits() as waits:
            step()
        there, back = crossed.there - before[0], crossed.back - before[1]
        steps.append(("+".join(sorted(set(passes))), there, back, waits.count))

    eng._step = watched
    return steps


def one_by_one(self: Parcel, into: torch.Tensor | None = None) -> list[torch.Tensor]:
    assert into is None
    given = [torch.from_numpy(array) for array in self._arrays]
    self.tensors = [transfers.upload(one, self.device, None) for one in given]
    return self.tensors


@pytest.mark.parametrize("form", FORMS)
def test_a_token_step_takes_one_copy_there_and_one_wait(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = talk(on_gpu(form, net_of(form), max_batch=3))
    crossed = Crossings.recorded(monkeypatch)
    with monkeypatch.context() as old:  # every array in a copy of its own
        old.setattr(Parcel, "send", one_by_one)
        eng = on_gpu(form, net_of(form), max_batch=3)
        steps = watch(eng, crossed)
        before = talk(eng)
        assert min(there for kind, there, *_ in steps if kind == "decode") >= 5
    eng = on_gpu(form, net_of(form), max_batch=3)
    steps = watch(eng, crossed)
    after = talk(eng)
    for a, b in zip(here, after, strict=True):
        same(a, b)
    for a, b in zip(before, after, strict=True):  # to the bit
        assert a.ids.tolist() == b.ids.tolist()
        assert a.logprobs.tolist() == b.logprobs.tolist()
        assert a.entropies.tolist() == b.entropies.tolist()
    decoding = [counts for kind, *counts in steps if kind == "decode"]
    assert len(decoding) > 20
    assert {tuple(counts) for counts in decoding} == {(1, 1, 0)}
    # one that admits sends its prompts, their order, and what they are drawn with
    admitting = [(kind.count("+"), *counts) for kind, *counts in steps if "feed" in kind]
    assert admitting
    for also, there, back, waits in admitting:
        assert there <= 4 + also
        assert (back, waits) == (1 + also, 0)


def test_likeliest_tokens_of_all_rows_come_in_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    before = talk(on_gpu("pages", net_of("pages")), top_logprobs=4)
    crossed = Crossings.recorded(monkeypatch)
    eng = on_gpu("pages", net_of("pages"))
    steps = watch(eng, crossed)
    for a, b in zip(before, talk(eng, top_logprobs=4), strict=True):
        assert a.top_logprobs is not None
        assert b.top_logprobs is not None
        np.testing.assert_allclose(a.top_logprobs, b.top_logprobs, atol=1e-5)
    assert {tuple(counts) for kind, *counts in steps if kind == "decode"} == {(2, 2, 0)}


# ---------------------------------------------------------------- graphs


def with_graphs(
    monkeypatch: pytest.MonkeyPatch, max_batch: int = 3, **more: Any
) -> tuple[TransformersEngine, Graphs, Crossings]:
    """Return an engine whose decode steps are captured by something that remembers them."""
    crossed = Crossings.recorded(monkeypatch)
    eng = on_gpu("pages", net_of("pages"), max_batch=max_batch, **more)
    forward: Any = eng._forward

    def addresses() -> list[int]:
        found = [eng._pool.data, forward._weights.embed, *forward._weights.turns, forward._floor]
        found += [tensor for layer in forward._blocks for tensor in tensors_of(layer)]
        return [t.data_ptr() for t in [*found, forward._weights.head._weight]]

    graphs = Graphs(addresses)
    forward._graphs = DecodeGraphs(max_batch, graphs.recorder)
    return eng, graphs, crossed


def tensors_of(layer: Any) -> list[torch.Tensor]:
    linear = [getattr(layer, name) for name in ("qkv", "out", "gate", "up", "down")]
    tensors = [x for one in linear for x in (one._weight, one._bias)]
    return [t for t in (*tensors, layer.norm_q, layer.norm_k) if t is not None]


def test_captured_steps_sample_the_same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    max_context = 60
    plain = on_gpu("pages", net_of("pages"), max_context=max_context)
    other = on_gpu("pages", net_of("pages", seed=1), max_context=max_context)
    wanted, changed = talk(plain), talk(other)
    eng, graphs, crossed = with_graphs(monkeypatch, max_context=max_context)
    decode = DecodeGraphs(3).padded
    steps = watch(eng, crossed)
    for a, b in zip(wanted, talk(eng), strict=True):
        same(a, b)
    assert {tuple(counts) for kind, *counts in steps if kind == "decode"} == {(1, 1, 0)}
    forward: Any = eng._forward
    sizes = forward._graphs._kept
    assert set(sizes) <= {1, 2, 3} == {decode(n) for n in range(1, 4)}
    assert graphs.captured == sum(size.replay is not None for size in sizes.values()) >= 3
    assert graphs.captured == forward._graphs.captured
    assert graphs.replayed > 15
    assert graphs.replayed + EAGER * len(sizes) == sum(size.seen for size in sizes.values())
    # new weights take the old ones' place: what was captured computes with them
    captured = graphs.captured
    eng.sync(net_of("pages", seed=1))
    for a, b in zip(changed, talk(eng), strict=True):
        same(a, b)
    assert graphs.captured == captured
    # a cache that is given back and taken anew lies elsewhere
    eng._pool.give_back()
    for a, b in zip(changed, talk(eng), strict=True):
        same(a, b)


@pytest.mark.parametrize("captured", [True, False])
def test_prompts_wait_for_one_another_where_steps_are_captured(
    captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [request(p, seed=i, max_tokens=2 + 3 * (i % 4)) for i, p in enumerate(prompts(24))]
    plain = on_gpu("pages", net_of("pages"), max_batch=8)
    eng, _, _ = with_graphs(monkeypatch, 8)
    if not captured:
        forward: Any = eng._forward
        forward._graphs = None
    fed: list[tuple[int, int]] = []
    admit = eng._admit

    def admitted() -> bool:
        fed.append((len(eng._waiting), len(eng._batch)))
        return admit()

    monkeypatch.setattr(eng, "_admit", admitted)
    for r, done in zip(asked, ask(eng, *asked), strict=True):
        same(done, ask(plain, r)[0])
    # while many wait every end is a reason; later, as many as run must wait
    few = [(waiting, running) for waiting, running in fed if waiting < running]
    assert bool(few) != captured
    assert len(fed) > 2


def test_no_prompt_waits_longer_than_some_captured_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    eng, _, _ = with_graphs(monkeypatch, 8)
    waited: list[int] = []
    admit, step = eng._admit, eng._step

    def admitted() -> bool:
        waited.append(eng._since)
        return admit()

    monkeypatch.setattr(eng, "_admit", admitted)

    async def talk_late() -> list[Completion]:
        long = [request(p, seed=i, max_tokens=40) for i, p in enumerate(prompts(4))]
        running = [asyncio.ensure_future(eng.generate(one)) for one in long]
        late: list[asyncio.Future[Completion]] = []
        steps = 0

        def counted() -> None:
            nonlocal steps
            steps += 1
            if steps == 3:
                late.append(asyncio.ensure_future(eng.generate(request([5, 6, 7], max_tokens=3))))
            step()

        monkeypatch.setattr(eng, "_step", counted)
        done = await asyncio.gather(*running)
        return [*done, await late[0]]

    done = asyncio.run(talk_late())
    assert waited[1] == module._PATIENCE  # four run and one waits: not before
    plain = on_gpu("pages", net_of("pages"))
    same(done[-1], ask(plain, request([5, 6, 7], max_tokens=3))[0])


def test_rows_that_pad_a_step_write_where_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    for max_context in (100, 300):
        eng, _, _ = with_graphs(monkeypatch, 8, max_context=max_context)
        pool, forward = eng._pool, eng._forward
        rows = [pool.acquire(n) for n in (90, 40, 70)]
        at = np.array([row.index for row in rows if row is not None])
        pool.lengths[at] = [89, 3, 50]
        with torch.inference_mode():
            pool.data.normal_(generator=torch.Generator().manual_seed(0))
            before = pool.data.clone()
            logits = forward.decode(pool, at[[2, 0, 1]], np.array([5, 6, 7]))
        assert logits.shape == (3, forward.vocabulary)
        changed = (pool.data != before).any(-1).any(3).any(0).any(0).nonzero().tolist()
        idle = min(pool.positions, max_context)
        assert sorted(map(tuple, changed)) == sorted(
            [(int(at[0]), 89), (int(at[1]), 3), (int(at[2]), 50), (int(at[2]), idle)]
        )
        assert idle >= max(pool.positions, max_context) or idle not in pool.lengths


def test_a_cache_that_is_laid_out_anew_is_captured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    eng, graphs, _ = with_graphs(monkeypatch, 5, max_context=1000)
    plain = on_gpu("pages", net_of("pages"), max_context=1000)
    for length in (10, 600, 10):  # rows of two pages, of three, and of three
        asked = [request(p, seed=i, max_tokens=7) for i, p in enumerate(prompts(3, low=5))]
        asked += [request(np.arange(length) % 300 + 5, max_tokens=7)]
        for r, done in zip(asked, ask(eng, *asked), strict=True):
            same(done, ask(plain, r)[0])
    assert graphs.captured == 2
    # one that is given back and taken again begins as it was
    shape = eng._pool.data.shape
    eng._pool.give_back()
    ask(eng, request([5, 6, 7]))
    assert eng._pool.data.shape == shape


def test_a_capture_that_fails_is_told_once_and_sampling_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = talk(on_gpu("pages", net_of("pages")))
    eng, _, _ = with_graphs(monkeypatch)
    tried: list[int] = []

    def refuses() -> Any:
        def record(_: Any) -> Any:
            tried.append(1)
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

        return record

    forward: Any = eng._forward
    forward._graphs = DecodeGraphs(3, refuses)
    with pytest.warns(UserWarning, match="launched on its own: operation not permitted") as told:
        found = talk(eng)
    for a, b in zip(wanted, found, strict=True):
        same(a, b)
    assert len(told) == len(tried) == 1
    assert forward._graphs.off == "operation not permitted when stream is capturing"


def test_graphs_are_cuda_s_and_can_be_left_out() -> None:
    forward: Any = engine(net_of("pages"))._forward
    assert forward._graphs is None
    with pytest.raises(BadValueError, match=r"the engine is 'vllm'.*--vllm\.eager"):
        factory.EngineSettings(engine="vllm", cuda_graphs=False)
    settings = factory.EngineSettings(cuda_graphs=False, device="cpu")
    made: Any = factory.build_engine("", TOKENIZER, settings, learner=net_of("pages"))
    assert made._forward._graphs is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_graphs_of_a_gpu_sample_the_same_and_the_host_waits_once() -> None:
    net = model("Qwen2", head_dim=64).cuda().bfloat16()
    how: dict[str, Any] = {"max_batch": 4, "dtype": "bfloat16"}
    plain = TransformersEngine(net, TOKENIZER, cuda_graphs=False, **how)
    eng = TransformersEngine(net, TOKENIZER, **how)
    forward: Any = eng._forward
    assert forward.unpaged_because is None
    real = forward.decode

    def strict(*given: Any) -> torch.Tensor:
        torch.cuda.set_sync_debug_mode("error")  # the only wait comes with the tokens
        try:
            return real(*given)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="engine: decode steps are not captured")
        talk(eng)
        forward.decode = strict
        found = talk(eng)
    assert forward._graphs.off is None
    assert forward._graphs.captured >= 2
    talk(plain)
    alike = total = 0
    for a, b in zip(talk(plain), found, strict=True):
        n = min(len(a.ids), len(b.ids))
        differs = np.flatnonzero(a.ids[:n] != b.ids[:n])
        n = int(differs[0]) if len(differs) else n  # rounding may turn a close draw
        np.testing.assert_allclose(a.logprobs[:n], b.logprobs[:n], atol=0.05)
        alike, total = alike + n, total + len(a.ids)
    assert alike > 0.5 * total
