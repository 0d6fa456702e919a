"""What two processes did, once for all tests here: runs of training, and what they saw."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from helpers.process_pair import run_pair
from helpers.rank_run import STEPS, partial, setup

from turngym.algos.training.trainer import train


@pytest.fixture(scope="session")
def pair(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of it all; workers that run the tests side by side share one."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "pair"
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            folder.mkdir(exist_ok=True)
            threads = torch.get_num_threads()
            torch.set_num_threads(1)
            _play(folder, str(tiny_model))
            torch.set_num_threads(threads)
            (folder / "done").touch()
    return folder


def _play(root: Path, model: str) -> None:
    for recipe in ("grpo", "ppo"):
        train(setup(recipe, model, STEPS), root / f"{recipe}-1")
    train(partial(model, STEPS), root / "partial-1")
    # begun by one process, ended by two
    _forget_after_2(root / "ppo-1", root / "ppo-1-2")
    _forget_after_2(root / "partial-1", root / "partial-1-2")
    names = "grpo-2", "ppo-2", "ppo-1-2", "partial-2", "partial-1-2"
    parts = [(name, STEPS) for name in (*names, "rounded-2")]
    parts += [(f"{name}-2-2", steps) for name in ("partial", "rounded") for steps in (2, STEPS)]
    jobs = [
        {"recipe": name.partition("-")[0], "model": model, "steps": n, "folder": str(root / name)}
        for name, n in parts
    ]
    run_pair(root, jobs)
    # begun by two, ended by one
    _forget_after_2(root / "ppo-2", root / "ppo-2-1")
    train(setup("ppo", model, STEPS), root / "ppo-2-1")
    _forget_after_2(root / "partial-2", root / "partial-2-1")
    train(partial(model, STEPS), root / "partial-2-1")


def _forget_after_2(source: Path, target: Path) -> None:
    """The run as it was when it died in its third step."""
    shutil.copytree(source, target)
    shutil.rmtree(target / "checkpoints" / f"step-{STEPS:06d}")
    (target / "result.json").unlink()
