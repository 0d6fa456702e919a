"""Engine servers and the engine that asks them: seeds, weights, servers that vanish, refusals."""

from __future__ import annotations

import asyncio
import copy
import gc
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import numpy as np
import pytest
import torch
from helpers.engine_help import ask, prompts, request
from helpers.engine_servers import FLOAT32, engine_servers, http_engine
from helpers.http_servers import serve_app

from turngym.agents.engines.base import Request
from turngym.agents.engines.factory import EngineSettings, build_engine
from turngym.agents.engines.http import weights as weights_module
from turngym.agents.engines.http.app import make_app
from turngym.agents.engines.http.host import EngineHost
from turngym.agents.engines.http.server import EngineServer, LostCallError
from turngym.agents.engines.http.settings import HttpSettings
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.serving import host_engine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.models.lora import LoraSettings, with_lora
from turngym.envs.core.errors import (
    BadValueError,
    ContextFullError,
    DataError,
    EngineFault,
    EpisodeError,
)
from turngym.envs.utils.http import HttpClient, Reply

Served = list[tuple[str, EngineHost]]


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Path) -> Any:
    return load_tokenizer(tiny_model)


@pytest.fixture(scope="module")
def two(tiny_model: Path) -> Iterator[Served]:
    with engine_servers(tiny_model, 2) as found:
        yield found


@pytest.fixture
def net(tiny_model: Path) -> Any:
    return load_model(tiny_model, device="cpu")


def urls(served: Served) -> list[str]:
    return [url for url, _ in served]


def asked(n: int = 20) -> list[Request]:
    heats, masses, ranks = [1.0, 0.7, 0.0], [1.0, 0.8, 1.0], [0, 0, 5]
    return [
        request(p % 300, seed=i, temperature=heats[i % 3], top_p=masses[i % 3], top_k=ranks[i % 3],
                max_tokens=7, top_logprobs=i % 3)
        for i, p in enumerate(prompts(n))
    ]  # fmt: skip


def reference(net: Any, tokenizer: Any) -> TransformersEngine:
    return TransformersEngine(net, tokenizer, dtype="float32", max_batch=8)


def close(a: Any, b: Any) -> None:
    assert a.ids.tolist() == b.ids.tolist()
    assert a.stop == b.stop
    for name in ("logprobs", "entropies"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=2e-6)


def shake(net: Any) -> None:
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=rng))


def test_a_seed_means_the_same_as_in_this_process(two: Served, net: Any, tokenizer: Any) -> None:
    eng, here = http_engine(urls(two), tokenizer, net), reference(net, tokenizer)
    before = [host.metrics()["sampled_tokens"] for _, host in two]
    for there, own in zip(ask(eng, *asked()), ask(here, *asked()), strict=True):
        close(there, own)
        assert (there.top_logprobs is None) == (own.top_logprobs is None)
        if there.top_logprobs is not None and own.top_logprobs is not None:
            np.testing.assert_allclose(there.top_logprobs, own.top_logprobs, atol=2e-6)
    assert eng.stats == here.stats
    shares = [h.metrics()["sampled_tokens"] - b for (_, h), b in zip(two, before, strict=True)]
    assert min(shares) > 0, "one server did all the work"


def test_numbers_of_numpy_travel_too(two: Served, net: Any, tokenizer: Any) -> None:
    eng, here = http_engine(urls(two), tokenizer, net), reference(net, tokenizer)
    heat = np.float32(0.7)
    given = request([5, 6], max_tokens=np.int64(4), temperature=heat, top_k=np.int32(9))
    (there,), (own,) = ask(eng, given), ask(here, given)
    close(there, own)


def test_one_row_at_a_time_is_the_same_to_the_bit(tiny_model: Path, tokenizer: Any) -> None:
    net = load_model(tiny_model, device="cpu")
    alone = EngineSettings(engine_dtype="float32", device="cpu", max_batch=1)
    host = host_engine(str(tiny_model), alone)
    here = TransformersEngine(net, tokenizer, dtype="float32", max_batch=1)
    try:
        with serve_app(make_app(host)) as url:
            eng = http_engine([url], tokenizer, net)
            for there, own in zip(ask(eng, *asked(6)), ask(here, *asked(6)), strict=True):
                assert there.ids.tolist() == own.ids.tolist()
                assert there.logprobs.tolist() == own.logprobs.tolist()
                assert there.entropies.tolist() == own.entropies.tolist()
    finally:
        host.close()


@pytest.mark.parametrize("by_file", [False, True])
def test_new_weights_arrive_and_the_old_file_goes(
    tiny_model: Path, tokenizer: Any, net: Any, tmp_path: Path, by_file: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("turngym.agents.engines.http.server.PIECE_BYTES", 50_000)
    more = {"weights_folder": str(tmp_path)} if by_file else {}
    with engine_servers(tiny_model, 2, weights_folder=tmp_path if by_file else None) as served:
        eng = http_engine(urls(served), tokenizer, net, **more)
        here = reference(net, tokenizer)
        old = ask(eng, *asked(4))
        shake(net)
        for a, b in zip(ask(eng, *asked(4)), old, strict=True):
            close(a, b)  # nothing changes until the weights are handed over
        eng.sync(net)
        here.sync(net)
        assert eng.version == 1
        assert {h.weights.version for _, h in served if h.weights is not None} == {1}
        new = ask(eng, *asked(4))
        for a, b in zip(new, ask(here, *asked(4)), strict=True):
            close(a, b)
        assert any(a.ids.tolist() != b.ids.tolist() for a, b in zip(new, old, strict=True))
        assert len(list(tmp_path.iterdir())) == by_file
        assert all(not list(h._spool.path.iterdir()) for _, h in served)
        del eng
        gc.collect()  # frames of what it asked hold it, since Python 3.13
    assert not list(tmp_path.iterdir())


def test_adapters_arrive_merged(two: Served, tiny_model: Path, net: Any, tokenizer: Any) -> None:
    pytest.importorskip("peft")
    net = with_lora(net, LoraSettings(rank=2, alpha=4.0, targets=("all-linear",)))
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in net.named_parameters():
            if "lora_B" in name:
                p.add_(0.3 * torch.randn(p.shape, generator=rng))
    eng, here = http_engine(urls(two), tokenizer, net), reference(net, tokenizer)
    plain = reference(load_model(tiny_model, device="cpu"), tokenizer)
    with_them, own, without = (ask(one, *asked(6)) for one in (eng, here, plain))
    for a, b in zip(with_them, own, strict=True):
        close(a, b)
    assert any(a.ids.tolist() != b.ids.tolist() for a, b in zip(own, without, strict=True))


def test_bfloat16_servers_get_bfloat16(
    tiny_model: Path, tokenizer: Any, net: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[torch.dtype] = []
    write = weights_module.write_weights

    def seen(weights: Any, path: Path) -> Any:
        written.extend(t.dtype for t in weights.values())
        return write(weights, path)

    monkeypatch.setattr("turngym.agents.engines.http.engine.write_weights", seen)
    half = EngineSettings(engine_dtype="bfloat16", device="cpu", max_batch=4)
    host = host_engine(str(tiny_model), half)
    try:
        with serve_app(make_app(host)) as url:
            eng = http_engine([url], tokenizer, net)
            with pytest.raises(BadValueError, match="sample in bfloat16"):
                build_engine("", tokenizer, EngineSettings(
                    engine="http", engine_dtype="float32", http=HttpSettings(urls=(url,))
                ))  # fmt: skip
            assert set(written) == {torch.bfloat16}
            assert len(written) == len(dict(net.named_parameters())), "tied weights travel once"
            assert len(ask(eng, *asked(2))) == 2
    finally:
        host.close()


def test_later_turns_find_their_cache_and_released_ones_are_forgotten(
    two: Served, net: Any, tokenizer: Any
) -> None:
    eng = http_engine(urls(two), tokenizer, net)
    first = ask(eng, *(request(np.arange(10, 60), seed=s) for s in range(4)))
    before = eng.stats
    later = [
        request([*range(10, 60), *done.ids.tolist(), 9], seed=7, cache=done.cache) for done in first
    ]
    ask(eng, *later)
    assert (eng.stats - before).prefix_hit_frac > 0.8
    for done in first:
        eng.release(done.cache)
        eng.release(done.cache)
    assert sum(len(server.released) for server in eng._servers) == 4
    ask(eng, *asked(8))
    assert sum(len(server.released) for server in eng._servers) == 0


def test_a_lost_server_s_requests_are_played_by_another(
    two: Served, tiny_model: Path, net: Any, tokenizer: Any
) -> None:
    here = reference(net, tokenizer)
    with engine_servers(tiny_model) as third:
        eng = http_engine([*urls(two), *urls(third)], tokenizer, net)
    # the third is gone, and does not know
    for there, own in zip(ask(eng, *asked()), ask(here, *asked()), strict=True):
        close(there, own)
    gone = eng._servers[2]
    assert gone.failures >= 1
    eng.sync(net)
    assert gone.failures >= 1, "it was tried again, in vain"
    assert len(ask(eng, *asked(4))) == 4


def test_the_only_server_is_asked_again_after_a_call_that_broke(
    two: Served, net: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    eng, here = http_engine(urls(two)[:1], tokenizer, net), reference(net, tokenizer)
    exchange, broken = HttpClient._exchange, [Reply("ReadError: Bad file descriptor")]

    def breaking(self: HttpClient, *args: Any) -> Reply:
        return broken.pop() if broken else exchange(self, *args)

    monkeypatch.setattr(HttpClient, "_exchange", breaking)

    async def main() -> list[Any]:
        answers = asyncio.gather(*(eng.generate(r) for r in asked(4)))
        found = await asyncio.wait_for(answers, 60)
        await asyncio.gather(*eng._calls)  # the end of a call comes behind its last answer
        return found

    for there, own in zip(asyncio.run(main()), ask(here, *asked(4)), strict=True):
        close(there, own)
    assert not broken
    assert eng._servers[0].failures == 0, "it answered, and all is forgiven"


def test_a_server_that_is_back_while_requests_are_shared_out_is_not_left_out(
    two: Served, net: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    eng = http_engine(urls(two)[:1], tokenizer, net)
    eng._servers[0].failed("it was away")
    looks = [eng._servers[0].away_until - 0.001]
    clock = SimpleNamespace(monotonic=lambda: looks.pop() if looks else time.monotonic() + 1)
    for name in ("engine", "server"):
        monkeypatch.setattr(f"turngym.agents.engines.http.{name}.time", clock)

    async def main() -> list[Any]:
        answers = asyncio.gather(*(eng.generate(r) for r in asked(2)))
        return await asyncio.wait_for(answers, 20)

    assert len(asyncio.run(main())) == 2
    assert not looks


def test_calls_that_break_together_are_one_failure(
    two: Served, net: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    eng, here = http_engine(urls(two)[:1], tokenizer, net), reference(net, tokenizer)
    generate, ends, under_way = EngineServer.generate, threading.Event(), []

    def ending(self: EngineServer, *args: Any) -> None:
        if ends.is_set():
            return generate(self, *args)
        under_way.append(args)
        ends.wait(20)
        raise LostCallError("the server ended")

    monkeypatch.setattr(EngineServer, "generate", ending)

    async def main() -> list[Any]:
        tasks = []
        for r in asked(5):  # each in a call of its own, and three in a row would be too many
            tasks.append(asyncio.create_task(eng.generate(r)))
            while len(under_way) < len(tasks):
                await asyncio.sleep(0.01)
        ends.set()
        return await asyncio.wait_for(asyncio.gather(*tasks), 60)

    for there, own in zip(asyncio.run(main()), ask(here, *asked(5)), strict=True):
        close(there, own)


def test_a_step_that_fails_once_is_one_failure_of_the_server(
    two: Served, net: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    eng, here = http_engine(urls(two)[:1], tokenizer, net), reference(net, tokenizer)
    forward = cast("Any", two[0][1]._engine)._forward
    decode, faults = forward.decode, [RuntimeError("no memory left")]

    def failing(*args: Any) -> torch.Tensor:
        if faults:
            raise faults.pop()
        return decode(*args)

    monkeypatch.setattr(forward, "decode", failing)
    for there, own in zip(ask(eng, *asked(8)), ask(here, *asked(8)), strict=True):
        close(there, own)
    assert not faults


def test_an_error_that_nobody_foresaw_is_told_to_who_waits(
    two: Served, net: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    eng = http_engine(urls(two), tokenizer, net)

    def broken(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> list[Any]:
        answers = asyncio.gather(*(eng.generate(r) for r in asked(4)), return_exceptions=True)
        return await asyncio.wait_for(answers, 20)

    with monkeypatch.context() as patch:
        patch.setattr(EngineServer, "generate", broken)
        assert [str(fault) for fault in asyncio.run(main())] == ["can't start new thread"] * 4
    assert len(ask(eng, *asked(4))) == 4


def test_a_server_that_was_started_anew_gets_the_weights_first(
    two: Served, tiny_model: Path, net: Any, tokenizer: Any
) -> None:
    eng, here = http_engine(urls(two), tokenizer, net), reference(net, tokenizer)
    shake(net)
    eng.sync(net)
    here.sync(net)
    for _, host in two:  # as after a restart
        host._engine.sync(load_model(tiny_model, device="cpu"), 0)
        host.weights = host.weights and type(host.weights)(0, "start:other")
    for there, own in zip(ask(eng, *asked()), ask(here, *asked()), strict=True):
        close(there, own)


@pytest.mark.parametrize(
    "other", [{"engine_dtype": "bfloat16"}, {"max_context": 40}], ids=["dtype", "max_context"]
)
@pytest.mark.parametrize("by", ["files", "group"])
def test_a_server_that_was_started_anew_with_other_options_is_not_used(
    two: Served, tiny_model: Path, net: Any, tokenizer: Any, by: str, other: dict[str, Any]
) -> None:
    (name,) = (name.removeprefix("engine_") for name in other)
    restarted = host_engine(str(tiny_model), replace(FLOAT32, **other))
    served = [make_app(two[0][1])]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await served[-1](scope, receive, send)

    with closing(restarted), serve_app(app) as url:
        eng = http_engine([url], tokenizer, net, weights_by=by)
        served.append(make_app(restarted))
        with pytest.raises(EngineFault, match=f"started anew, and its {name} is .* it had"):
            eng.sync(net) if by == "group" else ask(eng, *asked(2))
        served.pop()
        eng.sync(net)
        assert len(ask(eng, *asked(2))) == 2


def test_weights_are_handed_over_once_to_a_server_that_takes_long_to_load_them(
    two: Served, net: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, host = two[0]
    eng, here = http_engine([url], tokenizer, net), reference(net, tokenizer)
    take, taking = host._take, threading.Event()

    def slowly(wanted: Any, path: Path) -> None:
        taking.set()
        time.sleep(0.5)
        take(wanted, path)

    monkeypatch.setattr(host, "_take", slowly)
    host.weights = None

    async def later(r: Request, at: int) -> Any:
        while at and not taking.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02 * at)
        return await eng.generate(r)

    async def main() -> list[Any]:
        return await asyncio.gather(*(later(r, at) for at, r in enumerate(asked(6))))

    for there, own in zip(asyncio.run(main()), ask(here, *asked(6)), strict=True):
        close(there, own)
    assert eng._servers[0].handed == 2, "at the beginning, and once more"


def test_an_interrupt_waits_for_no_server_that_takes_weights(
    two: Served, net: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, host = two[0]
    eng = http_engine([url], tokenizer, net)
    taking, over, late = threading.Event(), threading.Event(), threading.Event()

    def hanging(wanted: Any, path: Path) -> None:
        taking.set()
        if not over.wait(5):
            late.set()

    def interrupt() -> None:
        taking.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    monkeypatch.setattr(host, "_take", hanging)
    shake(net)
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored behind a shell's &
    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            eng.sync(net)
    finally:
        signal.signal(signal.SIGINT, former)
    assert not late.is_set()
    over.set()


def test_two_runs_on_one_server_are_an_error(two: Served, net: Any, tokenizer: Any) -> None:
    url, host = two[0]
    eng = http_engine([url], tokenizer, net)
    take = host._take

    def stolen(wanted: Any, path: Path) -> None:
        take(wanted, path)
        host.weights = type(wanted)(wanted.version, "sha256:" + "0" * 64)

    host._take = stolen  # type: ignore[method-assign]
    try:
        host.weights = None
        with pytest.raises(EngineFault, match="Does another run use it"):
            ask(eng, *asked(2))
    finally:
        host._take = take  # type: ignore[method-assign]
    eng.sync(net)
    assert len(ask(eng, *asked(2))) == 2


def test_without_a_learner_the_servers_weights_are_taken_as_they_are(
    tiny_model: Path, tokenizer: Any, net: Any
) -> None:
    with engine_servers(tiny_model, 2) as served:
        eng = http_engine(urls(served), tokenizer)
        close(ask(eng, *asked(1))[0], ask(reference(net, tokenizer), *asked(1))[0])
        shake(net)
        http_engine(urls(served[:1]), tokenizer, net)  # somebody trains one of them
        with pytest.raises(BadValueError, match="different weights"):
            http_engine(urls(served), tokenizer)


def test_cancelled_requests_end_on_the_server_too(two: Served, net: Any, tokenizer: Any) -> None:
    eng = http_engine(urls(two)[:1], tokenizer, net)
    host = two[0][1]

    async def main() -> None:
        task = asyncio.create_task(eng.generate(request([5, 6], max_tokens=400, temperature=3.0)))
        while not host.metrics()["running"]:
            await asyncio.sleep(0.01)
        with pytest.raises(EpisodeError, match="being sampled"):
            eng.sync(net)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await asyncio.gather(*(eng.generate(r) for r in asked(4)))) == 4

    asyncio.run(main())


def test_bad_requests_are_refused_before_they_are_sent(
    two: Served, net: Any, tokenizer: Any
) -> None:
    eng = http_engine(urls(two), tokenizer, net)
    with pytest.raises(BadValueError, match="at least one token"):
        ask(eng, request([]))
    with pytest.raises(ContextFullError, match="no room for a single token"):
        ask(eng, request([5] * 512))
    with pytest.raises(BadValueError, match="non-empty strings"):
        ask(eng, request([5], stop=("",)))
    assert len(ask(eng, request([5] * 510, max_tokens=50))[0].ids) <= 2


def test_a_token_is_asked_for(
    tiny_model: Path, tokenizer: Any, net: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGYM_ENGINE_TOKEN", raising=False)
    with engine_servers(tiny_model, token="geheim") as served:
        with pytest.raises(EngineFault, match="wants the server's token"):
            http_engine(urls(served), tokenizer, net)
        monkeypatch.setenv("TURNGYM_ENGINE_TOKEN", "geheim")
        assert len(ask(http_engine(urls(served), tokenizer, net), *asked(1))) == 1


def test_health_and_metrics_say_what_is_there(two: Served) -> None:
    url, host = two[0]
    found = httpx.get(url + "/health").json()
    assert (found["engine"], found["dtype"], found["max_batch"]) == ("transformers", "float32", 8)
    assert host.weights is not None
    assert found["weights"] == host.weights.to_json()
    lines = dict(line.split() for line in httpx.get(url + "/metrics").text.splitlines())
    assert lines["turngym_engine_sampled_tokens"] == str(host.metrics()["sampled_tokens"])
    assert lines["turngym_engine_weights_version"] == str(host.weights.version)


def test_a_connection_that_ends_as_it_is_taken_is_no_lost_server(
    two: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = EngineServer(two[0][0], HttpSettings(urls=(two[0][0],)))
    server.look()
    exchange, broken = HttpClient._exchange, [Reply("ReadError: Bad file descriptor")]

    def breaking(self: HttpClient, *args: Any) -> Reply:
        return broken.pop() if broken else exchange(self, *args)

    monkeypatch.setattr(HttpClient, "_exchange", breaking)
    assert server.present()
    assert (server.failures, server.facts.max_batch) == (0, 8)
    broken += [Reply("ReadError: Bad file descriptor")] * 2
    assert not server.present()
    assert server.failures == 1
    assert "Bad file descriptor" in server.problem


def test_a_cpu_gives_no_memory_back(two: Served, tiny_model: Path, tokenizer: Any) -> None:
    with pytest.raises(BadValueError, match="on a CPU"):
        host_engine(str(tiny_model), FLOAT32, sleep=True)
    assert httpx.post(two[0][0] + "/sleep").status_code == 422
    assert httpx.post(two[0][0] + "/wake").json() == {"asleep": False}
    with pytest.raises(BadValueError, match=r"http\.sleep is on"):
        http_engine(urls(two), tokenizer, sleep=True)


def test_servers_that_do_not_fit_are_refused(
    two: Served, tiny_model: Path, tokenizer: Any, net: Any, tmp_path: Path
) -> None:
    with pytest.raises(BadValueError, match="needs the addresses of servers"):
        http_engine([], tokenizer)
    with pytest.raises(BadValueError, match="names a server twice"):
        HttpSettings(urls=("http://a:1", "http://a:1/"))
    other = copy.deepcopy(tokenizer)
    other.add_tokens(["unheard"])
    with pytest.raises(BadValueError, match="another tokenizer"):
        http_engine(urls(two), other)
    with pytest.raises(BadValueError, match="started without --weights-folder"):
        http_engine(urls(two), tokenizer, net, weights_folder=str(tmp_path))
    with pytest.raises(BadValueError, match="cannot be served"):
        host_engine(str(tiny_model), EngineSettings(engine="http"))
    with pytest.raises(DataError, match="is not a folder"):
        host_engine(str(tiny_model), FLOAT32, weights_folder=tmp_path / "none")
    with pytest.raises(BadValueError, match=r"refused\. Expected a server of `turngym engine"):
        http_engine(["http://127.0.0.1:9"], tokenizer)
