"""Switching devices, using tools, eating, flushing, focusing, waiting."""

from __future__ import annotations

from ..physics.fire import set_on_fire
from ..wording import full_name, whole_number
from ..world import NONE, TERMINALS, World, terminal_owner
from .facts import device_of, edible, has_tag, material_of, name_of

UNSURE = "I'm not sure how to use those two things together."
NO_READING = "That thing doesn't appear to have a temperature that the thermometer can read. "
NOT_TOGETHER = "It's not clear how to use those items together."
LIGHTER, LIGHTER_STEP = 2200.0, 10.0
"""The lighter lights what ignites below its temperature and warms other things a little."""


def refuse_switch(world: World, o: int, *, off: bool = False) -> str:
    """Why a device cannot be switched on (or off); empty when it can."""
    name = name_of(world, o)
    if device_of(world, o) != "switchable":
        return f"The {name} is not something that can be activated."
    if world.on[o] != off:
        return f"The {name} is already {'deactivated' if off else 'activated'}."
    return ""


def _switch(world: World, o: int, off: bool) -> str:
    if refusal := refuse_switch(world, o, off=off):
        return refusal
    name = world.name[o]
    if world.broken[o]:
        return f"The {name} appears broken, and can't be activated or deactivated."
    world.on[o] = not off
    return f"The {name} is now {'deactivated' if off else 'activated'}."


def activate(world: World, o: int) -> str:
    """Switch a device on."""
    return _switch(world, o, off=False)


def deactivate(world: World, o: int) -> str:
    """Switch a device off."""
    return _switch(world, o, off=True)


def refuse_flush(world: World, o: int) -> str:
    """Why something cannot be flushed; empty when it can."""
    if o >= TERMINALS or world.kind[o].key != "toilet":
        return "It's not clear how to flush that."
    return "That is already flushing." if world.on[o] else ""


def flush(world: World, o: int) -> str:
    """Flush the toilet."""
    if refusal := refuse_flush(world, o):
        return refusal
    world.on[o] = True
    return f"The {world.name[o]} is now flushing."


def refuse_eat(world: World, o: int) -> str:
    """Why something cannot be eaten; empty when it can."""
    return "" if edible(world, o) else f"The {name_of(world, o)} is not edible."


def eat(world: World, o: int) -> str:
    """Eat something: it leaves the world."""
    if refusal := refuse_eat(world, o):
        return refusal
    world.take_out(o)
    return f"The {world.name[o]} was delicious."


def focus(world: World, o: int) -> str:
    """Signal interest in one object."""
    world.focus = _stand_in(world, o) if o >= TERMINALS else o
    return f"You focus on the {full_name(world, o)}."


def _stand_in(world: World, handle: int) -> int:
    """An object that is called like a terminal and is where it is, for goals to look at."""
    made = world.make("terminal", name=name_of(world, handle), early=True)
    world.parent[made] = terminal_owner(handle)
    return made


def reset_task(world: World) -> str:
    """Start the goals anew; the world stays as it is."""
    if world.goals is not None:
        world.goals.reset()
    world.focus = NONE
    return "You reset the goal progress and focus."


def refuse_use(world: World, tool: int) -> str:
    """Why something is no tool; empty when it is one."""
    if device_of(world, tool) == "usable":
        return ""
    return f"I'm not sure how to use the {name_of(world, tool)}. "


def use(world: World, tool: int, target: int) -> str:
    """Use a tool on something."""
    if world.goals is not None and tool < TERMINALS:
        world.goals.note(world, "use", tool, target)
    if refusal := refuse_use(world, tool):
        return refusal
    return _TOOLS[world.kind[tool].key](world, target)


def _thermometer(world: World, target: int) -> str:
    if material_of(world, target) is None:
        return NO_READING
    reading = whole_number(world.heat[target])
    return f"the thermometer measures a temperature of {reading} degrees celsius"


def _lighter(world: World, target: int) -> str:
    material = material_of(world, target)
    if material is None:
        return NOT_TOGETHER
    if material.ignites <= LIGHTER:
        return set_on_fire(world, target)
    world.heat[target] += max(min(LIGHTER - world.heat[target], LIGHTER_STEP), 0.0)
    return f"The lighter heats up the {world.name[target]} a small amount."


def _shovel(world: World, target: int) -> str:
    if not has_tag(world, target, "ground") or (place := world.parent[target]) == NONE:
        return UNSURE
    for key in ("hole", "soil"):
        world.put(world.make(key), place)
    return "You dig a hole in the ground, and place the soil nearby."


def _axe(world: World, target: int) -> str:
    if has_tag(world, target, "tree"):
        return _chop(world, target)
    if not device_of(world, target):
        return UNSURE
    world.broken[target] = True
    return f"You hit the {world.name[target]} with the axe, causing it to break."


def _chop(world: World, tree: int) -> str:
    if (container := world.parent[tree]) == NONE:
        return UNSURE
    if world.life[tree].stage == 0:
        return "You can't chop a seed."
    world.put(world.make("wood"), container)
    name = full_name(world, tree)
    world.delete(tree, expel=True)
    return f"You chop down the {name}, creating wood."


_TOOLS = {"thermometer": _thermometer, "lighter": _lighter, "shovel": _shovel, "axe": _axe}
