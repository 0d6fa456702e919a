"""Models of four architectures with their kinds of chat templates, saved and loaded by path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.chat_templates import FORGETFUL, GEMMA3, HERMES, LLAMA32, QWEN3, SIGNS, TOOL
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.models.lora import LoraSettings
from turngym.agents.rendering.chat import ChatRenderer
from turngym.agents.rendering.factory import PlainRenderer, keep_style, make_renderer
from turngym.algos.core.protocols import Credits
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.recipes import make_recipe
from turngym.algos.training.config import Budget, EnvConfig, TrainConfig
from turngym.algos.training.trainer import Trainer
from turngym.envs.core.errors import BadValueError, UnknownNameError

KINDS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "qwen2.5": ("Qwen2", "Qwen2", HERMES, {}),
    "qwen3": ("Qwen3", "Qwen3", QWEN3, {"head_dim": 16}),
    "llama3.2": (
        "Llama",
        "Llama",
        LLAMA32,
        {
            "head_dim": 16,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500_000.0,
                "factor": 32.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 512,
            },
        },
    ),
    "gemma3": (
        "Gemma3Text",
        "Gemma3",
        GEMMA3,
        {
            "head_dim": 16,
            "sliding_window": 64,
            "layer_types": ["sliding_attention", "full_attention"],
            "query_pre_attn_scalar": 16,
        },
    ),
}
EOS = "<|endoftext|>"  # what Qwen2's own tokenizer adds when it is not there
END = {"qwen2.5": "<|im_end|>", "qwen3": "<|im_end|>", "llama3.2": "<|eot_id|>"}


def tokenizer(template: str) -> Any:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<pad>", EOS, *SIGNS[template]],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(
        ["<search> where was Ada Brook born </search> Doc 1 Title"] * 4, trainer
    )
    made = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token=EOS)
    made.chat_template = template
    return made


def saved(name: str, folder: Path, template: str = "") -> Path:
    import transformers

    config, net, own, more = KINDS[name]
    text = tokenizer(template or own)
    sizes = {
        "vocab_size": len(text),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "intermediate_size": 48,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": text.eos_token_id,
        "pad_token_id": text.pad_token_id,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = getattr(transformers, f"{net}ForCausalLM")(
            getattr(transformers, f"{config}Config")(**(sizes | more))
        )
    made.save_pretrained(folder)
    text.save_pretrained(folder)
    return folder


def setup(folder: Path, **more: Any) -> TrainConfig:
    env = EnvConfig(id="SearchQA-v0", settings={"size": "micro", "max_turns": 3})
    changes = {
        "groups_per_step": 2,
        "rollout.n": 2,
        "minibatches": 1,
        "lr": 1e-2,
        "warmup_steps": 0,
    }
    given: dict[str, Any] = {
        "env": env,
        "model": str(folder),
        "recipe": make_recipe("grpo", changes),
        "budget": Budget(steps=1),
        "max_tokens": 12,
        "engine_dtype": "float32",
        "device": "cpu",
        "learner": LearnerSettings(precision="float32"),
    }
    return TrainConfig(**(given | more))


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("qwen2.5", {}),
        ("qwen3", {"lora": LoraSettings(rank=2)}),
        ("llama3.2", {"weights": "bfloat16"}),
        ("gemma3", {}),
    ],
)
def test_a_rollout_and_a_step_of_every_architecture(
    name: str, more: dict[str, Any], tmp_path: Path
) -> None:
    folder = saved(name, tmp_path / "model")
    with Trainer(setup(folder, **more), tmp_path / "run") as trainer:
        assert isinstance(trainer.renderer, ChatRenderer)
        played = trainer.pipeline.call(lambda: trainer._play(1)).played
        forest = played.trained
        assert len(forest.paths) == 4
        assert any(len(p.turns) > 1 for p in forest.paths)
        half = more.get("weights") == "bfloat16"
        for path, own in zip(forest, trainer.learner.logprobs(forest), strict=True):
            sampled = np.concatenate([t.logprobs for t in forest.turns(path)])
            np.testing.assert_allclose(own, sampled, atol=0.1 if half else 1e-4)
        before = {n: p.detach().clone() for n, p in trainer.learner.policy.named_parameters()}
        rng = np.random.default_rng(0)
        draws = [rng.normal(size=forest.n_act(p)).astype(np.float32) for p in forest]
        annotations = {"ref_logprobs": trainer.learner.ref_logprobs(forest)}
        metrics = trainer.learner.update(forest, annotations, Credits(draws))
        assert metrics["update/grad_norm"] > 0
        moved = {n for n, p in trainer.learner.policy.named_parameters() if (p != before[n]).any()}
        assert moved
        if "lora" in more:
            assert all("lora_" in n for n in moved)
        trainer.pipeline.hand_over(1, trainer.learner.policy)
        again = trainer.pipeline.call(lambda: trainer._play(2)).played.trained
        for path, own in zip(again, trainer.learner.logprobs(again), strict=True):
            sampled = np.concatenate([t.logprobs for t in again.turns(path)])
            np.testing.assert_allclose(own, sampled, atol=0.1 if half else 1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_saved_loads_by_path_and_shows_the_tools(name: str, tmp_path: Path) -> None:
    folder = saved(name, tmp_path)
    net, text = load_model(folder, device="cpu"), load_tokenizer(folder)
    assert type(net).__name__ == f"{KINDS[name][1]}ForCausalLM"
    render = make_renderer(text, tools=[TOOL])
    shown = text.decode(render.open("Play.\n", "go"))
    assert ("Look at a thing." in shown) == (name != "gemma3")  # its kind of template knows none
    assert text.convert_ids_to_tokens(render.eos_id) == END.get(name, "<end_of_turn>")


@pytest.mark.parametrize("style", ["plain", "inline"])
def test_a_style_stays_with_the_checkpoint(style: Any, tmp_path: Path) -> None:
    folder = saved("qwen3", tmp_path / "model", FORGETFUL)  # a message per turn is refused
    with Trainer(setup(folder, render=style), tmp_path / "run") as trainer:
        kind = type(trainer.renderer)
        assert kind is (PlainRenderer if style == "plain" else ChatRenderer)
        seen = trainer.renderer.observe("seen", [5])
        assert trainer.tokenizer.decode(seen) == "seen"
        trainer.run()
    text = load_tokenizer(tmp_path / "run" / "checkpoints" / "step-000001")
    again = make_renderer(text)
    assert type(again) is kind
    assert again.open("a", "b") == trainer.renderer.open("a", "b")
    with pytest.raises(UnknownNameError, match="Did you mean 'inline'"):
        keep_style(text, "in-line")  # type: ignore[arg-type]


def test_a_template_that_rewrites_history_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    folder = saved("qwen3", tmp_path / "model", FORGETFUL)
    with pytest.raises(BadValueError, match="drops thoughts of earlier turns"):
        Trainer(setup(folder), tmp_path / "run")
    assert not (tmp_path / "run").exists()
