"""Setting up the tasks on chemistry and on inclined planes (6-x and 9-x)."""

from __future__ import annotations

from ..records import Slope, Text
from ..world import World
from . import draws
from .params import Mix, Paint, Planes
from .placing import add, make, place
from .variations_mixing import EXTRA_PLACES

_WORKSHOP = "workshop"
_SLANT = 45.0
_FURNITURE = {
    "paint cupboard": ("cupboard", "wood cup"),
    "paint closet": ("closet", "glass cup"),
    "desk": ("desk", "tin cup"),
}
_PRIMARY = ("red paint", "blue paint", "yellow paint")


def mix(world: World, params: Mix) -> None:
    """6-1; water and paint are not brought."""
    for name in params.ingredients:
        if name != "water" and not name.endswith("paint"):
            add(world, name, params.place)
    recipe = make(world, "recipe")
    title = f"instructions to make {params.result}"
    needed = ", ".join(params.ingredients)
    contents = f"To make {params.result}, you need to mix {needed}."
    world.note[recipe] = Text(title, contents)
    place(world, recipe, params.place)


def paint(world: World, params: Paint, variation: int, task: int) -> None:
    """6-2 and 6-3 (``task`` 0 and 1).

    The original has three paints for three pieces of furniture, and the last one gets them: the
    cups in the cupboard and in the closet are empty.
    """
    key, cup = _FURNITURE[params.extra]
    container = draws.paint_containers(variation, task)[EXTRA_PLACES.index(params.extra)]
    bowl = make(world, container)
    colors = [make(world, color) for color in _PRIMARY] if params.extra == "desk" else []
    furniture = make(world, key, params.extra)
    for number in range(len(_PRIMARY)):
        made = make(world, cup)
        if colors:
            world.put(colors[number], made)
        world.put(made, furniture)
    place(world, furniture, params.place)
    if params.place == _WORKSHOP:
        # Not where the closet's glass cups already answer to its name.
        place(world, bowl, params.place)


def planes(world: World, params: Planes) -> None:
    """9-1 to 9-3."""
    by_angle = params.ask in ("shallowest", "steepest")
    for name, value in zip((params.first, params.second), params.values, strict=True):
        plane = make(world, "inclined plane")
        slope = Slope(value, "plain surface", name) if by_angle else Slope(_SLANT, name, "")
        world.note[plane] = slope
        place(world, plane, _WORKSHOP, forced=True)
    add(world, params.block, _WORKSHOP, forced=True)
    add(world, "stopwatch", _WORKSHOP)
