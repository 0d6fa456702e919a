"""The run directory: configuration, lock, metrics, checkpoints, damage."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from turngym.algos.core.recipe import Optim
from turngym.algos.evaluation.result import RunResult, SetScore
from turngym.algos.learner.learner import Learner
from turngym.algos.recipes.ppo import ppo
from turngym.algos.runs.run_dir import RunDir, RunLockedError, read_metrics, run_name
from turngym.algos.training.checkpoint import (
    Carried,
    RunCounters,
    checkpoints,
    load_checkpoint,
    load_memory,
    newest_whole,
    save_checkpoint,
    set_damaged_aside,
)
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError
from turngym.envs.utils.statistics import Estimate

CONFIG = {"seed": 1, "recipe": {"name": "grpo", "optim": {"lr": 1e-4}}, "budget": {"steps": 5}}

HOLD = """
import sys
from turngym.algos.runs.run_dir import RunDir
with RunDir(sys.argv[1], {"seed": 1}):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_same_configuration_is_taken_up_and_a_larger_budget_too(tmp_path: Path) -> None:
    RunDir(tmp_path / "run", CONFIG).close()
    more = {**CONFIG, "budget": {"steps": 9}}
    RunDir(tmp_path / "run", more).close()
    assert json.loads((tmp_path / "run" / "config.json").read_text())["budget"]["steps"] == 9


def test_another_configuration_is_refused_with_the_differing_keys(tmp_path: Path) -> None:
    RunDir(tmp_path, CONFIG).close()
    other = {**CONFIG, "seed": 2, "recipe": {"name": "grpo", "optim": {"lr": 1e-3}}}
    with pytest.raises(BadValueError) as caught:
        RunDir(tmp_path, other)
    assert "recipe.optim.lr: was 0.0001, now 0.001" in str(caught.value)
    assert "seed: was 1, now 2" in str(caught.value)
    assert json.loads((tmp_path / "config.json").read_text())["seed"] == 1
    RunDir(tmp_path, CONFIG).close()  # the lock was freed


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(BadValueError, match=r"thesis\.tex.*not a run directory"):
        RunDir(tmp_path, CONFIG)
    assert (tmp_path / "thesis.tex").read_text() == "x"


def test_a_start_that_was_cut_off_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("turngym.envs.utils.disk_errors.os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            RunDir(tmp_path, CONFIG)
    assert not (tmp_path / "config.json").exists()
    (tmp_path / "config.json.part").write_text("{")  # what a killed process leaves
    RunDir(tmp_path, CONFIG).close()
    assert json.loads((tmp_path / "config.json").read_text()) == CONFIG


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadValueError, match=r"below: cannot be a folder \(Not a directory\)"):
        RunDir(tmp_path / "file" / "below", CONFIG)


def test_the_same_weights_in_another_folder_are_the_same_run(tmp_path: Path) -> None:
    """A run that was moved to another machine goes on there."""
    old = {**CONFIG, "model": "/home/old/model", "model_digest": "sha256:1"}
    RunDir(tmp_path, old).close()
    RunDir(tmp_path, {**old, "model": "/home/new/model"}).close()
    assert json.loads((tmp_path / "config.json").read_text())["model"] == "/home/new/model"
    for other in ("sha256:2", "name:lab/model"):
        with pytest.raises(BadValueError, match="Differing: model: was '/home/new/model'"):
            RunDir(tmp_path, {**old, "model": "lab/model", "model_digest": other})


def test_a_warm_start_of_a_model_in_another_folder_is_the_same_run(tmp_path: Path) -> None:
    warm = {"base": "/old/model", "base_digest": "sha256:1"}
    old = {**CONFIG, "warm_start": warm}
    RunDir(tmp_path, old).close()
    RunDir(tmp_path, {**old, "warm_start": {**warm, "base": "/new/model"}}).close()
    other = {"base": "/new/model", "base_digest": "sha256:2"}
    with pytest.raises(BadValueError, match=r"Differing: warm_start\.base_digest: was 'sha256:1'"):
        RunDir(tmp_path, {**old, "warm_start": other})


def test_a_cut_configuration_is_a_clear_error(tmp_path: Path) -> None:
    RunDir(tmp_path, CONFIG).close()
    path = tmp_path / "config.json"
    for damaged in (path.read_text()[:30], "[" * 100_000):
        path.write_text(damaged)
        with pytest.raises(DataError, match=r"config\.json: not readable as JSON"):
            RunDir(tmp_path, CONFIG)


def test_second_holder_in_one_process_is_refused(tmp_path: Path) -> None:
    own = rf"in use by process {os.getpid()} on .*, which is this one\. Close the trainer"
    with RunDir(tmp_path, CONFIG), pytest.raises(RunLockedError, match=own):
        RunDir(tmp_path, CONFIG)
    RunDir(tmp_path, CONFIG).close()


def test_without_locks_no_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(BadValueError, match="a run directory needs Linux or macOS"):
        RunDir(tmp_path / "run", CONFIG)
    assert not (tmp_path / "run").exists()


def test_a_lock_that_cannot_be_taken_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    asked = []

    def refuse(file: IO[str], how: int) -> None:
        asked.append(file)
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(BadValueError, match="cannot be locked"):
        RunDir(tmp_path, CONFIG)
    assert [file.closed for file in asked] == [True]


def test_a_forked_worker_neither_keeps_nor_frees_the_lock(tmp_path: Path) -> None:
    root, forking = tmp_path / "run", get_context("fork")
    run = RunDir(root, CONFIG)
    for closes in (True, False):
        ready, end = forking.Event(), forking.Event()

        def work(closes: bool = closes, ready: Any = ready, end: Any = end) -> None:
            if closes:
                run.close()
            ready.set()
            end.wait(60)

        worker = forking.Process(target=work)
        worker.start()
        try:
            assert ready.wait(60)
            with pytest.raises(RunLockedError, match=f"in use by process {os.getpid()} on "):
                RunDir(root, CONFIG)
            if not closes:
                run.close()
                RunDir(root, CONFIG).close()
        finally:
            end.set()
            worker.join()


def test_second_process_is_refused_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    run = tmp_path / "run"
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(RunLockedError, match=f"process {child.pid} on "):
            RunDir(run, {"seed": 1})
    finally:
        child.kill()
        child.communicate()
    RunDir(run, {"seed": 1}).close()


@pytest.mark.parametrize("after", ["removed", "moved", "begun anew", "a file"])
def test_nothing_is_written_where_the_folder_is_another_one_since(
    tmp_path: Path, after: str
) -> None:
    root, other = tmp_path / "run", []
    with RunDir(root, CONFIG) as run:
        run.log(1, {"update/loss": 0.5})
        root.rename(tmp_path / "old")
        if after == "removed":
            shutil.rmtree(tmp_path / "old")
        elif after == "a file":
            root.write_text("")
        elif after == "begun anew":
            other = [RunDir(root, CONFIG)]
        for write in (lambda: run.log(2, {"update/loss": 0.4}), run.metrics_size):
            with pytest.raises(DataError, match="removed, moved or replaced"):
                write()
    for begun in other:
        begun.log(1, {"update/loss": 0.7})
        assert begun.metrics_path.read_text() == '{"step": 1, "update/loss": 0.7}\n'
        begun.close()


def test_metrics_are_appended_and_rewound(tmp_path: Path) -> None:
    with RunDir(tmp_path, CONFIG) as run:
        run.log(1, {"update/loss": 0.5})
        size = run.metrics_size()
        run.log(2, {"update/loss": 0.4})
        run.rewind_metrics(size)
        assert read_metrics(run.metrics_path) == [{"step": 1, "update/loss": 0.5}]
        with pytest.raises(UnknownNameError):
            run.log(2, {"update/los": 1.0})


def test_a_cut_last_line_is_tolerated_and_a_broken_one_before_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"ste')
    assert [r["step"] for r in read_metrics(path)] == [1, 2]
    for broken in ('{"ste', "[" * 9999):
        path.write_text(f'{{"step": 1}}\n{broken}\n{{"step": 3}}\n')
        with pytest.raises(DataError, match="line 2"):
            read_metrics(path)


def test_damaged_metrics_are_an_error_before_training_goes_on(tmp_path: Path) -> None:
    with RunDir(tmp_path, CONFIG) as run:
        run.log(1, {"update/loss": 0.5})
        size = run.metrics_size()
        run.log(2, {"update/loss": 0.4})
        text = run.metrics_path.read_text()
        run.metrics_path.write_text(text[:size] + "\0" * 20 + text[size + 20 :])
        run.rewind_metrics(size)
        run.metrics_path.write_text("\0" * 20 + text[20:])
        with pytest.raises(DataError, match=r"metrics\.jsonl, line 1: expected a JSON object"):
            run.rewind_metrics(size)
        run.metrics_path.write_text(text[: size - 20] + "\0" * 20)
        with pytest.raises(DataError, match="its last line is damaged"):
            run.rewind_metrics(size)


def test_metrics_cut_below_the_checkpoint_are_an_error(tmp_path: Path) -> None:
    with RunDir(tmp_path, CONFIG) as run:
        run.log(1, {"update/loss": 0.5})
        with pytest.raises(DataError, match="was cut"):
            run.rewind_metrics(run.metrics_size() + 1)


# ---------------------------------------------------------------- checkpoints


def make(folder: Path) -> tuple[Learner, AutoTokenizer]:
    recipe = replace(ppo(), optim=Optim(lr=1e-3))
    model = AutoModelForCausalLM.from_pretrained(folder)
    return Learner(model, recipe, pad_id=0), AutoTokenizer.from_pretrained(folder)


@pytest.fixture
def saved(tiny_model: Path, tmp_path: Path) -> Path:
    learner, tokenizer = make(tiny_model)
    for step in (1, 2, 3):
        with torch.no_grad():
            next(learner.policy.parameters()).add_(0.1)
            assert learner.critic is not None
            learner.critic.head.bias.fill_(step)
        save_checkpoint(
            tmp_path, learner, tokenizer, RunCounters(step=step, tokens=7 * step), keep=2
        )
    return tmp_path


def test_the_newest_are_kept_and_load_by_path(saved: Path, tiny_model: Path) -> None:
    assert [p.name for p in checkpoints(saved)] == ["step-000002", "step-000003"]
    path = newest_whole(saved)
    assert path is not None
    learner, _ = make(tiny_model)
    progress = load_checkpoint(path, learner)
    assert (progress.step, progress.tokens) == (3, 21)
    again = AutoModelForCausalLM.from_pretrained(path)
    for a, b in zip(again.parameters(), learner.policy.parameters(), strict=True):
        assert torch.equal(a, b)
    assert learner.critic is not None
    assert learner.critic.head.bias.item() == 3.0
    assert AutoTokenizer.from_pretrained(path).pad_token_id is not None


def test_from_a_million_steps_on_the_newest_are_kept_too(saved: Path, tiny_model: Path) -> None:
    """By name ``step-1000000`` comes before ``step-000003``: it was deleted when it was whole."""
    learner, tokenizer = make(tiny_model)
    for step in (999_999, 1_000_000, 1_000_001):
        save_checkpoint(saved, learner, tokenizer, RunCounters(step=step), keep=2)
    assert [p.name for p in checkpoints(saved)] == ["step-1000000", "step-1000001"]
    assert newest_whole(saved) == saved / "step-1000001"
    assert set_damaged_aside(saved, saved / "step-1000000") == [saved / "damaged-step-1000001"]


def test_what_is_remembered_about_tasks_is_written_compactly(saved: Path, tiny_model: Path) -> None:
    """Indented, the paths of 14,000 tasks take three times as long, in which Ctrl-C waits."""
    learner, tokenizer = make(tiny_model)
    memory = {"paths": {"7": {"uid": "é", "ids": [1, 2, 3]}}}
    path = save_checkpoint(
        saved, learner, tokenizer, RunCounters(step=4), 2, Carried(memory=memory)
    )
    text = (path / "trainer" / "memory.json").read_text(encoding="utf-8")
    assert text == '{"paths":{"7":{"uid":"é","ids":[1,2,3]}}}\n'
    assert load_memory(path) == memory


def test_a_damaged_checkpoint_falls_back_to_the_one_before(saved: Path) -> None:
    weights = saved / "step-000003" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.warns(UserWarning, match="going on from step-000002"):
        path = newest_whole(saved)
    assert path is not None
    assert path.name == "step-000002"


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "trainer/optimizer.pt", "trainer/critic.safetensors", "config.json"],
)
def test_damage_of_the_right_size_is_noticed_and_told(saved: Path, name: str) -> None:
    file = saved / "step-000003" / name
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)
    told: list[str] = []
    assert newest_whole(saved, told.append) == saved / "step-000002"
    assert told == [
        f"damaged checkpoint step-000003: {name} is not as it was written: its hash differs; "
        "going on from step-000002"
    ]


def test_changed_counters_are_noticed(saved: Path) -> None:
    file = saved / "step-000003" / "trainer" / "state.json"
    file.write_text(file.read_text().replace('"tokens": 21', '"tokens": 31'))
    told: list[str] = []
    assert newest_whole(saved, told.append) == saved / "step-000002"
    assert "state.json is not as it was written" in told[0]


def test_checkpoints_without_hashes_are_read_as_before(saved: Path) -> None:
    file = saved / "step-000003" / "trainer" / "state.json"
    state = json.loads(file.read_text())
    del state["digests"], state["progress_digest"]
    file.write_text(json.dumps(state))
    assert newest_whole(saved) == saved / "step-000003"


def test_no_whole_checkpoint_is_an_error_that_says_what_is_damaged(saved: Path) -> None:
    (saved / "step-000003" / "trainer" / "optimizer.pt").unlink()
    (saved / "step-000002" / "trainer" / "state.json").write_text("{")
    with pytest.raises(DataError, match=r"step-000003: trainer/optimizer\.pt is missing"):
        newest_whole(saved)


def test_weights_of_another_model_are_refused(saved: Path, tiny_model: Path) -> None:
    path = saved / "step-000003"
    learner, _ = make(tiny_model)
    learner.policy.resize_token_embeddings(64)
    with pytest.raises(DataError, match="vocab_size 300 instead of 64"):
        load_checkpoint(path, learner)


def test_a_write_that_was_cut_is_cleared_away(saved: Path, tiny_model: Path) -> None:
    (saved / ".part-000009" / "trainer").mkdir(parents=True)
    assert newest_whole(saved) == saved / "step-000003"
    learner, tokenizer = make(tiny_model)
    save_checkpoint(saved, learner, tokenizer, RunCounters(step=4), keep=2)
    assert list(saved.glob(".part-*")) == []


def test_an_optimiser_that_finds_no_room_says_so_and_leaves_no_half(
    saved: Path, tiny_model: Path
) -> None:
    """PyTorch's own words are of its stream, and the half would keep a quota used up."""
    resource = pytest.importorskip("resource")
    learner, tokenizer = make(tiny_model)
    for parameter in learner.policy.parameters():
        parameter.grad = torch.ones_like(parameter)
    learner.optimizer.step()
    room = (saved / "step-000003" / "model.safetensors").stat().st_size + 1000
    was, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(DataError, match="a file grew larger"):
            save_checkpoint(saved, learner, tokenizer, RunCounters(step=4), keep=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (was, hard))
    assert list(saved.glob(".part-*")) == []
    assert newest_whole(saved) == saved / "step-000003"


def test_a_kill_while_a_step_is_written_again_leaves_a_whole_checkpoint(
    saved: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the old one was deleted first, so that with one kept there was none."""
    learner, tokenizer = make(tiny_model)
    rename = Path.rename

    def killed(path: Path, target: Path) -> Path:
        if path.name.startswith(".part-"):
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(saved, learner, tokenizer, RunCounters(step=3), keep=1)
    monkeypatch.undo()
    newest = newest_whole(saved)
    assert newest is not None
    assert load_checkpoint(newest, learner).tokens == 21
    assert set_damaged_aside(saved, newest) == []
    save_checkpoint(saved, learner, tokenizer, RunCounters(step=3), keep=1)
    assert [p.name for p in saved.iterdir()] == ["step-000003"]


def test_an_old_one_that_cannot_be_deleted_stops_nothing(
    saved: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a network's disk, a file that another machine reads keeps its folder."""
    learner, tokenizer = make(tiny_model)

    def busy(path: str, **settings: int) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", busy)
        save_checkpoint(saved, learner, tokenizer, RunCounters(step=4), keep=1)
    assert newest_whole(saved) == saved / "step-000004"
    save_checkpoint(saved, learner, tokenizer, RunCounters(step=5), keep=1)
    assert [p.name for p in saved.iterdir()] == ["step-000005"]


# ---------------------------------------------------------------- result


def score() -> SetScore:
    part = Estimate(mean=0.5, low95=0.4, high95=0.6)
    return SetScore(
        name="dev",
        env_id="E-v0",
        split="dev",
        n=3,
        errors=1,
        success=part,
        metrics={"em": 0.5},
        **{"return": part},
    )


def test_result_file_round_trip_and_schema(tmp_path: Path) -> None:
    result = RunResult(
        recipe="grpo",
        env_id="E-v0",
        seed=0,
        config_digest="a",
        model_digest="b",
        steps=3,
        sampled_tokens=10,
        env_turns=4,
        seconds=1.5,
        before=[score()],
        after=[score()],
    )
    path = tmp_path / "result.json"
    result.write(path)
    assert RunResult.read(path) == RunResult.read(str(path)) == result
    data = json.loads(path.read_text())
    data["steps"] = -1
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match="steps"):
        RunResult.read(path)


def test_a_folder_of_a_long_model_name_can_be_made(tmp_path: Path) -> None:
    long = [run_name("grpo", "A-v0", {}, "m" * 249 + last, 0) for last in "ab"]
    assert len({*long}) == 2
    for name in long:
        (tmp_path / name).mkdir()
