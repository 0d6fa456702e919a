"""vLLM behind an engine server: a learner's weights through a group, straight into its own.

Runs where vLLM is installed: ``make test-vllm`` makes an environment for it.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.engine_help import TOKENIZER, ask, prompts, request
from helpers.engine_servers import FLOAT32, http_engine
from helpers.http_servers import serve_app
from helpers.small_models import model

from turngym.agents.engines.http.app import make_app
from turngym.agents.engines.local.engine import TransformersEngine
from turngym.agents.engines.serving import host_engine
from turngym.agents.engines.vllm.settings import VllmSettings
from turngym.agents.models.loading import load_model, load_tokenizer

INSTALLED = importlib.util.find_spec("vllm") is not None
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not INSTALLED, reason="vLLM is not installed; make test-vllm installs it"),
]


@pytest.mark.parametrize(
    ("by", "tied", "cards"),
    [("group", False, 1), ("group", True, 1), ("files", False, 1), ("group", False, 2)],
)
def test_the_server_samples_from_the_learner_s_new_weights(
    tmp_path: Path, by: str, tied: bool, cards: int
) -> None:
    """With two cards each of their processes is in the group, and keeps its part of a weight."""
    sizes = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2}
    net = model("Qwen2", vocab_size=512, tie_word_embeddings=tied, **sizes)
    net.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    own = VllmSettings(cache_gib=0.125, tensor_parallel=cards)
    host = host_engine(str(tmp_path), replace(FLOAT32, engine="vllm", vllm=own))
    net, tokenizer = load_model(tmp_path, device="cpu"), load_tokenizer(tmp_path)
    asked = [request(p % 300, seed=i, max_tokens=7) for i, p in enumerate(prompts(6))]
    try:
        with serve_app(make_app(host)) as url:
            engine = http_engine([url], tokenizer, net, weights_by=by, timeout_s=60.0)
            seen: list[list[Any]] = []
            for version in (1, 2):
                rng = torch.Generator().manual_seed(version)
                with torch.no_grad():
                    for p in net.parameters():
                        p.add_(0.1 * torch.randn(p.shape, generator=rng))
                engine.sync(net)
                assert host.weights == engine._weights
                assert len(host.facts().cards) == cards
                assert (engine._file is None) == (by == "group")
                here = TransformersEngine(net, tokenizer, dtype="float32", max_batch=8)
                seen.append(ask(engine, *asked))
                for a, b in zip(seen[-1], ask(here, *asked), strict=True):
                    assert a.ids.tolist() == b.ids.tolist()
                    np.testing.assert_allclose(a.logprobs, b.logprobs, atol=2e-4)
            assert any(a.ids.tolist() != b.ids.tolist() for a, b in zip(*seen, strict=True))
    finally:
        host.close()
