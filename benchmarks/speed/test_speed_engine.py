"""Sampling speed against ``transformers`` generate, both in one run on the same tiny model.

64 ragged prompts of 16 to 48 tokens, 64 new tokens each. The rounds alternate, so that whatever
else the machine does hits both alike; the ratio of the best rounds is reported and checked.
Run with ``pytest benchmarks/speed/test_speed_engine.py --benchmark-only -s``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from turngym.agents.engines.base import Request, Sampling  # noqa: E402
from turngym.agents.engines.local.engine import TransformersEngine  # noqa: E402
from turngym.agents.models.loading import has_bfloat16  # noqa: E402

ROWS, NEW, VOCABULARY = 64, 64, 1536
ROUNDS = 5
# with numba, on any CPU that multiplies bfloat16 in hardware
AT_LEAST = {"float32": 1.25, "bfloat16": 3.0}


def prompts() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(2, VOCABULARY, size=rng.integers(16, 49)) for _ in range(ROWS)]


@pytest.fixture(scope="module")
def tiny() -> Any:
    """About a million parameters, as the laptop starter: three layers of width 128."""
    config = transformers.Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=384,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        eos_token_id=None,
        bos_token_id=None,
        pad_token_id=0,
        initializer_range=0.02,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.Qwen2ForCausalLM(config).eval()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """A byte-level tokenizer without merges: neither side decodes text here."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {"<pad>": 0, "<eos>": 1} | {c: i + 2 for i, c in enumerate(letters)}
    inner = Tokenizer(models.BPE(vocab=words, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>"
    )


@pytest.fixture
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def generate(net: Any) -> int:
    """The peer: left-padded batch, sampling at temperature 1; tokens that it made."""
    rows = prompts()
    width = max(map(len, rows))
    ids = torch.zeros(ROWS, width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, width - len(row) :] = torch.from_numpy(row)
        mask[i, width - len(row) :] = 1
    out = net.generate(
        ids, attention_mask=mask, do_sample=True, max_new_tokens=NEW, min_new_tokens=NEW,
        top_k=0, pad_token_id=0,
    )  # fmt: skip
    return out[:, width:].numel()


def sample(engine: TransformersEngine) -> int:
    """The same work through the engine; rows that meet the end-of-text token end sooner."""

    async def all_rows() -> int:
        asked = (
            Request(ids=row, sampling=Sampling(max_tokens=NEW), seed=i)
            for i, row in enumerate(prompts())
        )
        done = await asyncio.gather(*(engine.generate(r) for r in asked))
        for completion in done:
            engine.release(completion.cache)
        return sum(len(completion.ids) for completion in done)

    return asyncio.run(all_rows())


def rate(work: Callable[[], int]) -> float:
    """Tokens per second of one round."""
    start = time.perf_counter()
    return work() / (time.perf_counter() - start)


@pytest.mark.parametrize("threads", [1, 2], indirect=True, ids="threads{}".format)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tokens_per_second(
    dtype: str, threads: int, tiny: Any, tokenizer: Any, benchmark: Any
) -> None:
    if dtype == "bfloat16" and not has_bfloat16(torch.device("cpu")):
        pytest.skip("this CPU does not multiply bfloat16 in hardware")
    engine = TransformersEngine(tiny, tokenizer, dtype=dtype)
    ours, theirs = [], []
    sample(engine)
    generate(tiny)

    def peer() -> tuple[tuple[()], dict[str, Any]]:
        theirs.append(rate(lambda: generate(tiny)))
        return (), {}

    benchmark.pedantic(lambda: ours.append(rate(lambda: sample(engine))), setup=peer, rounds=ROUNDS)
    ratio = max(ours) / max(theirs)
    benchmark.extra_info |= {
        "tokens_per_second": round(max(ours)),
        "generate_tokens_per_second": round(max(theirs)),
        "ratio": round(ratio, 2),
        "threads": threads,
    }
    print(
        f"\n{dtype}, {threads} thread(s): engine {max(ours):,.0f} tokens/s, "
        f"generate {max(theirs):,.0f} tokens/s, ratio {ratio:.2f}"
    )
    assert ratio >= AT_LEAST[dtype]
