"""Warm starts: the expert is imitated once, in the model's own format, and it is written down."""

from __future__ import annotations

import json
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from helpers.chat_templates import LLAMA32
from helpers.gguf_files import write_gguf
from helpers.letters_world import Letters
from helpers.small_models import CHATML, byte_level
from helpers.small_models import model as small_model
from safetensors.torch import load_file

from turngym.agents.models.loading import load_tokenizer
from turngym.agents.models.out_of_memory import (
    MemoryFullError,
    NoRoomError,
    explain_out_of_memory,
)
from turngym.agents.models.registry.fetch import model_folder
from turngym.agents.scripted import text_env
from turngym.agents.warm_start.demonstrations import Demonstrator, Exchange
from turngym.algos.learner import model_bundle
from turngym.algos.learner.learner import Learner
from turngym.algos.runs.progress import Silent
from turngym.algos.training.config import EnvConfig, TrainConfig
from turngym.algos.training.settings import WarmStartSettings
from turngym.algos.training.supervised import warm_start as module
from turngym.algos.training.supervised.warm_start import MANIFEST, warm_start
from turngym.benchmarks.cli.main import REFUSED, main
from turngym.envs.core.errors import BadValueError, UnknownNameError
from turngym.envs.tools.action_parsing import write_call

pytest.importorskip("gguf")
ENV = EnvConfig(id="SearchQA-v0", settings={"size": "micro", "max_turns": 2, "top_k": 1})
SHORT = WarmStartSettings(episodes=8, batch=4, lr=3e-3)


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a two-layer chat model."""
    folder = tmp_path_factory.mktemp("chat")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNGYM_CACHE", str(folder))
        return model_folder(write_gguf(folder / "tiny.gguf"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "warm_starts"


def test_an_imitation_is_made_once_and_learns(
    chat_model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = WarmStartSettings(episodes=22, batch=4, lr=5e-3)  # six steps of four
    made = warm_start(str(chat_model), ENV, more)
    about = json.loads((made.folder / MANIFEST).read_text())
    assert (about["steps"], about["episodes"]) == (6, 24)
    assert about["loss_last"] < about["loss_first"] - 0.5  # nats a token
    record = made.record
    assert 0 < record.action_tokens < record.context_tokens
    assert sorted(p.name for p in cache.iterdir()) == [made.folder.name, f"{made.folder.name}.lock"]
    monkeypatch.setattr(module, "_imitate", None)  # the cache answers
    assert warm_start(str(chat_model), ENV, more) == made


def test_an_episode_of_several_sessions_is_one_episode(tmp_path: Path) -> None:
    tokenizer = byte_level(CHATML)
    small_model("Qwen2", max_position_embeddings=4096).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    env = EnvConfig(id="PaperCrawler-v0", settings={"size": "micro", "prompt": "short"})
    made = warm_start(str(tmp_path), env, WarmStartSettings(episodes=1, batch=1))
    assert json.loads((made.folder / MANIFEST).read_text())["episodes"] == 1


def test_gradient_checkpointing_makes_the_same_model(
    chat_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train --warm-start N --gradient-checkpointing` imitated without it, and out of memory."""
    plain = warm_start(str(chat_model), ENV, SHORT)
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "another"))
    recomputed: list[object] = []
    recompute = model_bundle.recomputing

    def note(models: Any, *offload: Any) -> Any:
        recomputed.append(models)
        return recompute(models, *offload)

    monkeypatch.setattr(model_bundle, "recomputing", note)
    again = warm_start(str(chat_model), ENV, SHORT, gradient_checkpointing=True)
    assert again.folder.name == plain.folder.name
    assert again.record == plain.record
    assert recomputed
    about = json.loads((again.folder / MANIFEST).read_text())
    assert about["settings"]["learner"]["gradient_checkpointing"]
    one, two = (load_file(made.folder / "model.safetensors") for made in (plain, again))
    assert one.keys() == two.keys()
    for name, weights in one.items():
        assert torch.allclose(weights, two[name], atol=1e-5), name
    monkeypatch.setattr(module, "_imitate", None)  # the cache answers
    assert warm_start(str(chat_model), ENV, SHORT) == again


def test_gradients_that_the_caller_switched_off_are_on_while_it_imitates(
    chat_model: Path,
) -> None:
    with torch.no_grad():
        made = warm_start(str(chat_model), ENV, WarmStartSettings(episodes=2, batch=1))
    assert json.loads((made.folder / MANIFEST).read_text())["steps"] == 2


def test_the_longest_action_is_looked_for_beyond_the_first_episodes(chat_model: Path) -> None:
    made = warm_start(str(chat_model), ENV, SHORT)
    tokenizer = load_tokenizer(str(chat_model))
    env = text_env(ENV.prototype)
    talks = Demonstrator(env, SHORT.split, SHORT.seed).take(64)
    lengths = [max(len(tokenizer.encode(turn.action)) for turn in talk) for talk in talks]
    assert made.longest_action == max(lengths) > max(lengths[:4])


def test_what_it_depends_on_makes_another_model(
    chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []

    def note(folder: Path, *_: object) -> Path:
        names.append(folder.name)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "build_once", note)
    two_hops = EnvConfig(id=ENV.id, settings={**ENV.settings, "hops": 2})
    for env, settings in (
        (ENV, SHORT),
        (two_hops, SHORT),
        (ENV, WarmStartSettings(episodes=12, batch=4, lr=3e-3)),
        (ENV, WarmStartSettings(episodes=8, batch=4, lr=1e-3)),
        (ENV, WarmStartSettings(episodes=8, batch=4, lr=3e-3, render="plain")),
        (ENV, SHORT),
    ):
        with pytest.raises(KeyboardInterrupt):
            warm_start(str(chat_model), env, settings)
    assert len(set(names)) == 5
    assert names[0] == names[-1]


def test_an_expert_that_differs_late_makes_another_model(
    chat_model: Path, imitated: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = warm_start(str(chat_model), ENV, SHORT)
    take = Demonstrator.take

    def take_another(demonstrator: Demonstrator, n: int) -> list[list[Exchange]]:
        talks = take(demonstrator, n)
        talks[40][-1] = talks[40][-1]._replace(action="<answer> else </answer>")
        return talks

    monkeypatch.setattr(Demonstrator, "take", take_another)
    assert warm_start(str(chat_model), ENV, SHORT).folder != first.folder
    assert len(imitated) == 2


@pytest.fixture
def imitated(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The working folders of imitations, which are not done."""
    works: list[Path] = []

    def note(_: object, work: Path, *__: object) -> dict[str, float]:
        works.append(work)
        work.mkdir()
        return {"action_tokens": 1, "context_tokens": 2}

    monkeypatch.setattr(module, "_imitate", note)
    return works


def brief(folder: Path) -> None:
    """Give the model of a folder another chat template."""
    tokenizer = load_tokenizer(folder)
    tokenizer.chat_template = "{{ 'Be brief.' }}" + tokenizer.chat_template
    tokenizer.save_pretrained(folder)


def test_another_template_for_the_same_weights_makes_another_model(
    chat_model: Path, tmp_path: Path, imitated: list[Path]
) -> None:
    other = shutil.copytree(chat_model, tmp_path / "other")
    first = warm_start(str(chat_model), ENV, SHORT)
    assert warm_start(str(other), ENV, SHORT).folder == first.folder
    brief(other)
    second = warm_start(str(other), ENV, SHORT)
    assert second.folder != first.folder
    assert len(set(imitated)) == 2
    assert warm_start(str(chat_model), ENV, SHORT) == first
    assert warm_start(str(other), ENV, SHORT) == second
    assert len(imitated) == 2


def test_another_configuration_of_the_same_weights_makes_another_model(
    chat_model: Path, tmp_path: Path, imitated: list[Path]
) -> None:
    other = shutil.copytree(chat_model, tmp_path / "other")
    config = json.loads((other / "config.json").read_text())

    def made(**changes: Any) -> Path:
        (other / "config.json").write_text(json.dumps(config | changes))
        return warm_start(str(other), ENV, SHORT).folder

    first = warm_start(str(chat_model), ENV, SHORT).folder
    assert made(_name_or_path="elsewhere", transformers_version="4.0.0") == first
    longer = made(rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    assert len({first, longer, made(rms_norm_eps=1e-3)}) == len(imitated) == 3


def test_calls_that_are_whole_messages_are_counted_without_a_thought(
    tmp_path: Path, imitated: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = write_call("get_order_details", {"order_id": "7"})
    monkeypatch.setattr(module, "_play", lambda *_: [[Exchange("Where is order 7?", call)]])
    tokenizer = byte_level(LLAMA32)
    tokenizer.save_pretrained(tmp_path)
    shop = EnvConfig(id="Retail-v0", settings={"size": "micro"})
    made = warm_start(str(tmp_path), shop, SHORT)
    taught = '{"name": "get_order_details", "parameters": {"order_id": "7"}}'
    assert made.longest_action == len(tokenizer.encode(taught)) + 1  # the message's end
    assert len(imitated) == 1


def test_one_that_waits_does_not_take_the_model_of_another_template(
    chat_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shutil.copytree(chat_model, tmp_path / "other")
    brief(other)
    begun, chosen = Event(), Event()
    build_once = module.build_once

    def imitate(config: TrainConfig, work: Path, draft: Path, *_: object) -> dict[str, int]:
        work.mkdir()
        (draft / "base").write_text(config.model)
        if config.model == str(chat_model):
            begun.set()
            assert chosen.wait(60)  # by now the other one knows its folder
        return {"action_tokens": 1, "context_tokens": 2}

    def choose(*args: Any) -> Path:
        if begun.is_set():
            chosen.set()
        return build_once(*args)

    monkeypatch.setattr(module, "_imitate", imitate)
    monkeypatch.setattr(module, "build_once", choose)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(warm_start, str(chat_model), ENV, SHORT)
        assert begun.wait(60)
        made = {str(other): warm_start(str(other), ENV, SHORT)}
        made[str(chat_model)] = first.result()
    assert {base: (one.folder / "base").read_text() for base, one in made.items()} == {
        base: base for base in made
    }


def test_other_lines_in_the_files_make_another_model(
    chat_model: Path, tmp_path: Path, imitated: list[Path]
) -> None:
    asked, corpus = tmp_path / "asked.jsonl", tmp_path / "corpus.jsonl"
    rows = [{"id": str(i), "question": f"Is it {i}?", "golden_answers": ["no"]} for i in range(40)]
    asked.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus.write_text(json.dumps({"id": "0", "contents": '"It"\nIt is not.'}) + "\n")
    settings = {"data": {"train": str(asked)}, "corpus": str(corpus), "prompt": "none"}

    def made() -> Path:
        env = EnvConfig(id="SearchQA-v0", settings=settings)
        return warm_start(str(chat_model), env, SHORT).folder

    first = made()
    assert made() == first
    whole = asked.read_text()
    for i in range(5):  # one of them is not among the first four episodes
        asked.write_text(whole.replace(f"Is it {i}?", f"Was it {i}?"))
        assert made() != first, i
    asked.write_text(whole)
    assert made() == first


def test_an_interrupted_imitation_goes_on(
    chat_model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []

    class Interrupting(Silent):
        steps = 0

        def update(self, fraction: float, text: str = "") -> None:
            if text.startswith("step 1,") and not self.steps:
                self.steps = 1
                raise KeyboardInterrupt

        def note(self, text: str) -> None:
            notes.append(text)

    report = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        warm_start(str(chat_model), ENV, SHORT, report, device="cpu")
    assert not [p for p in cache.iterdir() if (p / MANIFEST).exists()]
    made = warm_start(str(chat_model), ENV, SHORT, report)
    assert any(note.startswith("resuming from step 1") for note in notes)
    assert json.loads((made.folder / MANIFEST).read_text())["steps"] == 2
    assert not list(cache.glob(".*"))


def test_an_interrupt_while_the_working_folder_is_deleted_is_no_dead_end(
    chat_model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was left of the folder was no run directory, and each further call refused it."""

    def stop(folder: Path | str, **_: object) -> None:
        (Path(folder) / "config.json").unlink(missing_ok=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", stop)
        patch.setattr(tempfile, "_rmtree", stop, raising=False)  # Python 3.11.2 keeps it by name
        with pytest.raises(KeyboardInterrupt):
            warm_start(str(chat_model), ENV, SHORT)
    assert (warm_start(str(chat_model), ENV, SHORT).folder / MANIFEST).exists()
    assert not list(cache.glob(".running-*"))


def test_without_an_expert_or_tasks_it_is_refused(
    chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Letters, "expert")
    with pytest.raises(BadValueError, match="no scripted expert, so there is nothing to imitate"):
        warm_start(str(chat_model), EnvConfig(id="Letters-v0"), SHORT)
    with pytest.raises(UnknownNameError, match="split 'trian'"):
        warm_start(str(chat_model), ENV, WarmStartSettings(episodes=8, split="trian"))
    with pytest.raises(BadValueError, match="episodes is 0"):
        WarmStartSettings(episodes=0)


@pytest.mark.parametrize("on_the_way", [False, True])
def test_a_lack_of_memory_names_the_imitation_s_own_setting(
    chat_model: Path, monkeypatch: pytest.MonkeyPatch, on_the_way: bool
) -> None:
    """A run whose own micro batches were small was told to lower them."""

    def refuse(*_: object) -> None:
        raise NoRoomError("engine: 4.7 GB are free.", "Lower it (--micro-batch-tokens).")

    def break_off(*_: object, **__: object) -> None:
        with explain_out_of_memory("training on a micro batch", "lower (--micro-batch-tokens 9)."):
            raise MemoryError("no more")

    if on_the_way:
        monkeypatch.setattr(Learner, "update", break_off)
        kind, what = MemoryFullError, r"out of memory while training on a micro batch \(no more\)"
    else:
        monkeypatch.setattr("turngym.algos.training.trainer.settle", refuse)
        kind, what = NoRoomError, "engine: 4.7 GB are free"
    asked = replace(SHORT, micro_batch_tokens=4096)
    with pytest.raises(kind, match=rf"--warm-start-micro-batch-tokens 2048, was 4096.*{what}") as e:
        warm_start(str(chat_model), ENV, asked)
    assert "train with gradient_checkpointing (--gradient-checkpointing)" in str(e.value)
    assert " --micro-batch-tokens" not in str(e.value)
    assert "(--micro-batch-tokens" not in str(e.value)


def test_several_processes_are_refused(chat_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(BadValueError, match="imitation is done by one process"):
        warm_start(str(chat_model), ENV, SHORT)


def test_a_run_starts_from_it_and_says_so(
    chat_model: Path, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    env = ["--env", "SearchQA-v0", "--env.size", "micro", "--env.max_turns", "2"]
    env += ["--env.top_k", "1"]
    few = ["--recipe.groups_per_step", "2", "--recipe.rollout.n", "2", "--max-tokens", "4"]
    warm = ["--warm-start", "8", "--warm-start-batch", "4"]
    words = ["train", *env, *few, *warm, "--model", str(chat_model), "--eval-n", "2"]
    words.append("--gradient-checkpointing")
    assert main([*words, "--steps", "1", "--run-dir", str(run)]) == 0
    config = json.loads((run / "config.json").read_text())
    start = config["warm_start"]
    assert (start["base"], start["settings"]["episodes"]) == (str(chat_model), 8)
    assert Path(config["model"]).name.startswith("SearchQA-v0-")
    made = json.loads((Path(config["model"]) / MANIFEST).read_text())
    assert made["settings"]["learner"]["gradient_checkpointing"]
    result = json.loads((run / "result.json").read_text())
    assert result["imitated_tokens"] == start["action_tokens"] > 0
    said = capsys.readouterr()
    out = " ".join((said.out + said.err).split())
    assert f"{start['action_tokens']:,} tokens of the expert's actions were imitated" in out
    assert "of which --max-tokens 4 cuts the end off" in out
    scored = ["eval", "--agent", str(chat_model), *env, *warm, "--n", "2", "--max-tokens", "4"]
    assert main(scored) == 0  # the same model, out of the cache
    assert [p.name for p in cache.iterdir() if p.is_dir()] == [Path(config["model"]).name]
    assert "warm-start 8" in " ".join(capsys.readouterr().out.split())
    assert main(["eval", "--agent", "expert", *env, *warm, "--n", "2"]) == REFUSED
    assert "goes with an agent that is a model" in " ".join(capsys.readouterr().err.split())
