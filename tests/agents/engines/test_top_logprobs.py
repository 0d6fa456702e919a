"""The likeliest tokens' log-probabilities that a request may ask for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.engine_help import FAMILIES, ask, engine, prompts, request, same
from helpers.small_models import model

from turngym.agents.engines.base import Sampling
from turngym.envs.core.errors import BadValueError

pytestmark = pytest.mark.usefixtures("loops")


@pytest.mark.parametrize("temperature", [0.7, 1.0, 0.0])
@pytest.mark.parametrize("family", ["Qwen2", "GPT2"])
def test_they_are_the_models_own(family: str, temperature: float) -> None:
    net = model(family, **FAMILIES[family][1])
    context = prompts(1, seed=4)[0]
    asked = request(context, seed=1, temperature=temperature, top_logprobs=5)
    done = ask(engine(net), asked)[0]
    assert done.top_logprobs is not None
    assert done.top_logprobs.shape == (len(done.ids), 5)
    with torch.no_grad():
        ids = torch.tensor([[*map(int, context), *map(int, done.ids)]])
        logits = net(ids).logits[0, len(context) - 1 : -1] / (temperature or 1.0)
    wanted = logits.log_softmax(-1).topk(5).values.numpy()
    np.testing.assert_allclose(done.top_logprobs, wanted, atol=1e-4)
    assert (done.logprobs <= done.top_logprobs[:, 0] + 1e-4).all()


def test_each_request_gets_what_it_asked_for_and_samples_the_same() -> None:
    eng = engine(max_batch=2)  # three at a time do not fit: rows come, go and move
    contexts = prompts(5, seed=2)
    wants = [0, 3, 0, 420, 1]
    done = ask(
        eng,
        *(
            request(c, seed=i, max_tokens=3 + i, top_logprobs=k)
            for i, (c, k) in enumerate(zip(contexts, wants, strict=True))
        ),
    )
    for i, (got, k) in enumerate(zip(done, wants, strict=True)):
        same(got, ask(eng, request(contexts[i], seed=i, max_tokens=3 + i))[0])
        if not k:
            assert got.top_logprobs is None
            continue
        assert got.top_logprobs is not None
        assert got.top_logprobs.shape == (len(got.ids), k)
        assert (np.diff(got.top_logprobs, axis=1) <= 0).all()
        if k == 420:  # all of them: a distribution, whose entropy is the recorded one
            top = got.top_logprobs.astype(np.float64)
            np.testing.assert_allclose(np.exp(top).sum(-1), 1.0, atol=1e-5)
            np.testing.assert_allclose(-(np.exp(top) * top).sum(-1), got.entropies, atol=1e-4)


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(BadValueError, match="top_logprobs is -1"):
        Sampling(max_tokens=1, top_logprobs=-1)
