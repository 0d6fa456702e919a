"""Scripted players: one that knows the room, and one that knows only what was shown."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..core.noisy_expert import HastyExpert
from .engine.game import LIGHT, NONE, TWO, walk_bits
from .engine.planner import (
    PUT,
    TAKE,
    Deed,
    View,
    find_command,
    find_plan,
    reach,
    see_all,
    see_shown,
)
from .engine.state import HouseState
from .engine.step import list_commands
from .engine.wording import Wording
from .houses.micro import load_micro_statistics
from .houses.statistics import Statistics, load_statistics

IDLE = "look"
_CLOSED = 0.5
"""Commands that opening is expected to take where a receptacle has not been met, by the share of
its type that can be closed: half of one, as it is tried after what stands open."""
_UNLIKELY = 1e-3
Likelihood = Mapping[str, Mapping[str, float]]


class Expert(HastyExpert):
    """The oracle: reads where everything is and does the shortest plan.

    Args:
        mistakes: Probability per action of another admissible command instead.
        seed: Seed of the mistakes and of the haste.
        shown: Know only what was shown, as :class:`Searcher` does.
        haste: Probability per episode of a wrong strategy: the wanted thing is put into its place
            as it is, neither cleaned, heated nor cooled, and where that does not do, taken and put
            down again, to the end. So is one thing where two are asked for; before a lamp is sought
            it is put back to where it lay.

    Raises:
        BadValueError: ``mistakes`` or ``haste`` is no probability.
    """

    def choose_action(self, env: Any) -> str:
        """Return the next command of the episode in ``env``; a look where nothing wins."""
        state = env.episode.state.house
        hurries = self.draw_haste(env)
        if self.draw_mistake():
            return self._choose_other(state, env.words)
        if hurries and (command := self._hurry(state, env)):
            return command
        return self.find_best(state, env)

    def find_best(self, state: HouseState, env: Any) -> str:
        """Return the command that the player takes for the best."""
        view = self._see(state)
        found = find_plan(state, view)
        if self.shown:
            return _search_on(state, view, found[0][0] if found else None, env)
        return find_command(state, found[0][0], view, env.words) if found else IDLE

    def _see(self, state: HouseState) -> View:
        return see_shown(state) if self.shown else see_all(state)

    def _hurry(self, state: HouseState, env: Any) -> str:
        """Return the command of a player in a hurry; empty while it does what is right."""
        game, held, view = state.game, state.held, self._see(state)
        if held != NONE and game.movable >> held & 1:
            light = game.goal.kind == LIGHT
            takers = _find_takers_here(state) if light else game.takers[held]
            place = reach(state, view, takers, state.at)
            return _do(state, Deed(PUT, held, place), view, env.words) if place != NONE else ""
        if held == NONE and any(
            step.action.startswith(f"{env.words.put} ") for step in env.episode.steps
        ):
            for place in game.room.here[state.at]:
                if lying := view.contents[place] & game.wanted:
                    return _do(state, Deed(TAKE, next(walk_bits(lying)), place), view, env.words)
        return ""

    def _choose_other(self, state: HouseState, words: Wording) -> str:
        commands = list_commands(state, words)
        return commands[int(self._rng.integers(len(commands)))]


class Searcher(Expert):
    """Knows only what was shown, and looks for things where they are likely, as a person would.

    It does the shortest plan with the things that it has seen; while they do not suffice, it goes
    to (opens, examines) the receptacle that shows a missing thing with the highest probability per
    command. What lies where is known by the statistics of the rooms that tasks are drawn from.

    Args:
        mistakes: Probability per action of another admissible command instead.
        seed: Seed of the mistakes and of the haste.
        haste: Probability per episode of a wrong strategy, see :class:`Expert`.
    """

    def __init__(self, mistakes: float = 0.0, seed: int = 0, *, haste: float = 0.0) -> None:
        super().__init__(mistakes, seed, shown=True, haste=haste)


def _search_on(state: HouseState, view: View, deed: Deed | None, env: Any) -> str:
    """Return the next command towards a deed, or, without one, towards what is missing."""
    if deed := deed or _find_first_deed(state, view):
        return _do(state, deed, view, env.words)
    return choose_search(state, view, load_likelihood(short=env.size == "micro"))


def _find_takers_here(state: HouseState) -> int:
    """Return the receptacles where the player stands that take what it holds."""
    fits, here = state.game.fits, state.game.room.here[state.at]
    return sum(1 << place for place in here if fits[place] >> state.held & 1)


def _do(state: HouseState, deed: Deed, view: View, words: Wording) -> str:
    """Return the next command towards a deed at a receptacle that may not have been shown."""
    room = state.game.room
    near = room.location[deed.place] == state.at
    if near and deed.verb == PUT and not state.met >> deed.place & 1:
        return f"examine {room.names[deed.place]}"  # is it closed?
    return find_command(state, deed, view, words)


def _find_first_deed(state: HouseState, view: View) -> Deed | None:
    """Return what is worth doing before all is found: taking the object, bringing the first one."""
    game, held = state.game, state.held
    if game.goal.kind not in (LIGHT, TWO):
        return None
    wanted = game.movable
    if held != NONE:
        if game.goal.kind == TWO and wanted >> held & 1 and (place := _choose_target(state, view)):
            return Deed(PUT, held, place[0])
        return None
    places = [
        place
        for place, mask in enumerate(view.contents)
        if mask & wanted and not (game.goal.kind == TWO and place in game.targets)
    ]
    if not places:
        return None
    nearest = reach(state, view, sum(1 << place for place in places), state.at)
    obj = next(walk_bits(view.contents[nearest] & wanted))
    return Deed(TAKE, obj, nearest)


def _choose_target(state: HouseState, view: View) -> tuple[int] | None:
    """Return the receptacle to bring the first of two to: where one lies, or the nearest."""
    game = state.game
    begun = [place for place in game.targets if view.contents[place] & game.wanted]
    places = begun or [place for place in game.targets if game.fits[place] >> state.held & 1]
    if not places:
        return None
    return (reach(state, view, sum(1 << place for place in places), state.at),)


def choose_search(state: HouseState, view: View, likelihood: Likelihood) -> str:
    """Return the command that looks for what is missing; a look where all has been seen.

    Args:
        state: The state of the game.
        view: What was shown.
        likelihood: Per type of objects, how often one lies in receptacles of a type.
    """
    game = state.game
    room, goal = game.room, game.goal
    has_object = state.held != NONE and game.wanted >> state.held & 1
    missing = goal.place if goal.kind == LIGHT and has_object else goal.object
    likely = likelihood.get(missing, {})
    best, highest = NONE, -1.0
    for place, kind in enumerate(room.types):
        if state.seen >> place & 1:
            continue
        share = likely.get(kind, 0.0) / room.types.count(kind) + _UNLIKELY
        cost = 1.0 + (state.met >> place & 1 and room.location[place] != state.at)
        if not state.met >> place & 1 and kind in OPENABLE:
            cost += _CLOSED
        if share / cost > highest:
            best, highest = place, share / cost
    if best == NONE:
        return IDLE
    name = room.names[best]
    if room.location[best] != state.at:
        return f"go to {name}"
    return f"open {name}" if view.closed >> best & 1 else f"examine {name}"


OPENABLE = frozenset({"box", "cabinet", "drawer", "fridge", "microwave", "safe"})
"""Types of receptacles that are mostly closed, as everybody knows."""


@lru_cache(maxsize=2)
def load_likelihood(*, short: bool) -> Likelihood:
    """Return how often an object of a type lies in receptacles of a type."""
    return count_likelihood(load_micro_statistics() if short else load_statistics())


def count_likelihood(statistics: Statistics) -> Likelihood:
    """Return the shares of receptacle types per object type, over all kinds of rooms."""
    found: dict[str, dict[str, float]] = {}
    for row in statistics.rooms.values():
        for obj, places in row.places.items():
            mine = found.setdefault(obj, {})
            for place, count in places.items():
                mine[place] = mine.get(place, 0.0) + count
    return {
        obj: {place: count / sum(places.values()) for place, count in places.items()}
        for obj, places in found.items()
    }
