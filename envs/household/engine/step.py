"""Commands: what is admissible, what it changes, what is answered.

The rules are those of ALFWorld's PDDL domain and text grammar (arXiv 2010.03768; packages alfworld
0.4.2 and textworld 1.7.0), as replayed by ``turngym fidelity household``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from .game import NONE, Game, walk_bits
from .state import HouseState
from .wording import Wording, fill


def write_opening(game: Game, words: Wording) -> str:
    """Return the first observation: all receptacles, and the task."""
    return words.opening % (words.write_list(game.room.names), game.text)


def act(state: HouseState, command: str, words: Wording) -> str | None:
    """Do a command in place.

    Args:
        state: Where everything is.
        command: The command; it counts only as it stands in :func:`list_commands`.
        words: The edition.

    Returns:
        The answer; None where the command is not admissible, which changes nothing.
    """
    verb, _, rest = command.partition(" ")
    handle = _put if verb == words.put else _HANDLERS.get(verb)
    return None if handle is None else handle(state, rest, words)


def view_receptacle(state: HouseState, receptacle: int, words: Wording) -> str:
    """Return what is seen of a receptacle, and note that it was shown."""
    room, bit = state.game.room, 1 << receptacle
    state.met |= bit
    name = room.names[receptacle]
    if not room.openable & bit:
        template = words.on
    elif state.opened & bit:
        template = words.open
    else:
        return words.closed % name
    state.seen |= bit
    return template % (name, _list_objects(state.game, state.contents[receptacle], words))


def _list_objects(game: Game, mask: int, words: Wording) -> str:
    names = game.things.names
    return words.write_list([names[o] for o in walk_bits(mask)])


def is_accessible(state: HouseState, receptacle: int) -> bool:
    """Return whether a receptacle's inside can be reached."""
    return bool((~state.game.room.openable | state.opened) >> receptacle & 1)


def _find_here(state: HouseState, name: str) -> int:
    """Return the receptacle of that name where the agent is, or none."""
    room = state.game.room
    number = room.numbers.get(name, NONE)
    return number if number != NONE and room.location[number] == state.at else NONE


def _go(state: HouseState, rest: str, words: Wording) -> str | None:
    room = state.game.room
    number = room.numbers.get(rest[3:], NONE) if rest.startswith("to ") else NONE
    if number == NONE or room.location[number] == state.at:
        return None
    state.at = at = room.location[number]
    view = view_receptacle(state, number, words)
    if not words.arrive:
        return view
    return words.arrive % (room.location_names[at] if words.by_location else rest[3:]) + view


def _open(state: HouseState, rest: str, words: Wording) -> str | None:
    number = _find_here(state, rest)
    if number == NONE or is_accessible(state, number):
        return None
    state.opened |= 1 << number
    return (words.opened and words.opened % rest) + view_receptacle(state, number, words)


def _close(state: HouseState, rest: str, words: Wording) -> str | None:
    number = _find_here(state, rest)
    if number == NONE or not state.opened >> number & 1:
        return None
    state.opened &= ~(1 << number)
    return words.close % rest


def _take(state: HouseState, rest: str, words: Wording) -> str | None:
    name, _, place = rest.partition(" from ")
    things = state.game.things
    obj, number = things.numbers.get(name, NONE), _find_here(state, place)
    if state.held != NONE or obj == NONE or number == NONE or not is_accessible(state, number):
        return None
    bit = 1 << obj
    if not state.contents[number] & things.pickupable & bit:
        return None
    state.contents = _change(state.contents, number, state.contents[number] & ~bit)
    state.left = _change(state.left, number, state.left[number] | bit)
    state.beside = _change(state.beside, state.at, state.beside[state.at] & ~bit)
    state.held = obj
    return fill(words.take, name, place)


def _put(state: HouseState, rest: str, words: Wording) -> str | None:
    name, _, place = rest.partition(words.into)
    obj, number = state.held, _find_here(state, place)
    if obj == NONE or number == NONE or state.game.things.names[obj] != name:
        return None
    bit = 1 << obj
    if not is_accessible(state, number) or not state.game.fits[number] & bit:
        return None
    state.contents = _change(state.contents, number, state.contents[number] | bit)
    state.left = _change(state.left, number, state.left[number] & ~bit)
    state.beside = _change(state.beside, state.at, state.beside[state.at] | bit)
    state.held = NONE
    return words.laid % (name, place)


def _change(masks: tuple[int, ...], number: int, mask: int) -> tuple[int, ...]:
    return (*masks[:number], mask, *masks[number + 1 :])


def _use(state: HouseState, rest: str, words: Wording) -> str | None:
    game = state.game
    obj = game.things.numbers.get(rest, NONE)
    if obj == NONE or not game.things.toggleable >> obj & 1:
        return None
    if not any(state.contents[r] >> obj & 1 for r in game.room.here[state.at]):
        return None
    state.on |= 1 << obj
    return words.use % rest


def _find_held(state: HouseState, rest: str, verb: str) -> tuple[str, str] | None:
    """Return the held object and the receptacle here that a command with a device names."""
    name, _, place = rest.partition(" with ")
    number, game = _find_here(state, place), state.game
    if state.held == NONE or number == NONE or game.things.names[state.held] != name:
        return None
    return (name, place) if game.room.devices[verb] >> number & 1 else None


def _clean(state: HouseState, rest: str, words: Wording) -> str | None:
    named = _find_held(state, rest, "clean")
    if named is None or not state.game.things.cleanable >> state.held & 1:
        return None
    state.clean |= 1 << state.held
    return fill(words.clean, *named)


def _heat(state: HouseState, rest: str, words: Wording) -> str | None:
    named = _find_held(state, rest, "heat")
    if named is None or not state.game.things.heatable >> state.held & 1:
        return None
    state.hot |= 1 << state.held
    state.cool &= ~(1 << state.held)
    return fill(words.heat, *named)


def _cool(state: HouseState, rest: str, words: Wording) -> str | None:
    named = _find_held(state, rest, "cool")
    if named is None or not state.game.things.coolable >> state.held & 1:
        return None
    state.cool |= 1 << state.held
    state.hot &= ~(1 << state.held)
    return fill(words.cool, *named)


def _slice(state: HouseState, rest: str, words: Wording) -> str | None:
    name, _, knife = rest.partition(" with ")
    things, held = state.game.things, state.held
    obj = things.numbers.get(name, NONE)
    if obj == NONE or held == NONE or things.names[held] != knife:
        return None
    if not things.knives >> held & 1 or not _list_sliceable(state) >> obj & 1:
        return None
    state.sliced |= 1 << obj
    return fill(words.slice, name, knife)


def _list_sliceable(state: HouseState) -> int:
    """Return the objects that a knife reaches: noted at this location, in whatever lies there."""
    return state.beside[state.at] & state.game.things.sliceable if _has_place(state) else 0


def _has_place(state: HouseState) -> bool:
    return state.at < len(state.beside)


def _look(state: HouseState, rest: str, words: Wording) -> str | None:
    if rest:
        return None
    game = state.game
    if not (here := game.room.here[state.at]):
        return words.middle
    names = [game.room.names[r] for r in here]
    noted = state.beside[state.at]
    beside = [
        game.things.names[o] for o in walk_bits(noted) for r in here if state.left[r] >> o & 1
    ]
    return words.facing % (words.write_names(names), words.write_list(beside))


def _inventory(state: HouseState, rest: str, words: Wording) -> str | None:
    if rest:
        return None
    if state.held == NONE:
        return words.empty_handed
    return words.carrying % state.game.things.names[state.held]


def _help(state: HouseState, rest: str, words: Wording) -> str | None:  # noqa: ARG001
    return None if rest or not words.help else words.help


def _examine(state: HouseState, rest: str, words: Wording) -> str | None:
    number = _find_here(state, rest)
    if number != NONE:
        return view_receptacle(state, number, words)
    held, things = state.held, state.game.things
    if held == NONE or things.names[held] != rest:
        return None
    if things.holders >> held & 1:
        inside = _list_objects(state.game, things.inside.get(held, 0), words)
        return words.normal % (rest, inside)
    quality = _describe(state, held)
    return words.seen % (quality, rest) if quality else words.plain % rest


def _describe(state: HouseState, obj: int) -> str:
    """Return what is seen of an object: hot comes before cool, and cool alone is called cold."""
    clean, sliced = state.clean >> obj & 1, state.sliced >> obj & 1
    hot, cool = state.hot >> obj & 1, state.cool >> obj & 1
    warmth = "hot" if hot else "cool" if cool else ""
    if clean:
        warmth = f"{warmth} and clean" if warmth else "clean"
    elif warmth == "cool" and not sliced:
        warmth = "cold"
    return " ".join(word for word in (warmth, "sliced" if sliced else "") if word)


def list_commands(state: HouseState, words: Wording) -> list[str]:
    """Return all admissible commands, sorted by code point, as the original lists them."""
    game, held, at = state.game, state.held, state.at
    room, things = game.room, game.things
    found = ["inventory", "look"]
    if words.help:
        found.append("help")
    for number in room.here[at]:
        _list_at(state, number, words, found)
    held_name = ""
    if held != NONE:
        held_name = things.names[held]
        found.append(f"examine {held_name}")
        if things.knives >> held & 1:
            found += [
                f"slice {things.names[o]} with {held_name}"
                for o in walk_bits(_list_sliceable(state))
            ]
    found.sort()
    split = 0
    while split < len(found) and found[split] < "go to ":
        split += 1
    return [*found[:split], *room.go_commands[at], *found[split:]]


def _list_at(state: HouseState, number: int, words: Wording, found: list[str]) -> None:
    """Add the commands about one receptacle here."""
    game, held, bit = state.game, state.held, 1 << number
    room, things = game.room, game.things
    place, inside = room.names[number], state.contents[number]
    found.append(f"examine {place}")
    accessible = True
    if room.openable & bit:
        accessible = bool(state.opened & bit)
        found.append(f"close {place}" if accessible else f"open {place}")
    if lamps := inside & things.toggleable:
        found += [text for o in walk_bits(lamps) if (text := f"use {things.names[o]}") not in found]
    if held == NONE:
        if accessible:
            names = things.names
            for o in walk_bits(inside & things.pickupable):
                found.append(f"take {names[o]} from {place}")
        return
    name = things.names[held]
    if accessible and game.fits[number] >> held & 1:
        found.append(f"{words.put} {name}{words.into}{place}")
    for verb, able in (
        ("clean", things.cleanable),
        ("heat", things.heatable),
        ("cool", things.coolable),
    ):
        if able >> held & 1 and room.devices[verb] & bit:
            found.append(f"{verb} {name} with {place}")


Handler = Callable[[HouseState, str, Wording], str | None]
_HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "look": _look,
        "inventory": _inventory,
        "help": _help,
        "go": _go,
        "open": _open,
        "close": _close,
        "examine": _examine,
        "take": _take,
        "use": _use,
        "clean": _clean,
        "heat": _heat,
        "cool": _cool,
        "slice": _slice,
    }
)
