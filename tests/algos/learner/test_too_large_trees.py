"""Trees that would keep more than a CPU has room for: their layers are computed again."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.branching import branching
from helpers.nets import gemma3, small
from helpers.small_models import model
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.models.attention import set_attention
from turngym.algos.core.forest import Forest
from turngym.algos.core.protocols import Credits
from turngym.algos.learner import model_bundle
from turngym.algos.learner.batching.micro_batch import MicroBatch
from turngym.algos.learner.batching.rows import Row, rows_of
from turngym.algos.learner.learner import Learner
from turngym.algos.learner.scoring import scoring
from turngym.algos.learner.scoring.kept_memory import KeptMemory
from turngym.algos.learner.scoring.scoring import TokenModel, attention_for, quick_cpu_maths
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe

CPU = torch.device("cpu")
NO_ROOM, ROOM = 6, 2**40


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large models of families that compute packs by their own layers."""
    monkeypatch.setattr(scoring, "is_large", lambda _: True)
    monkeypatch.setattr(scoring, "why_not_packed", lambda _: "asked for")


def updated(room: int, forest: Forest, recipe: str = "grpo", **more: Any) -> tuple[Learner, int]:
    """A learner after an update in which every tree is a micro batch, and its passes of a layer."""
    passes = [0]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(model_bundle, "ACTIVATION_BYTES", room)
        how = LearnerSettings(precision="float32", micro_batch_tokens=1, **more)
        changes = {"optim.minibatches": 1, "optim.warmup_steps": 0}
        made = Learner(small("llama"), make_recipe(recipe, changes), pad_id=0, settings=how)
        credits, notes = given_to(made, forest)
        layer = made.policy.model.layers[0].mlp
        layer.register_forward_pre_hook(lambda *_: passes.__setitem__(0, passes[0] + 1))
        made.update(forest, notes, credits)
    return made, passes[0]


def given_to(made: Learner, forest: Forest) -> tuple[Credits, dict[str, Any]]:
    rng = np.random.default_rng(0)
    credits = [rng.normal(size=row.n_act).astype(np.float32) for row in rows_of(forest)]
    notes = {}
    if "ref_logprobs" in made.recipe.needs:
        notes["ref_logprobs"] = made.ref_logprobs(forest)
    if made.critic is not None:
        notes["values"] = made.values(forest)
    return Credits(credits, value_targets=credits if made.critic else None), notes


@given(
    seed=st.integers(0, 2**20),
    how=st.sampled_from([("grpo", "own"), ("ppo", "own"), ("ppo", "shared"), ("sft", "own")]),
    shared=st.booleans(),
)
@settings(max_examples=6, deadline=None)
def test_what_is_computed_again_has_the_same_gradient(
    seed: int, how: tuple[str, Any], shared: bool
) -> None:
    forest, (recipe, critic) = branching(seed, groups=1, turns=3), how
    kept, again = (
        updated(room, forest, recipe, critic=critic, shared_prefix=shared)
        for room in (ROOM, NO_ROOM)
    )
    assert again[1] == 2 * kept[1] > 0
    groups = zip(kept[0].optimizer.param_groups, again[0].optimizer.param_groups, strict=True)
    pairs = [pair for a, b in groups for pair in zip(a["params"], b["params"], strict=True)]
    assert all(torch.equal(a.grad, b.grad) and torch.equal(a, b) for a, b in pairs)


def row(tokens: int, first: int = 0, group: int = 0) -> Row:
    at = np.array([tokens - 1])
    ids = np.arange(tokens) % 300
    return Row(ids, at, at * 0, np.zeros(1, np.float32), first + np.arange(tokens), group)


def kept_bytes(tokens: TokenModel, batch: MicroBatch) -> int:
    weights = {p.untyped_storage().data_ptr() for p in tokens.model.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(x: torch.Tensor) -> torch.Tensor:
        if (at := x.untyped_storage().data_ptr()) not in weights:
            kept[at] = x.detach()
        return x.detach()

    with (
        quick_cpu_maths(CPU),
        attention_for([tokens.model], batch),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x),
    ):
        tokens.hidden(batch)
    return sum(x.untyped_storage().nbytes() for x in kept.values())


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("lengths", [(300,), (90, 90, 60), (700,), (600, 580)])
def test_what_a_micro_batch_keeps_is_known_before(packed: bool, lengths: tuple[int, ...]) -> None:
    tokens = TokenModel(model("Qwen2", hidden_size=80, intermediate_size=200), 1.0)
    rows = [row(n, 1000 * i, i) for i, n in enumerate(lengths)]
    batch = MicroBatch.packed(rows, CPU) if packed else MicroBatch.padded(rows, 0, CPU)
    said = KeptMemory.measured(tokens, CPU).of_batch(batch)
    assert said == pytest.approx(kept_bytes(tokens, batch), rel=0.06)


@pytest.mark.parametrize("lengths", [(300,), (700,), (600, 580)])
def test_eager_attention_keeps_the_weights_of_long_rows_too(lengths: tuple[int, ...]) -> None:
    tokens = TokenModel(model("Qwen2", hidden_size=80, intermediate_size=200), 1.0)
    set_attention(tokens.model, "eager", CPU)
    rows = [row(n, 1000 * i, i) for i, n in enumerate(lengths)]
    batch = MicroBatch.padded(rows, 0, CPU)
    said = KeptMemory.measured(tokens, CPU).of_batch(batch)
    assert said == pytest.approx(kept_bytes(tokens, batch), rel=0.06)


@pytest.mark.parametrize("hidden", [32, 96])
def test_activations_are_not_taken_for_weights(hidden: int) -> None:
    """Passes of as many tokens as the model is wide kept a fraction, as it seemed."""
    tokens = TokenModel(model("Qwen2", hidden_size=hidden, intermediate_size=200), 1.0)
    batch = MicroBatch.packed([row(300)], CPU)
    said = KeptMemory.measured(tokens, CPU).of_batch(batch)
    assert said == pytest.approx(kept_bytes(tokens, batch), rel=0.06)


def test_a_sliding_window_is_counted_as_if_it_were_none() -> None:
    tokens = TokenModel(gemma3(), 1.0)
    batch = MicroBatch.packed([row(200)], CPU)
    said = KeptMemory.measured(tokens, CPU).of_batch(batch)
    assert kept_bytes(tokens, batch) < 1.1 * said


def test_only_what_does_not_fit_is_computed_again_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short, long = (MicroBatch.packed([row(n)], CPU) for n in (64, 256))
    net = small("llama")
    kept = KeptMemory.measured(TokenModel(net, 1.0), CPU)
    monkeypatch.setattr(model_bundle, "ACTIVATION_BYTES", int(kept.of_batch(short)))
    on: list[int] = []

    def seen(models: Any, _activations: Any) -> Any:
        on.append(len(models))
        return warnings.catch_warnings()

    monkeypatch.setattr(model_bundle, "recomputing", seen)
    how = LearnerSettings(precision="float32")
    models = Learner(net, make_recipe("sft"), pad_id=0, settings=how).models
    assert models.tokens.layers is None

    def passed(batch: MicroBatch, training: bool = True) -> int:
        with models.computing(batch, training=training):
            return len(on)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert passed(short) == passed(long, training=False) == 0
    with pytest.warns(UserWarning, match=r"of 256 tokens would keep .* --gradient-checkpointing"):
        assert passed(long) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert passed(long) == 2
        assert passed(short) == 2
        monkeypatch.setattr("transformers.modeling_layers.GradientCheckpointingLayer", torch.nn.GRU)
        assert passed(long) == 2  # it has no layers that can be
