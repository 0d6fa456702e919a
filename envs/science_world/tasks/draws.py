"""What the original engine draws while it constructs all thirty tasks at a load.

The generator is seeded with the variation's number, and every task draws in a fixed order whether
it is the one loaded or not. Each function here jumps to the numbers of its own task.
"""

from __future__ import annotations

from ..house.java_random import JavaRandom
from .params import Conductivity, Genetics
from .variations import CUPS, UNKNOWN_LETTERS, UNKNOWN_MELTING

POTS = tuple(range(1, 10))
CUPPED = (
    "orange juice",
    "apple juice",
    "ice cream",
    "lead",
    "tin",
    "mercury",
    "gallium",
    "caesium",
)
"""Substances of 1-x for which a cup is drawn, in this order."""
CUPPED_KNOWN = ("orange juice", "mercury", "gallium", "tin", "lead")
"""The same for 2-2."""
LIQUID_BELOW = 15
PAINT_CONTAINERS = ("glass cup", "bowl", "jug")

_SHUFFLE = len(POTS) - 1
_STATE = len(CUPPED)
_PEA_GENES = 8
_GROUP = _PEA_GENES + _SHUFFLE
_GROUPS = 10
_SEED_GENES = 6
_ALL_GENES = 8
_JARS = 8
_PLANT_GENES = 4
_FLOWER_GENES = 32
_UNKNOWN_SEED = _SEED_GENES + _ALL_GENES
_UNKNOWN_PLANT = _PLANT_GENES + _FLOWER_GENES + _JARS * 2 * _UNKNOWN_SEED
_POT_SETS = 5
_OBJECTS = 24
_TEMPERATURES = 15 * _OBJECTS
_KNOWN_ROWS = 5
_CUPPED_UNKNOWN = sum(melting < LIQUID_BELOW for melting in UNKNOWN_MELTING.values())
_UNKNOWN_ROW = len(UNKNOWN_LETTERS) + _CUPPED_UNKNOWN

_AT_CONDUCTIVE = 4 * _STATE
_AT_FIND = _AT_CONDUCTIVE + len(UNKNOWN_LETTERS)
_AT_PAINT = _AT_FIND + 4 * _GROUPS * _GROUP
_AT_STAGES = _AT_PAINT + 2 * (len(PAINT_CONTAINERS) - 1)
_AT_PEA = _AT_STAGES + _GROUPS * _SHUFFLE
_AT_PEA_JARS = _AT_PEA + _PLANT_GENES
_AT_PEA_POTS = _AT_PEA_JARS + _JARS * 2 * _SEED_GENES
_AT_UNKNOWN = _AT_PEA_POTS + _POT_SETS * _SHUFFLE
_AT_UNKNOWN_POTS = _AT_UNKNOWN + 4 * _UNKNOWN_PLANT
_AT_TEMPERATURES = _AT_UNKNOWN_POTS + _POT_SETS * _SHUFFLE
_AT_KNOWN_CUPS = _AT_TEMPERATURES + 2 * _TEMPERATURES
_AT_UNKNOWN_CUPS = _AT_KNOWN_CUPS + _KNOWN_ROWS * len(CUPPED_KNOWN)

_POTS_USED = 6


def draw_state_cup(variation: int, task: int, substance: str) -> str:
    """Return the cup of a substance in 1-4, 1-2, 1-1 and 1-3 (``task`` 0 to 3)."""
    return _at(variation, task * _STATE + CUPPED.index(substance)).pick(CUPS)


def draw_conducts(params: Conductivity, variation: int) -> bool:
    """Return whether the substance of 3-3 or 3-4 conducts; in 3-4 each load draws it."""
    if params.conductive is not None:
        return params.conductive
    at = _AT_CONDUCTIVE + UNKNOWN_LETTERS.index(params.substance[-1])
    return _at(variation, at).next_float() >= 0.5


def find_genes(variation: int, task: int, group: int) -> list[int]:
    """Return the alleles of the pea of a group in 4-1 to 4-4 (``task`` 0 to 3)."""
    random = _at(variation, _AT_FIND + (task * _GROUPS + group) * _GROUP)
    return [random.next_int(2) for _ in range(_PEA_GENES)]


def find_pots(variation: int, task: int, group: int) -> list[int]:
    """Return the numbers of the flower pots of a group in 4-1 to 4-4."""
    at = _AT_FIND + (task * _GROUPS + group) * _GROUP + _PEA_GENES
    return _at(variation, at).shuffled(POTS)


def draw_paint_containers(variation: int, task: int) -> list[str]:
    """Return the mixing containers of 6-2 and 6-3 (``task`` 0 and 1)."""
    at = _AT_PAINT + task * (len(PAINT_CONTAINERS) - 1)
    return _at(variation, at).shuffled(PAINT_CONTAINERS)


def draw_stage_pots(variation: int, group: int) -> list[int]:
    """Return the numbers of the flower pots of a group in 8-2."""
    return _at(variation, _AT_STAGES + group * _SHUFFLE).shuffled(POTS)


def draw_pea_seeds(variation: int, jar: int) -> tuple[list[int], list[int]]:
    """Return the free alleles of the two seeds of a jar in 10-1 (0 dominant, 1 recessive)."""
    random = _at(variation, _AT_PEA_JARS + jar * 2 * _SEED_GENES)
    first = [random.next_int(2) for _ in range(_SEED_GENES)]
    return first, [random.next_int(2) for _ in range(_SEED_GENES)]


def draw_pea_pots(variation: int, choice: int) -> list[int]:
    """Return the numbers of the six flower pots in 10-1."""
    return _at(variation, _AT_PEA_POTS + choice * _SHUFFLE).shuffled(POTS)[:_POTS_USED]


def draw_unknown_seeds(variation: int, jar: int) -> tuple[list[int], list[int]]:
    """Return the free alleles of the two seeds of a jar in 10-2; ``jar`` counts over all plants."""
    plant, own = divmod(jar, _JARS)
    at = _AT_UNKNOWN + plant * _UNKNOWN_PLANT + _PLANT_GENES + _FLOWER_GENES
    random = _at(variation, at + own * 2 * _UNKNOWN_SEED)
    first = [random.next_int(2) for _ in range(_SEED_GENES)]
    random.skip(_ALL_GENES)
    return first, [random.next_int(2) for _ in range(_SEED_GENES)]


def draw_unknown_pots(variation: int, choice: int) -> list[int]:
    """Return the numbers of the six flower pots in 10-2."""
    return _at(variation, _AT_UNKNOWN_POTS + choice * _SHUFFLE).shuffled(POTS)[:_POTS_USED]


def draw_genetics_pots(task_id: str, params: Genetics, variation: int) -> list[int]:
    """Return the numbers of the six flower pots of 10-1 or 10-2."""
    draw_pots = draw_pea_pots if task_id == "10-1" else draw_unknown_pots
    return draw_pots(variation, params.pots)


def draw_start_temperature(variation: int, row: int, draw: int, around: int) -> int:
    """Return the temperature of an object of 2-1; ``row`` counts places, five numbers in each."""
    random = _at(variation, _AT_TEMPERATURES + 2 * (row * _OBJECTS + draw))
    distance = 50 + random.next_int(100)
    return around - distance if random.next_boolean() else around + distance


def draw_known_cup(variation: int, row: int, substance: str) -> str:
    """Return the cup of a substance in 2-2."""
    at = _AT_KNOWN_CUPS + row * len(CUPPED_KNOWN) + CUPPED_KNOWN.index(substance)
    return _at(variation, at).pick(CUPS)


def draw_unknown_cup(variation: int, row: int, letter: str) -> str | None:
    """Return the cup of an unknown substance in 2-3; None where it is solid enough to need none."""
    if UNKNOWN_MELTING[letter] >= LIQUID_BELOW:
        return None
    before = UNKNOWN_LETTERS[: UNKNOWN_LETTERS.index(letter)]
    cups_before = sum(UNKNOWN_MELTING[other] < LIQUID_BELOW for other in before)
    at = _AT_UNKNOWN_CUPS + row * _UNKNOWN_ROW + len(before) + cups_before
    # A number that nothing uses is drawn for every substance before its cup.
    return _at(variation, at + 1).pick(CUPS)


def _at(variation: int, place: int) -> JavaRandom:
    """Return the generator of a load after ``place`` draws.

    A draw of ``next_int`` takes two numbers once in some hundred million times; it happens to none
    of the engine's variations, which a test makes sure of.
    """
    random = JavaRandom(variation)
    random.skip(place)
    return random
