"""Goals of the tasks on chemistry and on inclined planes (6-x and 9-x)."""

from __future__ import annotations

from .conditions_optional import Alone, Done, Holds, InRoom, NewRoom, Running, See
from .conditions_ordered import Find, FindPlane
from .goal import Goal, Goals
from .params import Mix, Paint, Planes

_ELSEWHERE = "move to a new location (unless starting in task location)"


def _see(name: str, kind: str = "", needs: tuple[str, ...] = (), key: str = "") -> Goal:
    text = f"be in same location as {kind}{name}"
    return See(name, needs=needs, key=key, text=text)


def mix(params: Mix) -> Goals:
    """6-1."""
    return Goals(
        (Find(params.result, text=f"focus on result chemical ({params.result})"),),
        (
            NewRoom(text="move to a new location"),
            *(_see(name) for name in params.ingredients),
            Alone(params.ingredients, text="have all ingredients alone in a single container"),
            _see(params.result),
            Done("read", "recipe", text="read recipe"),
        ),
    )


def secondary_paint(params: Paint) -> Goals:
    """6-2."""
    result = params.secondary
    return Goals(
        (Find(result, text=f"focus on the mixing result ({result})"),),
        (
            NewRoom(text="move to a new location"),
            *(_see(name) for name in params.secondary_of),
            Alone(params.secondary_of, text="have all ingredients alone in a single container"),
            _see(result),
        ),
    )


def tertiary_paint(params: Paint) -> Goals:
    """6-3."""
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
            *(_see(name) for name in params.secondary_of),
            Alone(params.secondary_of, text=alone.format("secondary")),
            _see(middle, "(secondary) ", key=made[0]),
            *(_see(name, "(tertiary) ", made) for name in params.tertiary_of),
            Alone(params.tertiary_of, text=alone.format("tertiary")),
            _see(last),
        ),
    )


def plane_name(params: Planes, name: str) -> str:
    """What an inclined plane is called in the world's texts."""
    by_angle = params.ask in ("shallowest", "steepest")
    return f"inclined plane {name}" if by_angle else f"inclined plane with a {name} surface"


def planes(params: Planes) -> Goals:
    """9-1 to 9-3."""
    by_angle = params.ask in ("shallowest", "steepest")
    timing: list[Goal] = []
    for number, name in enumerate((params.first, params.second), 1):
        block, on, off = f"b{number}", f"aTime{number}", f"dTime{number}"
        plane = plane_name(params, name)
        timing += [
            Holds(plane, params.block, key=block, text=f"move block to plane {number}"),
            Running("stopwatch", key=on, needs=(block,), text="activate time keeping device"),
            Running(
                "stopwatch",
                on=False,
                key=off,
                needs=(on,),
                text="deactivate time keeping device",
            ),
            Done("look at", "stopwatch", needs=(off,), text="read time keeping device"),
        ]
    return Goals(
        (FindPlane(params.answer, by_angle, defocus=True, text="focus on correct inclined plane"),),
        (
            NewRoom("workshop", text=_ELSEWHERE),
            InRoom("workshop", text="move to the location asked by the task"),
            *timing,
        ),
    )
