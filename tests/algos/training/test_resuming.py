"""What an interrupt, a kill, a full disk or damage leaves: a run that goes on as if without."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from helpers.training_runs import (
    Killed,
    config,
    final_weights,
    kill_after,
    numbers,
    run,
    same,
    small,
)

from turngym.algos.core.forest import Forest
from turngym.algos.core.protocols import Credits
from turngym.algos.credit import GroupCredit
from turngym.algos.recipes import with_settings
from turngym.algos.recipes.spear import spear
from turngym.algos.recipes.tigpo import tigpo
from turngym.algos.runs.progress import Silent
from turngym.algos.runs.run_dir import read_metrics
from turngym.algos.training import trainer as trainer_module
from turngym.algos.training.config import Budget, TrainConfig
from turngym.algos.training.trainer import Trainer, train
from turngym.envs.core.errors import BadValueError, DataError


class Notes(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def ahead(model: Path, max_lag: int, **more: Any) -> TrainConfig:
    return config(model, max_lag=max_lag, evals=(), budget=Budget(steps=6), **more)


def assert_same_steps(one: Path, two: Path) -> None:
    """What is sampled beside an update may be rounded otherwise."""
    for key in ("rollout/tokens", "rollout/return_mean", "rollout/lag_mean", "update/loss"):
        mine, theirs = ([r[key] for r in numbers(folder) if key in r] for folder in (one, two))
        assert len(mine) == 6
        assert mine == pytest.approx(theirs, rel=1e-4)


def interrupt(setup: TrainConfig, folder: Path, *, twice: bool = False) -> Notes:
    """Ctrl-C after three steps, while what was begun is still being played."""
    report, held, last = Notes(), threading.Event(), 3 + (setup.max_lag or 0)
    with Trainer(setup, folder, report) as trainer:
        play, step = trainer._play, trainer.train_step

        async def slow(number: int) -> Any:
            while number >= last and not held.is_set():
                await asyncio.sleep(0.01)
            return await play(number)

        def stop() -> dict[str, float]:
            if trainer.counters.step == 3:
                raise KeyboardInterrupt
            return step()

        trainer.pipeline._play = slow  # type: ignore[attr-defined]
        trainer.train_step = stop  # type: ignore[method-assign]
        pending = trainer.pipeline.pending

        def waiting(done: int) -> Any:
            if done == 3:
                held.set()
                if twice:
                    raise KeyboardInterrupt
            return pending(done)

        trainer.pipeline.pending = waiting  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    return report


@pytest.mark.parametrize("max_lag", [1, 2])
def test_an_interrupt_waits_for_what_older_weights_play(
    tiny_model: Path, tmp_path: Path, max_lag: int
) -> None:
    """Before, it was dropped, and played with newer weights after the restart."""
    setup = ahead(tiny_model, max_lag)
    run(setup, tmp_path / "straight")
    *_, waiting, saved = interrupt(setup, tmp_path / "cut").said
    assert f"first step {3 + max_lag} is played to its end" in waiting
    assert "step 3 is saved" in saved
    with Trainer(setup, tmp_path / "cut") as trainer:
        assert trainer.counters.step == 3
        trainer.run()
    assert_same_steps(tmp_path / "straight", tmp_path / "cut")


def test_a_second_interrupt_stops_at_once_and_leaves_the_checkpoint_before(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup = ahead(tiny_model, 1)
    run(setup, tmp_path / "straight")
    assert (
        "a second Ctrl-C stops at once" in interrupt(setup, tmp_path / "cut", twice=True).said[-1]
    )
    with Trainer(setup, tmp_path / "cut") as trainer:
        assert trainer.counters.step == 2
        trainer.run()
    assert_same_steps(tmp_path / "straight", tmp_path / "cut")


def test_who_insists_in_the_middle_of_an_update_gets_no_checkpoint_of_it(
    tiny_model: Path, tmp_path: Path
) -> None:
    """Before, the weights after one of two mini batches were saved as those of the step before."""
    setup = config(tiny_model, evals=())
    run(setup, tmp_path / "straight")
    report = Notes()
    with Trainer(setup, tmp_path / "cut", report) as trainer:
        descend = trainer.learner._descend

        def stop(log: Any) -> None:
            descend(log)
            if trainer.counters.step == 2:
                raise KeyboardInterrupt

        trainer.learner._descend = stop  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    assert "stopped at once" in report.said[-1]
    run(setup, tmp_path / "cut")
    assert numbers(tmp_path / "straight") == numbers(tmp_path / "cut")
    assert same(final_weights(tmp_path / "straight"), final_weights(tmp_path / "cut"))


def test_who_insists_while_an_evaluation_is_written_has_it_again(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup = config(tiny_model)
    run(setup, tmp_path / "straight")
    report = Notes()
    with Trainer(setup, tmp_path / "cut", report) as trainer:
        write = trainer.writer.log

        def stop(step: int, row: Any) -> None:
            if step == 4 and "eval/dev/n" in row:
                raise KeyboardInterrupt
            write(step, row)

        trainer.writer.log = stop  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    assert "stopped at once" in report.said[-1]
    assert [score.name for score in run(setup, tmp_path / "cut").after] == ["dev"]
    assert numbers(tmp_path / "straight") == numbers(tmp_path / "cut")


def test_rollouts_ahead_belong_to_their_checkpoint(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, they were deleted ahead of the next checkpoint, which may not come to be."""
    setup = ahead(tiny_model, 1)
    run(setup, tmp_path / "straight")
    save = trainer_module.save_checkpoint

    def full(folder: Path, learner: Any, tokenizer: Any, counters: Any, *more: Any) -> Path:
        if counters.step == 4:
            raise DataError("the disk is full")
        return save(folder, learner, tokenizer, counters, *more)

    monkeypatch.setattr(trainer_module, "save_checkpoint", full)
    with pytest.raises(DataError, match="is full"):
        run(setup, tmp_path / "cut")
    monkeypatch.undo()
    with Trainer(setup, tmp_path / "cut") as trainer:
        assert trainer.counters.step == 2
        trainer.run()
    assert_same_steps(tmp_path / "straight", tmp_path / "cut")


@pytest.mark.parametrize(
    ("make", "settings"),
    [(tigpo, {"tracker.wait": 1}), (spear, {"tracker.paths": 2, "tracker.fill": 1.0})],
)
def test_a_tracker_is_told_the_step_that_was_played_when_the_interrupt_came(
    tiny_model: Path, tmp_path: Path, make: Any, settings: dict[str, Any]
) -> None:
    """Before, the resumed run took the step's rollouts as its tracker had not begun it: as 0."""
    recipe = with_settings(small(make), settings)
    setup = config(tiny_model, recipe=recipe, max_lag=0, evals=())
    run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "cut") as trainer:
        take = trainer.pipeline.take

        def stop(step: int, last: int | None) -> Any:
            played = take(step, last)
            if step == 3:
                raise KeyboardInterrupt
            return played

        trainer.pipeline.take = stop  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    run(setup, tmp_path / "cut")
    assert numbers(tmp_path / "straight") == numbers(tmp_path / "cut")
    assert same(final_weights(tmp_path / "straight"), final_weights(tmp_path / "cut"))


def test_rollouts_beside_the_checkpoints_of_an_earlier_version_are_found(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup = ahead(tiny_model, 1)
    run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "cut") as trainer:
        kill_after(trainer, 3)
        with pytest.raises(Killed):
            trainer.run()
    newest = tmp_path / "cut" / "checkpoints" / "step-000002"
    shutil.move(newest / "trainer" / "ahead", tmp_path / "cut" / "ahead")
    state = json.loads((newest / "trainer" / "state.json").read_text())
    for which in ("files", "digests"):
        state[which] = {n: v for n, v in state[which].items() if "/ahead/" not in n}
    (newest / "trainer" / "state.json").write_text(json.dumps(state))
    run(setup, tmp_path / "cut")
    assert_same_steps(tmp_path / "straight", tmp_path / "cut")


# ---------------------------------------------------------------- without a checkpoint


def test_a_finished_run_of_metrics_alone_gives_its_result_again(
    tiny_model: Path, tmp_path: Path
) -> None:
    """Before, opening its folder erased the metrics, and all was trained again."""
    setup = config(tiny_model, records="metrics", evals=(), budget=Budget(steps=2))
    first, report = train(setup, tmp_path), Notes()
    metrics = (tmp_path / "metrics.jsonl").read_text()
    assert train(setup, tmp_path, report) == first
    assert "is finished; its result is given again" in report.said[0]
    assert (tmp_path / "metrics.jsonl").read_text() == metrics
    for may in ({"max_batch": 3}, {"model": str(shutil.copytree(tiny_model, tmp_path / "copy"))}):
        assert train(replace(setup, **may), tmp_path) == first
    more = replace(setup, budget=Budget(steps=3))
    assert train(more, tmp_path, report).steps == 3
    assert "no checkpoint, so training begins anew" in report.said[1]
    assert (tmp_path / "earlier-1" / "metrics.jsonl").read_text() == metrics
    assert (tmp_path / "earlier-1" / "result.json").exists()
    assert [row["step"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3]


def test_metrics_from_before_the_first_checkpoint_are_set_aside(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup, report = config(tiny_model, evals=()), Notes()
    for _ in range(2):
        with Trainer(setup, tmp_path, report) as trainer:
            kill_after(trainer, 1)
            with pytest.raises(Killed):
                trainer.run()
    assert run(setup, tmp_path).steps == 4
    assert "earlier-1" in report.said[0]
    for number in (1, 2):
        assert len(read_metrics(tmp_path / f"earlier-{number}" / "metrics.jsonl")) == 1


@pytest.mark.parametrize("evals", [0, 1])
def test_a_run_whose_folder_another_one_has_begun_in_ends_and_writes_nothing_there(
    tiny_model: Path, tmp_path: Path, evals: int
) -> None:
    setup, folder = config(tiny_model, checkpoint_every=1), tmp_path / "run"
    setup = replace(setup, evals=setup.evals[:evals], eval_every=evals)
    run(setup, tmp_path / "straight")
    with Trainer(setup, folder) as trainer:
        inner = trainer.train_step

        def step() -> dict[str, float]:
            row = inner()
            if trainer.counters.step == 1:
                folder.rename(tmp_path / "old")
                run(setup, folder)
            return row

        trainer.train_step = step  # type: ignore[method-assign]
        with pytest.raises(DataError, match="removed, moved or replaced"):
            trainer.run()
    assert numbers(folder) == numbers(tmp_path / "straight")
    assert same(final_weights(folder), final_weights(tmp_path / "straight"))


# ---------------------------------------------------------------- which steps are written


def written(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("trajectories/step-*-train.jsonl"))


def test_after_an_interrupt_the_same_steps_are_written(tiny_model: Path, tmp_path: Path) -> None:
    """Before, checkpoints were counted from the interrupt on, and rollouts from the start."""
    setup = config(tiny_model, evals=(), budget=Budget(steps=7), keep=9)
    run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "cut") as trainer:
        step = trainer.train_step

        def stop() -> dict[str, float]:
            if trainer.counters.step == 3:
                raise KeyboardInterrupt
            return step()

        trainer.train_step = stop  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    run(setup, tmp_path / "cut")
    names = [
        {p.name for p in (tmp_path / which / "checkpoints").iterdir()}
        for which in ("straight", "cut")
    ]
    assert names[0] == {f"step-{step:06d}" for step in (2, 4, 6, 7)}
    assert names[1] == names[0] | {"step-000003"}
    assert written(tmp_path / "straight") == written(tmp_path / "cut")


def test_a_damaged_checkpoint_is_not_kept_in_place_of_whole_ones(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup, report = config(tiny_model, evals=(), keep=1, checkpoint_every=100), Notes()
    with Trainer(setup, tmp_path) as trainer:
        trainer.train_step()
        trainer._save()
        shutil.copytree(tmp_path / "checkpoints/step-000001", tmp_path / "copy")
        trainer.train_step()
        trainer.train_step()
        trainer._save()
    shutil.move(tmp_path / "copy", tmp_path / "checkpoints/step-000001")
    (tmp_path / "checkpoints/step-000003/model.safetensors").write_bytes(b"bad")
    with Trainer(setup, tmp_path, report) as trainer:
        assert trainer.counters.step == 1
        trainer.train_step()
        trainer._save()
    left = sorted(p.name for p in (tmp_path / "checkpoints").iterdir())
    assert left == ["damaged-step-000003", "step-000002"]
    assert "damaged-step-000003" in "".join(report.said)
    with Trainer(setup, tmp_path) as trainer:
        assert trainer.counters.step == 2


def test_a_rule_rewritten_since_then_is_told(tiny_model: Path, tmp_path: Path) -> None:
    """Run again in a notebook, its cell gave the old rule's result without a word."""

    def setup(factor: float, steps: int) -> TrainConfig:
        @dataclass(frozen=True, kw_only=True)
        class Mine(GroupCredit):
            def __call__(self, forest: Forest, annotations: Any, by: float = factor) -> Credits:
                found = super().__call__(forest, annotations)
                return replace(found, advantages=[by * row for row in found.advantages])

        base = config(tiny_model, evals=(), budget=Budget(steps=steps))
        return replace(base, recipe=replace(base.recipe, credit=Mine()))

    for factor, steps, told in ((1.0, 1, False), (1.0, 2, False), (2.0, 2, True), (2.0, 3, True)):
        report = Notes()
        with Trainer(setup(factor, steps), tmp_path, report) as trainer:
            trainer.run()
        assert any("Mine: other code than at an earlier start" in x for x in report.said) == told


def test_evaluation_tasks_that_are_others_since_then_are_told(
    tiny_model: Path, tmp_path: Path
) -> None:
    """A run went on over another generation of its tasks, and compared the scores of both."""
    for steps, told in ((1, False), (2, False), (3, True)):
        report, path = Notes(), tmp_path / "versions.json"
        if told:  # as an environment that generated other tasks wrote it
            found = json.loads(path.read_text())
            found["starts"][0]["tasks"]["dev"] = "other"
            del found["starts"][1]["tasks"]  # and as it was before there was such a thing
            path.write_text(json.dumps(found))
        with Trainer(config(tiny_model, budget=Budget(steps=steps)), tmp_path, report) as trainer:
            trainer.run()
        said = [x for x in report.said if "other tasks than at an earlier start" in x]
        assert [x.split(":")[0] for x in said] == ["evaluation set dev"] * told


def test_a_closed_trainer_says_so(tiny_model: Path, tmp_path: Path) -> None:
    with Trainer(config(tiny_model), tmp_path) as trainer:
        pass
    for call in (trainer.run, trainer.train_step):
        with pytest.raises(DataError, match=r"this run was closed.*Make a new one"):
            call()


def test_what_is_no_reporter_is_refused_before_anything_is_loaded(
    tiny_model: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadValueError, match="report is <built-in function print>"):
        train(config(tiny_model), tmp_path / "run", print)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()
