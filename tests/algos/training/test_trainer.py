"""The loop: same numbers after a kill, clean interrupts, budgets, what is counted and refused."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
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
from safetensors.torch import load_file

from turngym.algos.core.forest import Group, Tree
from turngym.algos.core.protocols import Start, Unforked
from turngym.algos.core.recipe import Recipe
from turngym.algos.evaluation.result import RunResult
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.losses import PolicyLoss
from turngym.algos.recipes.grpo import grpo
from turngym.algos.recipes.ppo import ppo
from turngym.algos.rollouts import Chains
from turngym.algos.runs.interrupts import held_interrupts
from turngym.algos.runs.metrics import without_times
from turngym.algos.runs.progress import Silent
from turngym.algos.runs.run_dir import RunLockedError, read_metrics
from turngym.algos.training import trainer as trainer_module
from turngym.algos.training.config import Budget, EnvConfig, EvalConfig
from turngym.algos.training.trainer import Trainer, train
from turngym.envs.core.errors import BadValueError, DataError, UnknownNameError

# ---------------------------------------------------------------- resuming


@pytest.mark.parametrize(("kill_at", "recipe"), [(2, grpo), (3, ppo)])
def test_a_killed_run_ends_in_the_same_numbers(
    tiny_model: Path, tmp_path: Path, recipe: Callable[[], Recipe], kill_at: int
) -> None:
    setup = config(tiny_model, recipe=small(recipe))
    straight = run(setup, tmp_path / "straight")
    with Trainer(setup, tmp_path / "killed") as trainer:
        kill_after(trainer, kill_at)
        with pytest.raises(Killed):
            trainer.run()
    with Trainer(setup, tmp_path / "killed") as trainer:
        assert trainer.counters.step == 2
        resumed = trainer.run()
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "straight")
    assert same(final_weights(tmp_path / "killed"), final_weights(tmp_path / "straight"))
    assert not same(
        final_weights(tmp_path / "straight"), load_file(tiny_model / "model.safetensors")
    )
    for field in ("before", "after", "sampled_tokens", "env_turns", "steps"):
        assert getattr(resumed, field) == getattr(straight, field)


@pytest.mark.parametrize("recipe", [grpo, ppo])
def test_steps_do_not_depend_on_what_torch_was_told_before(
    recipe: Any, tiny_model: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rows = []
    for name in ("usual", "other"):
        if name == "other":
            request.getfixturevalue("other_torch")
        with Trainer(config(tiny_model, recipe=small(recipe)), tmp_path / name) as trainer:
            rows.append([without_times(trainer.train_step()) for _ in range(2)])
    assert rows[0] == rows[1]


@pytest.mark.usefixtures("drawn")
def test_the_run_directory_holds_what_it_should(tiny_model: Path, tmp_path: Path) -> None:
    setup = config(tiny_model)
    result = run(setup, tmp_path)
    assert RunResult.read(tmp_path / "result.json") == result
    assert result.before[0].n == result.after[0].n == 4
    assert result.steps == 4
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["recipe"]["loss"]["clip"]["low"] == 0.2
    assert settings["model_digest"].startswith("sha256:")
    started = json.loads((tmp_path / "versions.json").read_text())["starts"]
    assert [s["from_step"] for s in started] == [0]
    assert started[0]["packages"]["torch"] == version("torch")
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    text = (tmp_path / "trajectories" / "step-000000-dev.txt").read_text()
    assert "dev/0: " in text
    assert "pear:" in text
    assert (tmp_path / "trajectories" / "step-000002-train.jsonl").stat().st_size > 0
    assert list((tmp_path / "tensorboard").iterdir())
    assert [p.name for p in sorted((tmp_path / "checkpoints").iterdir())] == [
        "step-000002",
        "step-000004",
    ]
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert [r["step"] for r in rows] == [0, 1, 2, 2, 3, 4, 4]
    assert rows[1]["update/logprob_diff_max_nats"] < 1e-3
    assert rows[-2]["budget/tokens"] == result.sampled_tokens


@pytest.mark.parametrize(
    ("every", "greedy"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4, 5]), (0, [0, 5])]
)
def test_greedy_evaluations_can_be_thinned(
    tiny_model: Path, tmp_path: Path, every: int, greedy: list[int]
) -> None:
    setup = config(tiny_model, eval_every=1, greedy_every=every, budget=Budget(steps=5))
    result = run(setup, tmp_path)
    rows = [r for r in read_metrics(tmp_path / "metrics.jsonl") if "eval/dev/n" in r]
    assert [r["step"] for r in rows] == [0, 1, 2, 3, 4, 5]
    assert [r["step"] for r in rows if "eval/dev/greedy_success_frac" in r] == greedy
    for (score,), row in ((result.before, rows[0]), (result.after, rows[-1])):
        assert score.greedy is not None
        assert score.temperature == 1.0
        assert score.return_.mean == row["eval/dev/return_mean"]
        assert score.greedy.return_.mean == row["eval/dev/greedy_return_mean"]


def test_a_larger_budget_goes_on_and_a_used_one_does_nothing(
    tiny_model: Path, tmp_path: Path
) -> None:
    run(config(tiny_model, budget=Budget(steps=1)), tmp_path)
    assert run(config(tiny_model, budget=Budget(steps=1)), tmp_path).steps == 1
    assert run(config(tiny_model, budget=Budget(steps=3)), tmp_path).steps == 3
    assert [r["step"] for r in numbers(tmp_path) if "update/loss" in r] == [1, 2, 3]


def test_rewards_rise(tiny_model: Path, tmp_path: Path) -> None:
    recipe = dataclasses.replace(small(grpo, lr=1e-2, minibatches=1), loss=PolicyLoss())
    recipe = dataclasses.replace(recipe, groups_per_step=4, rollout=Chains(n=6))
    run(config(tiny_model, recipe=recipe, budget=Budget(steps=15), evals=()), tmp_path)
    returns = [row["rollout/return_mean"] for row in read_metrics(tmp_path / "metrics.jsonl")]
    assert sum(returns[-3:]) / 3 > 2 * sum(returns[:3]) / 3


# ---------------------------------------------------------------- budgets


def test_token_budget_ends_the_run(tiny_model: Path, tmp_path: Path) -> None:
    result = run(config(tiny_model, budget=Budget(tokens=60), evals=()), tmp_path)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert result.sampled_tokens >= 60
    assert rows[-1]["budget/tokens"] - rows[-1]["rollout/tokens"] < 60


def test_a_budget_of_actions_ends_the_run(tiny_model: Path, tmp_path: Path) -> None:
    result = run(config(tiny_model, budget=Budget(calls=20), evals=()), tmp_path)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert rows[-1]["budget/turns"] == result.env_turns >= 20
    assert all(row["budget/turns"] < 20 for row in rows[:-1])


def test_a_budget_without_limits_is_refused() -> None:
    with pytest.raises(BadValueError, match="at least one limit"):
        Budget()


# ---------------------------------------------------------------- interrupts

CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
sys.path[:0] = sys.argv[3:]
from helpers import letters_world, training_runs
from pathlib import Path
from statistics import fmean
from turngym.algos.training.config import Budget
from turngym.algos.learner import importance_weights
from turngym.algos.learner.settings import LearnerSettings
from turngym.algos.training import trainer as trainer_module
from turngym.algos.training.trainer import Trainer
setup = training_runs.config(Path(sys.argv[1]), budget=Budget(steps=100_000), evals=())
with Trainer(setup, sys.argv[2]) as trainer:
    print("ready", flush=True)
    try:
        trainer.run()
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_a_run_that_goes_on(
    tiny_model: Path, tmp_path: Path, number: int
) -> None:
    tests = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tiny_model), str(tmp_path), str(tests)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    metrics = tmp_path / "metrics.jsonl"
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and len(numbers(tmp_path)) < 3:
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    steps = [r["step"] for r in read_metrics(metrics)]
    assert steps == list(range(1, len(steps) + 1))
    more = Budget(steps=len(steps) + 1)
    with Trainer(config(tiny_model, budget=more, evals=()), tmp_path) as trainer:
        assert trainer.counters.step == len(steps)
        trainer.run()


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as a disk without room would not."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [500, 20_000])  # of the model's settings; of its weights
def test_a_disk_without_room_keeps_the_checkpoint_before(
    tiny_model: Path, tmp_path: Path, size: int
) -> None:
    with Trainer(config(tiny_model, evals=()), tmp_path) as trainer:
        trainer.train_step()
        whole = trainer._save()
        trainer.train_step()
        with (
            files_up_to(size),
            pytest.raises(DataError, match="a file grew larger than this process"),
        ):
            trainer._save()
        assert whole == 1
        assert [p.name for p in trainer.writer.checkpoints.iterdir()] == ["step-000001"]
        trainer._save()
    with Trainer(config(tiny_model, evals=()), tmp_path) as trainer:
        assert trainer.counters.step == 2


def test_a_changed_working_folder_does_not_move_a_run(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook that went elsewhere was told that its run's folder had been removed."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Trainer(config(tiny_model), "run") as trainer:
        monkeypatch.chdir("elsewhere")
        trainer.run()
    assert (tmp_path / "run" / "result.json").is_file()
    assert not any((tmp_path / "elsewhere").iterdir())


def test_a_read_only_run_folder_is_one_line(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DataError, match="run: cannot be used \\(Read-only file system"):
        train(config(tiny_model, evals=()), tmp_path / "run")


def interrupted(times: int) -> list[str]:
    """What is reached in a held section that so many interrupts hit."""
    done: list[str] = []

    def section() -> None:
        with held_interrupts():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            done.append("reached")

    with pytest.raises(KeyboardInterrupt):
        section()
    return done


def test_interrupts_wait_while_held() -> None:
    assert interrupted(times=1) == ["reached"]


def test_a_second_interrupt_is_not_held() -> None:
    assert interrupted(times=2) == []


def test_training_works_in_a_thread(tiny_model: Path, tmp_path: Path) -> None:
    results: list[RunResult] = []
    setup = config(tiny_model, budget=Budget(steps=1), evals=())
    worker = threading.Thread(target=lambda: results.append(run(setup, tmp_path)))
    worker.start()
    worker.join(60)
    assert results[0].steps == 1


def test_the_result_says_how_far_engine_and_learner_are_apart(
    tiny_model: Path, tmp_path: Path
) -> None:
    result = run(config(tiny_model, budget=Budget(steps=2), evals=()), tmp_path)
    key = "update/logprob_diff_mean_nats"
    rows = [row[key] for row in read_metrics(tmp_path / "metrics.jsonl") if key in row]
    assert len(rows) == 2
    assert result.engine_apart_nats == pytest.approx(sum(rows) / 2)
    assert RunResult.read(tmp_path / "result.json") == result


def test_the_result_says_what_limits_cut(tiny_model: Path, tmp_path: Path) -> None:
    short = config(tiny_model, budget=Budget(steps=2), evals=(), max_tokens=4, max_context=13)
    result = run(short, tmp_path / "short")
    rows = read_metrics(tmp_path / "short" / "metrics.jsonl")
    for found, key in (
        (result.context_full_frac, "rollout/overflow_frac"),
        (result.cut_actions_frac, "rollout/cut_actions_frac"),
    ):
        assert found == pytest.approx(fmean(row[key] for row in rows if key in row))
        assert found is not None
        assert found > 0.01
    assert RunResult.read(tmp_path / "short" / "result.json") == result
    told = json.loads((tmp_path / "short" / "result.json").read_text())
    long = config(tiny_model, budget=Budget(steps=1), evals=(), max_context=512)
    assert run(long, tmp_path / "long").context_full_frac is None
    assert "context_full_frac" in told
    assert "context_full_frac" not in (tmp_path / "long" / "result.json").read_text()


# ---------------------------------------------------------------- broken worlds, bad input


def test_broken_episodes_are_counted_and_train_nothing(tiny_model: Path, tmp_path: Path) -> None:
    env = EnvConfig(id="Letters-v0", settings={"broken": "plum", "count": 4})
    evals = (EvalConfig(name="dev", env=env, n=4),)
    setup = config(tiny_model, env=env, evals=evals, budget=Budget(steps=2))
    result = run(setup, tmp_path)
    rows = [r for r in read_metrics(tmp_path / "metrics.jsonl") if "rollout/paths" in r]
    assert sum(r["rollout/env_errors"] for r in rows) == 3  # one of four tasks, three chains
    assert sum(r["rollout/paths"] for r in rows) == 9
    assert result.after[0].errors == 1
    assert result.after[0].n == 3


def test_a_world_that_is_wholly_broken_still_ends(tiny_model: Path, tmp_path: Path) -> None:
    class Heard(Silent):
        lines: list[str] = []  # noqa: RUF012

        def note(self, text: str) -> None:
            self.lines.append(text)

    env = EnvConfig(id="Letters-v0", settings={"broken": "pear", "count": 1})
    evals = (EvalConfig(name="dev", env=env, n=1),)
    setup = config(tiny_model, env=env, evals=evals, budget=Budget(steps=2))
    with Trainer(setup, tmp_path, Heard()) as trainer:
        result = trainer.run()
    told = "\n".join(Heard.lines)
    assert "step 1: 6 of 6 episodes failed (env_error) and are excluded. The env" in told
    assert "step 2: dev has no score: all 1 episodes broke" in told
    assert result.steps == 2
    assert result.sampled_tokens > 0
    assert same(final_weights(tmp_path, 2), load_file(tiny_model / "model.safetensors"))


@dataclasses.dataclass(frozen=True)
class Barren(Unforked):
    """Returns groups of which no episode has a turn."""

    n: int = 2
    trees: int = 0

    async def __call__(self, runner: Any, start: Start) -> Group:
        return Group(start.uid, str(start.task), [Tree() for _ in range(self.trees)])


@dataclasses.dataclass(frozen=True)
class Strict:
    max_rounds: int = 1

    def keeps(self, returns: Any) -> bool:
        return False


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"rollout": Barren()}, "step 1: the 2 groups of Barren have no turn, so nothing is"),
        ({"rollout": Barren(trees=2)}, "step 1: the 2 groups of Barren have no turn"),
        ({"filter": Strict()}, "step 1: Strict left out all 2 groups, so nothing is trained on"),
    ],
)
def test_a_step_without_an_update_says_so(
    tiny_model: Path, tmp_path: Path, parts: dict[str, Any], words: str
) -> None:
    notes: list[str] = []
    listener = Silent()
    listener.note = notes.append  # type: ignore[method-assign]
    recipe = dataclasses.replace(small(grpo), **parts)
    setup = config(tiny_model, recipe=recipe, evals=(), budget=Budget(steps=1))
    with Trainer(setup, tmp_path, listener) as trainer:
        assert trainer.run().optimizer_steps == 0
    assert words in "\n".join(notes)


def test_a_nan_leaves_a_run_that_goes_on(tiny_model: Path, tmp_path: Path) -> None:
    from turngym.algos.learner.learner import LossNotFiniteError

    setup = config(tiny_model, evals=())
    with Trainer(setup, tmp_path) as trainer:
        inner = trainer.learner.update

        def poisoned(forest: Any, notes: Any, credits: Any, share: float) -> dict[str, float]:
            if trainer.counters.step == 2:
                credits.advantages[0][:] = float("nan")
            return inner(forest, notes, credits, share)

        trainer.learner.update = poisoned  # type: ignore[method-assign]
        with pytest.raises(LossNotFiniteError):
            trainer.run()
    assert run(setup, tmp_path).steps == 4


def test_second_process_in_the_run_directory_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    setup = config(tiny_model, evals=())
    with Trainer(setup, tmp_path), pytest.raises(RunLockedError):
        Trainer(setup, tmp_path)


def test_another_configuration_is_refused_by_key(tiny_model: Path, tmp_path: Path) -> None:
    run(config(tiny_model, budget=Budget(steps=0), evals=()), tmp_path)
    with pytest.raises(BadValueError, match=r"recipe\.optim\.lr: was 0\.003, now 0\.1"):
        Trainer(config(tiny_model, recipe=small(grpo, lr=0.1), evals=()), tmp_path)


def test_a_truncated_run_directory_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    setup = config(tiny_model, budget=Budget(steps=2), evals=())
    run(setup, tmp_path)
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:100])
    with pytest.raises(DataError, match="was cut"):
        Trainer(setup, tmp_path)
    for weights in (tmp_path / "checkpoints").glob("*/model.safetensors"):
        weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(DataError, match="no checkpoint is whole"):
        Trainer(setup, tmp_path)


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"split": "tain"}, UnknownNameError, "'train'"),
        ({"env": EnvConfig(id="Leters-v0")}, UnknownNameError, "environment"),
        (
            {"env": EnvConfig(id="Letters-v0", settings={"max_turns": 0})},
            BadValueError,
            "max_turns",
        ),
        ({"env": EnvConfig(id="Letters-v0", settings={"coun": 1})}, UnknownNameError, "'count'"),
        ({"max_context": 4096}, BadValueError, "512"),
        ({"max_context": 8}, BadValueError, "first prompt has"),
        (
            {"env": EnvConfig(id="Letters-v0", settings={"padding": 600})},
            BadValueError,
            "max_tokens",
        ),
        ({"checkpoint_every": 0}, BadValueError, "checkpoint_every is 0"),
        ({"device": "cuda:99"}, BadValueError, "device"),
    ],
)
def test_bad_settings_are_refused_before_a_folder_is_made(
    tiny_model: Path, tmp_path: Path, more: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Trainer(config(tiny_model, **{"evals": (), **more}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_not_a_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(BadValueError, match="not a "):
        Trainer(config(tmp_path / "model"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_tokenizer_without_pad_token_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(tiny_model, tmp_path / "model")
    for name in ("tokenizer_config.json", "config.json"):
        path = tmp_path / "model" / name
        data = json.loads(path.read_text())
        data["pad_token" if name.startswith("tok") else "pad_token_id"] = None
        path.write_text(json.dumps(data))
    with pytest.raises(BadValueError, match="no pad token"):
        Trainer(config(tmp_path / "model"), tmp_path / "run")


# ---------------------------------------------------------------- engine and learner apart


@pytest.mark.parametrize("exact", [True, False])
def test_a_run_weighs_and_shows_how_far_a_large_models_engine_is_off(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: bool
) -> None:
    monkeypatch.setattr(trainer_module, "is_large", lambda _: True)
    setup = config(tiny_model, engine_dtype="float32" if exact else "bfloat16")
    setup = dataclasses.replace(setup, learner=LearnerSettings(precision="float32"))
    with Trainer(setup, tmp_path / "run") as trainer:
        row = trainer.train_step()
    assert ("update/importance_mean" in row) is not exact
    assert trainer_module._apart({"update/logprob_diff_mean_nats": 0.0494}).endswith(
        "engine 0.049 nats off"
    )


class Notes(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.parametrize("above", [None, 0.5])
def test_a_path_of_another_policy_is_left_out_and_a_run_says_so(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: float | None
) -> None:
    """As a lost cache would leave it: the first path's tokens are 3 nats less likely."""
    report = Notes()
    setup = config(tiny_model, importance_cap=0, reject_above=above, engine_dtype="float32")
    setup = dataclasses.replace(setup, learner=LearnerSettings(precision="float32"))
    with Trainer(setup, tmp_path / "run", report) as trainer:
        plain = trainer.learner.models.logprobs

        def broken(rows: Any) -> list[Any]:
            found = plain(rows)
            return [found[0] - np.float32(3.0), *found[1:]] if len(rows) > 1 else found

        updated: list[int] = []
        update = trainer.learner.update

        def watched(forest: Any, *given: Any) -> dict[str, float]:
            updated.append(len(forest.paths))
            return update(forest, *given)

        monkeypatch.setattr(trainer.learner.models, "logprobs", broken)
        monkeypatch.setattr(trainer.learner, "update", watched)
        row = trainer.train_step()
    paths = int(row["rollout/paths"])
    assert row["update/logprob_diff_max_nats"] == pytest.approx(3.0, abs=0.01)
    assert sum("engine and learner differ by" in line for line in report.said) == 1
    if above is None:  # as it was: trained on like any other
        assert updated == [paths]
        assert "update/rejected_frac" not in row
    else:
        assert updated == [paths - 1]
        assert row["update/rejected_frac"] == pytest.approx(1 / paths)
        assert "paths above 0.5 nats are left out" in "".join(report.said)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_path_without_finite_log_probabilities_is_left_out_and_the_run_goes_on(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: float
) -> None:
    """The weights and means held it before it was left out, and ended the run after the update."""
    setup = config(tiny_model, importance_cap=2.0, reject_above=0.5, engine_dtype="float32")
    setup = dataclasses.replace(setup, learner=LearnerSettings(precision="float32"))
    with Trainer(setup, tmp_path / "run") as trainer:
        plain = trainer.learner.models.logprobs

        def broken(rows: Any) -> list[Any]:
            found = plain(rows)
            if len(rows) > 1:
                found[0] = np.concatenate([np.float32([bad]), found[0][1:]])
            return found

        monkeypatch.setattr(trainer.learner.models, "logprobs", broken)
        row = trainer.train_step()
    assert row["update/rejected_frac"] == pytest.approx(1 / row["rollout/paths"])
    assert 0 < row["update/importance_mean"] <= 2
    assert row["update/logprob_diff_max_nats"] < 0.5
