"""Transcripts of ALFWorld's text engine, replayed on ours."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...algos.runs.progress import reporter
from ...envs.core.errors import BadValueError, DataError, UnknownNameError
from ...envs.household.engine.game import TASK_TYPES, Game
from ...envs.household.engine.state import start_game
from ...envs.household.engine.step import act, list_commands, write_opening
from ...envs.household.engine.wording import EDITIONS
from ...envs.household.original.files import GameFile, read_game_files
from .agreement import Agreement
from .household_live import play_live
from .live import LiveSettings

_NEEDED = ("game", "edition", "task_type", "opening", "opening_admissible", "steps")
_PARTS = {
    "observations": "observation",
    "admissible": "admissible",
    "won": "won",
    "scores": "score",
}


@dataclass
class HouseholdAgreement(Agreement):
    """What agrees with ALFWorld's engine.

    Attributes:
        openings: First observations, with their list of commands, that agree.
        observations: Steps whose answer agrees.
        admissible: Steps whose list of commands agrees.
        won: Steps on which both or neither have won.
        scores: Steps whose score agrees.
    """

    openings: int = 0
    observations: int = 0
    admissible: int = 0
    won: int = 0
    scores: int = 0

    heads: ClassVar[tuple[str, ...]] = (
        "task type",
        "runs",
        "steps",
        "opening",
        "observation",
        "admissible",
        "won",
        "score",
    )

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table below ``heads[1:]``."""
        parts = (self.observations, self.admissible, self.won, self.scores)
        opening = self.share(self.openings, self.runs)
        return (str(self.runs), str(self.steps), opening, *map(self.share, parts))


def measure_household(folder: str, types: Iterable[str] = ()) -> dict[str, HouseholdAgreement]:
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
    wanted = _find_types(types)
    root = Path(folder).expanduser()
    games = {game.path: game for game in read_game_files(root / "games")}
    compiled: dict[str, Game] = {}
    found = {name: HouseholdAgreement() for name in wanted}
    for where, transcript in read_transcripts(root / "transcripts"):
        if transcript["task_type"] in found:
            game = _find_game(transcript["game"], games, compiled, where)
            found[transcript["task_type"]].add(replay(transcript, game))
    if not any(agreement.runs for agreement in found.values()):
        raise BadValueError(f"fidelity: {folder}/transcripts has no transcript of {wanted}.")
    return {name: agreement for name, agreement in found.items() if agreement.runs}


def measure_live_household(
    folder: str | None, settings: LiveSettings, types: Iterable[str] = ()
) -> dict[str, HouseholdAgreement]:
    """Return the agreement per type of tasks over transcripts that the original makes now.

    Args:
        folder: Games as downloaded, or packed ones with their grammar; or it holds ``games``.
        settings: What is generated.
        types: Types to play; all when empty.

    Raises:
        MissingExtraError: The original's package is not installed.
        UnknownNameError: No such type.
        BadValueError: No folder, or it has no games of these types, or not their grammar.
        DataError: A file is no game.
    """
    if folder is None:
        raise BadValueError(
            "fidelity household: --live plays the original's games; name their FOLDER."
        )
    wanted = _find_types(types)
    root = Path(folder).expanduser()
    games = root / "games"
    found: dict[str, HouseholdAgreement] = {}
    with reporter().bar("the original engine plays") as bar:
        for name, game, transcript, done in play_live(
            games if games.is_dir() else root, wanted, settings
        ):
            kind = transcript["task_type"]
            found.setdefault(kind, HouseholdAgreement()).add(replay(transcript, game))
            bar.update(done, name)
    return found


def _find_types(types: Iterable[str]) -> tuple[str, ...]:
    wanted = tuple(types) or TASK_TYPES
    for name in wanted:
        if name not in TASK_TYPES:
            raise UnknownNameError("task type", name, TASK_TYPES, "fidelity household")
    return wanted


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


def replay(transcript: Mapping[str, Any], game: Game) -> HouseholdAgreement:
    """Return how far a transcript's actions lead here to what the original answered."""
    words = EDITIONS[transcript["edition"]]
    where = f"{transcript['game']} ({transcript['edition']})"
    state = start_game(game)
    agreement = HouseholdAgreement(runs=1)
    opening = write_opening(game, words), list_commands(state, words)
    expected = transcript["opening"], transcript["opening_admissible"]
    agreement.compare(where, 0, "", (("openings", "opening", expected, opening),))
    for number, recorded in enumerate(transcript["steps"], 1):
        answer = act(state, recorded["action"].strip(), words)
        observation = words.nothing if answer is None else answer
        won = state.is_won()
        here = (observation, list_commands(state, words), won, int(won))
        agreement.steps += 1
        pairs = [
            (counter, what, recorded[what], got)
            for (counter, what), got in zip(_PARTS.items(), here, strict=True)
        ]
        agreement.compare(where, number, recorded["action"], pairs)
    return agreement
