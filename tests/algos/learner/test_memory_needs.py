"""What a learner says that it will take, against what it takes; gradients go after an update."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.allocations import held_bytes, peak_bytes
from helpers.small_learners import SIZES, learner, trained, update
from helpers.small_models import model
from helpers.training_runs import config

from turngym.algos.learner import learner as learner_module
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.memory_needs import head_bytes
from turngym.algos.learner.scoring import scoring
from turngym.algos.learner.scoring.kept_memory import KeptMemory
from turngym.algos.learner.scoring.scoring import TokenModel
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.runs.progress import Silent
from turngym.algos.training import engines, policy
from turngym.algos.training.engines import settle


@pytest.mark.parametrize("recipe", ["grpo", "ppo"])
def test_gradients_and_moments_are_counted_to_the_byte(recipe: str) -> None:
    made = learner(recipe)
    weights = sum(p.numel() for p in trained(made))
    before = made.needs()
    assert before.gradients == 4 * weights
    assert before.moments == 8 * weights
    update(made)
    assert (made.needs().moments, made.needs().gradients) == (0, 0)
    made.rest()  # gradients stayed through the rollouts before
    after = made.needs()
    assert after.gradients == 4 * weights
    assert all(p.grad is None for p in trained(made))
    state = made.optimizer.state.values()
    assert sum(s["exp_avg"].nbytes + s["exp_avg_sq"].nbytes for s in state) == before.moments


@pytest.mark.parametrize("checkpointing", [False, True])
def test_the_first_update_stays_within_what_was_said(
    checkpointing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "LOGITS_PER_CHUNK", 40 * 420)
    made = learner(gradient_checkpointing=checkpointing)
    made.models.tokens.fused = True
    said = made.needs()
    peak = peak_bytes(lambda: update(made))
    assert 0.4 * said.total < peak < said.total


def test_half_precision_has_copies_and_an_optimiser_a_float32_one() -> None:
    made = learner()
    weights = sum(p.numel() for p in trained(made))
    assert made.needs().narrowed == 0
    assert learner(precision="bfloat16").needs().narrowed == 2 * weights
    settings = LearnerSettings(precision="bfloat16")
    net = model("Qwen2", **SIZES).to(torch.bfloat16)
    half = Learner(net, make_recipe("grpo"), pad_id=0, settings=settings)
    assert half.needs().moments == 12 * weights
    assert half.needs().gradients == 2 * weights
    assert half.needs().narrowed == 0


@pytest.mark.parametrize("layers", [2, 5])
def test_what_a_pass_keeps_is_found_by_two_layers(layers: int) -> None:
    made = model("Qwen2", num_hidden_layers=layers)
    tokens = TokenModel(made, 1.0)
    whole, parts = KeptMemory.measured(tokens, tokens.device), KeptMemory.by_layers(tokens)
    assert parts.of(100, 100) == pytest.approx(whole.of(100, 100), rel=0.02)
    assert len(made.model.layers) == layers
    # before, what the passes kept was never given back
    assert held_bytes(lambda: KeptMemory.by_layers(tokens)) == 0


def test_the_head_takes_three_tables_and_its_gradient() -> None:
    weight = torch.zeros(1000, 8)
    assert head_bytes(weight, 2**20, half=False) == 3 * 4 * 2**20 + 4 * 8000
    assert head_bytes(weight, 2**20, half=True) == 3 * 4 * 2**20 + 6 * 8000
    assert head_bytes(weight.bfloat16(), 2**20, half=True) == 3 * 4 * 2**20 + 2 * 8000


@pytest.mark.parametrize("waits", [False, True])
def test_an_engine_samples_on_the_card_though_the_policy_waits_in_main_memory(
    waits: bool, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, every process put the whole model on its card first."""
    settings = config(tiny_model)
    loaded: list[dict[str, Any]] = []
    real = policy.load_model

    def load(name: Any, **how: Any) -> Any:
        loaded.append(how)
        return real(name, **how)

    monkeypatch.setattr(policy, "load_model", load)
    net, tokenizer = policy.load_policy(settings, Silent(), waits=waits)
    wanted = {"dtype": "stored"} if waits else {"dtype": "float32", "own_class": True}
    assert loaded == [wanted | {"device": "cpu"}]
    given: list[dict[str, Any]] = []
    if waits:
        monkeypatch.setattr(engines, "own_device", lambda _: torch.device("cuda", 1))
    monkeypatch.setattr(engines, "build_engine", lambda *_, **more: given.append(more))
    engines.make_engine(settings, net, tokenizer)
    assert given == [{"learner": net, "device": torch.device("cuda", 1) if waits else None}]


def test_an_engine_on_the_learner_s_gpu_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from helpers.engine_help import engine

    made, eng = learner(), engine()
    told: list[tuple[int, bool]] = []
    monkeypatch.setattr(eng, "settle", lambda n, in_turn=False: told.append((n, in_turn)))
    settle(eng, made)
    assert told == []  # on a CPU nothing is decided
    said = made.needs().total
    monkeypatch.setattr(type(made.models.tokens), "device", torch.device("cuda"))
    monkeypatch.setattr(made, "bytes_beside_engine", lambda: said)
    settle(eng, made)
    assert told == [(said, False)]


@pytest.mark.parametrize(
    ("recipe", "large", "least", "most"),
    [
        ("grpo", True, 3, 3),  # after every optimiser step
        ("ppo", True, 9, 99),  # after every micro batch too: a critic of its own takes the room
        ("grpo", False, 0, 0),
    ],
)
def test_an_update_of_a_large_model_on_a_cpu_gives_memory_back(
    recipe: str, large: bool, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[None] = []
    monkeypatch.setattr(scoring, "is_large", lambda _: large)
    monkeypatch.setattr(learner_module, "give_memory_back", lambda: given.append(None))
    made = learner(recipe, micro_batch_tokens=200)
    for _ in range(3):
        update(made)
    assert least <= len(given) <= most
