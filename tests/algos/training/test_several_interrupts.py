"""Interrupts of several processes: all save at the same step, or none does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from helpers.training_runs import config

from turngym.algos.runs.process_group import Channel, Ranks
from turngym.algos.runs.progress import Silent
from turngym.algos.training.config import Budget
from turngym.algos.training.trainer import Trainer

PAIR = """
import os, signal, sys
sys.path[:0] = sys.argv[3:]
signal.signal(signal.SIGINT, signal.default_int_handler)
from helpers import letters_world, training_runs
from pathlib import Path
from turngym.algos.training.config import Budget
from turngym.algos.training.trainer import Trainer
setup = training_runs.config(Path(sys.argv[1]), budget=Budget(steps=100), evals=())
with Trainer(setup, sys.argv[2]) as trainer:
    take = trainer.pipeline.take
    def interrupted(step, last):
        if step == 4 and os.environ["RANK"] == "1":
            for _ in range(int(os.environ["SIGNALS"])):
                signal.raise_signal(signal.SIGINT)
        return take(step, last)
    trainer.pipeline.take = interrupted
    try:
        trainer.run()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        os._exit(130)
"""


def interrupt_second(model: Path, folder: Path, signals: int) -> list[int | None]:
    """Train in two processes, of which the second gets signals in step 4; their exit statuses.

    Ends the first where it waits for the second in vain, as a launcher does.
    """
    paths = [str(Path(__file__).parents[2])]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    shared |= {"OMP_NUM_THREADS": "1", "SIGNALS": str(signals)}
    pair = [
        subprocess.Popen(
            [sys.executable, "-c", PAIR, str(model), str(folder), *paths],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(2)
    ]
    try:
        pair[1].wait(timeout=200)
        with suppress(subprocess.TimeoutExpired):
            pair[0].wait(timeout=60)
        return [process.poll() for process in pair]
    finally:
        for process in pair:
            process.kill()
            process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2])
def test_an_interrupt_of_one_process_ends_both(
    tiny_model: Path, tmp_path: Path, signals: int
) -> None:
    """A second one does so at once: the process would begin to save alone."""
    statuses = interrupt_second(tiny_model, tmp_path, signals)
    assert statuses[1] == 130
    assert signals == 2 or statuses[0] == 130
    saved = sorted(p.name for p in (tmp_path / "checkpoints").iterdir())
    assert saved == (["step-000002", "step-000004"] if signals == 1 else ["step-000002"])


class Notes(Silent):
    """Keeps what is noted."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


class Pair(Channel):
    """Two processes that do the same."""

    def everyone(self, mine: Any) -> list[Any]:
        return [mine, mine]

    def from_first(self, mine: Any) -> Any:
        return mine


@pytest.mark.parametrize(("signals", "saves"), [(1, 1), (2, 0)])
def test_several_processes_save_only_what_all_agreed_on(
    tiny_model: Path, tmp_path: Path, signals: int, saves: int
) -> None:
    saved: list[int] = []
    notes = Notes()
    with Trainer(config(tiny_model, evals=()), tmp_path, notes) as trainer:
        trainer.ranks = Ranks(Pair(0, 2), Pair(0, 2))
        trainer._save = lambda: saved.append(trainer.counters.step) or 0

        def interrupted() -> dict[str, float]:
            for _ in range(signals):
                signal.raise_signal(signal.SIGINT)
            return {}

        trainer.train_step = interrupted
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    assert len(saved) == saves
    said = "is saved" if saves else "stopped at once; the same call resumes"
    assert said in notes.said[-1]


def test_no_process_returns_before_the_result_is_written(tiny_model: Path, tmp_path: Path) -> None:
    """Else one of them trains anew where the first is given the result again."""
    there: dict[Any, bool] = {}

    class Watching(Pair):
        def everyone(self, mine: Any) -> list[Any]:
            there[mine] = (tmp_path / "result.json").exists()
            return [mine, mine]

    setup = config(tiny_model, evals=(), records="metrics", budget=Budget(steps=1))
    with Trainer(setup, tmp_path) as trainer:
        trainer.ranks = Ranks(Watching(0, 2), Pair(0, 2))
        trainer.run()
    assert [*there.values()][-1]
