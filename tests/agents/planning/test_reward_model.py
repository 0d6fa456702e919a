"""The reward model: reading, loss, padding, training, folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.small_models import CHATML, byte_level, model
from safetensors import SafetensorError

from turngym.agents.planning.pair_scores import evaluate_pairs, pair_scores
from turngym.agents.planning.records import Pair
from turngym.agents.planning.reward_model import Reader, RewardModel, open_reward_model
from turngym.agents.planning.settings import ARMAP_LORA, PRESETS, ReadingSettings, RewardTraining
from turngym.agents.planning.trajectory import Move, Trajectory
from turngym.agents.warm_start.imitation import in_chunks
from turngym.algos.training.supervised.reward_model import pair_loss, train_reward_model
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError

TOKENIZER = byte_level()
READING = ReadingSettings(request="?", stub=" ok", max_tokens=128)


def story(action: str, turns: int = 1, about: str = "red") -> Trajectory:
    return Trajectory(f"the {about} lamp", tuple(Move(action, f" {i}") for i in range(turns)))


def pairs(n: int, good: str = "answer", bad: str = "search") -> list[Pair]:
    rng = np.random.default_rng(3)
    return [
        Pair(
            str(i),
            story(good, int(rng.integers(1, 4)), f"lamp {i % 7}"),
            story(bad, int(rng.integers(1, 4)), f"lamp {i % 7}"),
        )
        for i in range(n)
    ]


def fresh(family: str = "Qwen3", **more: Any) -> RewardModel:
    kwargs = {"head_dim": 8} if family == "Qwen3" else {}
    reading = more.pop("reading", READING)
    return RewardModel(model(family, **kwargs), TOKENIZER, reading, **more)


@pytest.mark.parametrize(
    ("better", "worse", "ranking", "total", "p"),
    [
        (2.0, 0.5, 0.201413, 0.203913, 0.817574),
        (0.3, 0.4, 0.744397, 0.745097, 0.475021),
        (5.0, -1.0, 0.002476, 0.006476, 0.997527),
    ],
)
def test_example_12(better: float, worse: float, ranking: float, total: float, p: float) -> None:
    plus, minus = torch.tensor([better]).double(), torch.tensor([worse]).double()
    loss = pair_loss(plus, minus)
    assert float(loss.ranking) == pytest.approx(ranking, abs=1e-6)
    assert float(loss.total()) == pytest.approx(total, abs=1e-6)
    scores = pair_scores([better], [worse])
    assert scores.loss == pytest.approx(ranking, abs=1e-6)
    assert scores.brier == pytest.approx((1 - p) ** 2, abs=1e-6)
    assert scores.accuracy == float(better > worse)


def test_the_centring_term_is_the_mean_of_the_batch() -> None:
    plus, minus = torch.tensor([2.0, -3.0]), torch.tensor([1.0, -1.0])
    assert float(pair_loss(plus, minus).centring) == pytest.approx(0.5)


def test_reading() -> None:
    reader = Reader(TOKENIZER, READING, None)
    ids = reader.ids(story("answer", 2))
    assert TOKENIZER.decode(ids) == "the red lampanswer 0answer 1? ok"
    blind = ReadingSettings(request="?", stub=" ok", max_tokens=128, closing=False)
    ids = Reader(TOKENIZER, blind, None).ids(story("answer", 2))
    assert TOKENIZER.decode(ids) == "the red lampanswer 0answer? ok"
    long = Trajectory("the red lamp", tuple(Move("search", " again and again") for _ in range(30)))
    cut = Reader(TOKENIZER, ReadingSettings(request="?", stub=" ok", max_tokens=40), None).ids(long)
    assert len(cut) == 40
    assert TOKENIZER.decode(cut).startswith("the red lamp")
    assert TOKENIZER.decode(cut).endswith("again? ok")
    assert len(Reader(TOKENIZER, READING, 24).ids(long)) == 24
    chat = byte_level(CHATML)
    shown = chat.decode(Reader(chat, READING, None).ids(story("answer")))
    assert shown.count("<|im_start|>user") == 2
    assert shown.endswith("assistant\n ok")


@pytest.mark.parametrize("family", ["Qwen2", "Qwen3", "Llama", "GPT2"])
def test_padding_changes_nothing(family: str) -> None:
    told = [story("answer", turns) for turns in (3, 1, 2, 1)]
    right = ReadingSettings(request="?", stub=" ok", max_tokens=128, padding="right")
    left_model, right_model = fresh(family), fresh(family, reading=right)
    alone = [left_model.score([one])[0] for one in told]
    assert len(set(alone)) == 3
    assert left_model.score(told) == pytest.approx(alone, abs=1e-5)
    assert right_model.score(told) == pytest.approx(alone, abs=1e-5)
    assert left_model.score([]) == []


@pytest.mark.parametrize("padding", ["right", "left"])
def test_large_models_score_in_bfloat16_and_learn_in_float32(
    padding: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = replace(READING, padding=padding)
    plain = fresh("Llama", reading=reading)
    monkeypatch.setattr("turngym.agents.planning.reward_model.is_large", lambda _: True)
    monkeypatch.setattr("turngym.agents.planning.reward_model.has_bfloat16", lambda _: True)
    half = fresh("Llama", reading=reading)
    products: set[torch.dtype] = set()
    for layer in half.model.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_hook(lambda *given: products.add(given[2].dtype))
    stories = [story("answer"), story("a longer answer", 3), story("b", 12)]
    found = half.score(stories)
    assert products == {torch.bfloat16}
    wanted = plain.score(stories)
    assert found == pytest.approx(wanted, abs=0.02)
    assert found != wanted
    products.clear()
    half.rewards([[1, 2, 3], [4, 5]]).sum().backward()
    assert products == {torch.float32}


def test_the_last_position_is_read() -> None:
    made = fresh()
    ids = torch.tensor([made.reader.ids(story("answer"))])
    hidden = made.model(ids, output_hidden_states=True).hidden_states[-1][0, -1]
    want = (hidden @ made.head.weight[0] + made.head.bias[0]).item()
    assert made.score([story("answer")])[0] == pytest.approx(want, abs=1e-5)
    assert made.head.bias.item() == 0.0


def test_chunks() -> None:
    found = list(in_chunks([5, 1, 9, 2], tokens=10))
    assert found == [[1, 3], [0], [2]]


@pytest.mark.parametrize("lora", [None, replace(ARMAP_LORA, rank=4, alpha=8.0)])
def test_it_learns_and_comes_back(tmp_path: Path, lora: Any) -> None:
    made = fresh()
    before = {name: p.clone() for name, p in made.model.state_dict().items()}
    how = RewardTraining(lr=3e-3, epochs=3, batch=8, max_norm=1.0, lora=lora)
    lessons: list[Any] = []
    told = train_reward_model(made, pairs(48), how, lessons.append)
    assert told["steps"] == len(lessons) == 18
    assert told["loss"] < lessons[0].loss / 2
    held = pairs(20)
    scores = evaluate_pairs(made, held)
    assert scores.accuracy == 1.0
    changed = [n for n, p in made.model.state_dict().items() if not torch.equal(p, before[n])]
    assert changed
    assert set(made.model.state_dict()) == set(before)
    assert not any("norm" in name for name in changed) or lora is None
    made.save(tmp_path / "rm", told)
    again = open_reward_model(tmp_path / "rm", device="cpu")
    shown = [pair.better for pair in held]
    assert again.score(shown) == pytest.approx(made.score(shown), abs=1e-6)
    assert again.settings == READING
    kept = json.loads((tmp_path / "rm" / "reward.json").read_text())
    assert kept["training"]["steps"] == 18


def test_a_full_disk_is_told_and_leaves_no_part_of_a_reward_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It raised an error of safetensors, and left a folder that the next call refused."""

    def full(*_: Any, **__: Any) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("turngym.agents.planning.reward_model.save_file", full)
    with pytest.raises(DataError, match="the disk is full"):
        fresh().save(tmp_path / "rm")
    assert not list(tmp_path.iterdir())


def test_training_is_reproducible() -> None:
    found = []
    for _ in range(2):
        made = fresh()
        train_reward_model(made, pairs(8), RewardTraining(epochs=1, batch=4))
        found.append(made.score([story("search")])[0])
    assert found[0] == found[1]
    assert fresh(seed=1).score([story("search")]) != fresh(seed=2).score([story("search")])


@pytest.mark.parametrize(("family", "lora"), [("GPT2", None), ("Qwen3", ARMAP_LORA)])
def test_dropout_is_drawn_from_the_seed(family: str, lora: Any) -> None:
    """It came from the caller's generator: one seed gave other weights, and moved the caller's."""
    found = []
    for theirs in (1, 2):
        made = fresh(family)
        how = RewardTraining(epochs=2, batch=4, lora=lora, lora_dropout=0.2 if lora else 0.0)
        torch.manual_seed(theirs)
        before = torch.get_rng_state()
        train_reward_model(made, pairs(8), how)
        assert torch.equal(torch.get_rng_state(), before)
        found.append(made.score([story("search")])[0])
    assert found[0] == found[1]


def test_one_step_is_the_gradient_of_the_loss() -> None:
    """Parts of a step add up to the whole, whatever their sizes."""
    from turngym.algos.training.supervised.reward_model import accumulate_gradients

    made, shown = fresh(), pairs(6)
    rows = [(made.reader.ids(p.better), made.reader.ids(p.worse)) for p in shown]
    accumulate_gradients(made, rows, 0.0)
    parts = [p.grad.clone() for p in made.head.parameters() if p.grad is not None]
    made.head.zero_grad()
    values = torch.stack([made.rewards([row])[0] for pair in rows for row in pair]).view(-1, 2)
    pair_loss(values[:, 0], values[:, 1]).total(0.0).backward()
    for part, p in zip(parts, made.head.parameters(), strict=True):
        torch.testing.assert_close(part, p.grad, atol=1e-5, rtol=1e-4)


def test_calibration() -> None:
    scores = pair_scores([1.0, 0.0, 2.0, 1.0], [0.0, 0.0, -1.0, 3.0])
    assert scores.accuracy == 0.625
    assert scores.n == 4
    assert scores.centre == pytest.approx(1.5)
    assert sum(b.n for b in scores.bins) == 8
    sure = pair_scores([50.0] * 5, [-50.0] * 5)
    assert sure.ece == pytest.approx(0.0)
    assert pair_scores([50.0, -50.0], [-50.0, 50.0]).ece == pytest.approx(0.5)
    for bad in (([], []), ([1.0], [])):
        with pytest.raises(BadValueError, match="expected as many"):
            pair_scores(*bad)


def test_presets_are_the_papers() -> None:
    found = {name: (t.lr, t.epochs, t.batch, most) for name, (t, most) in PRESETS.items()}
    assert found["webshop"] == (2e-5, 3, 4, 8192)
    assert found["scienceworld"] == (1e-5, 10, 128, 4096)
    assert found["game24"] == (1e-5, 10, 64, 4000)
    assert found["alfworld"] == (1e-5, 10, 8, 4096)
    how = PRESETS["webshop"][0]
    assert how.lora is not None
    assert (how.lora.rank, how.lora.alpha, how.lora_dropout) == (64, 16.0, 0.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RewardTraining(epochs=0), "epochs is 0"),
        (lambda: RewardTraining(lr=0.0), "lr is 0"),
        (lambda: RewardTraining(warmup=2.0), "warmup is 2.0; expected a number from 0 to 1"),
        (lambda: RewardTraining(centring=-1.0), "centring is -1"),
        (lambda: replace(ARMAP_LORA, rank=0), "rank is 0"),
        (lambda: RewardTraining(lora_dropout=1.0), "dropout is 1"),
        (lambda: ReadingSettings(stub=" "), "stub is blank"),
        (lambda: ReadingSettings(max_tokens=3), "max_tokens is 3"),
        (lambda: train_reward_model(fresh(), [], RewardTraining()), "got no pairs"),
    ],
)
def test_bad_settings(make: Any, message: str) -> None:
    with pytest.raises(BadValueError, match=message):
        make()


def test_bad_folders(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(UnknownNameError, match="padding"):
        ReadingSettings(padding="middle")  # type: ignore[arg-type]
    with pytest.raises(BadValueError, match="no reward model"):
        open_reward_model(tiny_model)
    fresh().save(tmp_path)
    (tmp_path / "reward_head.safetensors").write_bytes(b"x")
    with pytest.raises(DataError, match="not the head"):
        open_reward_model(tmp_path, device="cpu")
    (tmp_path / "reward.json").write_text("{}")
    with pytest.raises(DataError, match="not the settings of a reward model"):
        open_reward_model(tmp_path)
