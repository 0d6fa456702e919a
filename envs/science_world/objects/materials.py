"""Materials: constants of heat, change of state, burning, electricity and friction."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...core.errors import UnknownNameError

NEVER = 100_000.0
"""A temperature in degrees Celsius that nothing in the house reaches."""
BURNS_FOR = 100
"""Ticks that a burning object lasts."""


@dataclass(frozen=True, slots=True)
class Material:
    """Constants that every object of one material shares.

    Attributes:
        key: Name in the table.
        substance: What the material is called in texts ("wood" in "wood table").
        names: Object names when solid, liquid and gas; None where the name never changes.
        conducts_heat: Thermal conductivity, 0 to 1.
        melts: Solid below this temperature (Celsius).
        boils: Gas above this temperature; liquid in between.
        ignites: On fire from this temperature on.
        conducts: Whether it conducts electricity.
        friction: Friction coefficient of a surface made of it.
        start: Temperature of a new object.
        state: State of a new object until its first tick.
        color: Colour, for texts.
        burnt: A new object counts as burnt (ash).
    """

    key: str
    substance: str
    names: tuple[str, str, str] | None
    conducts_heat: float
    melts: float
    boils: float
    ignites: float
    conducts: bool
    friction: float
    start: float = 10.0
    state: str = "solid"
    color: str = ""
    burnt: bool = False

    def state_at(self, temperature: float) -> str:
        """Return ``solid``, ``liquid`` or ``gas`` at a temperature in Celsius."""
        if temperature < self.melts:
            return "solid"
        return "gas" if temperature > self.boils else "liquid"

    def name_in(self, state: str) -> str | None:
        """Return the object's name in a state; None where the name does not change."""
        return None if self.names is None else self.names[STATES.index(state)]


STATES = ("solid", "liquid", "gas")
_TABLE: dict[str, Material] = {}


def get_material(key: str) -> Material:
    """Return a material of the table.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if key not in _TABLE:
        raise UnknownNameError("material", key, _TABLE)
    return _TABLE[key]


def find_surface_material(substance: str) -> Material:
    """Return the first material whose substance has this name; surfaces are named so ("redpaint").

    Raises:
        UnknownNameError: There is none.
    """
    found = _SUBSTANCES.get(substance) or _TABLE.get(substance)
    if found is None:
        raise UnknownNameError("substance", substance, _SUBSTANCES)
    return found


def make_unknown_substance(letter: str) -> Material:
    """Return the melting-point substance of a letter: a metal with its own melting point."""
    name = f"unknown substance {letter}"
    return replace(
        get_material("metal"),
        key=name,
        substance=name,
        names=(f"solid {name}", f"liquid {name}", f"gaseous {name}"),
        melts=UNKNOWN_MELTING_POINTS[letter],
    )


UNKNOWN_MELTING_POINTS: dict[str, float] = {
    letter: float(point)
    for letter, point in zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            *(25, 75, 115, -30, -10, 275, 30, 225, 75, -75, 520, 325, -25),
            *(175, 25, 75, 425, 30, 15, -2, 625, -220, 575, -175, 675, 775),
        ),
        strict=True,
    )
}


def _add(material: Material) -> None:
    _TABLE[material.key] = material


def _add_metals() -> None:
    for key, heat, melts, boils, friction in (
        ("metal", 1.0, 1000, 2000, 0.5),
        ("aluminum", 1.0, 660, 2470, 0.45),
        ("brass", 1.0, 900, 1100, 0.5),
        ("bronze", 1.0, 910, 2300, 0.4),
        ("caesium", 1.0, 29, 671, 0.5),
        ("copper", 1.0, 1083, 2500, 0.6),
        ("gallium", 1.0, 30, 2400, 0.0),
        ("gold", 1.0, 1063, 2700, 0.0),
        ("iron", 1.0, 1538, 2862, 0.7),
        ("lead", 1.0, 327, 1740, 0.43),
        ("mercury", 1.0, -39, 357, 0.1),
        ("platinum", 1.0, 1770, 4400, 0.8),
        ("silicon", 1.0, 1420, 2600, 0.0),
        ("steel", 1.0, 1400, 2900, 0.6),
        ("tin", 1.0, 232, 2602, 0.3),
        ("titanium", 1.0, 1670, 3200, 0.0),
        ("zinc", 1.0, 419, 906, 0.62),
        ("sodium", 0.2, 98, 881, 0.0),
    ):
        solid = f"solid {key}" if key in ("caesium", "mercury") else key
        state = "liquid" if key in ("gallium", "mercury") else "solid"
        names = (solid, f"liquid {key}", f"gaseous {key}")
        points = (float(melts), float(boils), NEVER)
        _add(Material(key, key, names, heat, *points, True, friction, state=state))


def _add_melting() -> None:
    """Add the materials whose objects change their name with their state."""
    for key, solid, liquid, heat, melts, boils, ignites, friction in (
        ("air", "solid air", "liquid air", 0.01, -215, -194, NEVER, 0.0),
        ("glass", "glass", "liquid glass", 1.0, 1400, 2200, NEVER, 0.2),
        ("plastic", "plastic", "liquid plastic", 1.0, 200, 300, NEVER, 0.1),
        ("ceramic", "ceramic", "liquid ceramic", 0.02, 2000, 10001, 10000, 0.65),
        ("rubber", "rubber", "liquid rubber", 0.5, 180, 10001, 260, 0.95),
        ("water", "ice", "water", 0.5, 0, 100, NEVER, 0.1),
        ("orange juice", "solid orange juice", "orange juice", 0.5, 0, 100, NEVER, 0.1),
        ("apple juice", "solid apple juice", "apple juice", 0.5, -2, 160, NEVER, 0.1),
        ("chocolate", "solid chocolate", "liquid chocolate", 0.5, 30, NEVER, 95, 0.32),
        ("marshmallow", "marshmallow", "liquid marshmallow", 0.5, 36, NEVER, 350, 0.7),
        ("soap", "soap", "liquid soap", 0.5, 140, NEVER, 537, 0.05),
        ("ice cream", "ice cream", "liquid ice cream", 0.5, -10, 101, NEVER, 0.1),
        (
            *("sodium chloride", "sodium chloride", "liquid sodium chloride", 0.2),
            *(801, 1465, NEVER, 0.73),
        ),
        ("acetic acid", "solid acetic acid", "acetic acid", 0.2, 17, 119, NEVER, 0.1),
        ("salt water", "solid salt water", "salt water", 0.2, -2, 110, NEVER, 0.15),
        ("soapy water", "solid soapy water", "soapy water", 0.2, -1, 105, NEVER, 0.06),
        ("sugar water", "solid sugar water", "sugar water", 0.2, -3, 112, NEVER, 0.06),
    ):
        gas = {"air": "air", "water": "steam"}.get(key, f"gaseous {key}")
        state = {"air": "gas", "water": "liquid", "orange juice": "liquid"}.get(key, "solid")
        if key == "apple juice":
            state = "liquid"
        points = (float(melts), float(boils), float(ignites))
        names = (solid, liquid, gas)
        _add(Material(key, key, names, heat, *points, key == "salt water", friction, state=state))
    _TABLE["ice cream"] = replace(_TABLE["ice cream"], start=-15.0)
    bicarbonate = "sodium bicarbonate"
    acetate = (bicarbonate, bicarbonate, bicarbonate)
    _add(Material("sodium acetate", "sodium acetate", acetate, 0.5, 324, 881, NEVER, False, 0.5))


def _add_lasting() -> None:
    """Add the materials whose objects keep their name; most of them burn and none boils."""
    for key, heat, melts, ignites, friction, color in (
        ("rust", 0.9, NEVER, NEVER, 0.7, "red"),
        ("wood", 0.5, 10000, 350, 0.2, "brown"),
        ("paper", 0.5, 10000, 210, 0.2, "white"),
        ("sandpaper", 0.5, 10000, 230, 0.98, "brown"),
        ("cloth", 0.1, 10000, 300, 0.3, "white"),
        ("soil", 0.5, 10000, 10000, 0.3, "brown"),
        ("plant matter", 0.5, 10000, 200, 0.3, "green"),
        ("flower matter", 0.5, 10000, 200, 0.3, "purple"),
        ("pollen matter", 0.5, 10000, 200, 0.5, "yellow"),
        ("sugar", 0.5, 186, 350, 0.7, "white"),
        ("flour", 0.5, 10000, 380, 0.5, "white"),
        ("jam", 0.5, 10000, 400, 0.5, "red"),
        ("dough", 0.5, 10000, 380, 0.5, "white"),
        ("nut", 0.5, 10000, 400, 0.5, "brown"),
        ("ash", 0.5, 10000, 10002, 0.9, "grey"),
        ("sodium bicarbonate", 0.2, 10000, 100, 0.73, "white"),
        ("brick", 0.1, 1500, NEVER, 0.9, "red"),
    ):
        points = (float(melts), NEVER + 1, float(ignites))
        _add(Material(key, key, None, heat, *points, False, friction, color=color))
    _TABLE["ash"] = replace(_TABLE["ash"], burnt=True)
    frictions = {"": 0.0, " A": 0.1, " B": 0.7, " C": 0.4, " D": 0.6, " E": 0.2, " F": 0.8}
    frictions |= {" G": 0.3, " H": 0.9, " J": 0.9}
    for letter, friction in frictions.items():
        key = f"unknown material{letter}"
        _add(Material(key, key, None, 0.1, NEVER + 1, NEVER + 2, NEVER, False, friction))
    plain = Material("plain surface", "", None, 0.1, NEVER + 1, NEVER + 2, NEVER, False, 0.5)
    _add(plain)


PAINT_COLORS = (
    *("white", "black", "red", "blue", "yellow", "violet", "green", "orange", "brown"),
    *("yellow-orange", "red-orange", "violet-red", "blue-violet", "green-blue", "yellow-green"),
)


def _add_paints() -> None:
    for color in PAINT_COLORS:
        names = (f"dried {color} paint", f"{color} paint", f"gaseous {color} paint")
        key = f"{color} paint"
        points = (0.0, 10000.0, 293.0)
        paint = Material(key, f"{color}paint", names, 0.2, *points, False, 0.3, state="liquid")
        _add(replace(paint, color=color))
    # Inclined planes name their surfaces by the substance, which for paint is another word.
    _add(replace(_TABLE["green paint"], key="greenpaint"))


_add_metals()
_add_melting()
_add_lasting()
_add_paints()
_SUBSTANCES = {entry.substance: entry for entry in reversed(_TABLE.values())}
