"""Goals of the tasks on states of matter and on measuring (1-x and 2-x)."""

from __future__ import annotations

from .conditions_optional import (
    Alone,
    Burns,
    Changed,
    Done,
    Holds,
    InRoom,
    Inside,
    NewRoom,
    Running,
    See,
)
from .conditions_ordered import AnyState, BoxByTemperature, Find, FindBox, InState, OtherState
from .goal import Goal, Goals, OrderedGoal
from .params import Melting, StateChange, Thermometer

_HEATERS = ("stove", "blast furnace", "oven", "hot plate")
_FIRE = ("fire pit",)
_COOLERS = ("fridge", "freezer")


def _fire(thing: str) -> tuple[Goal, ...]:
    """Goals about heaters, the lighter and a wood fire."""
    return (
        *(Running(heater, text=f"activate heater ({heater})") for heater in _HEATERS),
        Holds("inventory", "lighter", text="have lighter in inventory"),
        Holds("fire pit", "wood", text="move wood into fire pit", key="wood1"),
        Burns(thing, text=f"ignite {thing}", key="ignite", needs=("wood1",)),
    )


def _see_alone(substance: str) -> tuple[Goal, ...]:
    return (
        See(substance, text=f"be in same location as {substance}"),
        Alone((substance,), text="have substance alone in a single container"),
    )


def _on_heaters(what: str, needs: tuple[str, ...] = ()) -> tuple[Goal, ...]:
    return tuple(
        Inside(heater, text=f"have {what} on heater ({heater})", needs=needs)
        for heater in _HEATERS + _FIRE
    )


def _in_coolers() -> tuple[Goal, ...]:
    return tuple(Inside(cooler, text=f"have object in cooler ({cooler})") for cooler in _COOLERS)


def _warmer(by: float) -> Goal:
    return Changed(by, text=f"heat object by at least {by:.0f}C")


def _colder(by: float) -> Goal:
    return Changed(-by, text=f"cool object by at least {by:.0f}C")


def _focused(substance: str, *then: OrderedGoal) -> tuple[OrderedGoal, ...]:
    return (Find(substance, text="focus on substance"), *then)


def boil(params: StateChange) -> Goals:
    """1-1."""
    name = params.substance
    gas = "substance is in a gaseous state (or combusting)"
    return Goals(
        _focused(
            name,
            InState("liquid", text="substance is in a liquid state"),
            InState("gas", burning_counts=True, text=gas),
        ),
        (*_see_alone(name), *_fire("wood"), *_on_heaters("object"), _warmer(20)),
    )


def melt(params: StateChange) -> Goals:
    """1-2."""
    name = params.substance
    return Goals(
        _focused(
            name,
            InState("solid", text="substance is in a solid state"),
            InState("liquid", text="substance is in a liquid state"),
        ),
        (*_see_alone(name), *_fire("wood"), *_on_heaters("object"), _warmer(20)),
    )


def freeze(params: StateChange) -> Goals:
    """1-3."""
    name = params.substance
    return Goals(
        _focused(
            name,
            InState("liquid", text="substance is in a liquid state"),
            InState("solid", text="substance is in a solid state"),
        ),
        (*_see_alone(name), *_in_coolers(), _colder(5)),
    )


def change_state(params: StateChange) -> Goals:
    """1-4."""
    name = params.substance
    return Goals(
        _focused(name, AnyState(), OtherState()),
        (
            *_see_alone(name),
            *_fire("wood"),
            *_on_heaters("object"),
            *_in_coolers(),
            _warmer(10),
            _colder(10),
        ),
    )


def _thermometer() -> tuple[Goal, ...]:
    return (
        See("thermometer", text="be in same location as thermometer"),
        Holds("inventory", "thermometer", text="have thermometer in inventory"),
        NewRoom(text="move to a new location"),
    )


_ASKED = "move to the location asked by the task ({})"


def use_thermometer(params: Thermometer) -> Goals:
    """2-1."""
    name = params.object
    measure = "use instrument on object"
    return Goals(
        (
            Find("thermometer", defocus=True, text="focus on instrument"),
            Find(name, text="focus on object"),
            BoxByTemperature(
                params.threshold,
                params.above,
                params.below,
                text="move object to correct answer box",
            ),
        ),
        (
            *_thermometer(),
            InRoom(params.place, key="move1", text=_ASKED.format("object location")),
            InRoom(
                params.box_place,
                key="move2",
                needs=("move1",),
                text=_ASKED.format("answer box location"),
            ),
            Holds("inventory", name, text="have task object in inventory"),
            Done("use", "thermometer", name.lower(), text=measure),
            Done(
                "use",
                "thermometer",
                name.lower(),
                needs=("move2",),
                text=f"{measure} (in answer box location)",
            ),
        ),
    )


def measure_melting(params: Melting) -> Goals:
    """2-2 and 2-3."""
    name = params.object
    answer = params.above if params.melting >= params.threshold else params.below
    measure = "use thermometer on substance"
    heater = "move to a location with a heating device ({})"
    focused = ("focusObject",)
    return Goals(
        (
            Find("thermometer", defocus=True, text="focus on thermometer"),
            Find(name, key="focusObject", text="focus on substance"),
            FindBox(answer, text="focus on correct answer box"),
        ),
        (
            *_thermometer(),
            InRoom("kitchen", key="move1", text=_ASKED.format("substance location")),
            InRoom("kitchen", key="move1", text=_ASKED.format("answer box location")),
            *(
                InRoom(place, needs=("move1",), text=heater.format(place))
                for place in ("kitchen", "outside", "foundry")
            ),
            Holds("inventory", name, text="have task object in inventory"),
            Done("use", "thermometer", name.lower(), text=measure),
            Done(
                "use",
                "thermometer",
                name.lower(),
                needs=("heatObject",),
                text=f"{measure} (after it has been heated)",
            ),
            Alone((name,), text="have substance alone in a single container"),
            *_fire("wood"),
            *_on_heaters("substance", focused),
            Changed(20, key="heatObject", needs=focused, text="heat substance by at least 20C"),
        ),
    )
