"""Log-probabilities in pieces: the same numbers and gradients, never a whole table of logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.nets import small

from turngym.algos.learner.batching.micro_batch import MicroBatch
from turngym.algos.learner.batching.rows import Row
from turngym.algos.learner.scoring.scoring import TokenModel

VOCABULARY = 320


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    made = []
    for length in (30, 41, 25):
        at = np.arange(5, length)
        made.append(
            Row(
                ids=rng.integers(0, VOCABULARY, length),
                at=at,
                turns=np.zeros(len(at), np.int64),
                sampled=np.zeros(len(at), np.float32),
                numbers=np.arange(length),
            )
        )
    return made


def scored(net: Any, temperature: float) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
    batch = MicroBatch.padded(rows(), 0, torch.device("cpu"))
    logprobs, entropies = TokenModel(net, temperature).score(batch)
    draws = torch.Generator().manual_seed(0)
    a, b = (torch.randn(len(logprobs), generator=draws) for _ in range(2))
    (a @ logprobs + b @ entropies).backward()
    return logprobs, entropies, {n: p.grad for n, p in net.named_parameters()}


def by_hand(net: Any, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    logprobs, entropies = [], []
    for row in rows():
        logits = net(torch.from_numpy(row.ids)[None]).logits[0].double() / temperature
        table = logits.log_softmax(-1)[row.at - 1]
        logprobs.append(table[np.arange(len(row.at)), row.ids[row.at]])
        entropies.append(-(table.exp() * table).sum(-1))
    return torch.cat(logprobs), torch.cat(entropies)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("per_chunk", [1, 7, 1000])
def test_pieces_give_the_numbers_and_gradients_of_whole_tables(
    per_chunk: int, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "turngym.algos.learner.scoring.scoring.LOGITS_PER_CHUNK", per_chunk * VOCABULARY
    )
    net, whole = small("qwen2"), small("qwen2")
    logprobs, entropies, grads = scored(net, temperature)
    wanted, wanted_entropies = by_hand(whole, temperature)
    torch.testing.assert_close(logprobs.double(), wanted, atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(entropies.double(), wanted_entropies, atol=2e-5, rtol=1e-5)
    draws = torch.Generator().manual_seed(0)
    a, b = (torch.randn(len(wanted), generator=draws) for _ in range(2))
    (a.double() @ wanted + b.double() @ wanted_entropies).backward()
    for name, weight in whole.named_parameters():
        torch.testing.assert_close(grads[name], weight.grad, atol=1e-4, rtol=1e-3)


def test_no_table_is_larger_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngym.algos.learner.scoring.scoring.LOGITS_PER_CHUNK", 8 * VOCABULARY)
    net = small("qwen2")
    seen: list[int] = []
    head = net.get_output_embeddings()

    def note(_module: Any, _args: Any, out: torch.Tensor) -> None:
        if out.dim() == 2:  # the model itself, when it is looked at, sends whole batches
            seen.append(out.shape[0])

    head.register_forward_hook(note)
    alive: list[int] = []

    def count(tensor: torch.Tensor) -> torch.Tensor:
        alive.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        scored(net, 1.0)
    tokens = sum(len(row.at) for row in rows())
    assert max(seen) <= 8
    assert sum(seen) == 2 * tokens  # once forward, once again for the backward pass
    kept_by_heads = [n for n in alive if n > 8 * VOCABULARY and n % VOCABULARY == 0]
    assert all(n in {w.numel() for w in net.parameters()} for n in kept_by_heads)
