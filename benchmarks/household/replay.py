"""Transcripts of ALFWorld's text engine, replayed on ours."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rich.table import Table

from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...envs.household.engine.game import TASK_TYPES, Game
from ...envs.household.engine.state import start_game
from ...envs.household.engine.step import act, list_commands, write_opening
from ...envs.household.engine.wording import EDITIONS
from ...envs.household.original.files import GameFile, read_game_files

HEADS = ("task type", "runs", "steps", "opening", "observation", "admissible", "won", "score")
_NEEDED = ("game", "edition", "task_type", "opening", "opening_admissible", "steps")
_PARTS = ("observations", "admissible", "won", "scores")


@dataclass(frozen=True)
class Difference:
    """The first thing of a task type that came out otherwise.

    Attributes:
        game: Path of the game.
        edition: The edition of the texts.
        step: Number of the step; 0 for the opening.
        action: The command.
        what: What differs.
        expected: What the original had.
        got: What came out here.
    """

    game: str
    edition: str
    step: int
    action: str
    what: str
    expected: str
    got: str


@dataclass
class Agreement:
    """What was compared and what agrees, for one type of tasks or all of them.

    Attributes:
        runs: Transcripts.
        steps: Their steps.
        openings: First observations, with their list of commands, that agree.
        observations: Steps whose answer agrees.
        admissible: Steps whose list of commands agrees.
        won: Steps on which both or neither have won.
        scores: Steps whose score agrees.
        first: The first difference; None where all agrees.
    """

    runs: int = 0
    steps: int = 0
    openings: int = 0
    observations: int = 0
    admissible: int = 0
    won: int = 0
    scores: int = 0
    first: Difference | None = field(default=None)

    def add(self, other: Agreement) -> None:
        """Count another agreement in."""
        for name in (part.name for part in fields(self) if part.name != "first"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first = self.first or other.first

    def as_row(self) -> dict[str, Any]:
        """Return plain data for a JSON file."""
        row = {name: value for name, value in vars(self).items() if name != "first"}
        return row | {"first_difference": None if self.first is None else vars(self.first)}


def measure_household(folder: str, types: Iterable[str] = ()) -> dict[str, Agreement]:
    """Return the agreement per type of tasks over all transcripts of a folder.

    Args:
        folder: Holds ``games`` (packed, or ``game.tw-pddl`` files) and ``transcripts``
            (``*.jsonl``, gzipped or not).
        types: Types to replay; all when empty.

    Raises:
        UnknownNameError: No such type.
        BadValueError: The folder has no games, or no transcripts of these types.
        DataError: A file is no transcript, or is of a game that is not there.
    """
    wanted = tuple(types) or TASK_TYPES
    for name in wanted:
        if name not in TASK_TYPES:
            raise UnknownNameError("task type", name, TASK_TYPES, "fidelity household")
    root = Path(folder).expanduser()
    games = {game.path: game for game in read_game_files(root / "games")}
    compiled: dict[str, Game] = {}
    found = {name: Agreement() for name in wanted}
    for where, transcript in read_transcripts(root / "transcripts"):
        if transcript["task_type"] in found:
            game = _find_game(transcript["game"], games, compiled, where)
            found[transcript["task_type"]].add(replay(transcript, game))
    if not any(agreement.runs for agreement in found.values()):
        raise BadValueError(f"fidelity: {folder}/transcripts has no transcript of {wanted}.")
    return {name: agreement for name, agreement in found.items() if agreement.runs}


def read_transcripts(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the transcripts of a folder, each with the name of its place.

    Raises:
        BadValueError: There is no file of transcripts.
        DataError: A line is no transcript.
    """
    files = sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")])
    if not files:
        raise BadValueError(f"fidelity: {folder} has no transcripts (*.jsonl or *.jsonl.gz).")
    for path in files:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except ValueError as fault:
                raise DataError(f"{where}: not JSON ({fault}).") from fault
            missing = [key for key in _NEEDED if not isinstance(row, dict) or key not in row]
            if missing:
                raise DataError(f"{where}: a transcript has {missing[0]!r}, this line has not.")
            if row["edition"] not in EDITIONS:
                raise UnknownNameError("edition", row["edition"], EDITIONS, where)
            yield where, row


def _find_game(
    path: str, games: Mapping[str, GameFile], compiled: dict[str, Game], where: str
) -> Game:
    if path not in games:
        raise DataError(f"{where}: its game {path} is not among the {len(games)} of the folder.")
    if path not in compiled:
        compiled[path] = games[path].compile()
    return compiled[path]


def replay(transcript: Mapping[str, Any], game: Game) -> Agreement:
    """Return how far a transcript's actions lead here to what the original answered."""
    words = EDITIONS[transcript["edition"]]
    state = start_game(game)
    agreement = Agreement(runs=1)
    opening = write_opening(game, words), list_commands(state, words)
    expected = transcript["opening"], transcript["opening_admissible"]
    if opening == expected:
        agreement.openings = 1
    else:
        _note(agreement, transcript, (0, "", "opening"), (str(expected), str(opening)))
    for number, recorded in enumerate(transcript["steps"], 1):
        answer = act(state, recorded["action"].strip(), words)
        won = state.is_won()
        here = (words.nothing if answer is None else answer, list_commands(state, words))
        _compare(agreement, transcript, number, recorded, (*here, won, int(won)))
    return agreement


def _compare(
    agreement: Agreement,
    transcript: Mapping[str, Any],
    number: int,
    recorded: Mapping[str, Any],
    here: Sequence[Any],
) -> None:
    agreement.steps += 1
    keys = ("observation", "admissible", "won", "score")
    for part, key, got in zip(_PARTS, keys, here, strict=True):
        if recorded[key] == got:
            setattr(agreement, part, getattr(agreement, part) + 1)
        else:
            texts = str(recorded[key]), str(got)
            _note(agreement, transcript, (number, recorded["action"], key), texts)


def _note(
    agreement: Agreement,
    transcript: Mapping[str, Any],
    where: tuple[int, str, str],
    texts: tuple[str, str],
) -> None:
    agreement.first = agreement.first or Difference(
        transcript["game"], transcript["edition"], *where, *texts
    )


def household_table(found: Mapping[str, Agreement]) -> Table:
    """Return the agreement as a table, a row per type of tasks and one for all."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    for head in HEADS:
        side = "left" if head == HEADS[0] else "right"
        table.add_column(head, justify=side, no_wrap=True, min_width=len(head))
    whole = Agreement()
    for name, agreement in found.items():
        whole.add(agreement)
        table.add_row(name, *_cells(agreement))
    table.add_row("[bold]all[/]", *_cells(whole))
    return table


def _cells(agreement: Agreement) -> tuple[str, ...]:
    shares = (getattr(agreement, part) / max(agreement.steps, 1) for part in _PARTS)
    return (
        str(agreement.runs),
        str(agreement.steps),
        f"{100 * agreement.openings / max(agreement.runs, 1):.1f} %",
        *(f"{100 * share:.1f} %" for share in shares),
    )
