"""Transcripts of ALFWorld's text engine, made on the spot: runs that win and random walks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...envs.core.errors import BadValueError, DataError, MissingExtraError
from ...envs.household.engine.game import Game
from ...envs.household.engine.planner import find_command, find_plan, see_all
from ...envs.household.engine.state import start_game
from ...envs.household.engine.step import act, list_commands
from ...envs.household.engine.wording import EDITIONS, Wording
from ...envs.household.original.files import FILE_NAME, PACKED, GameFile, read_game_files
from .live import LiveSettings

EXTRA = "household-original"
_WORDS_OF_042 = "You move the"
"""What only the grammar of alfworld 0.4.2 says; that of the game files says ``You put the``."""
_REFUSED = 0.1
"""Share of a walk's actions that are commands of the opening or of the other edition, most of them
not admissible by then."""
_MAX_PLAN = 100
_MARK = "_bar_"
"""Parts an id of the original."""


@dataclass(frozen=True)
class Texts:
    """What an original game needs beside its problem.

    Attributes:
        edition: Wording of the grammar, a name of ``EDITIONS``.
        domain: The PDDL domain.
        grammar: The grammar, with the task line of the game.
    """

    edition: str
    domain: str
    grammar: str


class Original:
    """One game in the original engine, with names as alfworld's wrapper of it shows them.

    Args:
        problem: Its PDDL problem.
        texts: Its domain and grammar.

    Raises:
        MissingExtraError: textworld or its planner is not installed.
    """

    def __init__(self, problem: str, texts: Texts) -> None:
        try:
            from textworld import EnvInfos  # pyright: ignore[reportMissingImports]
            from textworld.envs.pddl import PddlEnv  # pyright: ignore[reportMissingImports]

            self._env: Any = PddlEnv(EnvInfos(feedback=True, won=True, admissible_commands=True))
        except ImportError as fault:
            raise MissingExtraError(
                "fidelity household --live", "textworld[pddl]", EXTRA
            ) from fault
        self._env.load(
            {"pddl_domain": texts.domain, "grammar": texts.grammar, "pddl_problem": problem}
        )
        entities = self._env._entity_infos
        for name, shown in number_names(entities).items():
            entities[name].name = shown

    def reset(self) -> dict[str, Any]:
        """Begin the game; return ``observation`` and ``admissible``."""
        return self._tell(self._env.reset())

    def step(self, action: str) -> dict[str, Any]:
        """Do a command; return ``observation``, ``admissible``, ``won`` and ``score``."""
        state, score, _ = self._env.step(action)
        return {**self._tell(state), "won": bool(state["won"]), "score": int(score)}

    def _tell(self, state: Any) -> dict[str, Any]:
        return {
            "observation": str(state.feedback),
            "admissible": [str(command) for command in state["admissible_commands"]],
        }


def play_live(
    place: Path, types: Sequence[str], settings: LiveSettings
) -> Iterator[tuple[str, Game, Mapping[str, Any], float]]:
    """Yield names, games and transcripts in the form of the recorded ones, and the share done.

    Every game is played in every edition that its texts are there for: once with the commands of
    the shortest plan, until it is won, and once with random ones, both chosen here and then played
    by the original.

    Args:
        place: Folder of games.
        types: Types of tasks that are played.
        settings: How many games, how long walks, and where transcripts are kept.

    Raises:
        MissingExtraError: textworld or its planner is not installed.
        BadValueError: There are no games of these types, or their grammar is not there.
        DataError: A file is no game.
    """
    rng = np.random.default_rng(settings.seed)
    chosen = _choose_games(place, types, settings.runs, rng)
    texts = read_texts(place, chosen)
    keep = _Keep(settings)
    runs = [(file, text) for file in chosen for text in texts[file.path]]
    for number, (file, text) in enumerate(runs, 1):
        game, words = file.compile(), EDITIONS[text.edition]
        original = Original(file.problem, text)
        plans = {"plan": _plan(game, words), "random": _walk(game, words, settings.steps, rng)}
        for kind, actions in plans.items():
            made = _play(original, actions)
            found = {"game": file.path, "kind": kind, "edition": text.edition}
            transcript = {**found, "task_type": game.goal.kind, **made}
            keep.add(file, transcript)
            yield f"{file.path} ({text.edition}, {kind})", game, transcript, number / len(runs)


def read_texts(place: Path, files: Sequence[GameFile]) -> dict[str, list[Texts]]:
    """Return domain and grammar of games by their path, once per edition.

    Games as downloaded hold their own; packed ones share those of a packed object with
    ``pddl_domain``, ``grammar``, ``grammar_placeholder`` (which the task line replaces), and
    ``pddl_domain_v042`` and ``grammar_v042`` for the edition 0.4.2.

    Raises:
        BadValueError: There are neither.
        DataError: A file cannot be read.
    """
    singles = _find_singles(place, files)
    if singles:
        return {path: [_own_texts(single)] for path, single in singles.items()}
    shared = _find_shared(place)
    if shared is None:
        raise BadValueError(
            f"fidelity --live: {place} has packed games without their grammar. Name a folder of "
            f"{FILE_NAME} files as downloaded, or one with a packed object of 'pddl_domain' and "
            "'grammar' beside the games."
        )
    mark = shared["grammar_placeholder"]
    return {
        file.path: [
            Texts(edition, shared[f"pddl_domain{end}"], shared[f"grammar{end}"].replace(mark, task))
            for edition, end in (("file", ""), ("0.4.2", "_v042"))
            if f"grammar{end}" in shared
        ]
        for file in files
        for task in (json.dumps(file.task)[1:-1],)
    }


def number_names(ids: Iterable[str]) -> dict[str, str]:
    """Return what alfworld's wrapper calls the things of a game: ``cup 2`` for ``cup_bar_...``.

    The kind is what stands before the first ``_bar_`` (with ``basin`` behind it where the id has
    that word); of the n things of a kind the first id has the number n, the last one 1.
    """
    kinds: dict[str, list[str]] = {}
    for one in sorted(one for one in ids if _MARK in one):
        kind = one.split(_MARK)[0] + ("basin" if "basin" in one else "")
        kinds.setdefault(kind, []).append(one)
    return {
        one: f"{kind} {number}"
        for kind, members in kinds.items()
        for number, one in enumerate(reversed(members), 1)
    }


def _choose_games(
    place: Path, types: Sequence[str], count: int, rng: np.random.Generator
) -> list[GameFile]:
    by_type: dict[str, list[GameFile]] = {}
    for file in read_game_files(place):
        if not file.refused and file.kind in types:
            by_type.setdefault(file.kind, []).append(file)
    if not by_type:
        raise BadValueError(f"fidelity --live: {place} has no game of {', '.join(types)}.")
    return [
        by_type[kind][place]
        for kind in types
        if kind in by_type
        for place in sorted(rng.permutation(len(by_type[kind]))[:count])
    ]


def _find_singles(place: Path, files: Sequence[GameFile]) -> dict[str, Any]:
    """Return the contents of games as downloaded, by the path that their reader gives them."""
    found: dict[str, Any] = {}
    for path in place.rglob(FILE_NAME) if place.is_dir() else ():
        for file in files:
            if path.resolve().as_posix().endswith(f"/{file.path}"):
                found[file.path] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _own_texts(single: Mapping[str, Any]) -> Texts:
    grammar = str(single["grammar"])
    edition = "0.4.2" if _WORDS_OF_042 in grammar else "file"
    return Texts(edition, str(single["pddl_domain"]), grammar)


def _find_shared(place: Path) -> Mapping[str, str] | None:
    for path in sorted(place.glob("*")) if place.is_dir() else ():
        if path.name.endswith(PACKED):
            data = path.read_bytes()
            try:
                found = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
            except (OSError, EOFError, ValueError) as fault:
                raise DataError(f"{path}: cannot be read as JSON ({fault}).") from fault
            if isinstance(found, dict) and {"grammar", "grammar_placeholder"} <= found.keys():
                return found
    return None


def _plan(game: Game, words: Wording) -> list[str]:
    """Return the commands of the shortest plan."""
    state, texts = start_game(game), list[str]()
    while not state.is_won() and len(texts) < _MAX_PLAN:
        view = see_all(state)
        found = find_plan(state, view)
        if found is None:
            break
        texts.append(find_command(state, found[0][0], view, words))
        act(state, texts[-1], words)
    return texts


def _walk(game: Game, words: Wording, steps: int, rng: np.random.Generator) -> list[str]:
    """Return random commands, a few of them not admissible, which may win and go on."""
    state = start_game(game)
    other = next(edition for edition in EDITIONS.values() if edition is not words)
    texts: list[str] = []
    for _ in range(steps):
        choices = list_commands(state, words)
        if rng.random() < _REFUSED:
            choices = [f"examine {name}" for name in game.room.names] + list_commands(state, other)
        texts.append(choices[int(rng.integers(len(choices)))])
        act(state, texts[-1], words)
    return texts


def _play(original: Original, actions: Sequence[str]) -> dict[str, Any]:
    first = original.reset()
    return {
        "opening": first["observation"],
        "opening_admissible": first["admissible"],
        "steps": [{"action": action, **original.step(action)} for action in actions],
    }


class _Keep:
    """A folder that ``turngym fidelity household`` replays: games and transcripts."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._games: dict[str, Mapping[str, str]] = {}
        self._lines: list[str] = []

    def add(self, file: GameFile, transcript: Mapping[str, Any]) -> None:
        """Write what was played so far.

        Raises:
            BadValueError: The folder cannot be written.
        """
        self._games[file.path] = {
            "path": file.path,
            "pddl_problem": file.problem,
            "task": file.task,
        }
        self._lines.append(json.dumps(transcript))
        self._settings.write("games/games.json", json.dumps(list(self._games.values())))
        self._settings.write("transcripts/live.jsonl", "\n".join(self._lines))
