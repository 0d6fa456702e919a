"""Switching devices, using tools, eating, flushing, focusing, waiting."""

from __future__ import annotations

from ..house.state import NONE, TERMINALS, HouseState, get_terminal_owner
from ..physics.fire import set_on_fire
from ..text.names import round_number, write_full_name
from .facts import get_device, get_name, get_own_material, has_tag, is_edible

UNSURE = "I'm not sure how to use those two things together."
NO_READING = "That thing doesn't appear to have a temperature that the thermometer can read. "
NOT_TOGETHER = "It's not clear how to use those items together."
LIGHTER, LIGHTER_STEP = 2200.0, 10.0
"""The lighter lights what ignites below its temperature and warms other things a little."""


def refuse_switch(house: HouseState, o: int, *, off: bool = False) -> str:
    """Return why a device cannot be switched on (or off); empty when it can."""
    name = get_name(house, o)
    if get_device(house, o) != "switchable":
        return f"The {name} is not something that can be activated."
    if house.on[o] != off:
        return f"The {name} is already {'deactivated' if off else 'activated'}."
    return ""


def _switch(house: HouseState, o: int, off: bool) -> str:
    if refusal := refuse_switch(house, o, off=off):
        return refusal
    name = house.name[o]
    if house.broken[o]:
        return f"The {name} appears broken, and can't be activated or deactivated."
    house.on[o] = not off
    return f"The {name} is now {'deactivated' if off else 'activated'}."


def activate(house: HouseState, o: int) -> str:
    """Switch a device on."""
    return _switch(house, o, off=False)


def deactivate(house: HouseState, o: int) -> str:
    """Switch a device off."""
    return _switch(house, o, off=True)


def refuse_flush(house: HouseState, o: int) -> str:
    """Return why something cannot be flushed; empty when it can."""
    if o >= TERMINALS or house.kind[o].key != "toilet":
        return "It's not clear how to flush that."
    return "That is already flushing." if house.on[o] else ""


def flush(house: HouseState, o: int) -> str:
    """Flush the toilet."""
    if refusal := refuse_flush(house, o):
        return refusal
    house.on[o] = True
    return f"The {house.name[o]} is now flushing."


def refuse_eat(house: HouseState, o: int) -> str:
    """Return why something cannot be eaten; empty when it can."""
    return "" if is_edible(house, o) else f"The {get_name(house, o)} is not edible."


def eat(house: HouseState, o: int) -> str:
    """Eat something: it leaves the house."""
    if refusal := refuse_eat(house, o):
        return refusal
    house.take_out(o)
    return f"The {house.name[o]} was delicious."


def focus(house: HouseState, o: int) -> str:
    """Set the focus on one object."""
    house.focus = _stand_in(house, o) if o >= TERMINALS else o
    return f"You focus on the {write_full_name(house, o)}."


def _stand_in(house: HouseState, handle: int) -> int:
    """Return an object that is called like a terminal and is where it is, for goals to look at."""
    made = house.make("terminal", name=get_name(house, handle), early=True)
    house.parent[made] = get_terminal_owner(handle)
    return made


def reset_task(house: HouseState) -> str:
    """Start the goals anew; the house stays as it is."""
    if house.goals is not None:
        house.goals.reset()
    house.focus = NONE
    return "You reset the goal progress and focus."


def refuse_use(house: HouseState, tool: int) -> str:
    """Return why something is no tool; empty when it is one."""
    if get_device(house, tool) == "usable":
        return ""
    return f"I'm not sure how to use the {get_name(house, tool)}. "


def use(house: HouseState, tool: int, target: int) -> str:
    """Use a tool on something."""
    if house.goals is not None and tool < TERMINALS:
        house.goals.note(house, "use", tool, target)
    if refusal := refuse_use(house, tool):
        return refusal
    return _TOOLS[house.kind[tool].key](house, target)


def _thermometer(house: HouseState, target: int) -> str:
    if get_own_material(house, target) is None:
        return NO_READING
    reading = round_number(house.heat[target])
    return f"the thermometer measures a temperature of {reading} degrees celsius"


def _lighter(house: HouseState, target: int) -> str:
    material = get_own_material(house, target)
    if material is None:
        return NOT_TOGETHER
    if material.ignites <= LIGHTER:
        return set_on_fire(house, target)
    house.heat[target] += max(min(LIGHTER - house.heat[target], LIGHTER_STEP), 0.0)
    return f"The lighter heats up the {house.name[target]} a small amount."


def _shovel(house: HouseState, target: int) -> str:
    if not has_tag(house, target, "ground") or (place := house.parent[target]) == NONE:
        return UNSURE
    for key in ("hole", "soil"):
        house.put(house.make(key), place)
    return "You dig a hole in the ground, and place the soil nearby."


def _axe(house: HouseState, target: int) -> str:
    if has_tag(house, target, "tree"):
        return _chop(house, target)
    if not get_device(house, target):
        return UNSURE
    house.broken[target] = True
    return f"You hit the {house.name[target]} with the axe, causing it to break."


def _chop(house: HouseState, tree: int) -> str:
    if (container := house.parent[tree]) == NONE:
        return UNSURE
    if house.life[tree].stage == 0:
        return "You can't chop a seed."
    house.put(house.make("wood"), container)
    name = write_full_name(house, tree)
    house.delete(tree, expel=True)
    return f"You chop down the {name}, creating wood."


_TOOLS = {"thermometer": _thermometer, "lighter": _lighter, "shovel": _shovel, "axe": _axe}
