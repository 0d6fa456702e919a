"""The blank model: its words, its near-uniform policy, and that it is cached as a starter."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from turngym.agents.models.loading import load_model, load_tokenizer
from turngym.agents.models.random_init import UNKNOWN, BlankSettings, blank_model, env_texts
from turngym.agents.rendering.factory import PlainRenderer
from turngym.agents.warm_start.cache import ensure_starter
from turngym.agents.warm_start.settings import StarterSettings
from turngym.envs import all_ids, find_environment
from turngym.envs.core.errors import BadValueError

DIAGNOSTIC = tuple(
    i for i in all_ids(hidden=True) if i not in all_ids() and find_environment(i).builtin
)


def test_no_bar_of_another_library_is_drawn(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`turngym probe` began with "Writing model shards: 0%" on its first use."""
    from transformers.utils import logging

    before = logging.is_progress_bar_enabled()
    logging.enable_progress_bar()
    try:
        blank_model(gym.make("Recall-v0"), tmp_path)
        assert logging.is_progress_bar_enabled()
    finally:
        (logging.enable_progress_bar if before else logging.disable_progress_bar)()
    assert "it/s" not in capfd.readouterr().err


@pytest.mark.parametrize("env_id", DIAGNOSTIC)
def test_a_diagnostic_world_is_made_of_few_words(env_id: str, tmp_path: Path) -> None:
    env = gym.make(env_id)
    report = blank_model(env, tmp_path)
    assert report["vocabulary"] <= 24
    tokenizer = load_tokenizer(tmp_path)
    renderer = PlainRenderer(tokenizer)
    unknown = tokenizer.convert_tokens_to_ids(UNKNOWN)
    for text in env_texts(env, 5, seed=99):
        ids = renderer.observe(text)
        assert unknown not in ids
        assert renderer.text(ids) == text
    world: Any = env.unwrapped
    assert all(len(renderer.observe(letter)) == 1 for letter in world.letters)


@pytest.mark.parametrize("env_id", DIAGNOSTIC)
def test_it_acts_as_if_it_threw_dice(env_id: str, tmp_path: Path) -> None:
    env = gym.make(env_id)
    blank_model(env, tmp_path)
    tokenizer, model = load_tokenizer(tmp_path), load_model(tmp_path, device="cpu")
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        with torch.no_grad():
            ids = torch.tensor([PlainRenderer(tokenizer).open("", observation)])
            chances = model(ids).logits[0, -1].softmax(-1)
        assert chances.min() > 0.3 / len(tokenizer)
        world: Any = env.unwrapped
        letters = chances[[tokenizer.encode(letter)[0] for letter in world.letters]]
        assert letters.max() < 5 * letters.min()


def test_any_other_world_gets_bytes(tmp_path: Path) -> None:
    env = gym.make("SearchQA-v0", size="micro")
    report = blank_model(env, tmp_path, BlankSettings(episodes=4, vocab_size=420))
    assert 260 < report["vocabulary"] <= 420
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    text = "Zoë asks <search> 漢字 </search>"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config.max_position_embeddings == 8192


def test_words_on_request_leave_others_unknown(tmp_path: Path) -> None:
    blank_model(
        gym.make("SearchQA-v0", size="micro"),
        tmp_path,
        BlankSettings(episodes=2, vocabulary="words"),
    )
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.tokenize("Question qwertz?") == ["Question", " ", UNKNOWN, "?"]


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    env = gym.make("Bandit-v0")
    before = torch.get_rng_state()
    made = Counter[float]()
    for i, seed in enumerate((0, 0, 1)):
        blank_model(env, tmp_path / str(i), BlankSettings(seed=seed, episodes=3))
        made[load_model(tmp_path / str(i)).get_input_embeddings().weight.sum().item()] += 1
    assert sorted(made.values()) == [1, 2]
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("setting", [{"layers": 0}, {"episodes": 0}, {"hidden": 30, "heads": 4}])
def test_settings_are_checked(setting: Any) -> None:
    with pytest.raises(BadValueError, match=next(iter(setting))):
        BlankSettings(**setting)


def test_it_is_the_starter_of_diagnostic_worlds(tmp_path: Path) -> None:
    told: list[Any] = []
    folder = ensure_starter("Bandit-v0", cache_dir=tmp_path, on_progress=told.append)
    assert told == []
    assert load_model(folder).config.hidden_size == BlankSettings().hidden
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert ensure_starter("Bandit-v0", cache_dir=tmp_path) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp
    other = ensure_starter("Bandit-v0", settings=BlankSettings(seed=1), cache_dir=tmp_path)
    assert other != folder
    (folder / "model.safetensors").write_bytes(b"cut off")
    assert ensure_starter("Bandit-v0", cache_dir=tmp_path) == folder
    assert load_model(folder)


def test_a_diagnostic_world_can_be_imitated_when_asked(tmp_path: Path) -> None:
    quick = StarterSettings(
        hidden=16, heads=2, inner=16, layers=1, vocab_size=400, texts=20, batch=2, held_out=4,
        read_steps=2, read_least=0.0, err_steps=1, context=64,
    )  # fmt: skip
    stages: set[str] = set()
    ensure_starter(
        "Recall-v0", settings=quick, cache_dir=tmp_path, on_progress=lambda p: stages.add(p.stage)
    )
    assert stages == {"words", "reading", "erring"}
