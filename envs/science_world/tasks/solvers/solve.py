"""Which solver is whose, and the next action of any task."""

from __future__ import annotations

from collections.abc import Callable

from ....core.errors import EpisodeError
from ...house.state import NONE, HouseState
from ...physics.ticking import settle
from ..catalogue import find_kind
from ..checker import TaskState
from ..conditions import (
    AnyState,
    BoxByTemperature,
    Find,
    Grown,
    InState,
    OtherState,
    Powered,
    PoweredBy,
    PutInto,
)
from . import circuit, growing, living, matter, measuring, mixing
from .actor import Actor, Intent, Step
from .words import answer, write

_SOLVERS: dict[str, Callable[[Actor], Step]] = {
    "1-1": matter.boil,
    "1-2": matter.melt,
    "1-3": matter.freeze,
    "1-4": matter.change_state,
    "2-1": matter.use_thermometer,
    "2-2": matter.measure_melting,
    "2-3": matter.measure_melting,
    "3-1": circuit.solve_power,
    "3-2": circuit.solve_power,
    "3-3": measuring.solve_conductivity,
    "3-4": measuring.solve_conductivity,
    "4-1": living.find_animal,
    "4-2": living.find_dead,
    "4-3": living.find_plant,
    "4-4": living.find_animal,
    "5-1": growing.solve_grow_plant,
    "5-2": growing.solve_grow_fruit,
    "6-1": mixing.mix,
    "6-2": mixing.solve_secondary,
    "6-3": mixing.solve_tertiary,
    "7-1": living.solve_longest,
    "7-2": living.solve_shortest,
    "7-3": living.solve_longest_then_shortest,
    "8-1": living.solve_animal_stages,
    "8-2": living.solve_plant_stages,
    "9-1": measuring.solve_planes,
    "9-2": measuring.solve_planes,
    "9-3": measuring.solve_planes,
    "10-1": growing.solve_genetics,
    "10-2": growing.solve_genetics,
}

_OF_ONE_OBJECT = (
    AnyState,
    BoxByTemperature,
    Grown,
    InState,
    OtherState,
    Powered,
    PoweredBy,
    PutInto,
)
"""Goals that ask for the object that satisfied the goal before."""


LOST = "look around"
"""What is done when there is no plan."""


def plan_action(house: HouseState) -> str:
    """Return what the task's solver says next, or its answer to the house's question."""
    settle(house)
    try:
        intent = next_intent(house)
    except (LookupError, StopIteration):
        # What the solver looks for is gone (eaten, burnt, drained): there is no plan left.
        return LOST
    return write(house, intent) if house.pending is None else answer(house, intent)


def next_intent(house: HouseState) -> Intent:
    """Return what the solver of the house's task does next.

    Raises:
        EpisodeError: The house has no task.
    """
    goals = house.goals
    if not isinstance(goals, TaskState):
        raise EpisodeError("ScienceWorld expert: the house has no task; start one first.")
    params = find_kind(goals.task).params(goals.variation)
    if goals.completed:
        return Intent("wait1")
    if goals.failed:
        return Intent("reset task")
    actor = Actor(house, params, goals.variation)
    if isinstance(goals.goals.ordered[goals.progress.ordered], _OF_ONE_OBJECT) and actor.done:
        if not actor.get_place_name(actor.subject):
            return _begin_again(actor, goals)
        if house.focus != actor.subject:
            return actor.focus(actor.subject) or Intent("wait1")
    return _SOLVERS[goals.task](actor) or Intent("wait1")


def _begin_again(actor: Actor, goals: TaskState) -> Intent:
    """Begin anew where the task's object is gone and there is another one, else wait."""
    first = goals.goals.ordered[0]
    alone = isinstance(first, Find) and actor.find_first(first.name) == NONE
    return Intent("wait1" if alone else "reset task")
