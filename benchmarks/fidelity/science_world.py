"""Transcripts of the original ScienceWorld, replayed on our house."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...algos.runs.progress import reporter
from ...envs.core.errors import BadValueError, DataError
from ...envs.science_world.engine.step import step
from ...envs.science_world.house.build import build_house
from ...envs.science_world.tasks.build import parse_simplifications, start_episode
from ...envs.science_world.tasks.catalogue import TASKS, find_kind
from ...envs.science_world.tasks.checker import TaskState
from .agreement import Agreement
from .live import LiveSettings
from .science_live import BY_ARRIVAL, house_by_arrival, live_transcripts

_NEEDED = ("task_name", "variation", "simplifications_used", "raw_replay", "final_score")
_BLANKS = re.compile(" +")
_FULL = 100


@dataclass
class ScienceAgreement(Agreement):
    """What agrees with the original ScienceWorld.

    Attributes:
        observations: Steps whose observation agrees, but for blanks.
        scores: Steps whose score agrees.
        dones: Steps on which both or neither are over.
        solved: Transcripts that end at 100.
        solved_here: Those of them that end at 100 here.
    """

    observations: int = 0
    scores: int = 0
    dones: int = 0
    solved: int = 0
    solved_here: int = 0

    heads: ClassVar[tuple[str, ...]] = (
        "task",
        "runs",
        "steps",
        "observation",
        "score",
        "done",
        "ends at 100",
    )

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table below ``heads[1:]``."""
        parts = (self.observations, self.scores, self.dones)
        ends = f"{self.solved_here} of {self.solved}"
        return (str(self.runs), str(self.steps), *map(self.share, parts), ends)


def measure_science_world(folder: str, tasks: Iterable[str] = ()) -> dict[str, ScienceAgreement]:
    """Return the agreement per task over all transcripts of a folder.

    Args:
        folder: Holds transcripts as JSON files.
        tasks: Names or ids of the tasks to replay; all when empty.

    Raises:
        BadValueError: The folder has no transcript of these tasks.
        DataError: A file is no transcript.
    """
    wanted = [find_kind(name) for name in tasks] or list(TASKS)
    found = {kind.id: ScienceAgreement() for kind in wanted}
    for path, transcript in _transcripts(Path(folder)):
        kind = find_kind(transcript["task_name"])
        if kind.id in found:
            found[kind.id].add(replay(transcript, path.name))
    if not any(agreement.runs for agreement in found.values()):
        raise BadValueError(
            f"fidelity: {folder} has no transcript (*.json) of {len(wanted)} tasks asked for."
        )
    return {name: agreement for name, agreement in found.items() if agreement.runs}


def measure_live_science(
    folder: str | None, settings: LiveSettings, tasks: Iterable[str] = ()
) -> dict[str, ScienceAgreement]:
    """Return the agreement per task over transcripts that the original engine makes now.

    Args:
        folder: None: the original has its tasks in itself.
        settings: What is generated.
        tasks: Names or ids of the tasks to play; all when empty.

    Raises:
        MissingExtraError: The engine's package is not installed.
        BadValueError: There is no Java runtime; a folder is named; bad settings.
    """
    if folder is not None:
        raise BadValueError(
            "fidelity scienceworld: --live makes its transcripts; leave the FOLDER out."
        )
    wanted = [find_kind(name) for name in tasks] or list(TASKS)
    found: dict[str, ScienceAgreement] = {}
    with reporter().bar("the original engine plays") as bar:
        whole = 2 * settings.runs * len(wanted)
        for done, (name, transcript) in enumerate(live_transcripts(wanted, settings), 1):
            kind = find_kind(transcript["task_name"])
            found.setdefault(kind.id, ScienceAgreement()).add(replay(transcript, name))
            bar.update(done / whole, f"{done} of {whole}: {name}")
    return found


def _transcripts(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if not folder.is_dir():
        raise BadValueError(f"fidelity: {folder} is not a folder; expected one of transcripts.")
    for path in sorted(folder.glob("*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{path}: not JSON ({error}).") from error
        missing = [key for key in _NEEDED if not isinstance(data, dict) or key not in data]
        if missing:
            raise DataError(f"{path}: a transcript has {missing[0]!r}, this file has not.")
        yield path, data


def replay(transcript: Mapping[str, Any], name: str) -> ScienceAgreement:
    """Replay a transcript's actions here and compare the results.

    A transcript whose ``order`` is "arrival" is of engine 1.2.3: a house with that order is used.
    """
    kind = find_kind(transcript["task_name"])
    simple = parse_simplifications(transcript["simplifications_used"], kind)
    variation = int(transcript["variation"])
    house = house_by_arrival if transcript.get("order") == BY_ARRIVAL else build_house
    state = start_episode(kind, variation, simple, house)
    goals, text = state.goals, kind.text(variation)
    assert isinstance(goals, TaskState)
    agreement = ScienceAgreement(runs=1, solved=int(transcript["final_score"] == _FULL))
    replayed: Mapping[str, Any] = transcript["raw_replay"]
    first = normal(step(state, "look around", text).text)
    pairs = (("", "observation", normal(replayed["first_look"]), first),)
    agreement.compare(name, 0, "look around", pairs)
    points = goals.points
    for number, recorded in enumerate(replayed["steps"], 1):
        observation = normal(step(state, recorded["action"], text).text)
        points = goals.points
        done = goals.completed or points < 0
        agreement.steps += 1
        pairs = (
            ("observations", "observation", normal(recorded["observation"]), observation),
            ("scores", "score", recorded["score"], points),
            ("dones", "done", recorded["done"], done),
        )
        agreement.compare(name, number, recorded["action"], pairs)
    agreement.solved_here = int(points == _FULL and bool(agreement.solved))
    return agreement


def title_task(task: str) -> str:
    """Return a task's id with its name."""
    return f"{task} {find_kind(task).name}"


def normal(text: str) -> str:
    """Return a text without outer blanks, runs of blanks as one and none at the ends of lines."""
    return "\n".join(_BLANKS.sub(" ", line).rstrip() for line in text.strip().split("\n"))
