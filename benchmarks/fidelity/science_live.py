"""Transcripts of the original ScienceWorld engine, made on the spot: gold runs and random walks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from ...envs.science_world.engine.action_lists import list_legal_actions, list_original_actions
from ...envs.science_world.engine.step import step
from ...envs.science_world.house.build import JavaRandom, build_house
from ...envs.science_world.house.state import HouseState
from ...envs.science_world.jvm import check_java, start_engine
from ...envs.science_world.tasks.build import parse_simplifications, start_episode
from ...envs.science_world.tasks.catalogue import TaskKind
from .live import LiveSettings

BY_ARRIVAL = "arrival"
"""Order of the contents of things in engines before 1.3, started as `start_engine` does; engine
1.3 has the order of creation, as our house."""
SIMPLE = ("", "easy")
"""Simplifications of the runs, in turn."""
_FULL = 100
_FROM_VALID = 0.1
"""Share of a walk's actions from the original's list of valid ones, many of which are refused."""
_FOCUS = 0.02
"""Share of a walk's draws that may set the focus, which mostly fails the task."""


def live_transcripts(
    kinds: Iterable[TaskKind], settings: LiveSettings
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield names and transcripts, in the form of the recorded ones.

    The first variations of the splits are left out: recorded transcripts are mostly of those.

    Raises:
        MissingExtraError: The engine's package is not installed.
        BadValueError: There is no Java runtime, or the folder cannot be written.
    """
    check_java()
    engine = start_engine()
    try:
        for kind in kinds:
            rng = np.random.default_rng([settings.seed, *map(int, kind.id.split("-"))])
            first = {kind.split(split)[0] for split in ("train", "dev", "test")}
            rest = [v for v in range(len(kind.variations)) if v not in first]
            for run, variation in enumerate(rng.permutation(rest)[: settings.runs]):
                simple = SIMPLE[run % len(SIMPLE)]
                texts = _walk(kind, int(variation), simple, settings.steps, rng)
                for what in ("gold", "walk"):
                    made = _play(
                        engine, kind, int(variation), simple, texts if what == "walk" else None
                    )
                    name = f"{kind.id}__{kind.name}__v{variation}__{simple or 'none'}__{what}.json"
                    settings.write(name, json.dumps(made, indent=1))
                    yield name, made
    finally:
        engine.close()


def house_by_arrival(random: JavaRandom) -> HouseState:
    """Return the house, with contents of things in the order in which they came there."""
    house = build_house(random)
    house.by_arrival = True
    return house


def _order() -> str:
    major, minor = version("scienceworld").split(".")[:2]
    return BY_ARRIVAL if (int(major), int(minor)) < (1, 3) else "creation"


def _walk(
    kind: TaskKind, variation: int, simple: str, steps: int, rng: np.random.Generator
) -> list[str]:
    """Return random actions that make sense in our house; the engine's list changes its bees."""
    house = start_episode(kind, variation, parse_simplifications(simple, kind))
    step(house, "look around")
    texts: list[str] = []
    while len(texts) < steps:
        listed = list_original_actions if rng.random() < _FROM_VALID else list_legal_actions
        choices = listed(house)
        if rng.random() >= _FOCUS:
            choices = [text for text in choices if not text.startswith(("focus", "reset"))]
        texts.append(choices[int(rng.integers(len(choices)))])
        step(house, texts[-1])
    return texts


def _play(
    engine: Any, kind: TaskKind, variation: int, simple: str, texts: list[str] | None
) -> dict[str, Any]:
    """Play texts in the engine, or its own gold run."""
    named = ",".join(sorted(parse_simplifications(simple, kind)))
    engine.load(kind.name, variation, named, texts is None)
    if texts is None:
        texts = [str(text) for text in engine.get_gold_action_sequence()]
        engine.load(kind.name, variation, named)
    server = engine.server
    first = str(server.step("look around"))
    steps: list[dict[str, Any]] = []
    for text in texts:
        observation = str(server.step(text))
        score = round(_FULL * server.getScore())
        done = bool(server.getCompleted()) or score < 0
        steps.append({"action": text, "observation": observation, "score": score, "done": done})
    return {
        "task_name": kind.name,
        "variation": variation,
        "simplifications_used": named,
        "order": _order(),
        "raw_replay": {"first_look": first, "steps": steps},
        "final_score": steps[-1]["score"],
    }
