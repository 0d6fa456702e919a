"""The text of every task, word for word as the original engine gives it."""

from __future__ import annotations

from collections.abc import Callable

from ..house.java_random import JavaRandom
from . import params as task_params

_CHANGE = (
    "First, focus on the substance. "
    "Then, take actions that will cause it to change its state of matter."
)
_CIRCUIT = "First, focus on the {part}. Then, create an electrical circuit that powers it on."
_OUTSIDE = "The animals are in the 'outside' location."


def describe_state_change(verb: str) -> Callable[[task_params.StateChange, int], str]:
    """Return what writes the texts of 1-1 to 1-4."""
    burning = (
        "For compounds without a boiling point, combusting the substance is also acceptable. "
        if verb == "boil"
        else ""
    )

    def text(params: task_params.StateChange, variation: int) -> str:  # noqa: ARG001
        return f"Your task is to {verb} {params.substance}. {burning}{_CHANGE}"

    return text


def describe_thermometer(params: task_params.Thermometer, variation: int) -> str:  # noqa: ARG001
    """Return the text of 2-1."""
    thing, limit = params.object, float(params.threshold)
    return (
        f"Your task is to measure the temperature of {thing}, which is located around the "
        f"{params.place}. First, focus on the thermometer. Next, focus on the {thing}. "
        f"If the {thing} temperature is above {limit} degrees celsius, place it in the "
        f"{params.above}. If the {thing} temperature is below {limit} degrees celsius, place it "
        f"in the {params.below}. The boxes are located around the {params.box_place}."
    )


def describe_melting(params: task_params.Melting, variation: int) -> str:  # noqa: ARG001
    """Return the text of 2-2 and 2-3."""
    thing, limit = params.object, float(params.threshold)
    return (
        f"Your task is to measure the melting point of {thing}, which is located around the "
        f"kitchen. First, focus on the thermometer. Next, focus on the {thing}. "
        f"If the melting point of {thing} is above {limit} degrees celsius, focus on the "
        f"{params.above}. If the melting point of {thing} is below {limit} degrees celsius, focus "
        f"on the {params.below}. The boxes are located around the kitchen."
    )


def describe_power(params: task_params.Power, variation: int) -> str:  # noqa: ARG001
    """Return the text of 3-1 and 3-2."""
    source = ""
    if params.use:
        kind = "renewable" if params.use == params.renewable else "nonrenewable"
        source = f" by powering it using a {kind} power source"
    return f"Your task is to turn on the {params.part}{source}. " + _CIRCUIT.format(
        part=params.part
    )


def describe_conductivity(params: task_params.Conductivity, variation: int) -> str:  # noqa: ARG001
    """Return the text of 3-3 and 3-4."""
    thing = params.substance
    return (
        f"Your task is to determine if {thing} is electrically conductive. The {thing} is located "
        f"around the {params.place}. First, focus on the {thing}. If it is electrically "
        f"conductive, place it in the {params.box_yes}. If it is electrically nonconductive, place "
        f"it in the {params.box_no}."
    )


def describe_find(kind: str) -> Callable[[task_params.Find, int], str]:
    """Return what writes the texts of 4-1 to 4-4."""

    def text(params: task_params.Find, variation: int) -> str:  # noqa: ARG001
        return (
            f"Your task is to find a(n) {kind}. First, focus on the thing. "
            f"Then, move it to the {params.box} in the {params.place}."
        )

    return text


def describe_plant(params: task_params.Grow, variation: int) -> str:  # noqa: ARG001
    """Return the text of 5-1."""
    return (
        f"Your task is to grow a {params.seed} plant from seed. Seeds can be found in the "
        f"{params.place}. First, focus on a seed. Then, make changes to the environment that grow "
        "the plant until it reaches the reproduction life stage."
    )


def describe_fruit(params: task_params.Grow, variation: int) -> str:  # noqa: ARG001
    """Return the text of 5-2."""
    return (
        f"Your task is to grow a {params.seed}. This will require growing several plants, and them "
        f"being crosspollinated to produce fruit.  Seeds can be found in the {params.place}. "
        f"To complete the task, focus on the grown {params.seed}."
    )


def describe_mix(params: task_params.Mix, variation: int) -> str:  # noqa: ARG001
    """Return the text of 6-1."""
    return (
        f"Your task is to use chemistry to create the substance '{params.result}'. A recipe and "
        f"some of the ingredients might be found near the {params.place}. When you are done, focus "
        f"on the {params.result}."
    )


def describe_secondary_paint(params: task_params.Paint, variation: int) -> str:  # noqa: ARG001
    """Return the text of 6-2."""
    return (
        f"Your task is to use chemistry to create {params.secondary}. "
        f"When you are done, focus on the {params.secondary}."
    )


def describe_tertiary_paint(params: task_params.Paint, variation: int) -> str:  # noqa: ARG001
    """Return the text of 6-3; as in the original it ends with the wrong colour."""
    return (
        f"Your task is to use chemistry to create {params.tertiary}. When you are part-way done, "
        "focus on the intermediate (secondary color) paint you created.  When you are completely "
        f"done, focus on the {params.secondary}."
    )


def describe_lifespan(which: str) -> Callable[[task_params.Lifespan, int], str]:
    """Return what writes the texts of 7-1 and 7-2."""

    def text(params: task_params.Lifespan, variation: int) -> str:  # noqa: ARG001
        return (
            f"Your task is to find the animal with the {which} life span.  {_OUTSIDE}  "
            f"Focus on the animal with the {which} life span."
        )

    return text


def describe_both_lifespans(params: task_params.Lifespan, variation: int) -> str:  # noqa: ARG001
    """Return the text of 7-3."""
    return (
        "Your task is to find the animal with the longest life span, then the shortest life span. "
        "First, focus on the animal with the longest life span.  Then, focus on the animal with "
        f"the shortest life span. {_OUTSIDE}"
    )


def describe_animal_stages(params: task_params.AnimalStages, variation: int) -> str:  # noqa: ARG001
    """Return the text of 8-1."""
    return (
        f"Your task is to focus on the {params.stages} life stages of the {params.animal}, "
        "starting from earliest to latest."
    )


def describe_plant_stages(params: task_params.PlantStages, variation: int) -> str:  # noqa: ARG001
    """Return the text of 8-2."""
    return (
        f"Your task is to focus on the life stages of the {params.plant} plant, starting from "
        "earliest to latest. The plants are located outside."
    )


def describe_planes(params: task_params.Planes, variation: int) -> str:
    """Return the text of 9-1 to 9-3; the variation seeds the order of the two names."""
    # Before the shuffle the steeper plane stands first, but the one with less friction.
    falling = params.values[0] > params.values[1]
    names = [params.first, params.second]
    if falling != params.by_angle:
        names.reverse()
    named = ", ".join(JavaRandom(variation).shuffled(names))
    asked = f"{params.ask} {'angle' if params.by_angle else 'friction'}"
    return (
        f"Your task is to determine which of the two inclined planes ({named}) has the {asked}. "
        f"After completing your experiment, focus on the inclined plane with the {asked}."
    )


def describe_genetics(params: task_params.Genetics, variation: int) -> str:  # noqa: ARG001
    """Return the text of 10-1 and 10-2."""
    return (
        f"Your task is to determine whether {params.value} {params.trait} is a dominant or "
        f"recessive trait in the {params.plant} plant. If the trait is dominant, focus on the "
        f"{params.box_dominant}. If the trait is recessive, focus on the {params.box_recessive}."
    )
