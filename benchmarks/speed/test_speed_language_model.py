"""A language model of another's making on few cores: sampling, update and first pass of prompts.

Run with ``pytest benchmarks/speed/test_speed_language_model.py --benchmark-only -s``. Models are
a random one of SmolLM2-135M's shape with 4 of its 30 layers, and SmolLM2-135M itself where it is in
the cache (``turngym models``), or what ``TURNGYM_LANGUAGE_MODEL`` names: the folder of a model of
the Llama family. Both sides in bfloat16, or in float32 where the processor does not multiply
bfloat16; processor seconds, rivals in turns in one process.
``TURNGYM_BENCH_GROUPS`` is the number of groups of an update: 2, or 16 for the size of a whole
batch, which takes a quarter of an hour of one core.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from turngym.agents.engines.base import Request, Sampling  # noqa: E402
from turngym.agents.engines.local.engine import TransformersEngine, choose_forward  # noqa: E402
from turngym.agents.engines.local.forward import Piece  # noqa: E402
from turngym.agents.engines.local.kv_cache import KvPool  # noqa: E402
from turngym.agents.models.loading import has_bfloat16, load_model, load_tokenizer  # noqa: E402
from turngym.agents.models.registry.catalogue import CATALOGUE  # noqa: E402
from turngym.agents.models.registry.fetch import find_cached  # noqa: E402
from turngym.agents.models.size import is_large  # noqa: E402
from turngym.algos.core.forest import ROOT, Forest, Group, Tree, Turn, last_token_reward  # noqa: E402
from turngym.algos.core.protocols import Credits  # noqa: E402
from turngym.algos.learner.batching.rows import Row, distinct_tokens, rows_of  # noqa: E402
from turngym.algos.learner.learner import Learner  # noqa: E402
from turngym.algos.learner.settings import LearnerSettings  # noqa: E402
from turngym.algos.recipes import make_recipe  # noqa: E402

NAME = "smollm2-135m"
GROUPS = int(os.environ.get("TURNGYM_BENCH_GROUPS", "2"))
PATHS, NEW = 8, 64
ROWS_AT_A_TIME = 4
"""Of the plain loop: padded rows of a micro batch, about 2,000 tokens."""

HALF = has_bfloat16(torch.device("cpu"))
DTYPE = torch.bfloat16 if HALF else torch.float32
"""What both sides multiply in."""
DTYPE_NAME = str(DTYPE).removeprefix("torch.")


def folder() -> str:
    """Return the folder of the whole model; skips where there is none."""
    if asked := os.environ.get("TURNGYM_LANGUAGE_MODEL"):
        return asked
    if (cached := find_cached(CATALOGUE[NAME])) is None:
        pytest.skip(f"{NAME} is not in the cache (turngym models {NAME})")
    return str(cached.folder)


@pytest.fixture(params=["four-layers", "whole"])
def model(request: Any) -> Any:
    if request.param == "whole":
        return load_model(folder(), device="cpu")
    config = transformers.LlamaConfig(
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=4,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.LlamaForCausalLM(config).eval()


def chains(vocabulary: int, groups: int = 1) -> Forest:
    """8 chains of 3 turns after a prompt of 200: about 500 tokens each, 90 of them actions."""
    rng = np.random.default_rng(0)
    return Forest.of([Group(f"u{i}", "t", chains_of_one(rng, vocabulary)) for i in range(groups)])


def chains_of_one(rng: np.random.Generator, vocabulary: int) -> list[Tree]:
    prompt = rng.integers(4, vocabulary, 200)
    trees = []
    for _ in range(PATHS):
        tree = Tree()
        for depth in range(3):
            n = int(rng.integers(22, 39))
            seen = rng.integers(4, vocabulary, int(rng.integers(80, 131)))
            tree.add(
                Turn(
                    parent=depth - 1 if depth else ROOT,
                    obs_ids=seen if depth else prompt,
                    act_ids=rng.integers(4, vocabulary, n),
                    logprobs=np.full(n, -9.0, np.float32),
                    entropies=np.full(n, 9.0, np.float32),
                    rewards=last_token_reward(0.0, n),
                    status="solved" if depth == 2 else "running",
                )
            )
        trees.append(tree)
    return trees


def plain_update(model: Any, rows: list[Row], credits: Credits, optimizer: Any) -> None:
    """Policy gradient of padded rows in torch alone: states, then logits of action tokens."""
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i].ids))
    optimizer.zero_grad()
    for first in range(0, len(order), ROWS_AT_A_TIME):
        mine = [(rows[i], credits.advantages[i]) for i in order[first : first + ROWS_AT_A_TIME]]
        ids = torch.zeros(len(mine), max(len(row.ids) for row, _ in mine), dtype=torch.int64)
        for i, (row, _) in enumerate(mine):
            ids[i, : len(row.ids)] = torch.from_numpy(row.ids)
        with torch.autocast("cpu", torch.bfloat16, enabled=HALF):
            states = model.model(input_ids=ids, use_cache=False).last_hidden_state
            loss = torch.zeros(())
            for i, (row, advantages) in enumerate(mine):
                logits = model.lm_head(states[i, row.at - 1]).float()
                wanted = torch.from_numpy(row.ids[row.at])
                logprobs = logits.log_softmax(-1).gather(1, wanted[:, None])[:, 0]
                loss = loss - (logprobs * torch.from_numpy(advantages)).mean()
        loss.backward()
    optimizer.step()


def in_turns(
    rounds: int, *work: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Median seconds of each, of this process unless told otherwise; no first round counts."""
    times: list[list[float]] = [[] for _ in work]
    for _ in range(rounds + 1):
        for found, one in zip(times, work, strict=True):
            began = clock()
            one()
            found.append(clock() - began)
    return [statistics.median(found[1:]) for found in times]


@pytest.mark.timeout(600 * GROUPS)
def test_update_against_a_plain_loop(benchmark: Any, model: Any) -> None:
    forest = chains(model.config.vocab_size, GROUPS)
    rows = rows_of(forest)
    rng = np.random.default_rng(0)
    credits = Credits([rng.normal(size=row.n_act).astype(np.float32) for row in rows])
    recipe = make_recipe("grpo", {"optim.minibatches": 1, "optim.warmup_steps": 0, "kl.coef": 0.0})
    ours = Learner(model, replace(recipe, annotators=()), pad_id=0, settings=LearnerSettings())
    assert (ours.models.tokens.layers is not None) == HALF
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    mine, plain = benchmark.pedantic(
        in_turns,
        args=(
            2,
            lambda: ours.update(forest, {}, credits),
            lambda: plain_update(model, rows, credits, optimizer),
        ),
        rounds=1,
    )
    tokens = sum(len(row.ids) for row in rows)
    print(
        f"\nupdate of {tokens} tokens, {distinct_tokens(rows)} distinct: {mine:.2f} s, plain loop "
        f"{plain:.2f} s, ratio {plain / mine:.2f}"
    )
    benchmark.extra_info |= {"ours_s": mine, "plain_s": plain, "ratio": plain / mine}
    assert plain / mine > (
        2.0 if len(model.model.layers) > 8 else 1.4
    )  # few layers: the head is half


def sample(engine: TransformersEngine, prompts: list[np.ndarray]) -> int:
    async def all_rows() -> int:
        asked = (
            Request(ids=row, sampling=Sampling(max_tokens=NEW), seed=i)
            for i, row in enumerate(prompts)
        )
        done = await asyncio.gather(*(engine.generate(r) for r in asked))
        for completion in done:
            engine.release(completion.cache)
        return sum(len(completion.ids) for completion in done)

    return asyncio.run(all_rows())


@torch.inference_mode()
def generate(model: Any, prompts: list[np.ndarray]) -> None:
    width = max(map(len, prompts))
    ids = torch.zeros(len(prompts), width, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(prompts):
        ids[i, width - len(row) :] = torch.from_numpy(row)
        mask[i, width - len(row) :] = 1
    model.generate(
        ids, attention_mask=mask, do_sample=True, max_new_tokens=NEW, min_new_tokens=NEW,
        top_k=0, pad_token_id=0,
    )  # fmt: skip


@pytest.mark.timeout(1200)
def test_sampling_against_generate(benchmark: Any) -> None:
    """32 prompts of 100 to 300 tokens, 64 new ones each."""
    model = load_model(folder(), device="cpu").to(DTYPE)
    model.generation_config.eos_token_id = None
    rng = np.random.default_rng(0)
    vocabulary = model.config.vocab_size
    prompts = [rng.integers(4, vocabulary, n) for n in rng.integers(100, 301, 32)]
    engine = TransformersEngine(model, load_tokenizer(folder()), dtype=DTYPE_NAME)
    tokens: list[int] = []
    ours, theirs = benchmark.pedantic(
        in_turns,
        args=(2, lambda: tokens.append(sample(engine, prompts)), lambda: generate(model, prompts)),
        rounds=1,
    )
    mine, peer = statistics.median(tokens) / ours, len(prompts) * NEW / theirs
    print(
        f"\n{sum(map(len, prompts))} tokens of prompts: engine {mine:.0f} tokens/s, generate "
        f"{peer:.0f} tokens/s of processor time, ratio {mine / peer:.2f}"
    )
    benchmark.extra_info |= {"tokens_per_s": mine, "generate_tokens_per_s": peer}
    assert mine / peer > 2.0


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_sampling_against_vllm(benchmark: Any, monkeypatch: Any, eager: bool) -> None:
    """The same sizes beside vLLM on as many threads, prompts new in every round.

    vLLM computes in a process of its own, so seconds are by the clock: nothing else should run.
    ``make .venv-vllm/.installed`` sets up where to run it.
    """
    vllm = pytest.importorskip("vllm")
    threads = torch.get_num_threads()
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "2")
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", f"0-{threads - 1}")
    peer = vllm.LLM(
        model=folder(), dtype=DTYPE_NAME, max_model_len=512, enforce_eager=eager, seed=0,
        enable_prefix_caching=False, disable_log_stats=True,
    )  # fmt: skip
    model = load_model(folder(), device="cpu").to(DTYPE)
    model.generation_config.eos_token_id = None
    engine = TransformersEngine(model, load_tokenizer(folder()), dtype=DTYPE_NAME)
    rng = np.random.default_rng(0)
    sizes = rng.integers(100, 301, 32)
    asked = vllm.SamplingParams(
        max_tokens=NEW, min_tokens=NEW, ignore_eos=True, temperature=1.0, detokenize=False
    )
    tokens: list[int] = []
    theirs: list[int] = []

    def fresh() -> list[np.ndarray]:
        return [rng.integers(4, model.config.vocab_size, n) for n in sizes]

    def ours() -> None:
        tokens.append(sample(engine, fresh()))

    def others() -> None:
        prompts = [{"prompt_token_ids": row.tolist()} for row in fresh()]
        done = peer.generate(prompts, asked, use_tqdm=False)
        theirs.append(sum(len(one.outputs[0].token_ids) for one in done))

    mine, its = benchmark.pedantic(
        lambda: in_turns(3, ours, others, clock=time.perf_counter), rounds=1
    )
    assert set(theirs) == {32 * NEW}
    rate, other = statistics.median(tokens) / mine, 32 * NEW / its
    print(
        f"\n{threads} threads: engine {rate:.0f} tokens/s, vLLM "
        f"{'eager' if eager else 'compiled'} {other:.0f}, ratio {rate / other:.2f}"
    )
    benchmark.extra_info |= {"tokens_per_s": rate, "vllm_tokens_per_s": other}
    assert rate / other > 0.5  # against breakage


@pytest.mark.skipif(not HALF, reason="this processor does not multiply bfloat16: no row by row")
@pytest.mark.timeout(600)
def test_first_pass_of_prompts(benchmark: Any, model: Any) -> None:
    """32 prompts of 100 to 300 tokens, fed row by row and as padded squares with a mask."""
    rng = np.random.default_rng(0)
    forward: Any = choose_forward(model, DTYPE, 512)
    assert forward._by_row
    pool = KvPool(forward.shape, 32, 2**30)
    pieces = []
    for n in rng.integers(100, 301, 32):
        row = pool.acquire(int(n) + 64)
        assert row is not None
        pieces.append(Piece(row.index, 0, rng.integers(4, model.config.vocab_size, n)))
    pieces.sort(key=lambda p: -len(p.ids))

    def feed(by_row: bool) -> None:
        forward._by_row = by_row
        with torch.inference_mode():
            for first in range(0, 32, 4):
                forward.feed(pool, pieces[first : first + 4])

    mine, padded = benchmark.pedantic(
        in_turns, args=(2, lambda: feed(True), lambda: feed(False)), rounds=1
    )
    tokens = sum(len(p.ids) for p in pieces)
    print(
        f"\nfirst pass of {tokens} tokens: {mine:.2f} s, padded {padded:.2f} s, ratio "
        f"{padded / mine:.2f}"
    )
    benchmark.extra_info |= {"ours_s": mine, "padded_s": padded, "ratio": padded / mine}
    assert padded / mine > 1.1
    assert is_large(model)
