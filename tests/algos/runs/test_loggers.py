"""Loggers: objects of one's own, TensorBoard, Weights & Biases offline, trackio on this machine."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from turngym.algos import Budget, EnvConfig, EvalConfig, TrainConfig, make_recipe, train
from turngym.algos.runs import loggers
from turngym.algos.runs.loggers import LoggedRun, TensorBoard, check_loggers, make_logger
from turngym.algos.runs.run_dir import read_metrics
from turngym.benchmarks.cli.main import main
from turngym.envs.core.errors import BadValueError, MissingExtraError, UnknownNameError


class Kept:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, Mapping[str, float]]] = []
        self.closed = 0

    def log(self, step: int, row: Mapping[str, float]) -> None:
        assert not self.closed
        self.rows.append((step, row))

    def close(self) -> None:
        self.closed += 1


def test_an_object_of_one_s_own_gets_every_row(tiny_model: Path, tmp_path: Path) -> None:
    env = EnvConfig(id="Letters-v0", settings={"count": 2})
    config = TrainConfig(
        env=env,
        model=str(tiny_model),
        recipe=make_recipe("grpo", {"groups_per_step": 1, "rollout.n": 2}),
        budget=Budget(steps=2),
        evals=(EvalConfig(env=env, n=1),),
        max_tokens=4,
    )
    mine = Kept()
    train(config, tmp_path / "run", loggers=[mine])
    written = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [{"step": step, **row} for step, row in mine.rows] == written
    assert mine.closed == 1
    assert {row["step"] for row in written} == {0, 1, 2}
    assert list((tmp_path / "run" / "tensorboard").iterdir())


def test_a_logger_that_cannot_be_closed_leaves_no_lock(tiny_model: Path, tmp_path: Path) -> None:
    class Lost(Kept):
        def close(self) -> None:
            raise ConnectionError("the service is gone")

    config = TrainConfig(
        env=EnvConfig(id="Letters-v0", settings={"count": 2}),
        model=str(tiny_model),
        recipe=make_recipe("grpo", {"groups_per_step": 1, "rollout.n": 2}),
        budget=Budget(steps=1),
        max_tokens=4,
    )
    other = Kept()
    with pytest.raises(ConnectionError, match="is gone"):
        train(config, tmp_path / "run", loggers=[other, Lost()])
    assert other.closed == 1
    assert train(config, tmp_path / "run").steps == 1


def test_names_are_checked_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    check_loggers([Kept()])
    with pytest.raises(BadValueError, match=r"loggers is 'wandb'; expected a list, such as \['wan"):
        check_loggers("wandb")
    with pytest.raises(BadValueError, match="<built-in function print> is no logger"):
        check_loggers([print])  # type: ignore[list-item]
    with pytest.raises(BadValueError, match=r"<class '.*Kept'> is no logger; expected"):
        check_loggers([Kept])  # type: ignore[list-item]
    with pytest.raises(UnknownNameError, match=r"unknown logger 'wandbb'.*'wandb'"):
        check_loggers(["wandbb"])
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="wandb"):
        check_loggers(["wandb"])
    assert main(["train", "--env", "Bandit-v0", "--log", "trackio"]) == 2
    assert "--log trackio needs the package 'trackio'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def run_of(tmp_path: Path) -> LoggedRun:
    root = tmp_path / "run"
    root.mkdir(exist_ok=True)
    return LoggedRun(root, {"seed": 1, "env": {"id": "A-v0"}}, 0)


def test_a_resumed_run_is_the_same_run(tmp_path: Path) -> None:
    one = run_of(tmp_path)
    assert one.id == one._replace(step=7).id
    assert one.id != one._replace(root=tmp_path / "other").id


def test_tensorboard_events(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logger = TensorBoard(run_of(tmp_path))
    logger.log(3, {"train/loss": 0.5})
    logger.close()
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("train/loss")] == [(3, 0.5)]


@pytest.mark.skipif(find_spec("wandb") is None, reason="extra wandb")
def test_wandb_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = run_of(tmp_path)
    logger = make_logger("wandb", run)
    logger.log(0, {"eval/dev/success": 0.25})
    logger.log(0, {"time/elapsed_s": 1.0})
    logger.log(1, {"train/loss": 0.5})
    logger.close()
    (file,) = (run.root / "wandb").glob(f"offline-run-*-{run.id}/*.wandb")
    data = file.read_bytes()
    for word in (b"eval/dev/success", b"train/loss", b"0.25"):
        assert word in data


@pytest.mark.skipif(find_spec("trackio") is None, reason="extra trackio")
def test_trackio_keeps_a_run_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    program = """
import sys
from pathlib import Path
from turngym.algos.runs.loggers import LoggedRun, make_logger
logger = make_logger("trackio", LoggedRun(Path(sys.argv[1]), {"seed": 1}, 0))
logger.log(0, {"eval/dev/success": 0.25})
logger.log(1, {"train/loss": 0.5})
logger.close()
"""
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "run")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "trackio").glob("turngym*.db")
    rows = (
        sqlite3.connect(file).execute("select step, metrics from metrics order by step").fetchall()
    )
    assert [step for step, _ in rows] == [0, 1]
    assert "train/loss" in str(rows)


def test_an_interrupt_waits_until_the_events_are_queued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = TensorBoard(run_of(tmp_path))
    added: list[str] = []

    def add(key: str, value: float, step: int) -> None:
        signal.raise_signal(signal.SIGINT)
        added.append(key)

    monkeypatch.setattr(board._writer, "add_scalar", add)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            board.log(1, {"a": 1.0, "b": 2.0})
    finally:
        signal.signal(signal.SIGINT, before)
    assert added == ["a", "b"]
    board.close()
