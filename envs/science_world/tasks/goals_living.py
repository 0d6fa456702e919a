"""Goals of the tasks on living things (4-x, 5-x, 7-x, 8-x, 10-x)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .conditions_optional import Holds, InRoom, Inside, NewRoom, OpenDoor, Opened, Plants, See, Stay
from .conditions_ordered import Find, FindKind, FindStage, Grown, PutInto
from .goal import Goal, Goals
from .params import AnimalStages, Genetics, Grow, Lifespan, PlantStages
from .params import Find as FindParams

OUTSIDE = "outside"
PLANT_STAGES = ("seed", "seedling", "adult", "reproducing")
GROW_POTS = tuple(f"flower pot {number}" for number in (1, 2, 3))
_BIRTH = ("baby", "juvenile", "adult")
_HATCHED = ("egg", "hatchling", "juvenile", "adult")
_STAGES = {
    "butterfly": ("egg", "caterpillar", "pupa", "adult"),
    "moth": ("egg", "caterpillar", "pupa", "adult"),
    "frog": ("egg", "tadpole", "adult"),
    "common toad": ("egg", "tadpole", "adult"),
    "elephant": _BIRTH,
    "brown bear": _BIRTH,
    "beaver": _BIRTH,
    "wolf": _BIRTH,
}
_FOCUS_TEXTS = {
    "living": "focus on a living thing",
    "dead": "focus on a non-living thing",
    "plant": "focus on a plant",
    "animal": "focus on an animal",
}


def find(kind: str) -> Callable[[FindParams], Goals]:
    """4-1 to 4-4."""

    def goals(params: FindParams) -> Goals:
        return Goals(
            (
                FindKind(kind, text=_FOCUS_TEXTS[kind]),
                PutInto(params.box, text="move living thing to answer box"),
            ),
            (
                Inside("inventory", text="Pick up object"),
                OpenDoor(text="Be in a room with an open door"),
                NewRoom(text="Move to a new location"),
                InRoom(params.place, text="Move to the location of the answer box"),
            ),
        )

    return goals


def _to_greenhouse() -> tuple[Goal, ...]:
    text = "move to the greenhouse"
    return (
        NewRoom(text="move to a new location"),
        InRoom("greenhouse", key="move1", text=text),
        InRoom(
            "greenhouse",
            key="move2",
            needs=("haveSeedJar",),
            text=f"{text} (after having seed jar)",
        ),
    )


def _jar() -> tuple[Goal, ...]:
    return (
        See("seed jar", text="be in same location as seed jar"),
        Holds("inventory", "seed jar", key="haveSeedJar", text="have seed jar in inventory"),
    )


def _potted(pots: Sequence[str], seed: str) -> tuple[Goal, ...]:
    return tuple(
        Holds(pot, name, text=f"have {word} in flower pot ({number})")
        for word, name in (("soil", "soil"), ("water", "water"), ("seed", f"{seed} seed"))
        for number, pot in enumerate(pots, 1)
    )


def _planting(seed: str) -> tuple[Goal, ...]:
    return (
        *_jar(),
        Holds("inventory", "shovel", text="have shovel in inventory"),
        Holds("inventory", "soil", text="have soil in inventory"),
        See("soil", text="be in same location as soil"),
        *_to_greenhouse(),
        *_potted(GROW_POTS, seed),
    )


def _plants(species: str, most: int) -> tuple[Goal, ...]:
    words = ("seeds", "seedlings", "adult plants", "reproducing plants")
    return tuple(
        Plants(
            species,
            stage,
            least,
            text=f"have at least {least} plants as {word}",
            key=f"{least} reproducing" if stage == "reproducing" else "",
        )
        for least in range(1, most + 1)
        for stage, word in zip(PLANT_STAGES, words, strict=True)
    )


def _pollination(product: str, word: str, needs: tuple[str, ...]) -> tuple[Goal, ...]:
    pollinator = "be in same location as pollinator (after reprod. life stage)"
    return (
        Opened("bee hive", needs=needs, text="bee hive open (after reprod. life stage)"),
        See("adult bee", needs=("2 reproducing",), text=pollinator),
        See(product, needs=needs, text=f"be in same location as {word}"),
    )


def grow_plant(params: Grow) -> Goals:
    """5-1."""
    return Goals(
        tuple(
            Grown(params.seed, stage, text=f"focus plant is in {stage} stage")
            for stage in PLANT_STAGES
        ),
        _planting(params.seed),
    )


def grow_fruit(params: Grow) -> Goals:
    """5-2."""
    return Goals(
        (Find(params.seed, text="focus on the grown fruit"),),
        (
            *_planting(params.seed),
            *_plants(params.seed, 2),
            *_pollination(params.seed, "fruit", ()),
        ),
    )


def genetics(params: Genetics, pots: Sequence[int]) -> Goals:
    """10-1 and 10-2; ``pots`` are the numbers of the flower pots."""
    box = params.box_dominant if params.dominant else params.box_recessive
    names = [f"flower pot {number}" for number in pots]
    return Goals(
        (Find(box, defocus=True, text="focus on the correct answer box"),),
        (
            *_jar(),
            *_to_greenhouse(),
            *_potted(names, params.plant),
            *_plants(params.plant, 6),
            *_pollination(params.plant, "grown seed", ("2 reproducing",)),
        ),
    )


def _move_outside(unless: str = OUTSIDE) -> tuple[Goal, ...]:
    return (
        NewRoom(unless, text="Move to a new location (unless starting in task location)"),
        InRoom(OUTSIDE, text="Move to the location asked by the task"),
    )


def lifespan(*which: str) -> Callable[[Lifespan], Goals]:
    """7-1 to 7-3; ``which`` is "long", "short" or both."""
    words = {"long": "longest", "short": "shortest"}

    def goals(params: Lifespan) -> Goals:
        return Goals(
            tuple(
                Find(
                    params.long if length == "long" else params.short,
                    defocus=length != which[-1],
                    text=f"focus on animal with {words[length]} life span",
                )
                for length in which
            ),
            _move_outside(),
        )

    return goals


def animal_stage_names(animal: str) -> tuple[str, ...]:
    """The stages of an animal's life that 8-1 asks for."""
    return _STAGES.get(animal, _HATCHED)


def _stages(species: str, stages: Sequence[str], kind: str, unless: str) -> Goals:
    return Goals(
        tuple(
            FindStage(species, stage, defocus=True, text=f"focus on {kind} in life stage {number}")
            for number, stage in enumerate(stages, 1)
        ),
        (
            *_move_outside(unless),
            *(
                Stay(OUTSIDE, least, text=f"Stay in goal location for {least} steps")
                for least in (10, 20, 30)
            ),
        ),
    )


def animal_stages(params: AnimalStages) -> Goals:
    """8-1."""
    return _stages(params.animal, animal_stage_names(params.animal), "animal", OUTSIDE)


def plant_stages(params: PlantStages) -> Goals:
    """8-2; as in the original the species stands where the room should, so that it never fits."""
    return _stages(params.plant, PLANT_STAGES, "plant", params.plant)
