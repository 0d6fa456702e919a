"""Solvers of the tasks on chemistry and paint (6-x)."""

from __future__ import annotations

from ...house.state import NONE
from ..params import Mix, Paint
from .actor import Actor, Intent, Step

_STUDIO = "art studio"


def mix(a: Actor) -> Step:
    """Solve 6-1: read what is needed; then all ingredients alone in one container, mixed."""
    params: Mix = a.params
    result = a.find_first(params.result)
    if result != NONE:
        return a.focus(result)
    recipe = a.find_first("recipe")
    if recipe != NONE and not a.count_done("read", "recipe"):
        return a.reach(recipe) or Intent("read", (recipe,))
    return _mix_together(a, params.ingredients)


def solve_secondary(a: Actor) -> Step:
    """Solve 6-2."""
    params: Paint = a.params
    return _mix_paint(a, params.secondary, params.secondary_of)


def solve_tertiary(a: Actor) -> Step:
    """Solve 6-3: a second cup of the primary colour is in the studio's cupboard."""
    params: Paint = a.params
    if not a.done:
        return solve_secondary(a)
    return _mix_paint(a, params.tertiary, params.tertiary_of)


def _mix_paint(a: Actor, result: str, colors: tuple[str, ...]) -> Step:
    made = a.find_in_place(a.here, result)
    if made == NONE:
        made = a.find_first(result)
    if made != NONE:
        return a.focus(made)
    house = a.house
    cups = [_find_cup(a, color) for color in colors]
    both = next((cup for cup in cups if len(house.kids[cup]) == len(colors)), NONE)
    if both != NONE:
        return a.reach(both) or Intent("mix", (both,))
    first, second = (next(iter(house.kids[cup])) for cup in cups)
    return a.reach(first) or a.uncover(second) or Intent("pour", (cups[1], cups[0]))


def _find_cup(a: Actor, color: str) -> int:
    """Return a cup of a paint: one with other paint in it, else a full one in the studio."""
    house = a.house
    cups = [house.parent[paint] for paint in a.find_named(color) if _in_studio(a, paint)]
    cups.sort(key=lambda cup: -len(house.kids[cup]))
    return cups[0]


def _in_studio(a: Actor, thing: int) -> bool:
    return a.get_place_name(thing) == _STUDIO


def _mix_together(a: Actor, names: tuple[str, ...]) -> Step:
    """Have the ingredients in one container and mix it."""
    house = a.house
    bowl = _find_bowl(a, names)
    have = [house.name[o] for o in house.kids[bowl]]
    if len(have) == len(names):
        return a.reach(bowl) or Intent("mix", (bowl,))
    missing = [name for name in names if name not in have]
    # What is carried in a cup comes first, water last: it is poured, and needs a cup of its own.
    for name in sorted(missing, key=lambda name: name == "water"):
        return _bring(a, name, bowl)
    return None


def _find_bowl(a: Actor, names: tuple[str, ...]) -> int:
    """Return the container with nothing but ingredients, or the nearest empty one."""
    house = a.house
    best, most = NONE, 0
    for thing in a.walk_things():
        kids = house.kids[thing]
        if house.kind[thing].refer != "cup" or len(kids) <= most:
            continue
        if all(house.name[o] in names for o in kids) and not _is_source(a, thing, names):
            best, most = thing, len(kids)
    return best if best != NONE else a.find_empty_cup("kitchen")


def _is_source(a: Actor, cup: int, names: tuple[str, ...]) -> bool:
    """Return whether a cup is where a liquid comes from, not where all is mixed."""
    house = a.house
    kids = house.kids[cup]
    return (
        len(kids) == 1
        and (house.state[kids[0]] == "liquid" or house.kind[cup].key == "glass jar")
        and len(names) > 1
    )


def _bring(a: Actor, name: str, bowl: int) -> Step:
    """Have one ingredient in the bowl; the bowl is carried along."""
    house = a.house
    if not a.is_held(bowl):
        return a.hold(bowl)
    if name == "water":
        return a.fetch_water() or a.pour(a.find_water(), bowl)
    thing = _find_nearest(a, name)
    if house.state[thing] == "liquid":
        cup = house.parent[thing]
        return a.reach(cup) or a.ensure_open(cup) or Intent("pour", (cup, bowl))
    return a.reach(thing) or Intent("move", (thing, bowl))


def _find_nearest(a: Actor, name: str) -> int:
    """Return the nearest thing of a name; carried ones and solids first."""
    house = a.house
    found = list(a.find_named(name))
    alone = [
        o for o in found if house.state[o] != "liquid" or len(house.kids[house.parent[o]]) == 1
    ]
    return (alone or found)[0]
