"""Goals of the tasks on electricity (3-x)."""

from __future__ import annotations

from .conditions_optional import ANY_BULB, ANY_SOURCE, Joins, NewRoom, See, Wired
from .conditions_ordered import Find, OrderedGoal, Powered, PoweredBy, PutInto
from .goal import Goal, Goals
from .params import Conductivity, Power


def _wiring(thing: str, source: str) -> tuple[Goal, ...]:
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


def power(params: Power) -> Goals:
    """3-1 and 3-2."""
    ordered: tuple[OrderedGoal, ...] = (
        Find(params.part, text="focus on task object"),
        Powered(params.part, text="power task object"),
    )
    if params.use:
        ordered = (*ordered, PoweredBy(params.use, text="use correct power source"))
    return Goals(ordered, _wiring(params.part, params.use or ANY_SOURCE))


def conductivity(params: Conductivity, *, conducts: bool) -> Goals:
    """3-3 and 3-4."""
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
            *_wiring(params.substance, ANY_SOURCE),
            Joins(params.substance, ANY_BULB, text=f"task object {bulb} light bulb through wire"),
            Joins(ANY_SOURCE, ANY_BULB, text=f"light bulb {bulb} power source through wire"),
        ),
    )
