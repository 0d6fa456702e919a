"""Qwen3 in plain torch: names, files and numbers are transformers', and little is imported."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.small_models import byte_level
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

from turngym.agents.models.loading import load_model
from turngym.agents.models.qwen3 import Qwen3ForCausalLM as Own
from turngym.agents.models.qwen3 import load_own, why_not_own
from turngym.algos.learner.attention.tree_attention import NAME, attending
from turngym.algos.learner.batching.micro_batch import MicroBatch
from turngym.algos.learner.batching.prefix_sharing import _small_tree, why_not_shared
from turngym.envs.core.errors import BadValueError


def saved(folder: Path, **changes: Any) -> Path:
    sizes: dict[str, Any] = {
        "vocab_size": 300,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "intermediate_size": 24,
        "max_position_embeddings": 160,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
        "tie_word_embeddings": True,
        "initializer_range": 0.3,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": 0,
    }
    torch.manual_seed(0)
    Qwen3ForCausalLM(Qwen3Config(**sizes | changes)).save_pretrained(folder)
    return folder


def own(folder: Path, **options: Any) -> Own:
    found = load_model(folder, device="cpu", own_class=True, **options)
    assert isinstance(found, Own)
    return found


def test_names_files_and_settings_are_those_of_transformers(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model")
    ours, theirs = own(folder), AutoModelForCausalLM.from_pretrained(folder)
    names = [name for name, _ in theirs.named_parameters()]
    assert [name for name, _ in ours.named_parameters()] == names
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for name, value in theirs.named_parameters():
        assert torch.equal(value, ours.get_parameter(name))
    assert ours.generation_config.eos_token_id == theirs.generation_config.eos_token_id == 1
    assert ours.config.name_or_path == str(folder)
    ours.save_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "theirs")
    files = sorted(p.name for p in (tmp_path / "theirs").iterdir())
    assert sorted(p.name for p in (tmp_path / "ours").iterdir()) == files
    for name in files:
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    heads=st.sampled_from([(2, 2), (4, 2), (4, 1)]),
    layers=st.integers(1, 3),
    rows=st.integers(1, 3),
    columns=st.integers(1, 40),
    attention=st.sampled_from(["sdpa", "eager"]),
)
def test_numbers_are_those_of_transformers(
    heads: tuple[int, int], layers: int, rows: int, columns: int, attention: str, tmp_path: Path
) -> None:
    sizes = {"num_attention_heads": heads[0], "num_key_value_heads": heads[1]}
    folder = saved(tmp_path / f"{heads}{layers}", num_hidden_layers=layers, **sizes)
    ours, theirs = own(folder), AutoModelForCausalLM.from_pretrained(folder)
    for model in (ours, theirs):
        model.set_attn_implementation(attention)
    draws = torch.Generator().manual_seed(rows * 100 + columns)
    ids = torch.randint(300, (rows, columns), generator=draws)
    got, wanted = ours(ids), theirs(ids, use_cache=False)
    torch.testing.assert_close(got.logits, wanted.logits, rtol=1e-5, atol=1e-5)
    got.logits.square().mean().backward()
    wanted.logits.square().mean().backward()
    for name, value in theirs.named_parameters():
        torch.testing.assert_close(ours.get_parameter(name).grad, value.grad, rtol=1e-4, atol=1e-6)


def test_packs_of_paths_are_scored_alike(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    ours, theirs = own(folder), AutoModelForCausalLM.from_pretrained(folder)
    assert why_not_shared(ours) is None
    batch = MicroBatch.packed(_small_tree(300), torch.device("cpu"))
    with torch.no_grad(), attending([ours, theirs], NAME):
        got, wanted = ours(**batch.inputs()).logits, theirs(**batch.inputs()).logits
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
    assert ours.config._attn_implementation == "sdpa"
    twin = copy.deepcopy(ours.get_decoder())
    with attending([twin], NAME):
        assert ours.config._attn_implementation == "sdpa"  # a copy chooses for itself


def test_weights_can_be_rounded_and_learn_without_changing_the_files(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    before = (folder / "model.safetensors").read_bytes()
    model = own(folder, dtype="bfloat16")
    assert model.dtype == torch.bfloat16
    model.save_pretrained(tmp_path / "narrow")
    assert json.loads((tmp_path / "narrow" / "config.json").read_text())["dtype"] == "bfloat16"
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "narrow")
    assert again.dtype == torch.bfloat16
    model = own(folder)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1.0)
    assert (folder / "model.safetensors").read_bytes() == before


def test_loading_draws_nothing(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    state = torch.get_rng_state()
    own(folder)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}, "sliding"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        (
            {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}},
            "rope_parameters are",
        ),
    ],
)
def test_other_architectures_are_left_to_transformers(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    folder = saved(tmp_path, **changes)
    assert reason in str(why_not_own(folder))
    assert type(load_model(folder, own_class=True)) is Qwen3ForCausalLM


def test_a_spoilt_folder_has_the_error_that_it_always_had(tmp_path: Path) -> None:
    folder = saved(tmp_path)
    byte_level().save_pretrained(folder)
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    assert load_own(folder) is None
    with pytest.raises(BadValueError, match="no causal language model could be loaded"):
        load_model(folder, own_class=True)
    weights.write_bytes(whole)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    assert load_own(folder) is None
    (folder / "config.json").write_text("[]")
    assert why_not_own(folder) == "config.json is no object"
    (folder / "config.json").write_text("{")
    assert why_not_own(folder) == "config.json cannot be read"
    weights.unlink()
    (folder / "config.json").write_text(json.dumps(config))
    assert why_not_own(folder) == "there is no model.safetensors"
    with pytest.raises(BadValueError, match="no weights"):
        load_model(folder, own_class=True)


LEAN = """
import sys
from pathlib import Path
from turngym.benchmarks.runtime.threads import prepare
prepare(small=True)
from turngym.algos import Budget, EnvConfig, TrainConfig, make_recipe, train
config = TrainConfig(
    env=EnvConfig(id="Bandit-v0", settings={}),
    model=sys.argv[1],
    recipe=make_recipe("grpo", {"groups_per_step": 2, "rollout.n": 4}, small=True),
    budget=Budget(steps=2),
    max_tokens=4,
    device="cpu",
)
train(config, Path(sys.argv[2]))
slow = "torch._dynamo", "transformers", "scipy.stats"
print([name for name in slow if name in sys.modules])
"""


def test_a_small_model_trains_without_what_takes_seconds_to_import(tmp_path: Path) -> None:
    import gymnasium as gym

    from turngym.agents.models.random_init import blank_model

    blank_model(gym.make("Bandit-v0"), tmp_path / "model")
    command = [sys.executable, "-c", LEAN, str(tmp_path / "model"), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "[]"
