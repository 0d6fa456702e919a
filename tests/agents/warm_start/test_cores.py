"""Passes side by side: the same bits as one after another, and only where torch leaves cores."""

from __future__ import annotations

import copy
import threading
import time
from contextlib import suppress
from typing import Any

import gymnasium as gym
import pytest
import torch
from helpers.small_models import model as small_model

from turngym.agents.models import size
from turngym.agents.warm_start import cores, imitation
from turngym.agents.warm_start.build import build
from turngym.agents.warm_start.cores import Ahead, SideBySide, passes_at_once
from turngym.agents.warm_start.demonstrations import Demonstration, Demonstrator
from turngym.agents.warm_start.imitation import ImitationTrainer
from turngym.agents.warm_start.settings import StarterSettings

CPU = torch.device("cpu")


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine of four cores on which torch computes with one thread."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(cores, "count_cores", lambda: 4)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    return monkeypatch


def test_as_many_passes_as_cores_that_torch_leaves(four_cores: pytest.MonkeyPatch) -> None:
    assert passes_at_once(CPU) == 4
    assert passes_at_once(torch.device("cuda")) == 1
    four_cores.setenv("OMP_NUM_THREADS", "1")
    assert passes_at_once(CPU) == 1
    four_cores.delenv("OMP_NUM_THREADS")
    four_cores.setattr(torch, "get_num_threads", lambda: 2)
    assert passes_at_once(CPU) == 1


def test_a_large_model_takes_one_pass_at_a_time(four_cores: pytest.MonkeyPatch) -> None:
    made = {"lr": 1e-3, "warmup_steps": 1, "pad_id": 0}
    net = small_model("Qwen2")
    assert ImitationTrainer(net, **made).passes_at_once == 4
    four_cores.setattr(size, "LARGE", 10)
    assert ImitationTrainer(net, **made).passes_at_once == 1


def test_a_model_that_draws_random_numbers_takes_one_pass_at_a_time(
    four_cores: pytest.MonkeyPatch,
) -> None:
    """Which of several threads draws first nobody knows."""
    blank = small_model("GPT2")
    rows = [Demonstration([5 + j for j in range(n)], [j > 3 for j in range(n)]) for n in (30, 40)]
    four_cores.setattr(imitation, "chunk_tokens", lambda _: 40)
    found = []
    for at_once in (1, 4):
        four_cores.setattr(cores, "count_cores", lambda n=at_once: n)
        net = copy.deepcopy(blank)
        trainer = ImitationTrainer(net, lr=1e-2, warmup_steps=1, pad_id=0)
        assert trainer.passes_at_once == 1
        with torch.random.fork_rng():
            torch.manual_seed(0)
            found.append([trainer.step(rows) for _ in range(3)])
    assert found[0] == found[1]


@pytest.mark.parametrize("frozen", [False, True])
def test_several_passes_at_a_time_learn_the_same_bits(
    four_cores: pytest.MonkeyPatch, frozen: bool
) -> None:
    blank = small_model("Qwen2", max_position_embeddings=1024)
    if frozen:
        blank.get_input_embeddings().weight.requires_grad_(False)
    lengths = [30, 200, 300, 90, 310, 40, 260, 250, 20]  # two kernels of attention
    shown = [
        Demonstration([(7 * i + j) % 200 + 5 for j in range(n)], [j % 3 == 1 for j in range(n)])
        for i, n in enumerate(lengths)
    ]
    four_cores.setattr(imitation, "chunk_tokens", lambda _: 320)
    found = []
    for at_once in (1, 4):
        four_cores.setattr(cores, "count_cores", lambda n=at_once: n)
        net = copy.deepcopy(blank)
        trainer = ImitationTrainer(net, lr=1e-2, warmup_steps=1, pad_id=0)
        assert trainer.passes_at_once == at_once
        losses = [trainer.step(shown) for _ in range(4)]
        assert losses[-1] < losses[0]
        found.append((losses, trainer.score(shown), net.state_dict()))
    assert found[0][:2] == found[1][:2]
    for name, weight in found[0][2].items():
        assert torch.equal(weight, found[1][2][name]), name


def test_passes_run_in_threads_and_come_in_order() -> None:
    both = threading.Barrier(2, timeout=30)  # one thread alone would wait for ever

    def call(i: int) -> int:
        both.wait()
        return i

    assert list(SideBySide(2).map(call, range(6))) == list(range(6))
    here = threading.get_ident()
    assert list(SideBySide(1).map(lambda _: threading.get_ident(), range(2))) == [here, here]


@pytest.mark.parametrize("ahead", [False, True])
def test_items_made_ahead_are_the_same_and_no_more(ahead: bool) -> None:
    made: list[int] = []

    def make() -> int:
        if len(made) == 3:
            raise ValueError("no fourth")
        made.append(len(made))
        return made[-1]

    with Ahead(make, ahead=ahead) as source:
        assert [source.take(), source.take(), source.take(last=True)] == [0, 1, 2]
        with pytest.raises(ValueError, match="no fourth"):
            source.take()


def test_a_starter_has_the_same_bits_with_several_passes_at_a_time(
    four_cores: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    settings = StarterSettings(
        hidden=16, heads=2, inner=16, layers=1, vocab_size=300, texts=40, batch=40, read_steps=3,
        read_least=0.0, held_out=8, err_steps=2,
    )  # fmt: skip
    files = []
    for at_once in (1, 3):
        four_cores.setattr(cores, "count_cores", lambda n=at_once: n)
        folder = tmp_path / str(at_once)
        env = gym.make("SearchQA-v0", size="micro", hops=2).unwrapped
        build(folder, env, settings, lambda _: None)  # pyright: ignore[reportArgumentType]
        files.append((folder / "model.safetensors").read_bytes())
    assert files[0] == files[1]


def test_a_stage_that_ends_early_leaves_the_environment_to_the_next(
    four_cores: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """The batch that was begun for a step that never comes plays in the same environment."""
    settings = StarterSettings(
        hidden=16, heads=2, inner=16, layers=1, vocab_size=300, texts=40, batch=4, read_steps=3,
        read_least=0.0, read_until=0.0, read_until_sampled=0.0, held_out=8, err_steps=2,
    )  # fmt: skip
    calls, overlapped, third = [], [], threading.Event()
    make = Demonstrator.demonstrations

    def slowly(self: Demonstrator, n: int, renderer: Any) -> list[Demonstration]:
        if n == settings.batch:
            calls.append(n)
        if len(calls) == 2:  # the one that nobody takes
            overlapped.append(third.wait(2.0))
        elif len(calls) == 3:
            third.set()
        return make(self, n, renderer)

    four_cores.setattr(Demonstrator, "demonstrations", slowly)
    env = gym.make("SearchQA-v0", size="micro", hops=2).unwrapped
    report = build(tmp_path / "starter", env, settings, lambda _: None)  # pyright: ignore[reportArgumentType]
    assert report["reading"]["steps"] == 1
    assert overlapped == [False]


def test_nothing_is_made_any_more_when_the_block_ends() -> None:
    begun, made = threading.Semaphore(0), []

    def make() -> int:
        begun.release()
        time.sleep(0.2)
        made.append(0)
        return 0

    with Ahead(make, ahead=True) as items:
        items.take()
        assert all(begun.acquire(timeout=30) for _ in range(2))
    assert len(made) == 2


def test_ctrl_c_does_not_wait_for_what_is_made_ahead() -> None:
    """A batch of a slow environment takes minutes, and one that hangs never ends."""
    never, begun, made = threading.Event(), threading.Semaphore(0), []

    def make() -> int:
        begun.release()
        if made:
            never.wait(5)
        made.append(0)
        return 0

    with suppress(KeyboardInterrupt), Ahead(make, ahead=True) as items:
        items.take()
        assert all(begun.acquire(timeout=30) for _ in range(2))
        raise KeyboardInterrupt
    assert len(made) == 1
    never.set()
