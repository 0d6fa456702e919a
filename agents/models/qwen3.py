"""Qwen3 in plain torch, for small models: starters and blank models are of this architecture.

It has the names, parameters, files and numbers of transformers' ``Qwen3ForCausalLM``. Importing
that takes longer than a dozen training steps of such a model; this takes no time. It is what
learner and engine read (both compute by layers of their own), it scores rows of equal length, and
it is saved. Whatever else is wanted of a model (generation with a cache, adapters, gradient
checkpointing, several processes, a GPU) is transformers' to do: see
:func:`~turngym.agents.models.loading.load_model`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from .attention import find_attention

CONFIG, GENERATION, WEIGHTS = "config.json", "generation_config.json", "model.safetensors"
_EXPECTED: Mapping[str, Any] = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_act": "silu",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "sliding_window": None,
    "tie_word_embeddings": True,
}
"""What a configuration must say."""


class Qwen3Config(SimpleNamespace):
    """The entries of a config.json as attributes."""

    def __init__(self, **entries: Any) -> None:
        super().__init__(**entries)
        self._attn_implementation = "sdpa"
        self._name_or_path = ""

    @property
    def name_or_path(self) -> str:
        """Folder that the model was loaded from; empty for none."""
        return self._name_or_path

    def get_text_config(self) -> Qwen3Config:
        """Return the configuration of the part that reads text: all of it."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the entries."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


@dataclass(frozen=True, slots=True)
class States:
    """What a decoder returns: ``last_hidden_state`` ``[rows, columns, hidden]``."""

    last_hidden_state: Tensor


@dataclass(frozen=True, slots=True)
class Logits:
    """What a model returns: ``logits`` ``[rows, columns, vocabulary]``."""

    logits: Tensor


class Qwen3RMSNorm(nn.Module):
    """``weight * x / sqrt(mean(x**2) + eps)`` over the last axis (Zhang and Sennrich, 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.variance_epsilon = eps

    def forward(self, x: Tensor) -> Tensor:
        """Norm ``[..., width]``."""
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(x.dtype)


class Qwen3RotaryEmbedding(nn.Module):
    """Angles by which queries and keys are turned (Su et al., 2021)."""

    inv_freq: Tensor
    rope_type = "default"

    def __init__(self, config: Any) -> None:
        super().__init__()
        steps = torch.arange(0, config.head_dim, 2, dtype=torch.float) / config.head_dim
        frequencies = 1.0 / (config.rope_parameters["rope_theta"] ** steps)
        self.register_buffer("inv_freq", frequencies, persistent=False)

    @torch.no_grad()
    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines ``[rows, columns, head width]``, of the format of ``x``."""
        half = position_ids[..., None].float() * self.inv_freq.float()
        angles = torch.cat((half, half), dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


class Qwen3Attention(nn.Module):
    """Attention whose queries and keys have a norm for each head."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.head_dim: int = config.head_dim
        self.scaling: float = config.head_dim**-0.5
        self.num_key_value_groups: int = config.num_attention_heads // config.num_key_value_heads
        queries, keys = (
            count * config.head_dim
            for count in (config.num_attention_heads, config.num_key_value_heads)
        )
        self.q_proj = nn.Linear(config.hidden_size, queries, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=False)
        self.q_norm = Qwen3RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = Qwen3RMSNorm(config.head_dim, config.rms_norm_eps)

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor], **more: Any) -> Tensor:
        """Attend: ``[rows, columns, hidden]`` to the same; ``more`` goes to the attention."""
        heads = (*x.shape[:-1], -1, self.head_dim)
        q = _turned(self.q_norm(self.q_proj(x).view(heads)).transpose(1, 2), angles)
        k = _turned(self.k_norm(self.k_proj(x).view(heads)).transpose(1, 2), angles)
        v = self.v_proj(x).view(heads).transpose(1, 2)
        name = self.config._attn_implementation
        attend = find_attention(name) or (_products if name == "eager" else _causal)
        seen, _ = attend(self, q, k, v, None, scaling=self.scaling, **more)
        return self.o_proj(seen.reshape(*x.shape[:-1], -1))


class Qwen3MLP(nn.Module):
    """The gated layers of a block."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[..., hidden]`` to the same."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Qwen3DecoderLayer(nn.Module):
    """A block: attention and gated layers, a norm in front of each."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.self_attn = Qwen3Attention(config)
        self.mlp = Qwen3MLP(config)
        self.input_layernorm = Qwen3RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = Qwen3RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor], **more: Any) -> Tensor:
        """Map ``[rows, columns, hidden]`` to the same; ``more`` goes to the attention."""
        x = x + self.self_attn(self.input_layernorm(x), angles, **more)
        return x + self.mlp(self.post_attention_layernorm(x))


class Qwen3Model(nn.Module):
    """The decoder without its output layer."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        padding = getattr(config, "pad_token_id", None)  # whose embedding learns nothing
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, padding)
        layers = [Qwen3DecoderLayer(config) for _ in range(config.num_hidden_layers)]
        self.layers = nn.ModuleList(layers)
        self.norm = Qwen3RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.rotary_emb = Qwen3RotaryEmbedding(config)

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        use_cache: bool = False,
        **more: Any,
    ) -> States:
        """Return the last hidden states of rows ``[rows, columns]`` that begin at position 0.

        Args:
            input_ids: ``[rows, columns]``; what follows a row's end changes nothing before it.
            position_ids: ``[1, columns]`` or of the same shape; None counts from 0.
            use_cache: Must be False.
            more: Goes to the attention.
        """
        assert not use_cache, "this model keeps no keys and values: its contexts are the engine's"
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        x = self.embed_tokens(input_ids)
        angles = self.rotary_emb(x, position_ids)
        for layer in self.layers:
            x = layer(x, angles, **more)
        return States(self.norm(x))

    def set_attn_implementation(self, name: str) -> None:
        """Choose the attention: ``"sdpa"``, ``"eager"`` (plain products) or a registered one."""
        self.config._attn_implementation = name


class Qwen3ForCausalLM(nn.Module):
    """See the module's text.

    Args:
        config: Of one that :func:`why_not_own` has no objection to.
        generation: Entries of its generation_config.json; None where there is none.
    """

    _supports_sdpa = True
    _supports_attention_backend = True
    all_tied_weights_keys: Mapping[str, str] = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config: Qwen3Config, generation: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.config = config
        self.generation_config = None if generation is None else SimpleNamespace(**generation)
        self.model = Qwen3Model(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids: Tensor, **more: Any) -> Logits:
        """Return the logits of rows ``[rows, columns]``, see :meth:`Qwen3Model.forward`."""
        return Logits(self.lm_head(self.model(input_ids, **more).last_hidden_state))

    @property
    def dtype(self) -> torch.dtype:
        """Number format of the weights."""
        return self.lm_head.weight.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.lm_head.weight.device

    def get_decoder(self) -> Qwen3Model:
        """Return the model without its output layer."""
        return self.model

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the embedding."""
        return self.model.embed_tokens

    def get_output_embeddings(self) -> nn.Linear:
        """Return the output layer."""
        return self.lm_head

    def set_attn_implementation(self, name: str) -> None:
        """Choose the attention, see :meth:`Qwen3Model.set_attn_implementation`."""
        self.model.set_attn_implementation(name)

    def save_pretrained(self, folder: Path | str) -> None:
        """Write configuration and weights as transformers does, into a folder that is made."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        dtype = str(self.dtype).removeprefix("torch.")
        _write(folder / CONFIG, self.config.to_dict() | {"dtype": dtype})
        if self.generation_config is not None:
            _write(folder / GENERATION, vars(self.generation_config))
        weights = {
            name: value.contiguous()
            for name, value in self.state_dict().items()
            if name not in self.all_tied_weights_keys
        }
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def why_not_own(folder: Path) -> str | None:
    """Return why a model folder is none for :func:`load_own`; None if it is.

    What cannot be read is left to transformers, which says what is wrong with it.
    """
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"{CONFIG} cannot be read"
    if not isinstance(config, dict):
        return f"{CONFIG} is no object"
    for name, value in _EXPECTED.items():
        if config.get(name) != value:
            return f"{name} is {config.get(name)!r}"
    rope = config.get("rope_parameters")
    if not isinstance(rope, dict) or rope.get("rope_type") != "default":
        return f"rope_parameters are {rope!r}"
    if set(config.get("layer_types") or ["full_attention"]) != {"full_attention"}:
        return f"layer_types are {config['layer_types']!r}"
    if "quantization_config" in config:
        return "its weights are quantised"
    return None if (folder / WEIGHTS).is_file() else f"there is no {WEIGHTS}"


def read_own_config(folder: Path) -> Qwen3Config | None:
    """Return the configuration of a model that :func:`load_own` reads, None of any other."""
    if why_not_own(folder) is not None:
        return None
    return Qwen3Config(**json.loads((folder / CONFIG).read_text(encoding="utf-8")))


def load_own(folder: Path, dtype: torch.dtype | None = None) -> Qwen3ForCausalLM | None:
    """Load a model that :func:`why_not_own` has no objection to.

    Args:
        folder: Of the model.
        dtype: Of the weights; None is that of the files.

    Returns:
        The model, or None where the files do not fit each other: transformers says what is wrong.
    """
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    generation = None
    try:
        if (folder / GENERATION).is_file():
            generation = json.loads((folder / GENERATION).read_text(encoding="utf-8"))
        weights = load_file(folder / WEIGHTS)
        with torch.random.fork_rng(devices=[]):  # weights are drawn before they are replaced
            model = Qwen3ForCausalLM(Qwen3Config(**config), generation)
        model.load_state_dict(_of_dtype(weights, dtype), assign=True, strict=False)
    except (
        OSError,
        ValueError,
        RuntimeError,
        KeyError,
        TypeError,
        AttributeError,
        SafetensorError,
    ):
        return None
    model.lm_head.weight = model.model.embed_tokens.weight
    if weights.keys() != model.state_dict().keys() - model.all_tied_weights_keys.keys():
        return None
    model.config._name_or_path = str(folder)
    return model


def _of_dtype(weights: Mapping[str, Tensor], dtype: torch.dtype | None) -> dict[str, Tensor]:
    return {name: value if dtype is None else value.to(dtype) for name, value in weights.items()}


def _write(file: Path, entries: Mapping[str, Any]) -> None:
    text = json.dumps(entries, indent=2, sort_keys=True) + "\n"
    file.write_text(text, encoding="utf-8")


def _turned(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Turn ``[rows, heads, columns, width]`` by its angles."""
    cos, sin = (a.unsqueeze(1) for a in angles)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def _causal(
    module: Qwen3Attention, q: Tensor, k: Tensor, v: Tensor, _mask: None, *, scaling: float
) -> tuple[Tensor, None]:
    """Attend to oneself and what is before; in the form of the registered functions."""
    grouped = module.num_key_value_groups > 1
    seen = F.scaled_dot_product_attention(
        q, k, v, is_causal=q.shape[2] > 1, scale=scaling, enable_gqa=grouped
    )
    return seen.transpose(1, 2).contiguous(), None


def _products(
    module: Qwen3Attention, q: Tensor, k: Tensor, v: Tensor, _mask: None, *, scaling: float
) -> tuple[Tensor, Tensor]:
    """:func:`_causal` as two products."""
    k, v = (x.repeat_interleave(module.num_key_value_groups, 1) for x in (k, v))
    scores = q @ k.transpose(2, 3) * scaling
    later = torch.ones(scores.shape[2:], dtype=torch.bool, device=q.device).triu(1)
    weights = scores.masked_fill(later, torch.finfo(scores.dtype).min)
    weights = weights.softmax(-1, dtype=torch.float32).to(q.dtype)
    return (weights @ v).transpose(1, 2).contiguous(), weights
