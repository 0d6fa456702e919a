"""Runs of the original engine, step by step; they are no part of the project.

``TURNGYM_SCIENCE_REFERENCE`` names the folder of transcripts (``*.json`` with ``raw_replay``).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.science_world.engine.step import step
from turngym.envs.science_world.tasks.build import parse_simplifications, start_episode
from turngym.envs.science_world.tasks.catalogue import find_kind

VARIABLE = "TURNGYM_SCIENCE_REFERENCE"
FOLDER = os.environ.get(VARIABLE)
RUNS = sorted(Path(FOLDER).glob("*.json")) if FOLDER else []

pytestmark = pytest.mark.skipif(not RUNS, reason=f"{VARIABLE} names no folder with transcripts")


def plain(text: str) -> str:
    return re.sub(" +", " ", text.strip())


def differences(run: dict[str, Any]) -> list[str]:
    """Steps whose observation, score, end or time differ."""
    kind = find_kind(run["task_id"])
    named = run["simplifications_used"].replace(" ", "")
    house = start_episode(kind, run["variation"], parse_simplifications(named, kind))
    goals = house.goals
    assert goals is not None
    step(house, "look around")
    found = []
    for at, want in enumerate(run["raw_replay"]["steps"]):
        said = step(house, want["action"], run["task_description"]).text
        ended = goals.completed or goals.failed
        got = (plain(said), goals.points, ended, house.ticks)
        if got != (plain(want["observation"]), want["score"], want["done"], want["moves"]):
            found.append(f"step {at}, {want['action']!r}: {got}")
    return found


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_run_of_the_original(path: Path) -> None:
    assert differences(json.loads(path.read_text(encoding="utf-8"))) == []
