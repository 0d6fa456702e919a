"""Weights that reach engine servers through a group: exactly those of the learner, or an error."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.engine_help import ask, prompts, request
from helpers.engine_servers import engine_servers, http_engine, spawned

from turngym.agents.engines.base import Request
from turngym.agents.engines.http.engine import HttpEngine
from turngym.agents.engines.http.settings import HttpSettings
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.models.lora import LoraSettings, with_lora
from turngym.envs.core.errors import BadValueError, EngineFault


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Path) -> Any:
    return load_tokenizer(tiny_model)


@pytest.fixture
def net(tiny_model: Path) -> Any:
    return load_model(tiny_model, device="cpu")


def asked(n: int = 4) -> list[Request]:
    return [request(p % 300, seed=i, max_tokens=7) for i, p in enumerate(prompts(n))]


def shake(net: Any, only: str = "") -> None:
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in net.named_parameters():
            if only in name:
                p.add_(0.1 * torch.randn(p.shape, generator=rng))


def answers(engine: Any) -> list[tuple[list[int], list[float]]]:
    """Asked one at a time: of rows that are computed alone all bits are the same."""
    found = [ask(engine, one)[0] for one in asked()]
    return [(done.ids.tolist(), done.logprobs.tolist()) for done in found]


def own(net: Any, tokenizer: Any) -> list[tuple[list[int], list[float]]]:
    return answers(TransformersEngine(net, tokenizer, dtype="float32", max_batch=1))


def by_group(urls: list[str], tokenizer: Any, net: Any, **more: Any) -> HttpEngine:
    return http_engine(urls, tokenizer, net, **{"weights_by": "group"} | more)


@pytest.mark.slow
def test_a_server_of_another_process_has_exactly_the_learner_s_weights_and_its_death_is_noticed(
    tiny_model: Path, tokenizer: Any, net: Any
) -> None:
    with spawned(tiny_model, "--max-batch", "1") as (url, process):
        engine = by_group([url], tokenizer, net, weights_timeout_s=20.0)
        assert answers(engine) == own(net, tokenizer)
        before = answers(engine)
        shake(net)
        engine.sync(net)
        assert answers(engine) == own(net, tokenizer) != before
        process.kill()
        process.wait()
        began = time.monotonic()
        with pytest.raises(EngineFault, match="no server took the weights"):
            engine.sync(net)
        assert time.monotonic() - began < 15


def test_adapters_arrive_merged_and_a_server_that_joins_late_is_taken_in(
    tiny_model: Path, tokenizer: Any, net: Any
) -> None:
    pytest.importorskip("peft")
    net = with_lora(net, LoraSettings(rank=2, alpha=4.0, targets=("all-linear",)))
    shake(net, "lora_B")
    with engine_servers(tiny_model, 2, max_batch=1) as served:
        urls = [url for url, _ in served]
        engine = by_group(urls, tokenizer, net)
        assert answers(engine) == own(net, tokenizer)
        first = engine._sender and engine._sender._group
        served[1][1]._receiver.leave()  # as if it had been started anew
        shake(net, "lora_B")
        engine.sync(net)
        assert {host.weights for _, host in served} == {engine._weights}
        assert answers(engine) == own(net, tokenizer)
        assert engine._sender is not None
        assert engine._sender._group is not first


def test_a_run_whose_server_another_run_takes_over_says_so(
    tiny_model: Path, tokenizer: Any, net: Any
) -> None:
    with engine_servers(tiny_model) as served:
        first = by_group([served[0][0]], tokenizer, net)
        second = by_group([served[0][0]], tokenizer, net)
        with pytest.raises(EngineFault, match=r"Or does another run use it\?"):
            answers(first)
        assert len(answers(second)) == 4


def test_a_server_that_breaks_off_is_left_out_of_the_next_group(
    tiny_model: Path, tokenizer: Any, net: Any
) -> None:
    with engine_servers(tiny_model, 2, max_batch=1) as served:
        engine = by_group([url for url, _ in served], tokenizer, net)
        (_, host), (_, broken) = served
        take = broken._engine.sync

        def fails(model: Any, version: int) -> None:
            model.model.embed_tokens.weight  # noqa: B018 - the first of many
            broken._engine.sync = take  # type: ignore[method-assign]
            raise RuntimeError("no memory")

        broken._engine.sync = fails  # type: ignore[method-assign]
        shake(net)
        engine.sync(net)
        assert broken.weights == host.weights == engine._weights, "sent again, in a new group"
        assert answers(engine) == own(net, tokenizer)

        def always(model: Any, version: int) -> None:
            raise RuntimeError("no memory")

        broken._engine.sync = always  # type: ignore[method-assign]
        with pytest.raises(EngineFault, match=r"did not reach the servers.*no memory"):
            engine.sync(net)
        assert broken.weights is None, "what is not whole is not sampled from"


def test_without_a_group_they_go_as_files(
    tiny_model: Path, tokenizer: Any, net: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with engine_servers(tiny_model, max_batch=1, weights_folder=tmp_path) as ((url, host),):
        with pytest.raises(BadValueError, match="leave one of them out"):
            HttpSettings(urls=(url,), weights_by="group", weights_folder=str(tmp_path))
        given = http_engine([url], tokenizer, net, weights_by="auto", weights_folder=str(tmp_path))
        assert given._sender is None
        engine = by_group([url], tokenizer, net, weights_by="auto")
        assert engine._sender is not None
        monkeypatch.setattr("turngym.agents.engines.http.engine.GROUP_TRIES", 1)
        join = type(host).join
        monkeypatch.setattr(type(host), "join", refused)
        with pytest.warns(UserWarning, match="weights go to the servers as files"):
            engine = by_group([url], tokenizer, net, weights_by="auto", weights_timeout_s=1.0)
        shake(net)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            engine.sync(net)
        assert answers(engine) == own(net, tokenizer)
        with pytest.raises(EngineFault, match="cannot join a group over"):
            by_group([url], tokenizer, net, weights_timeout_s=1.0)
        monkeypatch.setattr(type(host), "join", join)
        host._receiver.backend = ""
        with pytest.raises(BadValueError, match="cannot join one"):
            by_group([url], tokenizer, net)
        assert by_group([url], tokenizer, net, weights_by="auto")._sender is None


def refused(*_: Any) -> None:
    raise BadValueError("this server cannot join a group over gloo.")


def test_a_lost_server_is_left_out_and_none_at_all_is_an_error_without_a_wait(
    tiny_model: Path, tokenizer: Any, net: Any
) -> None:
    with engine_servers(tiny_model, max_batch=1) as ((url, host),):
        with engine_servers(tiny_model, max_batch=1) as ((other, _),):
            engine = by_group([url, other], tokenizer, net)
        shake(net)
        engine.sync(net)
        assert host.weights == engine._weights
        assert answers(engine) == own(net, tokenizer)
    began = time.monotonic()
    with pytest.raises(EngineFault, match="no server took the weights"):
        engine.sync(net)
    assert time.monotonic() - began < 10


def test_weights_of_another_model_are_refused_before_they_are_sent(
    tiny_model: Path, tokenizer: Any, net: Any
) -> None:
    with engine_servers(tiny_model, max_batch=1) as ((url, host),):
        engine = by_group([url], tokenizer, net)
        held = host.weights
        engine._forms = engine._forms[:-1]
        with pytest.raises(EngineFault, match="names differ"):
            engine.sync(net)
        assert host.weights == held
