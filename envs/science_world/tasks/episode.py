"""Starting an episode of a task: the house, the task's things, simplifications, goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...errors import UnknownNameError
from ..house import build_house
from ..world import World
from . import setup_circuit as circuit
from . import setup_living as living
from . import setup_making as making
from . import setup_matter as matter
from .catalogue import WHERE, TaskKind
from .checker import TaskState
from .goals_of import goals_of
from .java_random import JavaRandom

TELEPORT, OPEN_DOORS, OPEN_CONTAINERS = "teleportAction", "openDoors", "openContainers"
SELF_WATERING, NO_ELECTRICITY = "selfWateringFlowerPots", "noElectricalAction"
SIMPLIFICATIONS = (NO_ELECTRICITY, OPEN_CONTAINERS, OPEN_DOORS, SELF_WATERING, TELEPORT)
EASY = (TELEPORT, OPEN_DOORS, SELF_WATERING, NO_ELECTRICITY)

_SETUP: dict[str, Callable[[World, Any, int], None]] = {
    "1-1": lambda world, params, v: matter.change_state(world, params, v, 2),
    "1-2": lambda world, params, v: matter.change_state(world, params, v, 1),
    "1-3": lambda world, params, v: matter.change_state(world, params, v, 3),
    "1-4": lambda world, params, v: matter.change_state(world, params, v, 0),
    "2-1": matter.use_thermometer,
    "2-2": matter.known_melting,
    "2-3": matter.unknown_melting,
    "3-1": lambda world, params, v: circuit.power(world, params),  # noqa: ARG005
    "3-2": lambda world, params, v: circuit.power(world, params),  # noqa: ARG005
    "3-3": lambda world, params, v: circuit.known(world, params),  # noqa: ARG005
    "3-4": circuit.unknown,
    "4-1": lambda world, params, v: living.find(world, params, v, 0),
    "4-2": lambda world, params, v: living.find(world, params, v, 1),
    "4-3": lambda world, params, v: living.find(world, params, v, 2),
    "4-4": lambda world, params, v: living.find(world, params, v, 3),
    "5-1": lambda world, params, v: living.grow(world, params),  # noqa: ARG005
    "5-2": lambda world, params, v: living.grow(world, params),  # noqa: ARG005
    "6-1": lambda world, params, v: making.mix(world, params),  # noqa: ARG005
    "6-2": lambda world, params, v: making.paint(world, params, v, 0),
    "6-3": lambda world, params, v: making.paint(world, params, v, 1),
    "7-1": lambda world, params, v: living.lifespan(world, params),  # noqa: ARG005
    "7-2": lambda world, params, v: living.lifespan(world, params),  # noqa: ARG005
    "7-3": lambda world, params, v: living.lifespan(world, params),  # noqa: ARG005
    "8-1": lambda world, params, v: living.animal_stages(world, params),  # noqa: ARG005
    "8-2": living.plant_stages,
    "9-1": lambda world, params, v: making.planes(world, params),  # noqa: ARG005
    "9-2": lambda world, params, v: making.planes(world, params),  # noqa: ARG005
    "9-3": lambda world, params, v: making.planes(world, params),  # noqa: ARG005
    "10-1": lambda world, params, v: living.genetics(world, params, v, "10-1"),
    "10-2": lambda world, params, v: living.genetics(world, params, v, "10-2"),
}


def simplifications(names: str | Iterable[str], kind: TaskKind) -> frozenset[str]:
    """The simplifications that ``names`` means for a task.

    Args:
        names: Names, or one text with commas; "easy" stands for four of them, without the one
            that takes electrical actions away where the task is about electricity.
        kind: The task.

    Raises:
        UnknownNameError: A name that does not exist, or that the task does not go with.
    """
    parts = names.split(",") if isinstance(names, str) else list(names)
    known = {name.lower(): name for name in SIMPLIFICATIONS}
    found: set[str] = set()
    for part in (part.strip() for part in parts if part.strip()):
        if part.lower() == "easy":
            found.update(EASY if kind.topic != "Electricity" else EASY[:3])
        elif part.lower() in known:
            found.add(known[part.lower()])
        else:
            raise UnknownNameError("simplification", part, ("easy", *SIMPLIFICATIONS), WHERE)
        if part.lower() == NO_ELECTRICITY.lower() and kind.topic == "Electricity":
            names_left = [name for name in SIMPLIFICATIONS if name != NO_ELECTRICITY]
            raise UnknownNameError(
                "simplification", part, names_left, f"{WHERE} {kind.name} (about electricity)"
            )
    return frozenset(found)


def start_world(
    kind: TaskKind,
    variation: int,
    simple: Iterable[str] = (),
    house: Callable[[JavaRandom], World] = build_house,
) -> World:
    """The world of a variation before its first tick, with the task's goals.

    Args:
        kind: The task.
        variation: Its number.
        simple: Names of simplifications.
        house: Builds the house without the task's things.

    Raises:
        BadValueError: There is no such variation.
    """
    params = kind.params(variation)
    random = JavaRandom(variation)
    world = house(random)
    # The original seeds its generator again before it sets a task up; play goes on from there.
    random.state = JavaRandom(variation).state
    world.random = random
    world.simple = frozenset(simple)
    _SETUP[kind.id](world, params, variation)
    if kind.id.startswith("9-"):
        random.shuffled((0, 1))  # the two planes' names in the text
    _simplify(world)
    world.goals = TaskState.start(kind.id, variation, goals_of(kind.id, params, variation))
    return world


def _simplify(world: World) -> None:
    for thing, kind in enumerate(world.kind):
        if OPEN_DOORS in world.simple and "portal" in kind.tags:
            world.open[thing] = True
        if OPEN_CONTAINERS in world.simple and world.is_closable(thing):
            world.open[thing] = True
