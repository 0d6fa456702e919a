"""The arithmetic of plans against numbers worked out by hand, and presets that can be run."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
import transformers

from turngym.algos.learner import offload
from turngym.algos.rollouts import Branch, Chains, Expand
from turngym.algos.training.presets import PRESETS, SHAPES, preset, shape_of
from turngym.algos.training.presets.plan import (
    HALF,
    INPUTS_HERE,
    RESTING,
    TABLES,
    WRITTEN,
    Hardware,
    logit_entries,
    memory,
    min_gpus,
    plan,
    sampled_chains,
    token_flops,
)
from turngym.envs.core.errors import BadValueError, UnknownNameError

# as counted in the published weight files
COUNTED = {
    "Qwen2.5-1.5B": 1_543_714_304,
    "Qwen2.5-3B": 3_085_938_688,
    "Qwen2.5-7B": 7_615_616_512,
    "Qwen2.5-14B": 14_770_033_664,
    "Qwen3-8B": 8_190_735_360,
    "Qwen3-14B": 14_768_307_200,
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_have_the_published_number_of_parameters(name: str) -> None:
    assert SHAPES[name].parameters == COUNTED[name]


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_those_of_the_architecture(name: str) -> None:
    shape = SHAPES[name]
    family = "Qwen2" if name.startswith("Qwen2.5") else "Qwen3"
    sizes: dict[str, Any] = {"head_dim": shape.head_dim} if family == "Qwen3" else {}
    config = getattr(transformers, f"{family}Config")(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=2,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        intermediate_size=shape.inner,
        tie_word_embeddings=shape.tied,
        **sizes,
    )
    with torch.device("meta"):
        net = getattr(transformers, f"{family}ForCausalLM")(config)
    two = dataclasses.replace(shape, layers=2)
    assert sum(p.numel() for p in net.parameters()) == two.parameters
    assert sum(p.numel() for p in net.get_decoder().parameters()) == two.backbone


def test_adapters_are_counted_as_peft_makes_them() -> None:
    from helpers.small_models import model

    from turngym.agents.models.lora import LoraSettings, with_lora

    net = with_lora(model("Qwen2"), LoraSettings(rank=3))
    shape = dataclasses.replace(
        SHAPES["Qwen2.5-3B"], layers=2, hidden=32, heads=4, kv_heads=2, head_dim=8, inner=48
    )
    assert shape.adapters(3) == sum(p.numel() for p in net.parameters() if p.requires_grad)


def test_memory_of_search_r1_ppo_with_7b_by_hand() -> None:
    # P = 7,615,616,512; the critic's backbone has no output layer: P - 152,064 * 3,584
    # = 7,070,619,136, and a head of 3,584 + 1
    got = memory(preset("search-r1-ppo-7b"), Hardware(gpus=8))
    assert got == {
        "model": 1_903_904_128,  # 2 P / 8
        "gradients": 1_903_904_128,  # 2 P / 8
        "optimiser": 11_423_424_768,  # (4 copy + 4 + 4 moments) P / 8
        "critic": 14_141_245_442,  # 16 * 7,070,622,721 / 8
        "reference": 1_903_904_128,  # 2 P / 8
        "gathered layers": 932_231_168,  # two of 233,057,792 parameters, 2 bytes each
        # 16,384 tokens, 2 bytes: 28 * 3,584 inputs of layers and 98,304 of one layer at work
        # (4 * 3,584 + 2 * 3,584 + 2 * 512 + 4 * 18,944)
        "activations": 6_509_559_808,
        # three tables of 2**28 float32, and the gradient of 152,064 * 3,584 weights in 2 bytes
        "logits": 4_311_220_224,
        "engine's copy": 15_231_225_856,  # 2 P, the last norm folded into the output layer
        "hand-over": 134_217_728,  # 2**24 weights, as float32 and scaled
        "engine's cache": 14_092_861_440,  # 57,344 B per token * 40 * 6,144
        "reserve": 6_400_000_000,  # 0.08 * 80e9
    }


def test_memory_of_tree_grpo_with_one_device_and_adapters() -> None:
    small = preset("tree-grpo-1.5b")
    whole = memory(small, Hardware(gpus=1))
    assert whole["model"] == 2 * 1_543_714_304
    assert whole["optimiser"] == 12 * 1_543_714_304
    assert "gathered layers" not in whole
    assert "critic" not in whole
    lean = memory(small, Hardware(gpus=1), lora_rank=16)
    # per layer 16 * (2 * (1536 + 1536) + 2 * (1536 + 256) + 3 * (1536 + 8960)) = 659,456
    assert lean["gradients"] == 4 * 28 * 659_456
    assert lean["optimiser"] == 8 * 28 * 659_456
    assert lean["model"] == 2 * 1_543_714_304 + 4 * 28 * 659_456
    assert "reference" not in lean  # the adapter switched off
    assert sum(lean.values()) < 0.6 * sum(whole.values())


def test_a_tied_model_s_engine_has_an_output_layer_of_its_own() -> None:
    shape = SHAPES["Qwen2.5-3B"]
    got = memory(preset("search-r1-grpo-3b"), Hardware(gpus=8))
    table = 151_936 * 2048
    assert got["engine's copy"] == 2 * (shape.parameters - 2048 + table)
    exact = dataclasses.replace(preset("search-r1-grpo-3b"), weights="float32")
    wide = memory(exact, Hardware(gpus=1))
    # the embedding stays float32, as nothing of it may be rounded
    assert wide["engine's copy"] == got["engine's copy"] + 2 * table
    assert wide["narrowed weights"] == 2 * shape.parameters
    # adapters are added to one layer's weights at a time, not to a second set
    handed = memory(exact, Hardware(gpus=1), lora_rank=8)["hand-over"]
    assert handed == WRITTEN + 8 * shape.linear_layer < 36 * 4 * shape.linear_layer


def test_logits_are_sized_as_the_learner_sizes_them() -> None:
    from turngym.algos.learner.scoring.fused_head import TABLES as tables
    from turngym.algos.learner.scoring.fused_head import piece_entries

    assert tables == TABLES
    for gb in (2.0, 16.0, 24.0, 80.0, 141.0):
        assert logit_entries(Hardware(gpus=1, memory_gb=gb)) == piece_entries(round(gb * 1e9))


def test_offload_is_counted_in_turns() -> None:
    small, one = preset("tree-grpo-3b"), Hardware(gpus=1)
    whole, turns = plan(small, one), plan(small, one, offload=True)
    assert whole.memory == turns.memory
    assert whole.total == whole.playing == whole.updating == sum(whole.memory.values())
    cache, moments = whole.memory["engine's cache"], whole.memory["optimiser"]
    assert turns.updating == whole.total - cache
    assert turns.playing < whole.total - moments - whole.memory["reference"]
    assert turns.total == max(turns.playing, turns.updating)
    assert not whole.fits or turns.fits
    # several processes take turns too: what rests is each one's own part
    two = Hardware(gpus=2)
    whole, turns = plan(small, two), plan(small, two, offload=True)
    assert turns.updating == whole.total - whole.memory["engine's cache"]
    resting = (whole.memory[name] for name in RESTING if name in whole.memory)
    assert turns.playing == whole.total - sum(resting)
    assert moments // 2 == whole.memory["optimiser"]
    big = preset("tree-grpo-14b")
    alone, taking_turns = min_gpus(big, one), min_gpus(big, one, offload=True)
    assert alone is not None
    assert taking_turns is not None
    assert taking_turns <= alone


def test_moved_activations_are_counted_here_and_there() -> None:
    small, one = preset("tree-grpo-3b"), Hardware(gpus=1)
    shape = shape_of(small.model)
    layer = HALF * small.micro_batch_tokens * shape.hidden
    whole, moved = plan(small, one), plan(small, one, offload_activations=True)
    assert whole.main_memory == 0
    assert moved.main_memory == shape.layers * layer
    fewer = shape.layers - INPUTS_HERE
    assert whole.total - moved.total == fewer * layer
    assert whole.memory["activations"] - moved.memory["activations"] == fewer * layer
    both = plan(small, one, offload=True, offload_activations=True)
    resting = whole.memory["optimiser"] + whole.memory["reference"]
    assert both.main_memory == moved.main_memory + resting
    assert INPUTS_HERE == offload.INPUTS_HERE


def test_tokens_and_time_by_hand() -> None:
    made = plan(preset("search-r1-grpo-3b"), Hardware(gpus=8, throughput=20_000.0))
    assert made.sampled == 512 * 5 * 2500 == 6_400_000
    assert made.trained == 512 * 5 * 6144 == 15_728_640
    assert made.sample_seconds == pytest.approx(320.0)
    # 8 for the update, 2 for old log-probabilities (10 steps per batch), 2 for the reference
    flops = 12 * 3_085_938_688
    assert made.update_seconds == pytest.approx(15_728_640 * flops / (8 * 989e12 * 0.4))
    assert made.hours == pytest.approx(1005 * (320.0 + made.update_seconds) / 3600)
    assert plan(preset("search-r1-grpo-3b"), Hardware(gpus=8)).hours is None


def test_operations_per_token_count_every_pass() -> None:
    shape = SHAPES["Qwen2.5-7B"]
    ppo = token_flops(shape, preset("search-r1-ppo-7b").make_recipe())
    assert ppo == 12 * shape.parameters + 10 * shape.backbone
    pasa = token_flops(shape, preset("pasa-7b").make_recipe())  # two epochs
    assert pasa == 20 * shape.parameters + 18 * shape.backbone
    arpo = token_flops(shape, preset("arpo-7b").make_recipe())  # no reference
    assert arpo == 10 * shape.parameters


def test_chains_that_a_group_costs() -> None:
    assert sampled_chains(Chains(n=5)) == 5
    assert sampled_chains(Expand(trees=2, nodes=2, rounds=1)) == 4  # six paths for four chains
    assert sampled_chains(Expand(trees=2, nodes=1, rounds=2)) == 4
    assert sampled_chains(Branch(initial=8, budget=16)) == 16


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_fits_its_devices_and_its_parts_fit(name: str) -> None:
    chosen = preset(name)
    made = plan(chosen, Hardware(gpus=chosen.gpus))
    assert made.fits
    assert made.total == sum(made.memory.values())
    least = min_gpus(chosen, Hardware(gpus=1))
    assert least is not None
    assert least <= chosen.gpus
    config = chosen.config()
    assert config.recipe.name == chosen.recipe
    assert config.budget.steps == chosen.steps
    assert config.learner.gradient_checkpointing
    assert chosen.sampled_tokens <= chosen.max_context
    assert shape_of(chosen.model).parameters == made.parameters


@pytest.mark.parametrize("name", PRESETS)
def test_every_presets_environment_can_be_described(name: str) -> None:
    import inspect

    from turngym.envs.core.registration import find_environment

    chosen = preset(name)
    world = find_environment(chosen.env)
    module, _, attribute = world.entry_point.partition(":")
    made = getattr(__import__(module, fromlist=[attribute]), attribute)
    known = inspect.signature(made.__init__).parameters
    assert set(chosen.env_settings) <= set(known)


def test_what_does_not_fit_says_how_many_do() -> None:
    big = preset("tree-grpo-14b")
    assert not plan(big, Hardware(gpus=1)).fits
    assert min_gpus(big, Hardware(gpus=1)) == 16
    assert min_gpus(big, Hardware(gpus=1, memory_gb=24.0)) is None
    assert plan(big, Hardware(gpus=1, memory_gb=141.0), lora_rank=16).fits


def test_bad_input_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'tree-grpo-3b'"):
        preset("treegrpo-3b")
    with pytest.raises(UnknownNameError, match="unknown model"):
        shape_of("somebody/else-9B")
    with pytest.raises(BadValueError, match="gpus is 0"):
        Hardware(gpus=0)
    with pytest.raises(BadValueError, match="throughput is 0"):
        Hardware(gpus=1, throughput=0.0)
    with pytest.raises(BadValueError, match=r"utilisation is 1\.5"):
        Hardware(gpus=1, utilisation=1.5)
    with pytest.raises(BadValueError, match="lora_rank is -1"):
        plan(preset("pasa-7b"), Hardware(gpus=8), lora_rank=-1)
