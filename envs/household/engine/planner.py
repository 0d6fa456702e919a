"""What is still to do: the shortest way to the goal that deeds in their natural order allow.

A deed is a command with a receptacle: taking, changing, putting, turning on. What lies between two
deeds (going there, opening) follows from where they are done. The task's kind says which deeds
there are, and a few objects, devices and receptacles are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .game import CHANGES, LIGHT, NONE, TWO, Game, walk_bits
from .state import HouseState
from .wording import Wording

PUT, TAKE, USE, BE = "put", "take", "use", "be"


class Deed(NamedTuple):
    """One deed.

    Attributes:
        verb: ``take``, ``put``, ``use``, ``clean``, ``heat``, ``cool``, or ``be``: being there.
        object: The object.
        place: The receptacle that it is done at.
    """

    verb: str
    object: int
    place: int


Plan = tuple[Deed, ...]
_INSIDE = (PUT, TAKE)
"""Deeds that need an open receptacle."""


class View(NamedTuple):
    """What a plan is made from: the true state, or what a player knows of it.

    Attributes:
        contents: What each receptacle holds.
        closed: Receptacles that must be opened first.
    """

    contents: Sequence[int]
    closed: int


def see_all(state: HouseState) -> View:
    """Return the true state."""
    return View(state.contents, state.game.room.openable & ~state.opened)


def see_shown(state: HouseState) -> View:
    """Return what was shown: contents of receptacles seen; others may hold nothing, be open."""
    seen = state.seen
    contents = [mask if seen >> r & 1 else 0 for r, mask in enumerate(state.contents)]
    return View(contents, state.game.room.openable & ~state.opened & state.met)


def find_plan(state: HouseState, view: View) -> tuple[Plan, int] | None:
    """Return the deeds to do and the number of commands that they take; None where none lead on."""
    best: tuple[Plan, int] | None = None
    for plan in _list_plans(state, view):
        length = count_commands(state, plan, view)
        if best is None or length < best[1]:
            best = plan, length
    return best


def count_commands(state: HouseState, plan: Plan, view: View) -> int:
    """Return how many commands a plan takes, goings and openings included."""
    location, at, closed = state.game.room.location, state.at, view.closed
    count = 0
    for verb, _, place in plan:
        if location[place] != at:
            at = location[place]
            count += 1
        if verb in _INSIDE and closed >> place & 1:
            closed &= ~(1 << place)
            count += 1
        count += verb != BE
    return count


def find_command(state: HouseState, deed: Deed, view: View, words: Wording) -> str:
    """Return the next command towards a deed: going, opening, or the deed itself."""
    room, names = state.game.room, state.game.things.names
    verb, obj, place = deed
    name = room.names[place]
    if room.location[place] != state.at:
        return f"go to {name}"
    if verb in _INSIDE and view.closed >> place & 1:
        return f"open {name}"
    if verb == TAKE:
        return f"take {names[obj]} from {name}"
    if verb == PUT:
        return f"{words.put} {names[obj]}{words.into}{name}"
    if verb in (USE, BE):
        return f"use {names[obj]}"
    return f"{verb} {names[obj]} with {name}"


def _list_plans(state: HouseState, view: View) -> Iterator[Plan]:
    game, held = state.game, state.held
    wanted = game.movable
    if held != NONE and not wanted >> held & 1:
        away = reach(state, view, _find_takers(game, held), state.at)
        if away == NONE:
            return
        start: Plan = (Deed(PUT, held, away),)
        held, at = NONE, game.room.location[away]
    else:
        start, at = (), state.at
    if game.goal.kind == LIGHT:
        yield from _list_light_plans(state, view, start, held, wanted)
    elif game.goal.kind == TWO:
        yield from _list_two_plans(state, view, start, held, at)
    else:
        yield from _list_one_plans(state, view, start, held, wanted)


def _find_takers(game: Game, obj: int) -> int:
    return sum(1 << r for r, mask in enumerate(game.fits) if mask >> obj & 1)


def _list_sources(view: View, wanted: int) -> Iterator[Deed]:
    """Yield the takings of all wanted objects that lie somewhere."""
    for place, mask in enumerate(view.contents):
        if found := mask & wanted:
            for obj in walk_bits(found):
                yield Deed(TAKE, obj, place)


def _list_light_plans(
    state: HouseState, view: View, start: Plan, held: int, wanted: int
) -> Iterator[Plan]:
    game = state.game
    takes = [()] if held != NONE else [(deed,) for deed in _list_sources(view, wanted)]
    for place, mask in enumerate(view.contents):
        for lamp in walk_bits(mask & game.lamps):
            verb = BE if state.on >> lamp & 1 else USE
            for take in takes:
                yield (*start, *take, Deed(verb, lamp, place))


def _list_one_plans(
    state: HouseState, view: View, start: Plan, held: int, wanted: int
) -> Iterator[Plan]:
    game = state.game
    change = CHANGES.get(game.goal.kind)
    done = state.hot if change == "heat" else state.cool if change == "cool" else state.clean
    takes = [()] if held != NONE else [(deed,) for deed in _list_sources(view, wanted)]
    for take in takes:
        obj, at = (held, state.at) if not take else (take[0].object, _locate(game, take[0]))
        devices: list[Plan] = [()]
        if change is not None and not done >> obj & 1:
            devices = [(Deed(change, obj, r),) for r in walk_bits(game.room.devices[change])]
        takers = game.takers[obj]
        for device in devices:
            last = _locate(game, device[0]) if device else at
            place = reach(state, view, takers, last)
            if place != NONE:
                yield (*start, *take, *device, Deed(PUT, obj, place))


def _locate(game: Game, deed: Deed) -> int:
    return game.room.location[deed.place]


def _list_two_plans(
    state: HouseState, view: View, start: Plan, held: int, at: int
) -> Iterator[Plan]:
    game = state.game
    wanted = game.wanted
    targets = [r for r in game.targets if game.fits[r] & wanted]
    near = reach(state, view, sum(1 << r for r in targets), at)
    for target in targets:
        have = view.contents[target] & wanted
        if have or target == near:
            yield from _deliver(state, view, start, held, target)


def _deliver(state: HouseState, view: View, start: Plan, held: int, target: int) -> Iterator[Plan]:
    """Yield the plan that fills one target with the objects that are nearest to fetch."""
    game = state.game
    have = view.contents[target] & game.wanted
    plan, missing = list(start), 2 - have.bit_count()
    if held != NONE:
        plan.append(Deed(PUT, held, target))
        missing -= 1
        have |= 1 << held
    at = game.room.location[target] if held != NONE else state.at
    free = game.movable & ~have
    sources = sorted(
        (deed for deed in _list_sources(view, free) if deed.place != target),
        key=lambda deed: (view.closed >> deed.place & 1) + (_locate(game, deed) != at),
    )
    used: set[int] = set()
    for deed in sources:
        if missing > 0 and deed.object not in used:
            used.add(deed.object)
            plan += [deed, Deed(PUT, deed.object, target)]
            missing -= 1
    if missing <= 0:
        yield tuple(plan)


def reach(state: HouseState, view: View, places: int, at: int) -> int:
    """Return the receptacle of a set that takes fewest commands to reach inside; none of none."""
    if not places:
        return NONE
    here = state.game.room.here_masks[at]
    for group in (places & here & ~view.closed, places & ~view.closed, places & here, places):
        if group:
            return (group & -group).bit_length() - 1
    return NONE
