"""Tokenizers and models that the tests make themselves: seconds to build, nothing to download."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from helpers.chat_templates import SIGNS
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

TEXT = [
    "the red lamp was born in Lum Tor and the blue door was made by Ada Brook",
    "<search> where was Ada Brook born </search><answer> Lum Tor </answer>",
    "user assistant system instructions observation first second reply again third",
]
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = (
    "{{ '<|begin_of_text|>' }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + "
    "'<|end_header_id|>\n\n' + m['content'] | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
GEMMA = (
    "{{ '<bos>' }}{% for m in messages %}"
    "{% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
# a reasoning template: the prompt opens a thought that is not shown in earlier messages
THINKING = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}"
)
NO_END = (
    "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)
SPECIALS = {
    CHATML: ["<|im_start|>", "<|im_end|>"],
    THINKING: ["<|im_start|>", "<|im_end|>"],
    LLAMA3: ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    GEMMA: ["<bos>", "<start_of_turn>", "<end_of_turn>"],
    NO_END: [],
    **SIGNS,
}


def byte_level(template: str | None = None, size: int = 420, **more: Any) -> Any:
    """A byte-level BPE tokenizer, with a chat template or without."""
    specials = SPECIALS[template] if template else []
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<pad>", "<eos>", *specials],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(TEXT * 4, trainer)
    settings: dict[str, Any] = {"pad_token": "<pad>", "eos_token": "<eos>", **more}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, **settings)
    if template:
        tokenizer.chat_template = template
    return tokenizer


def unmarked(template: str) -> Any:
    """A tokenizer with a chat template whose marks were added, but are not called special."""
    inner = byte_level().backend_tokenizer
    inner.add_tokens([AddedToken(mark, special=False) for mark in SPECIALS[template]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>"
    )
    tokenizer.chat_template = template
    return tokenizer


def metaspace() -> Any:
    """A tokenizer in the style of sentencepiece: it puts a blank before every text."""
    inner = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    inner.decoder = decoders.Sequence([decoders.Metaspace(prepend_scheme="always")])
    inner.train_from_iterator(
        TEXT * 4,
        trainers.BpeTrainer(
            vocab_size=200, special_tokens=["<unk>", "<pad>", "<eos>"], show_progress=False
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 160,
    "eos_token_id": None,
    "bos_token_id": None,
    "pad_token_id": 0,
    "initializer_range": 0.15,
}


def model(family: str, vocab_size: int = 420, seed: int = 0, config: str = "", **more: Any) -> Any:
    """A small causal model with random weights, biases included."""
    config_class = getattr(transformers, f"{config or family}Config")
    sizes = dict(_SIZES)
    if family == "GPT2":
        sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 160, "eos_token_id": None}
        sizes |= {"bos_token_id": None, "initializer_range": 0.15}
    settings = config_class(vocab_size=vocab_size, **(sizes | more))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = getattr(transformers, f"{family}ForCausalLM", None)
        net = net or getattr(transformers, f"{family}LMHeadModel")
        made = net(settings)
        for name, weight in made.named_parameters():
            if "norm" in name or name.endswith("bias"):
                torch.nn.init.normal_(weight, mean=float("norm" in name), std=0.3)
    return made.eval()
