"""Gemma-3 in the packed decoder, beside transformers' own generate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.engine_help import FAMILIES, ask, engine, prompts, request, teacher
from helpers.small_models import model

from turngym.agents.engines.local.hf_forward import HfForward
from turngym.agents.engines.local.packed_decoder import FastDecoder
from turngym.agents.engines.local.packed_weights import why_not_fast

pytestmark = pytest.mark.usefixtures("loops")
LENGTHS = (3, 39, 8, 20, 17)
MORE: dict[str, Any] = FAMILIES["Gemma3"][1]


def gemma3(**more: Any) -> Any:
    return model("Gemma3", **(MORE | more))


@torch.no_grad()
def generated(net: Any, context: Any, count: int) -> tuple[list[int], np.ndarray]:
    """Tokens and log-probabilities of transformers' greedy decoding with its own cache."""
    ids = torch.from_numpy(np.asarray(context))[None]
    out = net.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=count,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
    )
    tokens = out.sequences[0, ids.shape[1] :]
    logprobs = torch.stack(out.logits).squeeze(1).log_softmax(-1)
    return tokens.tolist(), logprobs.gather(1, tokens[:, None])[:, 0].numpy()


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"sliding_window": 16, "num_key_value_heads": 1},
        {"tie_word_embeddings": False, "attention_bias": True, "sliding_window": 500},
        {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 4.0}}},
    ],
)
def test_greedy_turns_are_those_of_transformers_generate(more: dict[str, Any]) -> None:
    """Ragged contexts on both sides of the window, two turns on a kept cache."""
    net = gemma3(**more)
    eng = engine(net, max_batch=4)
    assert isinstance(eng._forward, FastDecoder)
    contexts = [p.tolist() for n in LENGTHS for p in prompts(1, seed=n, low=n, high=n + 1)]
    handles: list[int | None] = [None] * len(contexts)
    for _ in range(2):
        asked = [
            request(c, cache=h, temperature=0.0, max_tokens=12)
            for c, h in zip(contexts, handles, strict=True)
        ]
        for i, done in enumerate(ask(eng, *asked)):
            tokens, logprobs = generated(net, contexts[i], 12)
            n = len(done.ids)  # the tokenizer's end of text ends an action early
            assert n == 12 or done.ids[-1] == 1
            assert done.ids.tolist() == tokens[:n]
            np.testing.assert_allclose(done.logprobs, logprobs[:n], atol=2e-5)
            contexts[i], handles[i] = [*contexts[i], *tokens[:n], 7, 8, 9], done.cache


def test_weights_in_half_precision_are_multiplied_by_the_factor_of_their_format() -> None:
    net = gemma3().to(torch.bfloat16)
    eng: Any = engine(net, dtype="float32")
    factor = torch.tensor(32**0.5, dtype=torch.bfloat16).item()
    assert eng._forward._weights._factor == factor != 32**0.5
    net.float()  # the model keeps the factor that was rounded
    r = request(range(3, 30))
    done = ask(engine(net), r)[0]
    logprobs, _ = teacher(net, r.ids, done.ids)
    np.testing.assert_allclose(done.logprobs, logprobs, atol=2e-5)


def test_what_is_not_known_keeps_its_own_forward() -> None:
    assert why_not_fast(gemma3(), 64) is None
    capped = gemma3(final_logit_softcapping=30.0)
    assert why_not_fast(capped, 64) == "final_logit_softcapping of 30.0"
    eng = engine(capped)
    assert type(eng._forward) is HfForward
    both = gemma3(use_bidirectional_attention=True)
    assert why_not_fast(both, 64) == "attention in both directions"
    assert "activation 'relu'" in str(why_not_fast(gemma3(hidden_activation="relu"), 64))
    rope = {"full_attention": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e6}}
    assert "type 'dynamic'" in str(why_not_fast(gemma3(rope_parameters=rope), 64))
