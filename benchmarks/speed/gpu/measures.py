"""The parts of a check: each returns one table, in the order of what is learned from it."""

from __future__ import annotations

import asyncio
import importlib.util
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ....agents.engines.base import Completion, Request, Sampling
from ....agents.engines.local.engine import TransformersEngine
from ....agents.engines.sampling import drawn_side_by_side
from ....algos.core.forest import Forest
from ....algos.core.protocols import Credits
from ....algos.core.recipe import Recipe
from ....algos.learner.batching.rows import distinct_tokens, rows_of
from ....algos.learner.importance_weights import ALARM
from ....algos.learner.learner import Learner
from ....algos.learner.settings import LearnerSettings
from ....algos.recipes import make_recipe
from ....algos.runs.provenance import versions
from ....algos.training.config import Budget, EnvConfig, TrainConfig
from ....algos.training.trainer import Trainer
from .scale import Scale, Shape, tokenizer

OPTIONAL = ("peft", "liger_kernel", "vllm", "bitsandbytes", "flash_attn", "numba", "gguf")
DRAWN = 16
"""Tokens per request that are drawn on the CPU as well."""
BACKENDS = {-1: "none", 0: "math", 1: "flash", 2: "efficient", 3: "cudnn", 4: "other"}
WIDTHS = 64
"""Widths of the keys are rounded to a multiple of it, so that shapes come again."""


@dataclass(frozen=True)
class Table:
    """What a part found.

    Attributes:
        title: Above it.
        head: Names of the columns.
        rows: Their cells as text.
        failed: What is wrong, one sentence each; empty where nothing is.
        note: Below it.
        aims: (aim, what was measured, whether it was reached) of the aims that the part measures.
        curve: (minutes, value) by name of a line, where the part has a curve.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    failed: tuple[str, ...] = ()
    note: str = ""
    aims: tuple[tuple[str, str, bool], ...] = ()
    curve: tuple[tuple[str, tuple[tuple[float, float], ...]], ...] = ()


def timed(scale: Scale, work: Callable[[], Any]) -> float:
    """Return the seconds that ``work`` takes on the device."""
    scale.settle()
    began = time.perf_counter()
    work()
    scale.settle()
    return time.perf_counter() - began


def best(scale: Scale, work: Callable[[], Any]) -> float:
    """Return the shortest of some repetitions, in seconds."""
    return min(timed(scale, work) for _ in range(scale.repeats))


# ------------------------------------------------------------------ environment and kernels


def environment(scale: Scale) -> Table:
    """Return versions, the card, and what torch would choose."""
    found = versions([], 0)
    rows = [("date", found["started"]), ("commit", str(found["git_commit"]))]
    rows += [("python", found["python"]), ("platform", found["platform"])]
    rows += [(name, str(number)) for name, number in found["packages"].items()]
    there = [name for name in OPTIONAL if importlib.util.find_spec(name)]
    rows += [("optional packages", ", ".join(there) or "none")]
    rows += [("device", scale.card()), ("threads", str(found["torch_threads"]))]
    if scale.device == "cuda":
        free, total = torch.cuda.mem_get_info()
        rows += [
            ("memory", f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free"),
            ("CUDA, cuDNN", f"{torch.version.cuda}, {torch.backends.cudnn.version()}"),
            ("cuDNN attention", str(torch.backends.cuda.cudnn_sdp_enabled())),
        ]
    return Table("Environment", ("what", "found"), tuple(rows))


def kernels(scale: Scale) -> Table:
    """Time the decode step's attention while its keys grow by one."""
    shapes = {"0.5B": Shape(896, 1, 14, 2, 1), "7B": Shape(3584, 1, 28, 4, 1)}
    rows = []
    for name, shape in shapes.items():
        for cudnn in (True, False) if scale.device == "cuda" else (False,):
            before = torch.backends.cuda.cudnn_sdp_enabled()
            torch.backends.cuda.enable_cudnn_sdp(cudnn)
            try:
                rows += [
                    (name, "on" if cudnn else "off", how, *_decode_attention(scale, shape, grouped))
                    for how, grouped in (("grouped heads", True), ("queries as rows", False))
                ]
            finally:
                torch.backends.cuda.enable_cudnn_sdp(before)
    head = ("heads of", "cuDNN", "form", "kernel", "new length, ms", "again, ms")
    note = (
        "Grouped heads beside a mask, at a width that grows by one per token, is how the engine "
        "asked before; queries as rows, at widths rounded up, is how it asks now."
    )
    return Table("Attention of a decode step", head, tuple(rows), note=note)


def _decode_attention(scale: Scale, shape: Shape, grouped: bool) -> tuple[str, str, str]:
    width = shape.hidden // shape.heads
    count, longest = scale.rows, scale.prompt + 2 * WIDTHS
    about: dict[str, Any] = {"device": scale.device, "dtype": torch.bfloat16}
    pool = torch.randn(2, count, shape.key_heads, longest, width, **about)
    q = torch.randn(count, shape.heads, 1, width, **about)
    q = q if grouped else q.view(count, shape.key_heads, -1, width)
    fresh, again, chosen = [], [], "as on a CPU"
    for n in range(scale.prompt, scale.prompt + (4 if scale.toy else 16)):
        wide = n if grouped else -(-n // WIDTHS) * WIDTHS
        k, v = pool[0, :, :, :wide], pool[1, :, :, :wide]
        mask = (torch.arange(wide, device=scale.device) < n).expand(count, 1, 1, wide)
        ask: dict[str, Any] = {"attn_mask": mask, "enable_gqa": grouped}

        def run(k: Tensor = k, v: Tensor = v, ask: dict[str, Any] = ask) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, **ask)

        fresh.append(timed(scale, run))
        again.append(timed(scale, run))
        if scale.device == "cuda":
            chosen = BACKENDS.get(torch.ops.aten._fused_sdp_choice(q, k, v, **ask), "other")
    times = (f"{1e3 * float(np.median(values[2:])):.3f}" for values in (fresh, again))
    return chosen, *times  # pyright: ignore[reportReturnType]


# ------------------------------------------------------------------ correctness


def correctness(scale: Scale) -> Table:
    """Hold packs to rows, the device to the CPU, and the engine to the learner."""
    rows: list[tuple[str, ...]] = []
    failed: list[str] = []

    def judge(what: str, found: str, allowed: str, right: bool) -> None:
        rows.append((what, found, allowed, "yes" if right else "NO"))
        if not right:
            failed.append(f"{what}: {found}, allowed {allowed}.")

    forest, credits = scale.forest()
    tokens = sum(len(row.ids) for row in rows_of(forest))
    exact = _gradient(scale, forest, credits, False, "float32")
    half = _gradient(scale, forest, credits, False, "bfloat16")
    for precision in ("float32", "bfloat16"):
        packed = _gradient(scale, forest, credits, True, precision)
        off = float((packed - exact).norm() / exact.norm())
        apart = float((half - exact).norm() / exact.norm())
        allowed = 1e-3 if precision == "float32" else max(2 * apart, 1e-2)
        what = f"gradient of {scale.first}, packed in {precision} against rows in float32"
        judge(
            f"{what}, {tokens:,} tokens", f"{off:.1e} of its norm", f"{allowed:.1e}", off <= allowed
        )
    del exact, half
    why = _learner(scale, scale.first, torch.float32).models.unshared_because
    judge("prefixes are shared", why or "yes", "yes", why is None)
    asked = _requests(scale, min(8, scale.rows), min(DRAWN, scale.new), 0)
    net = scale.net(scale.first, torch.float32)
    here = _completions(_engine(scale, net.cpu(), "float32"), [[one] for one in asked])
    there = _completions(_engine(scale, net.to(scale.device), "float32"), [asked])
    turned = [_first_difference(a, b) for a, b in zip(here, there, strict=True)]
    wrong = sum(d is not None and not drawn_side_by_side(*d, scale.vocabulary) for d in turned)
    what = f"seeds on the CPU, one at a time, against {scale.device}, together: same actions"
    found = f"{turned.count(None)} of {len(here)}, {wrong} other than by a neighbouring token"
    judge(what, found, "rounding alone", wrong == 0)
    off = _engine_against_learner(scale)
    rows.append(("engine against learner, both bfloat16", f"{off:.4f} nats", "", ""))
    note = f"A run says so when engine and learner differ by more than {ALARM} nats in the mean."
    head = ("what", "found", "allowed", "holds")
    return Table("Correctness", head, tuple(rows), tuple(failed), note)


def _first_difference(a: Completion, b: Completion) -> tuple[int, int] | None:
    """Return the first two tokens that differ; None where none do.

    A number so close to the bound between two tokens that rounding decides draws either; each of
    151,936 equally likely ones is 6e-6 wide.
    """
    n = min(len(a.ids), len(b.ids))
    differs = np.flatnonzero(a.ids[:n] != b.ids[:n])
    return (int(a.ids[differs[0]]), int(b.ids[differs[0]])) if len(differs) else None


def _gradient(
    scale: Scale, forest: Forest, credits: Credits, shared: bool, precision: Any
) -> Tensor:
    """Return the gradient of all weights of an update, in one row on the CPU."""
    learner = _learner(scale, scale.first, torch.float32, shared_prefix=shared, precision=precision)
    found: list[Tensor] = []

    def keep(*_: Any) -> None:
        found.extend(p.grad.flatten().float().cpu() for p in learner.policy.parameters())

    learner.optimizer.register_step_pre_hook(keep)
    learner.update(forest, {}, credits)
    return torch.cat(found)


def _engine_against_learner(scale: Scale) -> float:
    """Return the mean difference in nats of sampled tokens' log-probabilities."""
    net = scale.net(scale.first)
    asked = _requests(scale, scale.rows, scale.new, 1)
    done = _completions(_engine(scale, net, "bfloat16"), [asked])
    off = []
    for one, completion in zip(asked, done, strict=True):
        ids = torch.from_numpy(np.concatenate([one.ids, completion.ids])).to(scale.device)
        with torch.no_grad():
            logits = net(input_ids=ids[None], use_cache=False).logits[0, len(one.ids) - 1 : -1]
        own = logits.float().log_softmax(-1).gather(1, ids[len(one.ids) :, None])[:, 0]
        off.append(np.abs(own.cpu().numpy() - completion.logprobs))
    return float(np.concatenate(off).mean())


# ------------------------------------------------------------------ the learner's speed


def updates(scale: Scale) -> Table:
    """Time updates: tokens per second, flops utilisation, peak memory, gain of shared prefixes."""
    forest, credits = scale.forest()
    cut = rows_of(forest)
    tokens, distinct = sum(len(row.ids) for row in cut), distinct_tokens(cut)
    rows, aims, peak = [], [], scale.peak_tflops()
    for size in scale.sizes:
        seconds = {}
        for shared in (False, True):
            scale.forget_peak()
            learner = _learner(scale, size, torch.bfloat16, shared_prefix=shared)
            weights = sum(p.numel() for p in learner.policy.parameters())
            first = timed(scale, lambda one=learner: one.update(forest, {}, credits))
            seconds[shared] = best(scale, lambda one=learner: one.update(forest, {}, credits))
            other = scale.forest(1)
            fresh = timed(scale, lambda one=learner, new=other: one.update(new[0], {}, new[1]))
            through = distinct if shared else tokens
            flops = 8e-12 * weights * through / seconds[shared]
            memory = scale.peak_gib()
            rows.append(
                (
                    size,
                    "distinct tokens" if shared else "rows",
                    f"{through:,}",
                    f"{seconds[shared]:.2f}",
                    f"{first:.1f}",
                    f"{fresh:.2f}",
                    f"{through / seconds[shared]:,.0f}",
                    "" if peak is None else f"{flops / peak:.0%} ({0.75 * flops / peak:.0%})",
                    "" if memory is None else f"{memory:.1f}",
                )
            )
            if size == "1.5B" and not shared and peak is not None:
                aim = "learner: at least 25 % of the card's flops at 1.5B"
                aims.append((aim, f"{flops / peak:.0%}", flops / peak >= 0.25))
            del learner
        gain = (seconds[False] / seconds[True] - 1) / (tokens / distinct - 1)
        said = f"{seconds[False] / seconds[True]:.2f} times, {gain:.0%} of the ideal gain"
        rows.append((size, "gain by sharing", "", said, "", "", "", "", ""))
        if size == scale.first and not scale.toy:
            aims.append(("shared prefixes: at least 80 % of the ideal gain", said, gain >= 0.8))
    head = ("model", "computes", "tokens", "seconds", "the first, s", "new shapes, s", "tokens/s")
    head += ("flops of peak, 8N (6N)", "peak GiB")
    note = "With recomputed layers and bfloat16 weights. 8N counts the recomputation, 6N does not."
    return Table("Updates", head, tuple(rows), note=note, aims=tuple(aims))


def _recipe() -> Recipe:
    """Return GRPO without a reference, one optimiser step an update, its gradient as it is."""
    recipe = make_recipe("grpo", {"loss.kl.coef": 0.0})
    optim = replace(recipe.optim, minibatches=1, epochs=1, grad_clip=1e9, warmup_steps=0)
    return replace(recipe, optim=optim)


def _learner(scale: Scale, size: str, dtype: torch.dtype, **how: Any) -> Learner:
    settings = {"precision": "bfloat16", "gradient_checkpointing": True, **how}
    return Learner(
        scale.net(size, dtype), _recipe(), pad_id=0, settings=LearnerSettings(**settings)
    )


# ------------------------------------------------------------------ the engine's speed


def generation(scale: Scale) -> Table:
    """Time the transformers engine: tokens per second with and without a shared prompt."""
    rows, aims = [], []
    for size in scale.sizes:
        scale.forget_peak()
        engine = _engine(scale, scale.net(size), "bfloat16")
        _tokens_per_s(scale, engine, 4, 0)  # kernels are chosen, loops compiled
        plain = max(_tokens_per_s(scale, engine, scale.new, s) for s in range(scale.repeats))
        near = scale.prompt - 4 if scale.toy else scale.prompt - 32
        shared = max(_tokens_per_s(scale, engine, scale.new, 9, near) for _ in range(scale.repeats))
        launches = _launches(scale, engine) if size == scale.first else ""
        memory = scale.peak_gib()
        how = _how(engine._forward)
        row = size, how, f"{plain:,.0f}", f"{shared:,.0f}", launches
        rows.append((*row, "" if memory is None else f"{memory:.1f}"))
        if size == "0.5B" and not scale.toy:
            aim = "engine: at least 15,000 tokens/s at 0.5B and 128 rows"
            aims.append((aim, f"{plain:,.0f}", plain >= 15_000))
        del engine
    head = ("model", "layers by", "tokens/s", "with a shared prompt", "launches per token step")
    note = f"{scale.rows} prompts of {scale.prompt} tokens, {scale.new} new ones each, all counted."
    return Table("Engine", (*head, "peak GiB"), tuple(rows), note=note, aims=tuple(aims))


def _engine(scale: Scale, net: Any, dtype: str) -> TransformersEngine:
    return TransformersEngine(
        net, tokenizer(), max_batch=scale.rows, dtype=dtype, max_context=4 * scale.prompt
    )


def _how(forward: Any) -> str:
    """Return what a token step runs through, and how much of it is captured."""
    found = [type(forward).__name__]
    if getattr(forward, "_kernel", None) is not None:
        found.append("pages")
    if (graphs := getattr(forward, "_graphs", None)) is not None:
        found.append(f"not captured: {graphs.off}" if graphs.off else f"{graphs.captured} graphs")
    return ", ".join(found)


def _requests(scale: Scale, count: int, new: int, seed: int, shared: int = 0) -> list[Request]:
    rng = np.random.default_rng(seed)
    front = rng.integers(300, scale.vocabulary, shared)
    return [
        Request(
            ids=np.concatenate([front, rng.integers(300, scale.vocabulary, scale.prompt - shared)]),
            sampling=Sampling(max_tokens=new),
            seed=i,
        )
        for i in range(count)
    ]


def _completions(
    engine: TransformersEngine, batches: Sequence[Sequence[Request]]
) -> list[Completion]:
    """Return what the engine makes of requests, a batch at a time."""

    async def work(batch: Sequence[Request]) -> list[Completion]:
        done = await asyncio.gather(*(engine.generate(one) for one in batch))
        for one in done:
            engine.release(one.cache)
        return list(done)

    return [one for batch in batches for one in asyncio.run(work(batch))]


def _tokens_per_s(
    scale: Scale, engine: TransformersEngine, new: int, seed: int, shared: int = 0
) -> float:
    asked = _requests(scale, scale.rows, new, 100 + seed, shared)
    began = time.perf_counter()
    done = _completions(engine, [asked])
    return sum(len(one.ids) for one in done) / (time.perf_counter() - began)


def _launches(scale: Scale, engine: TransformersEngine) -> str:
    """Return how many kernels one token step launches."""
    if scale.device != "cuda":
        return ""
    from torch.profiler import ProfilerActivity, profile

    steps = 16
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        _tokens_per_s(scale, engine, steps, 77)
    return f"{sum(e.count for e in found.key_averages() if 'aunchKernel' in e.key) // steps:,}"


def hand_over(scale: Scale) -> Table:
    """Time how the learner's weights reach the engine."""
    rows = []
    for size in scale.sizes:
        net = scale.net(size, torch.float32)
        engine = _engine(scale, net, "bfloat16")
        engine.sync(net)
        scale.forget_peak()
        held = torch.cuda.memory_allocated() / 2**30 if scale.device == "cuda" else 0.0
        seconds = best(scale, lambda one=engine, new=net: one.sync(new))
        peak = scale.peak_gib()
        rows.append((size, f"{seconds:.3f}", "" if peak is None else f"{peak - held:.1f}"))
        del engine, net
    head = ("model", "seconds", "GiB on top meanwhile")
    return Table("Weights to the engine", head, tuple(rows))


# ------------------------------------------------------------------ whole steps


def steps(scale: Scale) -> Table:
    """Time the parts of training steps, playing in turn and one step ahead."""
    parts = ("rollout", "wait", "credit", "update", "sync", "step")
    rows, whole = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = scale.folder(scale.first, Path(scratch) / "model")
        for lag in (None, 1):
            config = _training(scale, folder, lag)
            with Trainer(config, Path(scratch) / f"run-{lag}") as trainer:
                made = [trainer.train_step() for _ in range(scale.steps)][1:]
            mean = {p: float(np.mean([row[f"time/{p}_s"] for row in made])) for p in parts}
            whole[lag] = mean
            how = "in turn" if lag is None else "one step ahead"
            rows.append((how, *(f"{mean[p]:.2f}" for p in parts)))
    hidden = (whole[None]["step"] - whole[1]["step"]) / min(
        whole[None]["rollout"], max(whole[None]["update"], 1e-9)
    )
    note = (
        f"Overlap: {hidden:.0%} of the shorter of playing and updating is hidden by playing ahead. "
        "Random weights play to the longest action, so steps are longer than a trained model's."
    )
    return Table("A training step, seconds", ("playing", *parts), tuple(rows), note=note)


def _training(scale: Scale, folder: str, max_lag: int | None) -> TrainConfig:
    small = (
        {"groups_per_step": 2, "rollout.n": 2}
        if scale.toy
        else {"groups_per_step": 16, "rollout.n": 8}
    )
    form = "auto" if scale.toy else "bfloat16"  # processors without it take minutes
    return TrainConfig(
        env=EnvConfig(id="SearchQA-v0", settings={"size": "micro", "prompt": "none"}),
        model=folder,
        recipe=make_recipe("grpo", small),
        budget=Budget(steps=scale.steps),
        max_tokens=8 if scale.toy else 128,
        max_batch=scale.rows,
        engine_dtype=form,
        device=scale.device,
        checkpoint_every=10**6,
        records="metrics",
        max_lag=max_lag,
        learner=LearnerSettings(precision=form, gradient_checkpointing=True),
    )
