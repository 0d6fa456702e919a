"""Helpers of the engine's tests: ask, and compare with teacher forcing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from helpers.small_models import byte_level, model

from turngym.agents.engines.base import Completion, Request, Sampling
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.local.hf_forward import HfForward
from turngym.agents.engines.local.numba_decoder import NativeDecoder

TOKENIZER = byte_level()
FAMILIES = {
    "Qwen2": (NativeDecoder, {}),
    "Qwen3": (NativeDecoder, {"head_dim": 16}),
    "Llama": (NativeDecoder, {"attention_bias": True, "mlp_bias": True}),
    "Gemma3": (
        NativeDecoder,
        {
            "config": "Gemma3Text",
            "head_dim": 8,
            "num_hidden_layers": 3,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "query_pre_attn_scalar": 12,
        },
    ),
    "Gemma": (HfForward, {"head_dim": 8}),
    "GPT2": (HfForward, {}),
}


def engine(net: Any = None, **more: Any) -> TransformersEngine:
    return TransformersEngine(net or model("Qwen2"), TOKENIZER, **({"dtype": "float32"} | more))


def ask(eng: TransformersEngine, *requests: Request) -> list[Completion]:
    async def all_of_them() -> list[Completion]:
        return list(await asyncio.gather(*(eng.generate(r) for r in requests)))

    return asyncio.run(all_of_them())


def request(ids: Any, seed: int = 0, cache: int | None = None, **sampling: Any) -> Request:
    sampling = {"max_tokens": 6} | sampling
    return Request(ids=ids, sampling=Sampling(**sampling), seed=seed, cache=cache)


def prompts(n: int, seed: int = 0, low: int = 1, high: int = 30) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(2, 420, size=rng.integers(low, high)) for _ in range(n)]


@torch.no_grad()
def teacher(
    net: Any, context: Sequence[int], action: np.ndarray, temperature: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    ids = torch.tensor([[*map(int, context), *map(int, action)]])
    logits = net(ids).logits[0, len(context) - 1 : -1].double() / temperature
    lp = logits.log_softmax(-1)
    picked = lp.gather(-1, torch.from_numpy(action)[:, None])[:, 0]
    return picked.numpy(), -(lp.exp() * lp).sum(-1).numpy()


def same(a: Completion, b: Completion) -> None:
    assert a.ids.tolist() == b.ids.tolist()
    np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-5)
    np.testing.assert_allclose(a.entropies, b.entropies, atol=1e-5)
    assert a.stop == b.stop
