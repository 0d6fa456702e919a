"""The names that objects answer to, for the parser and for lists of actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..house.state import NONE, TERMINALS, HouseState, get_terminal_owner
from .names import (
    find_other_end,
    list_plant_traits,
    write_burning_name,
    write_full_name,
    write_plant_name,
    write_stage_name,
    write_terminal_name,
)

Refer = Callable[[HouseState, int], list[str]]
STOP_WORDS = frozenset(("a", "an", "the"))


class Names(NamedTuple):
    """Names of an object, all in lower case: as listed, and as the parser compares them."""

    listed: tuple[str, ...]
    parsed: tuple[str, ...]


_KNOWN: dict[tuple[object, ...], Names] = {}
_MAX_KNOWN = 20_000


def clean(text: str) -> str:
    """Return a text in lower case, with single blanks and without articles."""
    return " ".join(word for word in text.lower().split() if word not in STOP_WORDS)


def list_names(house: HouseState, o: int, view: int) -> tuple[str, ...]:
    """Return the names of an object or terminal, alone; doors as seen from ``view``."""
    return find_names(house, o, view).listed


def find_names(house: HouseState, o: int, view: int) -> Names:
    """Return the names in both forms; those of objects that look alike are looked up."""
    if o >= TERMINALS:
        owner = house.name[get_terminal_owner(o)]
        key: tuple[object, ...] = (write_terminal_name(house, o), owner)
        return _KNOWN.get(key) or _learn(key, _terminal(*key))
    k = house.kind[o]
    if k.refer == "plain":
        key = (k.key, house.name[o], house.burnt[o], house.burning[o])
    elif k.refer in ("door", "drain"):
        key = (k.refer, *_ends(house, o, view))
        return _KNOWN.get(key) or _learn(key, _portal(*key))
    else:
        more = _DEPENDS[k.refer](house, o)
        key = (k.key, house.name[o], house.burnt[o], house.burning[o], more)
    return _KNOWN.get(key) or _learn(key, REFERS[k.refer](house, o))


def _learn(key: tuple[object, ...], names: list[str]) -> Names:
    if len(_KNOWN) > _MAX_KNOWN:
        _KNOWN.clear()
    listed = tuple(dict.fromkeys(name.lower() for name in names if name.strip()))
    parsed = tuple(dict.fromkeys(clean(name) for name in listed if len(name) > 1))
    _KNOWN[key] = found = Names(listed, parsed)
    return found


def find_container(house: HouseState, o: int) -> int:
    """Return the direct container of an object or terminal."""
    return get_terminal_owner(o) if o >= TERMINALS else house.parent[o]


def list_long_names(house: HouseState, o: int, view: int) -> list[str]:
    """Return all names: the plain ones, and each with "in" and "on" its container, sorted."""
    own = list_names(house, o, view)
    names = set(own)
    container = find_container(house, o)
    if container != NONE:
        for outer in container_names(house, container):
            for name in own:
                names.add(f"{name} in {outer}")
                names.add(f"{name} on {outer}")
    return sorted(name for name in names if len(name) > 1)


def container_names(house: HouseState, container: int) -> tuple[str, ...]:
    """Return the names of an object as the container of another."""
    return list_names(house, container, NONE)


def name_door(house: HouseState, portal: int, view: int) -> str:
    """Return the one name that lists of actions use for a door or drain."""
    end = find_other_end(house, portal, view)
    name = house.name[portal]
    if end is not None:
        return f"{name} to {house.name[end]}".lower()
    source, target = house.note[portal]
    return f"{name} from {house.name[source]} to {house.name[target]}".lower()


def _terminal(name: object, owner: object) -> list[str]:
    return ["terminal", f"{name}", f"{name} on {owner}", f"{owner} {name}"]


def _ends(house: HouseState, portal: int, view: int) -> tuple[str, ...]:
    """Return what the names of a door or drain depend on: where it leads, or both its ends."""
    source, target = house.note[portal]
    if house.kind[portal].key == "drain":
        around = (house.parent[source], house.parent[target])
        if view not in (source, target) and (view == NONE or view not in around):
            return ("",)
        return (house.name[source if view in (source, around[0]) else target],)
    end = find_other_end(house, portal, view)
    return (house.name[source], house.name[target]) if end is None else (house.name[end],)


def _portal(kind: object, *ends: object) -> list[str]:
    if kind == "drain":
        return ["drain", f"{ends[0]} drain"] if ends[0] else ["drain"]
    if len(ends) == 1:
        return ["door", f"door to {ends[0]}", f"{ends[0]} door"]
    one, two = ends
    return ["door", f"door from {one} to {two}", f"door from {two} to {one}"]


def _name_plain(house: HouseState, o: int) -> list[str]:
    return [*house.kind[o].words, house.name[o], write_full_name(house, o)]


def _name_cup(house: HouseState, o: int) -> list[str]:
    inside = (
        " and ".join(sorted({write_full_name(house, kid) for kid in house.kids[o]})) or "nothing"
    )
    short = _name_plain(house, o)
    return short + [f"{name} containing {inside}" for name in short]


def _name_colored(house: HouseState, o: int) -> list[str]:
    k = house.kind[o]
    return [*_name_plain(house, o), write_burning_name(house, o, f"{k.color} {k.name}")]


def _name_picture(house: HouseState, o: int) -> list[str]:
    short = [house.name[o], write_full_name(house, o)]
    return short + [f"{name} of {house.note[o].subject}" for name in short]


def _name_document(house: HouseState, o: int) -> list[str]:
    short = [house.name[o], write_full_name(house, o)]
    title = house.note[o].title if house.note[o] is not None else ""
    return [*short, title, *(f"{name} called {title}" for name in short)]


def _name_book(house: HouseState, o: int) -> list[str]:
    text, full = house.note[o], write_full_name(house, o)
    names = ["book", text.title, f"book by {text.author}", f"{text.title} book", house.name[o]]
    return [*names, full, f"{full} by {text.author}", f"{full} called {text.title}"]


def _name_plane(house: HouseState, o: int) -> list[str]:
    name, full = house.name[o], write_full_name(house, o)
    names = ["inclined plane", "plane", name, full]
    letter = "" if house.note[o] is None else house.note[o].letter
    return names + ([f"{n} {letter}" for n in names] if letter else [])


def _sick(house: HouseState, o: int, names: list[str]) -> list[str]:
    return names + [f"sick {name}" for name in names] if house.life[o].sick else names


def _name_tree(house: HouseState, o: int) -> list[str]:
    stage, full, plant = house.get_stage(o), write_full_name(house, o), write_plant_name(house, o)
    names = [*house.kind[o].words, house.name[o], f"{house.name[o]} in the {stage} stage"]
    names += [f"{stage} plant", plant, f"{plant} in the {stage} stage", f"{stage} {plant}"]
    return [*names, full, f"{full} in the {stage} stage"]


def _name_grown_tree(house: HouseState, o: int) -> list[str]:
    return _sick(house, o, _name_tree(house, o))


def _name_bred(house: HouseState, o: int) -> list[str]:
    names = [*_name_tree(house, o), house.kind[o].species]
    seen = list_plant_traits(house, o).strip().removeprefix("with a ")
    if seen:
        plant = write_plant_name(house, o)
        names += [name.replace(plant, f"{seen} {plant}") for name in names]
    return _sick(house, o, names)


def _name_animal(house: HouseState, o: int) -> list[str]:
    stage, shown, name = house.get_stage(o), write_stage_name(house, o), house.name[o]
    return [*house.kind[o].words, name, shown, f"{stage} {name}", f"{stage} {shown}"]


def _name_bee(house: HouseState, o: int) -> list[str]:
    k = house.kind[o]
    return [*k.words, house.name[o], k.species, write_stage_name(house, o)]


def _name_flower(house: HouseState, o: int) -> list[str]:
    names = ["flower", house.name[o], write_full_name(house, o)]
    wilting = house.life[o].step > 0
    return names + [f"wilting {name}" for name in names] if wilting else names


def _name_pollen(house: HouseState, o: int) -> list[str]:
    species = house.kind[house.note[o]].species
    return ["pollen", house.name[o], f"{species} pollen", write_full_name(house, o)]


REFERS: dict[str, Refer] = {
    "plain": _name_plain,
    "cup": _name_cup,
    "colored": _name_colored,
    "picture": _name_picture,
    "document": _name_document,
    "book": _name_book,
    "plane": _name_plane,
    "tree": _name_grown_tree,
    "bred plant": _name_bred,
    "animal": _name_animal,
    "bee": _name_bee,
    "flower": _name_flower,
    "pollen": _name_pollen,
}


def _contents(house: HouseState, o: int) -> tuple[str, ...]:
    return tuple([write_full_name(house, kid) for kid in house.kids[o]])


def _life(house: HouseState, o: int) -> tuple[object, ...]:
    life = house.life[o]
    return life.stage, life.sick, house.note[o]


_DEPENDS: dict[str, Callable[[HouseState, int], object]] = {
    "cup": _contents,
    "colored": lambda house, o: None,  # noqa: ARG005 - nothing beyond the name
    "picture": lambda house, o: house.note[o],
    "document": lambda house, o: None if house.note[o] is None else house.note[o].title,
    "book": lambda house, o: house.note[o].title,
    "plane": lambda house, o: house.note[o],
    "tree": _life,
    "bred plant": _life,
    "animal": lambda house, o: house.life[o].stage,
    "bee": lambda house, o: house.life[o].stage,
    "flower": lambda house, o: house.life[o].step > 0,
    "pollen": lambda house, o: house.kind[house.note[o]].species,
}
"""What the names of a kind depend on beside the plain name and fire."""
