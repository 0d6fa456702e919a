"""`turngym fidelity`: how closely an environment follows transcripts of the original."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape
from rich.table import Table

from ...algos.runs.progress import reporter
from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...envs.science_world.engine.step import step
from ...envs.science_world.house.build import build_house
from ...envs.science_world.tasks.build import parse_simplifications, start_episode
from ...envs.science_world.tasks.catalogue import TASKS, TaskKind, find_kind
from ...envs.science_world.tasks.checker import TaskState
from ..household.replay import household_table, measure_household
from ..science_world.live import BY_ARRIVAL, LiveSettings, house_by_arrival, live_transcripts
from .arguments import Repeated
from .tables import say, table_console

ENVIRONMENTS = ("scienceworld", "household")
_NEEDED = ("task_name", "variation", "simplifications_used", "raw_replay", "final_score")
_BLANKS = re.compile(" +")
_SHOWN = 300
HEADS = ("task", "runs", "steps", "observation", "score", "done", "ends at 100")
_FULL = 100


@dataclass(frozen=True, kw_only=True)
class Command:
    """Replay transcripts of an original environment, and report how many steps agree.

    Attributes:
        env: The environment that the transcripts are of: scienceworld or household.
        folder: Folder of transcripts, one JSON file each; for household a folder that holds
            ``games`` and ``transcripts``.
        live: Let the original engine play now instead: gold runs and random walks over variations
            drawn from the seed. Needs the extra science-jvm and Java.
        settings: What --live generates.
        task: Name or id of a task (for household: a task type) to replay, repeatable; left out:
            all.
        json: File for the figures.
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    folder: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")] = None
    live: bool = False
    settings: Annotated[LiveSettings, tyro.conf.arg(name="")] = field(default_factory=LiveSettings)
    task: Repeated = ()
    json: str | None = None


@dataclass(frozen=True)
class Difference:
    """The first step of a transcript that came out otherwise."""

    file: str
    step: int
    action: str
    what: str
    expected: str
    got: str


@dataclass
class Agreement:
    """Steps compared and how many agree, for one task or all of them."""

    runs: int = 0
    steps: int = 0
    observations: int = 0
    scores: int = 0
    dones: int = 0
    solved: int = 0
    solved_here: int = 0
    first: Difference | None = field(default=None)

    def add(self, other: Agreement) -> None:
        """Count another agreement in."""
        for name in (part.name for part in fields(self) if part.name != "first"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first = self.first or other.first

    def note(self, difference: Difference) -> None:
        """Keep the first difference."""
        self.first = self.first or difference

    def as_row(self) -> dict[str, Any]:
        """Return plain data for a JSON file."""
        row = {name: value for name, value in vars(self).items() if name != "first"}
        return row | {"first_difference": None if self.first is None else vars(self.first)}


def run(command: Command) -> None:
    """Replay transcripts and print the agreement per task.

    Raises:
        UnknownNameError: No such environment or task.
        BadValueError: No transcripts, or none can be made.
    """
    if command.env not in ENVIRONMENTS:
        raise UnknownNameError("environment", command.env, ENVIRONMENTS, "fidelity")
    if command.env == "household":
        _run_household(command)
        return
    if command.live:
        found = measure_live(command)
    elif command.folder is not None:
        found = measure_agreement(command.folder, command.task)
    else:
        raise BadValueError("fidelity: name a FOLDER of transcripts, or give --live.")
    if command.json is not None:
        rows = {kind.id: agreement.as_row() for kind, agreement in found.items()}
        _write(rows, Path(command.json))
    _show(found)


def _run_household(command: Command) -> None:
    if command.live:
        raise BadValueError(
            "fidelity household: --live is of scienceworld only; ALFWorld's engine is compared by "
            "its transcripts. Name their FOLDER."
        )
    if command.folder is None:
        raise BadValueError("fidelity household: name a FOLDER with games and transcripts.")
    found = measure_household(command.folder, command.task)
    if command.json is not None:
        _write({name: agreement.as_row() for name, agreement in found.items()}, Path(command.json))
    table_console().print(household_table(found))
    for name, agreement in found.items():
        if (first := agreement.first) is not None:
            where = f"{first.game} ({first.edition}), step {first.step}: {first.action}"
            _show_difference(name, where, first.what, first.expected, first.got)


def _write(rows: Mapping[str, Any], path: Path) -> None:
    try:
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadValueError(f"fidelity: cannot write {path} ({error.strerror}).") from error


def measure_agreement(folder: str, tasks: Iterable[str] = ()) -> dict[TaskKind, Agreement]:
    """Return the agreement per task over all transcripts of a folder.

    Args:
        folder: Holds transcripts as JSON files.
        tasks: Names or ids of the tasks to replay; all when empty.

    Raises:
        BadValueError: The folder has no transcript of these tasks.
        DataError: A file is no transcript.
    """
    wanted = [find_kind(name) for name in tasks] or list(TASKS)
    found = {kind: Agreement() for kind in wanted}
    for path, transcript in _transcripts(Path(folder)):
        kind = find_kind(transcript["task_name"])
        if kind in found:
            found[kind].add(replay(transcript, path.name))
    if not any(agreement.runs for agreement in found.values()):
        raise BadValueError(
            f"fidelity: {folder} has no transcript (*.json) of {len(wanted)} tasks asked for."
        )
    return {kind: agreement for kind, agreement in found.items() if agreement.runs}


def measure_live(command: Command) -> dict[TaskKind, Agreement]:
    """Return the agreement per task over transcripts that the original engine makes now.

    Raises:
        MissingExtraError: The engine's package is not installed.
        BadValueError: There is no Java runtime; bad settings.
    """
    if command.folder is not None:
        raise BadValueError("fidelity: --live makes its transcripts; leave the FOLDER out.")
    wanted = [find_kind(name) for name in command.task] or list(TASKS)
    found: dict[TaskKind, Agreement] = {}
    with reporter().bar("the original engine plays") as bar:
        whole = 2 * command.settings.runs * len(wanted)
        for done, (name, transcript) in enumerate(live_transcripts(wanted, command.settings), 1):
            kind = find_kind(transcript["task_name"])
            found.setdefault(kind, Agreement()).add(replay(transcript, name))
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


def replay(transcript: Mapping[str, Any], name: str) -> Agreement:
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
    agreement = Agreement(runs=1, solved=int(transcript["final_score"] == _FULL))
    replayed: Mapping[str, Any] = transcript["raw_replay"]
    first = step(state, "look around", text).text
    if normal(expected := replayed["first_look"]) != normal(first):
        agreement.note(Difference(name, 0, "look around", "observation", expected, first))
    points = goals.points
    for number, recorded in enumerate(replayed["steps"], 1):
        observation = step(state, recorded["action"], text).text
        points = goals.points
        here = (observation, points, goals.completed or points < 0)
        _compare(agreement, name, number, recorded, here)
    agreement.solved_here = int(points == _FULL and bool(agreement.solved))
    return agreement


def _compare(
    agreement: Agreement,
    name: str,
    number: int,
    recorded: Mapping[str, Any],
    here: tuple[str, int, bool],
) -> None:
    agreement.steps += 1
    observation, points, done = here
    pairs: Sequence[tuple[str, str, Any, Any]] = (
        ("observations", "observation", normal(recorded["observation"]), normal(observation)),
        ("scores", "score", recorded["score"], points),
        ("dones", "done", recorded["done"], done),
    )
    for counter, what, expected, got in pairs:
        if expected == got:
            setattr(agreement, counter, getattr(agreement, counter) + 1)
        else:
            texts = (str(expected), str(got))
            agreement.note(Difference(name, number, recorded["action"], what, *texts))


def normal(text: str) -> str:
    """Return a text without outer blanks, runs of blanks as one and none at the ends of lines."""
    return "\n".join(_BLANKS.sub(" ", line).rstrip() for line in text.strip().split("\n"))


def _show(found: Mapping[TaskKind, Agreement]) -> None:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for head in HEADS:
        side = "left" if head == "task" else "right"
        table.add_column(head, justify=side, no_wrap=True, min_width=max(len(head), 7))
    table.add_column("name", no_wrap=True)
    whole = Agreement()
    for kind, agreement in found.items():
        whole.add(agreement)
        table.add_row(kind.id, *_cells(agreement), kind.name)
    table.add_row("[bold]all[/]", *_cells(whole))
    table_console().print(table)
    for kind, agreement in found.items():
        if (first := agreement.first) is not None:
            where = f"{first.file}, step {first.step}: {first.action}"
            _show_difference(kind.id, where, first.what, first.expected, first.got)


def _show_difference(task: str, where: str, what: str, expected: str, got: str) -> None:
    lines = (
        where,
        f"  {what} of the original: {expected[:_SHOWN]!r}",
        f"  {what} here:            {got[:_SHOWN]!r}",
    )
    say(f"\n[bold]{task}[/] first difference: " + escape("\n".join(lines)))


def _cells(agreement: Agreement) -> tuple[str, ...]:
    steps = max(agreement.steps, 1)
    shares = (agreement.observations, agreement.scores, agreement.dones)
    return (
        str(agreement.runs),
        str(agreement.steps),
        *(f"{100 * share / steps:.1f} %" for share in shares),
        f"{agreement.solved_here} of {agreement.solved}",
    )
