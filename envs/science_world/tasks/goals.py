"""The goals of every task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..objects.kinds import get_kind
from ..objects.records import CYCLES
from ..objects.records import PLANT_STAGES as STAGES_OF_PLANTS
from . import draws
from . import params as task_params
from .checker import Goal, Goals, OrderedGoal
from .conditions import (
    ANY_BULB,
    ANY_SOURCE,
    Alone,
    AnyState,
    BoxByTemperature,
    Burns,
    Changed,
    Done,
    Find,
    FindBox,
    FindKind,
    FindPlane,
    FindStage,
    Grown,
    Holds,
    InRoom,
    Inside,
    InState,
    Joins,
    NewRoom,
    OpenDoor,
    Opened,
    OtherState,
    Plants,
    Powered,
    PoweredBy,
    PutInto,
    Running,
    See,
    Stay,
    Wired,
)

_HEATERS = ("stove", "blast furnace", "oven", "hot plate")
_FIRE = ("fire pit",)
_COOLERS = ("fridge", "freezer")


def _make_fire() -> tuple[Goal, ...]:
    """Return the goals about heaters, the lighter and a wood fire."""
    return (
        *(Running(heater, text=f"activate heater ({heater})") for heater in _HEATERS),
        Holds("inventory", "lighter", text="have lighter in inventory"),
        Holds("fire pit", "wood", text="move wood into fire pit", key="wood1"),
        Burns("wood", text="ignite wood", key="ignite", needs=("wood1",)),
    )


def _make_see_alone(substance: str) -> tuple[Goal, ...]:
    return (
        See(substance, text=f"be in same location as {substance}"),
        Alone((substance,), text="have substance alone in a single container"),
    )


def _make_heater(what: str, needs: tuple[str, ...] = ()) -> tuple[Goal, ...]:
    return tuple(
        Inside(heater, text=f"have {what} on heater ({heater})", needs=needs)
        for heater in _HEATERS + _FIRE
    )


def _make_cooler() -> tuple[Goal, ...]:
    return tuple(Inside(cooler, text=f"have object in cooler ({cooler})") for cooler in _COOLERS)


def _make_warmer(by: float) -> Goal:
    return Changed(by, text=f"heat object by at least {by:.0f}C")


def _make_colder(by: float) -> Goal:
    return Changed(-by, text=f"cool object by at least {by:.0f}C")


def _make_focus(substance: str, *then: OrderedGoal) -> tuple[OrderedGoal, ...]:
    return (Find(substance, text="focus on substance"), *then)


def _make_state(state: str) -> OrderedGoal:
    return InState(state, text=f"substance is in a {state} state")


def _make_heating(substance: str) -> tuple[Goal, ...]:
    return (*_make_see_alone(substance), *_make_fire(), *_make_heater("object"), _make_warmer(20))


def make_boil_goals(params: task_params.StateChange) -> Goals:
    """Return the goals of 1-1."""
    text = "substance is in a gaseous state (or combusting)"
    gas = InState("gas", burning_counts=True, text=text)
    return Goals(
        _make_focus(params.substance, _make_state("liquid"), gas), _make_heating(params.substance)
    )


def make_melt_goals(params: task_params.StateChange) -> Goals:
    """Return the goals of 1-2."""
    return Goals(
        _make_focus(params.substance, _make_state("solid"), _make_state("liquid")),
        _make_heating(params.substance),
    )


def make_freeze_goals(params: task_params.StateChange) -> Goals:
    """Return the goals of 1-3."""
    return Goals(
        _make_focus(params.substance, _make_state("liquid"), _make_state("solid")),
        (*_make_see_alone(params.substance), *_make_cooler(), _make_colder(5)),
    )


def make_change_state_goals(params: task_params.StateChange) -> Goals:
    """Return the goals of 1-4."""
    name = params.substance
    return Goals(
        _make_focus(name, AnyState(), OtherState()),
        (
            *_make_see_alone(name),
            *_make_fire(),
            *_make_heater("object"),
            *_make_cooler(),
            _make_warmer(10),
            _make_colder(10),
        ),
    )


def _make_get_thermometer() -> tuple[Goal, ...]:
    return (
        See("thermometer", text="be in same location as thermometer"),
        Holds("inventory", "thermometer", text="have thermometer in inventory"),
        NewRoom(text="move to a new location"),
    )


def _make_measure(name: str, text: str, *needs: str) -> Goal:
    return Done("use", "thermometer", name.lower(), needs=needs, text=text)


_ASKED = "move to the location asked by the task ({})"


def make_thermometer_goals(params: task_params.Thermometer) -> Goals:
    """Return the goals of 2-1."""
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
            *_make_get_thermometer(),
            InRoom(params.place, key="move1", text=_ASKED.format("object location")),
            InRoom(
                params.box_place,
                key="move2",
                needs=("move1",),
                text=_ASKED.format("answer box location"),
            ),
            Holds("inventory", name, text="have task object in inventory"),
            _make_measure(name, measure),
            _make_measure(name, f"{measure} (in answer box location)", "move2"),
        ),
    )


def make_melting_point_goals(params: task_params.Melting) -> Goals:
    """Return the goals of 2-2 and 2-3."""
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
            *_make_get_thermometer(),
            InRoom("kitchen", key="move1", text=_ASKED.format("substance location")),
            InRoom("kitchen", key="move1", text=_ASKED.format("answer box location")),
            *(
                InRoom(place, needs=("move1",), text=heater.format(place))
                for place in ("kitchen", "outside", "foundry")
            ),
            Holds("inventory", name, text="have task object in inventory"),
            _make_measure(name, measure),
            _make_measure(name, f"{measure} (after it has been heated)", "heatObject"),
            Alone((name,), text="have substance alone in a single container"),
            *_make_fire(),
            *_make_heater("substance", focused),
            Changed(20, key="heatObject", needs=focused, text="heat substance by at least 20C"),
        ),
    )


def _make_wiring(thing: str, source: str) -> tuple[Goal, ...]:
    connect = "connect the task object's ({}) to a wire"
    return (
        NewRoom(text="move to a new location"),
        See(thing, text="be in same location as part to power"),
        Wired(thing, first=True, text=connect.format("terminal1/anode")),
        Wired(thing, first=False, text=connect.format("terminal2/cathode")),
        Joins(
            thing,
            source,
            text="task object is at least partially connected to power source through wire",
        ),
    )


def make_power_goals(params: task_params.Power) -> Goals:
    """Return the goals of 3-1 and 3-2."""
    ordered: tuple[OrderedGoal, ...] = (
        Find(params.part, text="focus on task object"),
        Powered(params.part, text="power task object"),
    )
    if params.use:
        ordered = (*ordered, PoweredBy(params.use, text="use correct power source"))
    return Goals(ordered, _make_wiring(params.part, params.use or ANY_SOURCE))


def make_conductivity_goals(params: task_params.Conductivity, *, conducts: bool) -> Goals:
    """Return the goals of 3-3 and 3-4."""
    right, wrong = params.box_yes, params.box_no
    if not conducts:
        right, wrong = wrong, right
    bulb = "is at least partially connected to a"
    return Goals(
        (
            Find(params.substance, text="focus on task object"),
            PutInto(right, wrong, text="put object in correct container"),
        ),
        (
            *_make_wiring(params.substance, ANY_SOURCE),
            Joins(params.substance, ANY_BULB, text=f"task object {bulb} light bulb through wire"),
            Joins(ANY_SOURCE, ANY_BULB, text=f"light bulb {bulb} power source through wire"),
        ),
    )


OUTSIDE = "outside"
PLANT_STAGES = STAGES_OF_PLANTS[:-1]
GROW_POTS = tuple(f"flower pot {number}" for number in (1, 2, 3))


def make_find_goals(kind: str, shown: str) -> Callable[[task_params.Find], Goals]:
    """Return the goals of 4-1 to 4-4."""

    def goals(params: task_params.Find) -> Goals:
        return Goals(
            (
                FindKind(kind, text=f"focus on {shown}"),
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


def _make_greenhouse() -> tuple[Goal, ...]:
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


def _make_jar() -> tuple[Goal, ...]:
    return (
        See("seed jar", text="be in same location as seed jar"),
        Holds("inventory", "seed jar", key="haveSeedJar", text="have seed jar in inventory"),
    )


def _make_potted(pots: Sequence[str], seed: str) -> tuple[Goal, ...]:
    return tuple(
        Holds(pot, name, text=f"have {word} in flower pot ({number})")
        for word, name in (("soil", "soil"), ("water", "water"), ("seed", f"{seed} seed"))
        for number, pot in enumerate(pots, 1)
    )


def _make_planting(seed: str) -> tuple[Goal, ...]:
    return (
        *_make_jar(),
        Holds("inventory", "shovel", text="have shovel in inventory"),
        Holds("inventory", "soil", text="have soil in inventory"),
        See("soil", text="be in same location as soil"),
        *_make_greenhouse(),
        *_make_potted(GROW_POTS, seed),
    )


def _make_plants(species: str, most: int) -> tuple[Goal, ...]:
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


def _make_pollination(product: str, word: str, needs: tuple[str, ...]) -> tuple[Goal, ...]:
    pollinator = "be in same location as pollinator (after reprod. life stage)"
    return (
        Opened("bee hive", needs=needs, text="bee hive open (after reprod. life stage)"),
        See("adult bee", needs=("2 reproducing",), text=pollinator),
        See(product, needs=needs, text=f"be in same location as {word}"),
    )


def make_grow_plant_goals(params: task_params.Grow) -> Goals:
    """Return the goals of 5-1."""
    return Goals(
        tuple(
            Grown(params.seed, stage, text=f"focus plant is in {stage} stage")
            for stage in PLANT_STAGES
        ),
        _make_planting(params.seed),
    )


def make_grow_fruit_goals(params: task_params.Grow) -> Goals:
    """Return the goals of 5-2."""
    return Goals(
        (Find(params.seed, text="focus on the grown fruit"),),
        (
            *_make_planting(params.seed),
            *_make_plants(params.seed, 2),
            *_make_pollination(params.seed, "fruit", ()),
        ),
    )


def make_genetics_goals(params: task_params.Genetics, pots: Sequence[int]) -> Goals:
    """Return the goals of 10-1 and 10-2; ``pots`` are the numbers of the flower pots."""
    box = params.box_dominant if params.dominant else params.box_recessive
    names = [f"flower pot {number}" for number in pots]
    return Goals(
        (Find(box, defocus=True, text="focus on the correct answer box"),),
        (
            *_make_jar(),
            *_make_greenhouse(),
            *_make_potted(names, params.plant),
            *_make_plants(params.plant, 6),
            *_make_pollination(params.plant, "grown seed", ("2 reproducing",)),
        ),
    )


def _make_move_outside(unless: str = OUTSIDE) -> tuple[Goal, ...]:
    return (
        NewRoom(unless, text="Move to a new location (unless starting in task location)"),
        InRoom(OUTSIDE, text="Move to the location asked by the task"),
    )


def make_lifespan_goals(*which: str) -> Callable[[task_params.Lifespan], Goals]:
    """Return the goals of 7-1 to 7-3; ``which`` is "long", "short" or both."""
    words = {"long": "longest", "short": "shortest"}

    def goals(params: task_params.Lifespan) -> Goals:
        return Goals(
            tuple(
                Find(
                    params.long if length == "long" else params.short,
                    defocus=length != which[-1],
                    text=f"focus on animal with {words[length]} life span",
                )
                for length in which
            ),
            _make_move_outside(),
        )

    return goals


def list_animal_stages(animal: str) -> tuple[str, ...]:
    """Return the stages of an animal's life that 8-1 asks for."""
    return tuple(stage for stage, _, _ in CYCLES[get_kind(animal).cycle][:-1])


def _make_stages(species: str, stages: Sequence[str], kind: str, unless: str) -> Goals:
    return Goals(
        tuple(
            FindStage(species, stage, defocus=True, text=f"focus on {kind} in life stage {number}")
            for number, stage in enumerate(stages, 1)
        ),
        (
            *_make_move_outside(unless),
            *(
                Stay(OUTSIDE, least, text=f"Stay in goal location for {least} steps")
                for least in (10, 20, 30)
            ),
        ),
    )


def make_animal_stages_goals(params: task_params.AnimalStages) -> Goals:
    """Return the goals of 8-1."""
    return _make_stages(params.animal, list_animal_stages(params.animal), "animal", OUTSIDE)


def make_plant_stages_goals(params: task_params.PlantStages) -> Goals:
    """Return the goals of 8-2; as in the original the species takes the place of the room."""
    return _make_stages(params.plant, PLANT_STAGES, "plant", params.plant)


_ELSEWHERE = "move to a new location (unless starting in task location)"


def _make_see(name: str, kind: str = "", needs: tuple[str, ...] = (), key: str = "") -> Goal:
    text = f"be in same location as {kind}{name}"
    return See(name, needs=needs, key=key, text=text)


def make_mix_goals(params: task_params.Mix) -> Goals:
    """Return the goals of 6-1."""
    return Goals(
        (Find(params.result, text=f"focus on result chemical ({params.result})"),),
        (
            NewRoom(text="move to a new location"),
            *(_make_see(name) for name in params.ingredients),
            Alone(params.ingredients, text="have all ingredients alone in a single container"),
            _make_see(params.result),
            Done("read", "recipe", text="read recipe"),
        ),
    )


def make_secondary_paint_goals(params: task_params.Paint) -> Goals:
    """Return the goals of 6-2."""
    result = params.secondary
    return Goals(
        (Find(result, text=f"focus on the mixing result ({result})"),),
        (
            NewRoom(text="move to a new location"),
            *(_make_see(name) for name in params.secondary_of),
            Alone(params.secondary_of, text="have all ingredients alone in a single container"),
            _make_see(result),
        ),
    )


def make_tertiary_paint_goals(params: task_params.Paint) -> Goals:
    """Return the goals of 6-3."""
    middle, last = params.secondary, params.tertiary
    made = ("secondaryColor",)
    alone = "have all ingredients ({}) alone in a single container"
    return Goals(
        (
            Find(middle, defocus=True, text=f"focus on the intermediate mixing result ({middle})"),
            Find(last, text=f"focus on the final mixing result ({last})"),
        ),
        (
            NewRoom(params.place, text=_ELSEWHERE),
            InRoom(params.place, text="move to the location of the paint"),
            *(_make_see(name) for name in params.secondary_of),
            Alone(params.secondary_of, text=alone.format("secondary")),
            _make_see(middle, "(secondary) ", key=made[0]),
            *(_make_see(name, "(tertiary) ", made) for name in params.tertiary_of),
            Alone(params.tertiary_of, text=alone.format("tertiary")),
            _make_see(last),
        ),
    )


def write_plane_name(params: task_params.Planes, name: str) -> str:
    """Return what an inclined plane is called in the house's texts."""
    return f"inclined plane {name}" if params.by_angle else f"inclined plane with a {name} surface"


def make_plane_goals(params: task_params.Planes) -> Goals:
    """Return the goals of 9-1 to 9-3."""
    timing: list[Goal] = []
    for number, name in enumerate((params.first, params.second), 1):
        block, on, off = f"b{number}", f"aTime{number}", f"dTime{number}"
        plane = write_plane_name(params, name)
        timing += [
            Holds(plane, params.block, key=block, text=f"move block to plane {number}"),
            Running("stopwatch", key=on, needs=(block,), text="activate time keeping device"),
            Running(
                "stopwatch", on=False, key=off, needs=(on,), text="deactivate time keeping device"
            ),
            Done("look at", "stopwatch", needs=(off,), text="read time keeping device"),
        ]
    return Goals(
        (
            FindPlane(
                params.answer, params.by_angle, defocus=True, text="focus on correct inclined plane"
            ),
        ),
        (
            NewRoom("workshop", text=_ELSEWHERE),
            InRoom("workshop", text="move to the location asked by the task"),
            *timing,
        ),
    )


_PLAIN: dict[str, Callable[[Any], Goals]] = {
    "1-1": make_boil_goals,
    "1-2": make_melt_goals,
    "1-3": make_freeze_goals,
    "1-4": make_change_state_goals,
    "2-1": make_thermometer_goals,
    "2-2": make_melting_point_goals,
    "2-3": make_melting_point_goals,
    "3-1": make_power_goals,
    "3-2": make_power_goals,
    "4-1": make_find_goals("living", "a living thing"),
    "4-2": make_find_goals("dead", "a non-living thing"),
    "4-3": make_find_goals("plant", "a plant"),
    "4-4": make_find_goals("animal", "an animal"),
    "5-1": make_grow_plant_goals,
    "5-2": make_grow_fruit_goals,
    "6-1": make_mix_goals,
    "6-2": make_secondary_paint_goals,
    "6-3": make_tertiary_paint_goals,
    "7-1": make_lifespan_goals("long"),
    "7-2": make_lifespan_goals("short"),
    "7-3": make_lifespan_goals("long", "short"),
    "8-1": make_animal_stages_goals,
    "8-2": make_plant_stages_goals,
    "9-1": make_plane_goals,
    "9-2": make_plane_goals,
    "9-3": make_plane_goals,
}


def make_goals(task_id: str, params: Any, variation: int) -> Goals:
    """Return the goals of a variation; its number decides what a load draws at random."""
    if isinstance(params, task_params.Conductivity):
        return make_conductivity_goals(params, conducts=draws.draw_conducts(params, variation))
    if isinstance(params, task_params.Genetics):
        return make_genetics_goals(params, draws.draw_genetics_pots(task_id, params, variation))
    return _PLAIN[task_id](params)
