"""The thirty tasks: ids, names, variations, splits, texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...core.errors import UnknownNameError
from ...core.settings import check_integer
from ...core.tasks import SPLITS
from . import descriptions as texts
from . import variations
from .params import Params

WHERE = "ScienceWorld"


@dataclass(frozen=True, slots=True)
class TaskKind:
    """One of the thirty tasks.

    Attributes:
        id: The short id, "1-1" to "10-2".
        name: The engine's name, "boil".
        topic: One of the ten topics of the benchmark.
        title: The name in the benchmark's table, after the topic.
        make: Gives the parameters of all variations in the engine's order.
        describe: Gives the task's text from the parameters and the variation's number.
    """

    id: str
    name: str
    topic: str
    title: str
    make: Callable[[], Sequence[Any]]
    describe: Callable[[Any, int], str]

    @property
    def variations(self) -> Sequence[Params]:
        """Parameters of every variation, in the engine's order."""
        return _made(self.make)

    def params(self, variation: int) -> Params:
        """Return the parameters of one variation.

        Raises:
            BadValueError: There is no such variation.
        """
        last = len(self.variations) - 1
        check_integer("variation", variation, f"{WHERE} {self.name}", min=0, max=last)
        return self.variations[variation]

    def text(self, variation: int) -> str:
        """Return the task's text."""
        return self.describe(self.params(variation), variation).strip()

    def split(self, split: str) -> range:
        """Return the variations of "train", "dev" or "test".

        Raises:
            UnknownNameError: There is no such split.
        """
        if split not in SPLITS:
            raise UnknownNameError("split", split, SPLITS, WHERE)
        return split_ranges(len(self.variations))[SPLITS.index(split)]


def split_ranges(count: int) -> tuple[range, range, range]:
    """Return the variations of train, dev and test of a task that has ``count`` of them."""
    if count > 4:
        quarter = count // 4
        last = min(count, 5 * quarter)
        return range(2 * quarter), range(2 * quarter, 3 * quarter), range(3 * quarter, last)
    empty = range(0)
    return (
        (empty, empty, empty),
        (range(1), empty, range(1)),
        (range(1), empty, range(1, 2)),
        (range(1), range(1, 2), range(2, 3)),
        (range(2), range(2, 3), range(3, 4)),
    )[count]


@cache
def _made(make: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    return tuple(make())


_MELTING = "measure-melting-point-{}-substance"
_CIRCUIT = "power-component"
_SOURCE = "power-component-renewable-vs-nonrenewable-energy"
_CONDUCT = "test-conductivity"
_PAINT = "chemistry-mix-paint-{}-color"
_LIVED = "lifespan-longest-lived"
_PLANE = "inclined-plane-{}"
_INHERIT = "mendelian-genetics-{}-plant"

TASKS: tuple[TaskKind, ...] = tuple(
    TaskKind(*row)
    for row in (
        (
            "1-1",
            "boil",
            "Matter",
            "Changes of State (Boiling)",
            variations.list_state_changes,
            texts.describe_state_change("boil"),
        ),
        (
            "1-2",
            "melt",
            "Matter",
            "Changes of State (Melting)",
            variations.list_state_changes,
            texts.describe_state_change("melt"),
        ),
        (
            "1-3",
            "freeze",
            "Matter",
            "Changes of State (Freezing)",
            variations.list_state_changes,
            texts.describe_state_change("freeze"),
        ),
        (
            "1-4",
            "change-the-state-of-matter-of",
            "Matter",
            "Changes of State (Any)",
            variations.list_state_changes,
            texts.describe_state_change("change the state of matter of"),
        ),
        (
            "2-1",
            "use-thermometer",
            "Measurement",
            "Use Thermometer",
            variations.list_temperatures,
            texts.describe_thermometer,
        ),
        (
            "2-2",
            _MELTING.format("known"),
            "Measurement",
            "Measuring Boiling Point (known)",
            variations.list_known_meltings,
            texts.describe_melting,
        ),
        (
            "2-3",
            _MELTING.format("unknown"),
            "Measurement",
            "Measuring Boiling Point (unknown)",
            variations.list_unknown_meltings,
            texts.describe_melting,
        ),
        (
            "3-1",
            _CIRCUIT,
            "Electricity",
            "Create a circuit",
            variations.list_powered_parts,
            texts.describe_power,
        ),
        (
            "3-2",
            _SOURCE,
            "Electricity",
            "Renewable vs Non-renewable Energy",
            variations.list_powered_parts_by_source,
            texts.describe_power,
        ),
        (
            "3-3",
            _CONDUCT,
            "Electricity",
            "Test Conductivity (known)",
            variations.list_known_conductors,
            texts.describe_conductivity,
        ),
        (
            "3-4",
            f"{_CONDUCT}-of-unknown-substances",
            "Electricity",
            "Test Conductivity (unknown)",
            variations.list_unknown_conductors,
            texts.describe_conductivity,
        ),
        (
            "4-1",
            "find-living-thing",
            "Classification",
            "Find a living thing",
            variations.list_finds,
            texts.describe_find("living thing"),
        ),
        (
            "4-2",
            "find-non-living-thing",
            "Classification",
            "Find a non-living thing",
            variations.list_finds,
            texts.describe_find("non-living thing"),
        ),
        (
            "4-3",
            "find-plant",
            "Classification",
            "Find a plant",
            variations.list_finds,
            texts.describe_find("plant"),
        ),
        (
            "4-4",
            "find-animal",
            "Classification",
            "Find an animal",
            variations.list_finds,
            texts.describe_find("animal"),
        ),
        (
            "5-1",
            "grow-plant",
            "Biology",
            "Grow a plant",
            variations.list_growths,
            texts.describe_plant,
        ),
        (
            "5-2",
            "grow-fruit",
            "Biology",
            "Grow a fruit",
            variations.list_growths,
            texts.describe_fruit,
        ),
        (
            "6-1",
            "chemistry-mix",
            "Chemistry",
            "Mixing (generic)",
            variations.list_mixtures,
            texts.describe_mix,
        ),
        (
            "6-2",
            _PAINT.format("secondary"),
            "Chemistry",
            "Mixing paints (secondary colours)",
            variations.list_paints,
            texts.describe_secondary_paint,
        ),
        (
            "6-3",
            _PAINT.format("tertiary"),
            "Chemistry",
            "Mixing paints (tertiary colours)",
            variations.list_paints,
            texts.describe_tertiary_paint,
        ),
        (
            "7-1",
            _LIVED,
            "Biology",
            "Identify longest-lived animal",
            variations.list_lifespans,
            texts.describe_lifespan("longest"),
        ),
        (
            "7-2",
            "lifespan-shortest-lived",
            "Biology",
            "Identify shortest-lived animal",
            variations.list_lifespans,
            texts.describe_lifespan("shortest"),
        ),
        (
            "7-3",
            f"{_LIVED}-then-shortest-lived",
            "Biology",
            "Identify longest-then-shortest-lived animal",
            variations.list_lifespans,
            texts.describe_both_lifespans,
        ),
        (
            "8-1",
            "identify-life-stages-1",
            "Biology",
            "Identify life stages (plant)",
            variations.list_animal_stages,
            texts.describe_animal_stages,
        ),
        (
            "8-2",
            "identify-life-stages-2",
            "Biology",
            "Identify life stages (animal)",
            variations.list_plant_stages,
            texts.describe_plant_stages,
        ),
        (
            "9-1",
            _PLANE.format("determine-angle"),
            "Forces",
            "Inclined Planes (determine angle)",
            variations.list_angles,
            texts.describe_planes,
        ),
        (
            "9-2",
            _PLANE.format("friction-named-surfaces"),
            "Forces",
            "Friction (known surfaces)",
            variations.list_named_surfaces,
            texts.describe_planes,
        ),
        (
            "9-3",
            _PLANE.format("friction-unnamed-surfaces"),
            "Forces",
            "Friction (unknown surfaces)",
            variations.list_unnamed_surfaces,
            texts.describe_planes,
        ),
        (
            "10-1",
            _INHERIT.format("known"),
            "Biology",
            "Mendelian Genetics (known plants)",
            variations.list_pea_traits,
            texts.describe_genetics,
        ),
        (
            "10-2",
            _INHERIT.format("unknown"),
            "Biology",
            "Mendelian Genetics (unknown plants)",
            variations.list_unknown_traits,
            texts.describe_genetics,
        ),
    )
)

_OLD_PREFIX = re.compile(r"^task-\d+[a-z]?-")


def find_kind(name: str) -> TaskKind:
    """Return the task that ``name`` means.

    Accepts ids ("1-1"), names ("boil"), topic and title ("Matter Changes of State (Boiling)"),
    and older spellings: "task-1-boil", parts in parentheses, "mendellian".

    Raises:
        UnknownNameError: Nothing is called so.
    """
    found = _by_name().get(_plain(name)) if isinstance(name, str) else None
    if found is None:
        raise UnknownNameError("task", name, [kind.name for kind in TASKS], WHERE)
    return found


def _plain(name: str) -> str:
    name = " ".join(name.lower().split()).replace("mendellian", "mendelian")
    return _OLD_PREFIX.sub("", name).replace("(", "").replace(")", "")


@cache
def _by_name() -> dict[str, TaskKind]:
    return {
        _plain(name): kind
        for kind in TASKS
        for name in (f"{kind.topic} {kind.title}", kind.name, kind.id)
    }
