"""A two-layer language model as a GGUF file, written as llama.cpp's converter does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
HIDDEN, HEADS, INNER, LAYERS, CONTEXT = 64, 2, 128, 2, 512


def tiny_llama(**settings: Any) -> Any:
    """Return a Llama of random weights, the same at every call, with further settings."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(vocabulary()[0]),
        hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        **settings,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return LlamaForCausalLM(config).eval()


def vocabulary() -> tuple[list[str], list[str]]:
    """Return the tokens and merges of a byte-level BPE."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(
        ["pear plum fig kiwi again empty search answer information user assistant"] * 4,
        trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=list(SPECIAL),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    model = json.loads(inner.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return tokens, [" ".join(pair) for pair in model["merges"]]


def write_gguf(
    path: Path,
    *,
    kind: str = "F32",
    architecture: str = "llama",
    more: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Path:
    """Write :func:`tiny_llama` as a GGUF file.

    Args:
        path: The file.
        kind: How the matrices are stored, as ``Q8_0``.
        architecture: The architecture that it claims to be of.
        more: Further tensors by name, or their sizes.
        metadata: More values by key, with ``__`` for each dot.
    """
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_name("Tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    for key, value in metadata.items():
        add = writer.add_uint16 if isinstance(value, int) else writer.add_string
        add(key.replace("__", "."), value)
    if metadata.get("general__type") is None:
        writer.add_type("model")
    _write_tokenizer(writer)
    stored = gguf.GGMLQuantizationType[kind]
    for name, weights in _tensors():
        one_row = weights.ndim == 1
        if one_row or kind == "F32":
            writer.add_tensor(name, weights)
        elif kind == "F16":
            writer.add_tensor(name, weights.astype(np.float16))
        else:
            packed = gguf.quants.quantize(weights, stored)
            writer.add_tensor(name, packed, raw_dtype=stored)
    for name, one in (more or {}).items():
        writer.add_tensor(name, np.full(one, 2.0, np.float32) if isinstance(one, int) else one)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_tokenizer(writer: Any) -> None:
    import gguf

    tokens, merges = vocabulary()
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([control if token in SPECIAL else normal for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(tokens.index("<|im_start|>"))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(tokens.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)


def _tensors() -> list[tuple[str, Any]]:
    """Return the weights by llama.cpp's names; queries and keys in its order of rows."""
    parts = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    weights = {name: tensor.numpy() for name, tensor in tiny_llama().state_dict().items()}
    found = [
        ("token_embd.weight", weights["model.embed_tokens.weight"]),
        ("output_norm.weight", weights["model.norm.weight"]),
    ]
    for layer in range(LAYERS):
        for theirs, ours in parts.items():
            one = weights[f"model.layers.{layer}.{theirs}.weight"]
            if ours in ("attn_q", "attn_k"):
                half = one.reshape(HEADS, 2, HIDDEN // HEADS // 2, HIDDEN)
                one = half.swapaxes(1, 2).reshape(one.shape)
            found.append((f"blk.{layer}.{ours}.weight", one))
    return found
