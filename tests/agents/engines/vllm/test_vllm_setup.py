"""What vLLM is made with, without vLLM."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from helpers.small_models import model

from turngym.agents.engines.base import Request, Sampling
from turngym.agents.engines.vllm import setup
from turngym.agents.engines.vllm.settings import VllmSettings
from turngym.agents.engines.vllm.weights import plain_weights, reload_file, write
from turngym.envs.core.errors import BadValueError


@pytest.mark.parametrize(("device", "world", "launched"), [
    ("cuda", "2", True), ("cuda", None, False), ("cuda", "1", False), ("cpu", "2", False),
])  # fmt: skip
def test_each_process_of_torchrun_has_its_own_card(
    monkeypatch: pytest.MonkeyPatch, device: str, world: str | None, launched: bool
) -> None:
    """Before, the engines of all processes took the first card."""
    monkeypatch.setattr(setup, "vllm_device", lambda: torch.device(device))
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if world is not None:
        monkeypatch.setenv("WORLD_SIZE", world)
    made = setup.engine_arguments("m", 4, "bfloat16", None, VllmSettings())
    assert (made.get("distributed_executor_backend") == "external_launcher") is launched
    assert made.get("tensor_parallel_size", 1) == 1


@pytest.mark.parametrize(("device", "cards"), [("cuda", 4), ("cuda", 8), ("cpu", 0)])
def test_one_engine_over_several_cards(
    monkeypatch: pytest.MonkeyPatch, device: str, cards: int
) -> None:
    monkeypatch.setattr(setup, "vllm_device", lambda: torch.device(device))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    made = setup.engine_arguments("m", 4, "bfloat16", None, VllmSettings(tensor_parallel=4))
    assert made["tensor_parallel_size"] == 4
    assert made["distributed_executor_backend"] == "mp"


def test_cards_that_are_not_there_or_not_its_own_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(setup, "vllm_device", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    four = VllmSettings(tensor_parallel=4)
    with pytest.raises(BadValueError, match="this process sees 2 cards"):
        setup.engine_arguments("m", 4, "bfloat16", None, four)
    monkeypatch.setenv("WORLD_SIZE", "8")
    with pytest.raises(BadValueError, match=r"8 processes run here.*--vllm.tensor-parallel 4"):
        setup.engine_arguments("m", 4, "bfloat16", None, four)
    with pytest.raises(BadValueError, match="tensor_parallel is 0"):
        VllmSettings(tensor_parallel=0)


@pytest.fixture
def sampler(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module as one of vLLM's own processes has it, without vLLM."""
    if importlib.util.find_spec("vllm") is not None:
        return importlib.import_module("turngym.agents.engines.vllm.sampler")
    names = ["vllm", "vllm.v1", "vllm.v1.sample", "vllm.v1.sample.logits_processor"]
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    made: Any = sys.modules[names[-1]]
    made.LogitsProcessor, made.MoveDirectionality = object, SimpleNamespace(SWAP="swap")
    found = importlib.import_module("turngym.agents.engines.vllm.sampler")
    monkeypatch.delitem(sys.modules, found.__name__)  # the next one gets the real one
    return found


@pytest.mark.parametrize("forced", [None, [3, 1, 2]])
def test_another_process_draws_the_same_tokens_and_hands_its_numbers_in(
    sampler: Any, forced: list[int] | None
) -> None:
    """Tensor parallelism: requests travel as plain data, numbers come back once."""
    asked = Request(
        ids=[5], sampling=Sampling(max_tokens=3, temperature=0.7, top_logprobs=2), seed=9
    )
    draft = sampler.Draft(asked, 3, forced)
    rng = torch.Generator().manual_seed(0)
    logits = [torch.randn(1, 20, generator=rng) for _ in range(3)]

    def play(extra: dict[str, Any]) -> list[int]:
        drawing, sampled = sampler.Drawing(None, torch.device("cpu"), False), []
        params = SimpleNamespace(extra_args=extra)
        added = [(0, params, None, sampled)]
        drawing.update_state(SimpleNamespace(removed=[], added=added, moved=[]))
        for one in logits:
            sampled.append(int(drawing.apply(one.clone()).argmax()))
        return sampled

    sampler.drafts["here"] = draft
    mine = play({sampler.KEY: "here"})
    about = json.loads(json.dumps(sampler.describe(draft)))
    assert play({sampler.KEY: "there", sampler.ABOUT: about}) == mine
    ((logprobs, entropies, likeliest), nothing) = sampler.hand_in_numbers(None, ["there", "none"])
    assert nothing is None
    assert logprobs.tolist() == draft.logprobs.tolist()
    assert entropies.tolist() == draft.entropies.tolist()
    assert {at: one.tolist() for at, one in likeliest.items()} == {
        at: one.tolist() for at, one in draft.likeliest.items()
    }
    assert "there" not in sampler.drafts, "the process forgets it"
    del sampler.drafts["here"]


def test_weights_reach_processes_that_cannot_see_the_model(tmp_path: Path) -> None:
    net = model("Qwen2", tie_word_embeddings=True)
    path = str(tmp_path / "w.safetensors")
    write(net, path)
    came: dict[str, torch.Tensor] = {}

    def take(weights_iterator: Any) -> None:
        came.update(weights_iterator)

    reload_file(SimpleNamespace(model_runner=SimpleNamespace(reload_weights=take)), path)
    plain = dict(plain_weights(net))
    assert came.keys() == plain.keys()
    assert all(torch.equal(came[name], plain[name]) for name in plain)
