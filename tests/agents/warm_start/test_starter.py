"""The laptop model: what it is taught, how it is cached; the slow test teaches a real one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from helpers.guess_worlds import Guess
from transformers import AutoModelForCausalLM, AutoTokenizer

import turngym.envs  # noqa: F401 - registers
from turngym.agents.models.random_init import blank_decoder
from turngym.agents.models.tokenizer import train_tokenizer
from turngym.agents.rendering.factory import PlainRenderer
from turngym.agents.warm_start.cache import MANIFEST, ensure_starter
from turngym.agents.warm_start.demonstrations import Demonstrator
from turngym.agents.warm_start.imitation import ImitationTrainer
from turngym.agents.warm_start.settings import StarterProgress, StarterSettings, starter_settings
from turngym.envs.core import registration
from turngym.envs.core.env import TextEnv
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.core.registration import EnvironmentSpec, WarmStart, register_environment

QUICK = StarterSettings(
    hidden=32, heads=2, inner=48, layers=2, vocab_size=400, texts=40, batch=4, held_out=6,
    read_steps=3, read_least=0.0, err_steps=2, context=256,
)  # fmt: skip


def world(**settings: Any) -> Any:
    return gym.make("SearchQA-v0", size="micro", **settings).unwrapped


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer(
        Demonstrator(world(), "train", 0).texts(300), vocab_size=813, max_length=512
    )


def test_tags_and_names_are_single_tokens_and_any_text_survives(tokenizer: Any) -> None:
    for word in ("<search>", "</search>", "<answer>", "</answer>", "<information>", "<think>"):
        assert len(tokenizer.encode(word, add_special_tokens=False)) == 1
    text = "<search> Zoë 漢字 \n\t x</search> ünder"
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text
    assert tokenizer.pad_token_id is not None
    assert tokenizer.pad_token_id != tokenizer.eos_token_id


def test_demonstrations_train_exactly_what_the_expert_wrote(tokenizer: Any) -> None:
    env = world(hops=2)
    renderer = PlainRenderer(tokenizer)
    talks = Demonstrator(env, "train", 5).texts(4)
    shown = Demonstrator(env, "train", 5).demonstrations(4, renderer)
    for text, demo in zip(talks, shown, strict=True):
        assert renderer.text(demo.ids) == text
        wrote = [i for i, acted in zip(demo.ids, demo.acted, strict=True) if acted]
        actions = re.findall(r"<(?:search|answer)>.*?</(?:search|answer)>", text)
        assert renderer.text(wrote) == "".join(actions)
        assert len(actions) == 3


def test_mistakes_are_mistakes_and_have_a_seed() -> None:
    clean = Demonstrator(world(), "train", 1).texts(30)
    errs = Demonstrator(world(), "train", 1, mistakes=0.5).texts(30)
    assert 5 < sum(a != b for a, b in zip(clean, errs, strict=True)) < 30
    assert errs == Demonstrator(world(), "train", 1, mistakes=0.5).texts(30)


def test_a_model_learns_what_it_is_shown(tokenizer: Any) -> None:
    renderer = PlainRenderer(tokenizer)
    demos = Demonstrator(world(), "train", 2).demonstrations(6, renderer)
    model = blank_decoder(tokenizer, StarterSettings(hidden=64, heads=2, inner=96, layers=1))
    trainer = ImitationTrainer(model, lr=3e-3, warmup_steps=5, pad_id=tokenizer.pad_token_id)
    losses = [trainer.step(demos) for _ in range(60)]
    assert losses[-1] < 0.3 * losses[0]
    blank = blank_decoder(tokenizer, StarterSettings())
    untrained = ImitationTrainer(blank, lr=1e-3, warmup_steps=1, pad_id=0)
    assert trainer.score(demos).sampled > 100 * untrained.score(demos).sampled


def test_built_once_loaded_by_path_and_the_same_again(tmp_path: Path) -> None:
    told: list[StarterProgress] = []
    folder = ensure_starter(settings=QUICK, cache_dir=tmp_path / "a", on_progress=told.append)
    assert told[0].stage == "words"
    assert {p.stage for p in told} == {"words", "reading", "erring"}
    assert {p.until for p in told if p.stage == "reading"} == {QUICK.read_until}
    assert {p.until for p in told if p.stage == "erring"} == {None}
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert len(AutoTokenizer.from_pretrained(folder)) <= model.config.vocab_size
    told.clear()
    assert (
        ensure_starter(settings=QUICK, cache_dir=tmp_path / "a", on_progress=told.append) == folder
    )
    assert told == []
    with torch.no_grad(), torch.device("meta"):  # the caller's, for cells of their own
        again = ensure_starter(settings=QUICK, cache_dir=tmp_path / "b")
    for name in ("model.safetensors", "tokenizer.json"):
        assert (folder / name).read_bytes() == (again / name).read_bytes()
    other = StarterSettings(**{**vars(QUICK), "seed": 1})
    assert ensure_starter(settings=other, cache_dir=tmp_path / "a") != folder


def test_habits_are_the_expert_s_and_make_another_model(tmp_path: Path) -> None:
    env = gym.make("SearchQA-v0", size="micro", hops=2).unwrapped
    assert isinstance(env, TextEnv)
    talks = Demonstrator(env, "train", 0, habits={"haste": 1.0}).texts(5)
    assert {talk.count("<search>") for talk in talks} == {1}
    hasty = StarterSettings(**{**vars(QUICK), "habits": {"haste": 0.8}})
    folder = ensure_starter(settings=hasty, cache_dir=tmp_path)
    assert folder != ensure_starter(settings=QUICK, cache_dir=tmp_path)
    assert json.loads((folder / MANIFEST).read_text())["settings"]["habits"] == {"haste": 0.8}
    with pytest.raises(BadValueError, match=r"no habit 'hste'; expected one of: haste"):
        Demonstrator(env, "train", 0, habits={"hste": 1.0})
    with pytest.raises(BadValueError, match=r"no habit 'seed'"):
        Demonstrator(env, "train", 0, habits={"seed": 1})


def test_a_world_with_a_lesson_of_its_own(tmp_path: Path) -> None:
    assert starter_settings("WebQA-v0") != StarterSettings()
    quick = StarterSettings(**{**vars(QUICK), "context": 2048})
    folder = ensure_starter("WebQA-v0", settings=quick, cache_dir=tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for word in ("<open>", "</open>"):
        assert len(tokenizer.encode(word, add_special_tokens=False)) == 1


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Register an environment as a plugin does, and forget it afterwards."""
    monkeypatch.setattr(registration, "_SPECS", dict(registration._SPECS))

    def register(**fields: Any) -> str:
        spec = EnvironmentSpec(
            id="ForeignStarter-v0",
            entry_point="helpers.guess_worlds:Guess",
            summary="test",
            **fields,
        )
        register_environment(spec)
        return spec.id

    yield register
    gym.registry.pop("ForeignStarter-v0", None)


def test_a_plugin_s_row_says_how_its_starter_is_made(
    foreign: Callable[..., str], tmp_path: Path
) -> None:
    small = {"hidden": 16, "layers": 1, "heads": 2, "inner": 16, "texts": 20, "batch": 2}
    less = {"vocab_size": 300, "read_steps": 2, "read_least": 0.0, "held_out": 2, "err_steps": 0}
    row = WarmStart(settings={"max_turns": 3}, starter={**small, **less})
    folder = ensure_starter(foreign(warm_start=row), cache_dir=tmp_path)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["env_kwargs"] == {"max_turns": 3}
    assert manifest["reading"]["steps"] == 2
    assert manifest["settings"]["hidden"] == 16


def test_a_row_without_imitation_starts_blank(foreign: Callable[..., str], tmp_path: Path) -> None:
    folder = ensure_starter(foreign(), cache_dir=tmp_path)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["env_kwargs"] == {"size": "micro"}
    assert "reading" not in manifest


def test_an_environment_without_an_expert_starts_blank(
    foreign: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guess, "expert", TextEnv.expert)
    assert ensure_starter(foreign(), cache_dir=tmp_path).is_dir()


def test_a_row_with_an_unknown_setting_names_the_nearest(foreign: Callable[..., str]) -> None:
    with pytest.raises(UnknownNameError, match=r"hiden.*hidden"):
        ensure_starter(foreign(warm_start=WarmStart(starter={"hiden": 3})))


def test_a_damaged_folder_is_built_anew(tmp_path: Path) -> None:
    folder = ensure_starter(settings=QUICK, cache_dir=tmp_path)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:100])
    assert ensure_starter(settings=QUICK, cache_dir=tmp_path) == folder
    assert (folder / "model.safetensors").read_bytes() == whole
    (folder / MANIFEST).write_text("{")
    ensure_starter(settings=QUICK, cache_dir=tmp_path)
    assert json.loads((folder / MANIFEST).read_text())["env_id"] == "SearchQA-v0"


def test_clear_refusals(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="SearchQA-v0"):
        ensure_starter("SerchQA-v0", cache_dir=tmp_path)
    with pytest.raises(BadValueError, match="even width"):
        StarterSettings(hidden=30, heads=4)
    with pytest.raises(BadValueError, match="mistakes is 2"):
        StarterSettings(mistakes=2)
    strict = StarterSettings(**{**vars(QUICK), "read_least": 0.9})
    with pytest.raises(BadValueError, match="after 3 clean steps"):
        ensure_starter(settings=strict, cache_dir=tmp_path)
    assert not list((tmp_path / "starters").glob("SearchQA-v0-*[!k]/config.json"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_real_one_is_a_middling_player(tmp_path: Path, seed: int) -> None:
    from turngym.algos import EvalSet, TokenAgent

    folder = ensure_starter(settings=StarterSettings(seed=seed), cache_dir=tmp_path)
    agent = TokenAgent(str(folder), temperature=1.0, max_tokens=16)
    env = gym.make("SearchQA-v0", size="micro")
    score = agent.evaluate(EvalSet(name="dev", env=env, split="dev", n=200))
    assert 0.2 <= score.success.mean <= 0.6
