"""A short fuzz with every test run; the long one, which can be resumed, before a release."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from turngym.envs import TextEnv

STATE = Path(__file__).resolve().parents[2] / "build" / "attacks" / "fuzz.json"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz", Path(__file__).with_name("fuzz.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module  # where dataclasses look their module up
    spec.loader.exec_module(module)
    return module


FUZZ = _load()


@pytest.fixture
def envs(started: dict[str, TextEnv[Any, Any]]) -> dict[str, TextEnv[Any, Any]]:
    return {name: env.fork() for name, env in started.items()}


def test_a_short_fuzz_finds_nothing(envs: dict[str, TextEnv[Any, Any]]) -> None:
    figures = FUZZ.fuzz(FUZZ.Figures(seed=1), steps=500, envs=envs)
    assert figures.findings == []
    assert len(figures.steps) > 20
    assert figures.total >= 500


def test_a_fuzz_that_was_stopped_goes_on_as_if_it_had_not_been(
    tmp_path: Path, envs: dict[str, TextEnv[Any, Any]]
) -> None:
    state = tmp_path / "fuzz.json"
    FUZZ.fuzz(FUZZ.Figures(seed=2), steps=60, state=state, envs=envs)
    resumed = FUZZ.fuzz(FUZZ.read_figures(state, 2), steps=120, envs=envs)
    whole = FUZZ.fuzz(FUZZ.Figures(seed=2), steps=120, envs=envs)
    assert (resumed.rounds, resumed.steps) == (whole.rounds, whole.steps)
    with pytest.raises(SystemExit, match="seed 2, not 3"):
        FUZZ.read_figures(state, 3)


def test_what_breaks_is_found() -> None:
    class Broken:
        def step(self, action: str) -> None:
            raise ValueError(f"int() does not like {action}")

    assert "ValueError('int() does not like ½')" in FUZZ.take_step(Broken(), "½")[2]


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_a_million_steps_find_nothing() -> None:
    steps = int(os.environ.get("TURNGYM_FUZZ_STEPS", "1000000"))
    figures = FUZZ.fuzz(FUZZ.read_figures(STATE, 0), steps, STATE)
    print(FUZZ.describe(figures))
    assert figures.findings == []
