"""Keys-v0 and Aliases-v0: rooms in a row, each with a letter that leads on.

What they ask for: Keys, credit for states that are visited again (GiGPO's anchor states, arXiv
2505.10978): whoever went astray comes back to a room where others went on. Aliases, memory: rooms
that look the same need different letters, and only what was done before tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

from ..core.env import Episode, Outcome, Policy
from ..core.randomness import EpisodeRandom
from ..core.settings import check_bool, check_integer
from ..core.tasks import Task
from .common import LetterEnv, LetterExpert, ListedTasks, ask_for_letter, check_size, read_letter

KEYS = "bacacbbca"
"""The letter that leads on, room by room: the same in all tasks, never shown.

Two neighbours in places 2k and 2k + 1 differ, and so do three in places 3k to 3k + 2.
"""
TURNS_PER_ROOM = 3
DEAD_END = "-"
"""What the observation calls a dead end, of whatever room."""


@dataclass(slots=True)
class Place:
    """The episode's state: the room, from 0, and whether the agent stands in its dead end."""

    room: int = 0
    astray: bool = False


class Rooms(LetterEnv[Place, str]):
    """A row of rooms; one letter leads on, the next one back, the third is for subclasses to say.

    Args:
        rooms: Number of rooms before the end.
        rules: Instructions; empty for none.
        render_mode: See :class:`TextEnv`.
    """

    letters = "abc"
    stop = tuple(letters)

    def __init__(self, rooms: int, rules: str, *, render_mode: str | None = None) -> None:
        self.rooms = check_integer("rooms", rooms, type(self).__name__, min=1, max=len(KEYS))
        self.instructions = rules
        super().__init__(
            source=ListedTasks(["".join(signs) for signs in product("*+=", repeat=4)]),
            max_turns=TURNS_PER_ROOM * rooms,
            render_mode=render_mode,
        )

    def name_room(self, room: int) -> str:
        """Return what the observation calls a room."""
        return str(room + 1)

    def err(self, state: Place, back: bool) -> Literal["running", "failed"]:
        """Apply a wrong letter to the state, the one that leads back or the other one."""
        raise NotImplementedError

    def begin(self, task: Task[str], random: EpisodeRandom) -> tuple[Place, str]:  # noqa: ARG002
        """Return the first room; the signs before its name are noise."""
        return Place(), f"{task.payload}\n{self.name_room(0)}:"

    def play(self, episode: Episode[Place], action: str) -> Outcome:
        """Go on, back or astray; an unreadable action moves nobody."""
        letter, state = read_letter(action, self.letters), episode.state
        if letter is None:
            return Outcome.unreadable(ask_for_letter(self.letters), verdict=-1)
        if state.astray:
            state.astray = False
            return Outcome.move(self._write_place(state), verdict=0)
        key = KEYS[state.room]
        if letter != key:
            back = self.letters.index(letter) == (self.letters.index(key) + 1) % len(self.letters)
            if self.err(state, back) == "failed":
                return Outcome.failed("\n", {"outcome": 0.0}, verdict=-1)
            return Outcome.move(self._write_place(state), verdict=-1)
        state.room += 1
        if state.room == self.rooms:
            return Outcome.solved("\n", {"outcome": 1.0}, verdict=1)
        return Outcome.move(self._write_place(state), verdict=1)

    def _write_place(self, state: Place) -> str:
        return f"\n{DEAD_END if state.astray else self.name_room(state.room)}:"

    def metrics(self, episode: Episode[Place]) -> dict[str, float]:
        """Return the share of the way that lies behind the agent at the end."""
        return {"right": episode.state.room / self.rooms}

    def fork_state(self, state: Place) -> Place:
        """Copy the place."""
        return Place(state.room, state.astray)

    def hidden_answers(self, episode: Episode[Place]) -> tuple[str, ...]:  # noqa: ARG002
        """Return the letters that lead to the end; a single one is no secret."""
        return (KEYS[: self.rooms],) if self.rooms > 1 else ()

    def expert(self, mistakes: float = 0.0, seed: int = 0) -> Policy:
        """Return a policy that knows the letters."""
        return LetterExpert(lambda env: KEYS[env.episode.state.room], self.letters, mistakes, seed)


class Keys(Rooms):
    """Find the way through a row of rooms, each named; wrong letters lead back or astray.

    In each room one letter leads on, one leads back a room (in the first room nowhere) and one into
    a dead end, from which any letter leads back to the room. The reward is 1 at the end, if it is
    reached within three turns a room. The state is the room, so that it comes again and again. The
    difficulty is ``rooms``; the metric ``right`` is the share of the way at the end.

    Control: ``revisits=False``, where a wrong letter ends the episode, no state comes again, and
    equality is the right answer.

    Args:
        size: ``"micro"``, or ``"full"``, which states the rules.
        rooms: Number of rooms before the end.
        revisits: Whether the episode goes on after a wrong letter.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``rooms`` is out of range.
    """

    def __init__(
        self,
        *,
        size: str = "micro",
        rooms: int = 4,
        revisits: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self.revisits = check_bool("revisits", revisits, "Keys")
        wrong = "others lead back or into a dead end" if revisits else "others end the walk"
        rules = (
            f"There are {rooms} rooms in a row. In each of them one of the letters a, b, c leads "
            f"on, always the same one; {wrong}. Write one letter and nothing else.\n"
        )
        super().__init__(rooms, "" if check_size(size, "Keys") else rules, render_mode=render_mode)

    def err(self, state: Place, back: bool) -> Literal["running", "failed"]:
        """Go back a room, or into the room's dead end; without revisits the episode fails."""
        if not self.revisits:
            return "failed"
        if back:
            state.room = max(state.room - 1, 0)
        state.astray = not back
        return "running"


class Aliases(Rooms):
    """Find the way through rooms of which neighbours look the same and need different letters.

    In each room one letter leads on, one leads back a room and one leads nowhere; there are no dead
    ends. Of ``aliases`` neighbours all have the same name, so that only the letters written before
    tell where one stands. The state is the room, which the observation does not tell. The
    difficulty is ``aliases``; the metric ``right`` is the share of the way at the end.

    Control: ``aliases=1``, where every room has its own name and equality is the right answer.

    Args:
        size: ``"micro"``, or ``"full"``, which states the rules.
        rooms: Number of rooms before the end.
        aliases: Number of neighbours that look the same, 1 to 3.
        render_mode: See :class:`TextEnv`.

    Raises:
        UnknownNameError: No such size.
        BadValueError: ``rooms`` or ``aliases`` is out of range.
    """

    def __init__(
        self,
        *,
        size: str = "micro",
        rooms: int = 6,
        aliases: int = 3,
        render_mode: str | None = None,
    ) -> None:
        self.aliases = check_integer("aliases", aliases, "Aliases", min=1, max=len(self.letters))
        rules = (
            f"There are {rooms} rooms in a row, some of which look the same. In each of them one "
            "of the letters a, b, c leads on, always the same one; others lead back or nowhere. "
            "Write one letter and nothing else.\n"
        )
        rules = "" if check_size(size, "Aliases") else rules
        super().__init__(rooms, rules, render_mode=render_mode)

    def name_room(self, room: int) -> str:
        """Return the name that the room shares with its neighbours."""
        return str(room // self.aliases + 1)

    def err(self, state: Place, back: bool) -> Literal["running", "failed"]:
        """Go back a room, or stay."""
        if back:
            state.room = max(state.room - 1, 0)
        return "running"
