"""Speed of making the laptop model: steps of its imitation, one pass at a time and a core each."""

from __future__ import annotations

import copy
import time
from statistics import median
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from turngym.agents.models.random_init import blank_decoder  # noqa: E402
from turngym.agents.models.tokenizer import train_tokenizer  # noqa: E402
from turngym.agents.rendering.factory import PlainRenderer  # noqa: E402
from turngym.agents.warm_start.cores import Ahead, SideBySide  # noqa: E402
from turngym.agents.warm_start.demonstrations import Demonstrator  # noqa: E402
from turngym.agents.warm_start.imitation import ImitationTrainer  # noqa: E402
from turngym.agents.warm_start.settings import starter_settings  # noqa: E402
from turngym.envs.search_qa.env import SearchQA  # noqa: E402
from turngym.envs.utils.system import count_cores  # noqa: E402

PAIRS, STEPS = 7, 6


def test_imitation_update(benchmark: BenchmarkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of the demo's starter on every core against one core, in turns, by the clock.

    Both learn the same bits; batches are made meanwhile where there are several cores.
    """
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    settings = starter_settings("SearchQA-v0")
    env = SearchQA(size="micro", hops=2)
    reader = Demonstrator(env, "train", 0)
    texts = reader.written(reader.take(1000))
    tokenizer = train_tokenizer(texts, vocab_size=settings.vocab_size, max_length=settings.context)
    blank, renderer = blank_decoder(tokenizer, settings), PlainRenderer(tokenizer)
    forms = {"one": 1, "every core": count_cores()}
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    losses: dict[str, list[float]] = {}

    def take(name: str) -> None:
        trainer: Any = ImitationTrainer(
            copy.deepcopy(blank), lr=settings.lr, warmup_steps=50, pad_id=renderer.pad_id
        )
        trainer._passes = SideBySide(forms[name])
        trainer.passes_at_once = forms[name]
        source = Demonstrator(env, "train", 1)
        batches = Ahead(
            lambda: source.demonstrations(settings.batch, renderer), ahead=forms[name] > 1
        )
        began = time.perf_counter()
        losses[name] = [trainer.step(batches.take(last=i == STEPS)) for i in range(1, STEPS + 1)]
        seconds[name].append((time.perf_counter() - began) / STEPS)

    def measure() -> None:
        for pair in range(PAIRS):
            for name in list(forms)[:: 1 if pair % 2 else -1]:
                take(name)

    benchmark.pedantic(measure, rounds=1)
    torch.set_num_threads(before)
    assert losses["one"] == losses["every core"]
    ratio = median(a / b for a, b in zip(*seconds.values(), strict=True))
    each = {name: median(found) for name, found in seconds.items()}
    benchmark.extra_info |= {"seconds_a_step": each, "times_as_fast": ratio}
    print(f"\n{each}, {ratio:.2f} times as fast on {count_cores()} cores")
