"""The names that objects answer to, for the parser and for lists of actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .traits import plant_traits
from .wording import (
    burning_name,
    full_name,
    other_end,
    plant_name,
    stage_name,
    terminal_name,
)
from .world import NONE, TERMINALS, World, terminal_owner

Refer = Callable[[World, int], list[str]]
STOP_WORDS = frozenset(("a", "an", "the"))


class Names(NamedTuple):
    """Names of an object, all in lower case: as listed, and as the parser compares them."""

    listed: tuple[str, ...]
    parsed: tuple[str, ...]


_KNOWN: dict[tuple[object, ...], Names] = {}
_MOST_KNOWN = 20_000


def clean(text: str) -> str:
    """Lower case, single blanks, without articles."""
    return " ".join(word for word in text.lower().split() if word not in STOP_WORDS)


def names_of(world: World, o: int, view: int) -> tuple[str, ...]:
    """Names of an object or terminal, without its container; doors as seen from ``view``."""
    return find_names(world, o, view).listed


def find_names(world: World, o: int, view: int) -> Names:
    """:func:`names_of`, also in the parser's form; what they depend on is looked up."""
    if o >= TERMINALS:
        owner = world.name[terminal_owner(o)]
        key: tuple[object, ...] = (terminal_name(world, o), owner)
        return _KNOWN.get(key) or _learn(key, _terminal(*key))
    k = world.kind[o]
    if k.refer == "plain":
        key = (k.key, world.name[o], world.burnt[o], world.burning[o])
    elif k.refer in ("door", "drain"):
        key = (k.refer, *_ends(world, o, view))
        return _KNOWN.get(key) or _learn(key, _portal(*key))
    else:
        more = _DEPENDS[k.refer](world, o)
        key = (k.key, world.name[o], world.burnt[o], world.burning[o], more)
    return _KNOWN.get(key) or _learn(key, REFERS[k.refer](world, o))


def _learn(key: tuple[object, ...], names: list[str]) -> Names:
    if len(_KNOWN) > _MOST_KNOWN:
        _KNOWN.clear()
    listed = tuple(dict.fromkeys(name.lower() for name in names if name.strip()))
    parsed = tuple(dict.fromkeys(clean(name) for name in listed if len(name) > 1))
    _KNOWN[key] = found = Names(listed, parsed)
    return found


def container_of(world: World, o: int) -> int:
    """The direct container of an object or terminal."""
    return terminal_owner(o) if o >= TERMINALS else world.parent[o]


def long_names(world: World, o: int, view: int) -> list[str]:
    """All names: the plain ones, and each with "in" and "on" its direct container, sorted."""
    own = names_of(world, o, view)
    names = set(own)
    container = container_of(world, o)
    if container != NONE:
        for outer in container_names(world, container):
            for name in own:
                names.add(f"{name} in {outer}")
                names.add(f"{name} on {outer}")
    return sorted(name for name in names if len(name) > 1)


def container_names(world: World, container: int) -> tuple[str, ...]:
    """Names of an object as the container of another."""
    return names_of(world, container, NONE)


def canonical_door(world: World, portal: int, view: int) -> str:
    """The one name that lists of actions use for a door or drain."""
    end = other_end(world, portal, view)
    name = world.name[portal]
    if end is not None:
        return f"{name} to {world.name[end]}".lower()
    source, target = world.note[portal]
    return f"{name} from {world.name[source]} to {world.name[target]}".lower()


def _terminal(name: object, owner: object) -> list[str]:
    return ["terminal", f"{name}", f"{name} on {owner}", f"{owner} {name}"]


def _ends(world: World, portal: int, view: int) -> tuple[str, ...]:
    """What the names of a door or drain depend on: the place it leads to, or both its ends."""
    source, target = world.note[portal]
    if world.kind[portal].key == "drain":
        around = (world.parent[source], world.parent[target])
        if view not in (source, target) and (view == NONE or view not in around):
            return ("",)
        return (world.name[source if view in (source, around[0]) else target],)
    end = other_end(world, portal, view)
    return (world.name[source], world.name[target]) if end is None else (world.name[end],)


def _portal(kind: object, *ends: object) -> list[str]:
    if kind == "drain":
        return ["drain", f"{ends[0]} drain"] if ends[0] else ["drain"]
    if len(ends) == 1:
        return ["door", f"door to {ends[0]}", f"{ends[0]} door"]
    one, two = ends
    return ["door", f"door from {one} to {two}", f"door from {two} to {one}"]


def _plain(world: World, o: int) -> list[str]:
    return [*world.kind[o].words, world.name[o], full_name(world, o)]


def _cup(world: World, o: int) -> list[str]:
    inside = " and ".join(sorted({full_name(world, kid) for kid in world.kids[o]})) or "nothing"
    short = _plain(world, o)
    return short + [f"{name} containing {inside}" for name in short]


def _colored(world: World, o: int) -> list[str]:
    k = world.kind[o]
    return [*_plain(world, o), burning_name(world, o, f"{k.color} {k.name}")]


def _picture(world: World, o: int) -> list[str]:
    short = [world.name[o], full_name(world, o)]
    return short + [f"{name} of {world.note[o].subject}" for name in short]


def _document(world: World, o: int) -> list[str]:
    short = [world.name[o], full_name(world, o)]
    title = world.note[o].title if world.note[o] is not None else ""
    return [*short, title, *(f"{name} called {title}" for name in short)]


def _book(world: World, o: int) -> list[str]:
    text, full = world.note[o], full_name(world, o)
    names = ["book", text.title, f"book by {text.author}", f"{text.title} book", world.name[o]]
    return [*names, full, f"{full} by {text.author}", f"{full} called {text.title}"]


def _plane(world: World, o: int) -> list[str]:
    name, full = world.name[o], full_name(world, o)
    names = ["inclined plane", "plane", name, full]
    letter = "" if world.note[o] is None else world.note[o].letter
    return names + ([f"{n} {letter}" for n in names] if letter else [])


def _sick(world: World, o: int, names: list[str]) -> list[str]:
    return names + [f"sick {name}" for name in names] if world.life[o].sick else names


def _tree(world: World, o: int) -> list[str]:
    stage, full, plant = world.stage(o), full_name(world, o), plant_name(world, o)
    names = [*world.kind[o].words, world.name[o], f"{world.name[o]} in the {stage} stage"]
    names += [f"{stage} plant", plant, f"{plant} in the {stage} stage", f"{stage} {plant}"]
    return [*names, full, f"{full} in the {stage} stage"]


def _grown_tree(world: World, o: int) -> list[str]:
    return _sick(world, o, _tree(world, o))


def _bred(world: World, o: int) -> list[str]:
    names = [*_tree(world, o), world.kind[o].species]
    seen = plant_traits(world, o).strip().removeprefix("with a ")
    if seen:
        plant = plant_name(world, o)
        names += [name.replace(plant, f"{seen} {plant}") for name in names]
    return _sick(world, o, names)


def _animal(world: World, o: int) -> list[str]:
    stage, shown, name = world.stage(o), stage_name(world, o), world.name[o]
    return [*world.kind[o].words, name, shown, f"{stage} {name}", f"{stage} {shown}"]


def _bee(world: World, o: int) -> list[str]:
    k = world.kind[o]
    return [*k.words, world.name[o], k.species, stage_name(world, o)]


def _flower(world: World, o: int) -> list[str]:
    names = ["flower", world.name[o], full_name(world, o)]
    wilting = world.life[o].step > 0
    return names + [f"wilting {name}" for name in names] if wilting else names


def _pollen(world: World, o: int) -> list[str]:
    species = world.kind[world.note[o]].species
    return ["pollen", world.name[o], f"{species} pollen", full_name(world, o)]


REFERS: dict[str, Refer] = {
    **{"plain": _plain, "cup": _cup, "colored": _colored, "picture": _picture},
    "document": _document,
    **{"book": _book, "plane": _plane, "tree": _grown_tree, "bred plant": _bred},
    **{"animal": _animal, "bee": _bee, "flower": _flower, "pollen": _pollen},
}


def _contents(world: World, o: int) -> tuple[str, ...]:
    return tuple([full_name(world, kid) for kid in world.kids[o]])


def _life(world: World, o: int) -> tuple[object, ...]:
    life = world.life[o]
    return life.stage, life.sick, world.note[o]


_DEPENDS: dict[str, Callable[[World, int], object]] = {
    "cup": _contents,
    "colored": lambda world, o: None,  # noqa: ARG005 - nothing beyond the name
    "picture": lambda world, o: world.note[o],
    "document": lambda world, o: None if world.note[o] is None else world.note[o].title,
    "book": lambda world, o: world.note[o].title,
    "plane": lambda world, o: world.note[o],
    "tree": _life,
    "bred plant": _life,
    "animal": lambda world, o: world.life[o].stage,
    "bee": lambda world, o: world.life[o].stage,
    "flower": lambda world, o: world.life[o].step > 0,
    "pollen": lambda world, o: world.kind[world.note[o]].species,
}
"""What the names of a kind depend on beside the plain name and fire."""
