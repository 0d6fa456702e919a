"""What tells one variation of a task from another: one frozen dataclass per kind of task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateChange:
    """Tasks 1-1 to 1-4: bring a substance into another state of matter."""

    substance: str
    sink_broken: bool
    stove_broken: bool


@dataclass(frozen=True, slots=True)
class Thermometer:
    """Task 2-1: measure an object, put it into the box that its temperature tells.

    ``around`` is the number near which the object's temperature is drawn and ``draw`` which of the
    24 draws of that place and number is the object's.
    """

    object: str
    place: str
    around: int
    draw: int
    threshold: int
    box_place: str
    above: str
    below: str


@dataclass(frozen=True, slots=True)
class Melting:
    """Tasks 2-2 and 2-3: compare a melting point with a threshold, focus on a box.

    ``letter`` names an unknown substance and is empty for a known one; ``copy`` says which of the
    rows of drawn cups holds it.
    """

    object: str
    melting: int
    threshold: int
    above: str
    below: str
    copy: int
    letter: str = ""


@dataclass(frozen=True, slots=True)
class Power:
    """Tasks 3-1 and 3-2: power a part; ``use`` is the asked source, empty when any will do."""

    part: str
    renewable: str
    nonrenewable: str
    use: str = ""


@dataclass(frozen=True, slots=True)
class Conductivity:
    """Tasks 3-3 and 3-4; ``conductive`` is None where each load draws it."""

    substance: str
    place: str
    conductive: bool | None
    part: str
    box_yes: str
    box_no: str


@dataclass(frozen=True, slots=True)
class Find:
    """Tasks 4-1 to 4-4: find a thing of a kind, bring it to a box."""

    animals: tuple[str, ...]
    plants: tuple[str, ...]
    group: int
    place: str
    box: str


@dataclass(frozen=True, slots=True)
class Grow:
    """Tasks 5-1 and 5-2; ``pots`` is "filled", "floor" (soil lies in the room) or "empty"."""

    seed: str
    place: str
    pots: str


@dataclass(frozen=True, slots=True)
class Mix:
    """Task 6-1: make a substance of others."""

    result: str
    ingredients: tuple[str, ...]
    place: str


@dataclass(frozen=True, slots=True)
class Paint:
    """Tasks 6-2 and 6-3; ``extra`` is where the cups beside the room's own paints are."""

    secondary: str
    secondary_of: tuple[str, ...]
    tertiary: str
    tertiary_of: tuple[str, ...]
    place: str
    extra: str


@dataclass(frozen=True, slots=True)
class Lifespan:
    """Tasks 7-1 to 7-3: three animals that live long, some time, and briefly."""

    long: str
    medium: str
    short: str


@dataclass(frozen=True, slots=True)
class AnimalStages:
    """Task 8-1: focus on an animal in each stage of its life but the last."""

    animal: str
    stages: int
    distractors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlantStages:
    """Task 8-2: focus on a plant in each stage of its life but the last; number ``group``."""

    plant: str
    distractor: str
    group: int


@dataclass(frozen=True, slots=True)
class Planes:
    """Tasks 9-1 to 9-3: compare two inclined planes by angle or friction (``values``)."""

    first: str
    second: str
    block: str
    ask: str
    values: tuple[float, float]

    @property
    def by_angle(self) -> bool:
        """Whether angles are compared, not friction."""
        return self.ask in ("shallowest", "steepest")

    @property
    def answer(self) -> str:
        """The plane to focus on."""
        wants_larger = self.ask in ("steepest", "most")
        first_is_larger = self.values[0] > self.values[1]
        return self.first if wants_larger == first_is_larger else self.second


@dataclass(frozen=True, slots=True)
class Genetics:
    """Tasks 10-1 and 10-2; ``jar`` and ``pots`` say which of the drawn seeds and pots are used."""

    plant: str
    trait: str
    value: str
    dominant: bool
    jar: int
    pots: int
    box_dominant: str
    box_recessive: str


Params = (
    StateChange
    | Thermometer
    | Melting
    | Power
    | Conductivity
    | Find
    | Grow
    | Mix
    | Paint
    | Lifespan
    | AnimalStages
    | PlantStages
    | Planes
    | Genetics
)
