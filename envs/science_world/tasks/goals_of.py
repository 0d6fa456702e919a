"""The goals of any variation of any task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import draws
from . import goals_circuit as circuit
from . import goals_living as living
from . import goals_making as making
from . import goals_matter as matter
from .goal import Goals
from .params import Conductivity, Genetics

_PLAIN: dict[str, Callable[[Any], Goals]] = {
    "1-1": matter.boil,
    "1-2": matter.melt,
    "1-3": matter.freeze,
    "1-4": matter.change_state,
    "2-1": matter.use_thermometer,
    "2-2": matter.measure_melting,
    "2-3": matter.measure_melting,
    "3-1": circuit.power,
    "3-2": circuit.power,
    "4-1": living.find("living"),
    "4-2": living.find("dead"),
    "4-3": living.find("plant"),
    "4-4": living.find("animal"),
    "5-1": living.grow_plant,
    "5-2": living.grow_fruit,
    "6-1": making.mix,
    "6-2": making.secondary_paint,
    "6-3": making.tertiary_paint,
    "7-1": living.lifespan("long"),
    "7-2": living.lifespan("short"),
    "7-3": living.lifespan("long", "short"),
    "8-1": living.animal_stages,
    "8-2": living.plant_stages,
    "9-1": making.planes,
    "9-2": making.planes,
    "9-3": making.planes,
}


def goals_of(task_id: str, params: Any, variation: int) -> Goals:
    """Goals of a variation; what a load draws at random follows from the variation's number."""
    if isinstance(params, Conductivity):
        return circuit.conductivity(params, conducts=conducts(params, variation))
    if isinstance(params, Genetics):
        return living.genetics(params, genetics_pots(task_id, params, variation))
    return _PLAIN[task_id](params)


def conducts(params: Conductivity, variation: int) -> bool:
    """Whether the substance of 3-3 or 3-4 conducts."""
    if params.conductive is not None:
        return params.conductive
    return draws.conducts(variation, params.substance[-1])


def genetics_pots(task_id: str, params: Genetics, variation: int) -> list[int]:
    """Numbers of the flower pots of 10-1 or 10-2."""
    of = draws.pea_pots if task_id == "10-1" else draws.unknown_pots
    return of(variation, params.pots)
