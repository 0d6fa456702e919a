"""The state of a game."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .game import CHANGES, HEAT, LIGHT, NONE, TWO, Game


@dataclass(slots=True)
class HouseState:
    """Where everything is; sets of objects and receptacles are ints (see ``game.py``).

    Attributes:
        game: The game that is played.
        at: Location of the agent.
        held: Object in the hand; :data:`~.game.NONE` for none.
        contents: What each receptacle holds.
        left: Objects that were taken from each receptacle and not put back into it.
        beside: Objects noted at each location, by putting them down there.
        opened: Receptacles that are open.
        hot: Hot objects.
        cool: Cool objects.
        clean: Clean objects.
        sliced: Sliced objects.
        on: Objects that were turned on.
        met: Receptacles that have been shown, open or closed.
        seen: Receptacles whose contents have been shown.
    """

    game: Game
    at: int
    held: int
    contents: tuple[int, ...]
    left: tuple[int, ...]
    beside: tuple[int, ...]
    opened: int = 0
    hot: int = 0
    cool: int = 0
    clean: int = 0
    sliced: int = 0
    on: int = 0
    met: int = 0
    seen: int = 0

    def fork(self) -> HouseState:
        """Return an independent copy; its fields are immutable."""
        return HouseState(
            self.game,
            self.at,
            self.held,
            self.contents,
            self.left,
            self.beside,
            self.opened,
            self.hot,
            self.cool,
            self.clean,
            self.sliced,
            self.on,
            self.met,
            self.seen,
        )

    def is_won(self) -> bool:
        """Return whether the task is done now."""
        game = self.game
        wanted, kind = game.wanted, game.goal.kind
        if kind == LIGHT:
            if self.held == NONE or not wanted >> self.held & 1:
                return False
            lamps = game.lamps & self.on
            return any(self.contents[r] & lamps for r in game.room.here[self.at])
        if (change := CHANGES.get(kind)) is not None:
            done = self.clean if change == "clean" else self.hot if kind == HEAT else self.cool
            wanted &= done
        if not wanted:
            return False
        contents = self.contents
        if kind == TWO:
            return any((contents[r] & wanted).bit_count() > 1 for r in game.targets)
        return any(contents[r] & wanted for r in game.targets)

    def identify(self) -> Any:
        """Return what the future depends on, as plain data.

        Left out is what was shown, and what nothing can depend on: the note that an object lies at
        a location, unless it can be sliced there or was taken from a receptacle here and put into
        another one (``look`` names it then); and lamps that the task does not ask for.
        """
        game = self.game
        left = tuple(map(int.__and__, self.left, game.traced))
        here = game.room.here
        sliceable = game.things.sliceable
        beside = []
        for location, noted in enumerate(self.beside):
            kept = sliceable
            for receptacle in here[location]:
                kept |= left[receptacle]
            beside.append(noted & kept)
        return (
            self.at,
            self.held,
            self.contents,
            left,
            tuple(beside),
            self.opened,
            (self.hot, self.cool, self.clean, self.sliced, self.on & game.lamps),
        )

    def digest(self) -> str:
        """Return text that names the state and what was shown of it."""
        return f"{self.game.id}:{self.identify()}:{self.left}:{self.beside}:{self.met}:{self.seen}"


def start_game(game: Game) -> HouseState:
    """Return the state that a game starts in: everything closed, in the middle of the room."""
    return HouseState(
        game,
        game.room.start,
        NONE,
        game.contents,
        (0,) * len(game.contents),
        game.beside,
        cool=game.cool,
    )
