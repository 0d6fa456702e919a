"""Training over engine servers: the numbers of the engine in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import straggler_world
from helpers.engine_servers import engine_servers, spawned
from helpers.training_runs import config, final_weights, numbers, run, same

from turngym.agents.engines.http.settings import HttpSettings
from turngym.algos.training.config import Budget, EnvConfig, EvalConfig, TrainConfig
from turngym.algos.training.trainer import Trainer

assert straggler_world.Stragglers
# each server has a cache of its own
OF_ENGINE = ("engine/prefix_hit_frac", "engine/read_again_frac")
NOISE = 2e-5  # of batches of other shapes


def over(setup: TrainConfig, *urls: str, **more: Any) -> TrainConfig:
    own = {"timeout_s": 30.0, "attempts": 3} | more
    return replace(setup, engine="http", http=HttpSettings(urls=urls, **own))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in OF_ENGINE} for row in numbers(folder)]


def assert_close(one: Path, two: Path, step: int) -> None:
    for mine, theirs in zip(rows(one), rows(two), strict=True):
        assert mine == pytest.approx(theirs, abs=NOISE, rel=NOISE)
    assert_close_weights(one, two, step)


def assert_close_weights(one: Path, two: Path, step: int) -> None:
    a, b = final_weights(one, step), final_weights(two, step)
    assert a.keys() == b.keys()
    assert max(float((a[k] - b[k]).abs().max()) for k in a) < NOISE


def test_two_servers_give_the_run_of_one_process_to_the_bit(
    tiny_model: Path, tmp_path: Path
) -> None:
    """With one row at a time and one turn, nothing depends on who else is in a batch."""
    one_turn = EnvConfig(id="Letters-v0", settings={"max_turns": 1})
    one = EvalConfig(name="dev", env=one_turn, n=4)
    setup = config(tiny_model, env=one_turn, evals=(one,), budget=Budget(steps=2), max_batch=1)
    run(setup, tmp_path / "here")
    with engine_servers(tiny_model, 2, max_batch=1) as served:
        run(over(setup, *(url for url, _ in served)), tmp_path / "there")
        shares = [host.metrics()["sampled_tokens"] for _, host in served]
        assert {host.weights.version for _, host in served if host.weights} == {2}
    assert min(shares) > 0
    assert len(rows(tmp_path / "here")) > 2
    assert numbers(tmp_path / "here") == numbers(tmp_path / "there")
    assert same(final_weights(tmp_path / "here", 2), final_weights(tmp_path / "there", 2))


def test_a_server_lost_in_mid_run_and_others_after_a_resume_change_nothing(
    tiny_model: Path, tmp_path: Path
) -> None:
    setup = config(tiny_model, budget=Budget(steps=3), checkpoint_every=1)
    run(setup, tmp_path / "here")
    first_part = replace(setup, budget=Budget(steps=2))
    with engine_servers(tiny_model) as first, ExitStack() as second:
        urls = first[0][0], second.enter_context(engine_servers(tiny_model))[0][0]
        with Trainer(over(first_part, *urls), tmp_path / "there") as trainer:
            inner = trainer.train_step

            def step() -> dict[str, float]:
                if trainer.counters.step == 1:
                    second.close()
                return inner()

            trainer.train_step = step  # type: ignore[method-assign]
            trainer.run()
    with engine_servers(tiny_model) as served:
        run(over(setup, served[0][0]), tmp_path / "there")
    mine, theirs = (
        [row for row in rows(tmp_path / name) if "loss/policy" in row] for name in ("here", "there")
    )
    for one, two in zip(mine, theirs, strict=True):
        assert one == pytest.approx(two, abs=NOISE, rel=NOISE)
    assert_close_weights(tmp_path / "here", tmp_path / "there", 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [{"max_lag": 1, "importance_cap": 2.0}, {"partial_rollouts": 0.5, "evals": ()}]
)
def test_playing_ahead_and_partial_rollouts_over_servers(
    tiny_model: Path, tmp_path: Path, more: dict[str, Any]
) -> None:
    setup = config(tiny_model, env=EnvConfig(id="Stragglers-v0"), budget=Budget(steps=3), **more)
    run(setup, tmp_path / "here")
    with engine_servers(tiny_model, 2) as served:
        run(over(setup, *(url for url, _ in served)), tmp_path / "there")
    for mine, theirs in zip(rows(tmp_path / "here"), rows(tmp_path / "there"), strict=True):
        assert mine == pytest.approx(theirs, abs=NOISE, rel=NOISE)


@pytest.mark.slow
@pytest.mark.parametrize("by_group", [False, True])
def test_a_learner_of_two_processes_over_spawned_servers(
    tiny_model: Path, tmp_path: Path, by_group: bool
) -> None:
    """torchrun with two processes, each asking both servers; the first hands the weights over."""
    tests = Path(__file__).parents[2]
    words = () if by_group else ("--weights-folder", str(tmp_path))
    with spawned(tiny_model, *words) as (one, _), spawned(tiny_model, *words) as (two, _):
        paths = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
        for name, launcher, urls in (
            ("here", (), ()),
            ("there", ("torch.distributed.run", "--standalone", "--nproc-per-node=2"), (one, two)),
        ):
            script = [str(tests / "helpers" / "http_rank_run.py"), str(tiny_model)]
            given = str(tmp_path / name), "group" if by_group else str(tmp_path)
            module = ["-m", *launcher] if launcher else []
            done = subprocess.run(
                [sys.executable, *module, *script, *given, *urls],
                env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                timeout=280,
                check=False,
            )
            assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert_close(tmp_path / "here", tmp_path / "there", 3)
    assert not list(tmp_path.glob("weights-*"))
