"""How objects are described: one function per look, all in the original's wording."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .naming import (
    burning_name,
    full_name,
    other_end,
    plant_name,
    stage_name,
    terminal_name,
    whole_number,
)
from .traits import flower_traits, plant_traits
from .world import TERMINALS, World, terminal, terminal_owner

Look = Callable[[World, int, bool], str]


def describe(world: World, o: int, detailed: bool = False) -> str:
    """What is seen of an object, at a glance or when looked at."""
    if o >= TERMINALS:
        return _terminal(world, o, detailed)
    return LOOKS[world.kind[o].look](world, o, detailed)


def by_name(world: World, objects: Iterable[int]) -> list[int]:
    """Objects, given as they stand, in the order of listings: by plain name, then by creation."""
    name, uid = world.name, world.uid
    if world.by_arrival:
        return sorted(objects, key=name.__getitem__)
    return sorted(objects, key=lambda o: (name[o], uid[o]))


def in_line(world: World, objects: Iterable[int]) -> str:
    """Descriptions in one line; ``nothing`` when there are none."""
    shown = [LOOKS[world.kind[o].look](world, o, False) for o in by_name(world, objects)]
    return ", ".join(shown) or "nothing"


def in_lines(world: World, objects: Iterable[int]) -> str:
    """Descriptions one a line, indented; ``nothing`` when there are none."""
    shown = [LOOKS[world.kind[o].look](world, o, False) for o in by_name(world, objects)]
    return "".join(f"\t{text}\n" for text in shown) or "\tnothing"


def describe_portal(world: World, portal: int, view: int) -> str:
    """A door or drain as seen from ``view`` (a place)."""
    opened = "open" if world.open[portal] else "closed"
    if world.kind[portal].key == "drain":
        return f"A drain, which is {opened}"
    end = other_end(world, portal, view)
    if end is None:
        source, target = world.note[portal]
        ends = f"{world.name[source]} to the {world.name[target]}"
        return f"A door that connects the {ends} (that is {opened})"
    return f"A door to the {world.name[end]} (that is {opened})"


# ---------------------------------------------------------------------- simple things


def _with_article(article: str) -> Look:
    def look(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
        return article + full_name(world, o)

    return look


def _colored(article: str, with_color: bool) -> Look:
    def look(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
        k = world.kind[o]
        name = f"{k.color} {k.name}" if with_color else k.name
        return article + burning_name(world, o, name)

    return look


def _name(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return world.name[o]


def _agent(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return "the agent"


# ---------------------------------------------------------------------- containers


def _cup(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return f"a {full_name(world, o)} (containing {in_line(world, world.kids[o])})"


def _contents(world: World, o: int, where: str, detailed: bool) -> str:
    name = full_name(world, o)
    if detailed:
        return f"{where} the {name} is: \n{in_lines(world, world.kids[o])}"
    return f"{where} the {name} is: {in_line(world, world.kids[o])}."


def _table(world: World, o: int, detailed: bool) -> str:
    return f"a {full_name(world, o)}. {_contents(world, o, 'On', detailed)}"


def _seat(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return f"a {full_name(world, o)}. {_contents(world, o, 'On', False)}"


def _door_of(world: World, o: int) -> str:
    return f"The {full_name(world, o)} door is {'open' if world.open[o] else 'closed'}. "


def _cupboard(world: World, o: int, detailed: bool) -> str:
    inside = _contents(world, o, "In", detailed) if world.open[o] else ""
    return f"a {full_name(world, o)}. {_door_of(world, o)}{inside}"


def _drawer(world: World, o: int, detailed: bool) -> str:
    name = f"a {full_name(world, o)}"
    if not detailed:
        return name
    if not world.open[o]:
        return f"{name}.  The drawer is closed."
    return f"{name}. {_contents(world, o, 'In', True)}"


# ---------------------------------------------------------------------- appliances, basins


def _turned(world: World, o: int) -> str:
    return f", which is turned {'on' if world.on[o] else 'off'}"


def _stove(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    name = world.name[o]
    inside = in_line(world, world.kids[o])
    return f"a {name}{_turned(world, o)}. On the {world.kind[o].key} is: {inside}."


def _oven(world: World, o: int, detailed: bool) -> str:
    inside = _contents(world, o, "In", detailed) if world.open[o] else ""
    return f"a {full_name(world, o)}{_turned(world, o)}. {_door_of(world, o)}{inside}"


def _fridge(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    off = "" if world.on[o] else _turned(world, o)
    inside = _contents(world, o, "In", False) if world.open[o] else ""
    return f"a {full_name(world, o)}{off}. {_door_of(world, o)}{inside}"


def _sink(world: World, o: int, detailed: bool) -> str:
    text = f"a {full_name(world, o)}{_turned(world, o)}. {_contents(world, o, 'In', False)}"
    if detailed:
        for drain in world.portals[o]:
            text += f" The drain is {'open' if world.open[drain] else 'closed'}."
    return text


def _toilet(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    flushing = ", which is flushing" if world.life[o] > 0 else ""
    inside = in_line(world, (*world.kids[o], *world.portals[o]))
    name = full_name(world, o)
    return f"a {name}{flushing}. In the {name} is: {inside}."


def _portal(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return describe_portal(world, o, world.note[o].source)


# ---------------------------------------------------------------------- instruments, electricity


def _thermometer(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    reading = whole_number(world.heat[o])
    reads = f"currently reading a temperature of {reading} degrees celsius"
    return f"a {full_name(world, o)}, {reads}"


def _stopwatch(world: World, o: int, detailed: bool) -> str:
    active = "activated" if world.on[o] else "deactivated"
    time = f"The time reads {world.life[o].shown} ticks." if detailed else ""
    return f"a {full_name(world, o)}, which is {active}. {time}"


def _connected(world: World, handle: int) -> str:
    other = world.wires.get(handle)
    return "nothing" if other is None else _terminal(world, other, False)


def _terminal(world: World, handle: int, detailed: bool) -> str:
    name = terminal_name(world, handle)
    if detailed:
        return f"a {name}.  it is connected to: {_connected(world, handle)}. "
    return f"a {name} on {world.name[terminal_owner(handle)]}"


def _terminals(world: World, o: int) -> str:
    return "".join(
        f"its {terminal_name(world, handle)} is connected to: {_connected(world, handle)}. "
        for handle in (terminal(o, 0), terminal(o, 1))
    )


def _on_off(world: World, o: int, detailed: bool) -> str:
    text = f"a {full_name(world, o)}, which is {'on' if world.on[o] else 'off'}"
    return f"{text}. {_terminals(world, o)}" if detailed else text


def _battery(world: World, o: int, detailed: bool) -> str:
    text = f"a {full_name(world, o)}"
    return f"{text}. {_terminals(world, o)}" if detailed else text


def _wire(world: World, o: int, detailed: bool) -> str:
    # The original leaves no blank between the wire's name and its terminals.
    return f"a {full_name(world, o)}{_terminals(world, o) if detailed else ''}"


# ---------------------------------------------------------------------- documents, planes


def _picture(world: World, o: int, detailed: bool) -> str:
    text = f"a {full_name(world, o)}"
    if not detailed:
        return text
    subject, artist = world.note[o]
    return f"{text} of {subject}.  The artist is listed as {artist}. "


def _titled(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return f"A {full_name(world, o)} titled {world.note[o].title}"


def _paper(world: World, o: int, detailed: bool) -> str:
    if world.note[o] is not None and world.note[o].title:
        return _titled(world, o, detailed)
    return f"A blank {full_name(world, o)}"


def _book(world: World, o: int, detailed: bool) -> str:
    return f"{_titled(world, o, detailed)} by {world.note[o].author}"


def _plane(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    name = f"an {full_name(world, o)}"
    if not world.kids[o]:
        return name
    spots = world.slides.get(o, {})
    shown = (f" a {full_name(world, kid)}{_spot(spots.get(kid))}" for kid in world.kids[o])
    return f"{name}, with: {','.join(shown)}"


def _spot(position: float | None) -> str:
    if position is None:
        return ""
    if position == 0.0:
        return " at the bottom of the plane"
    # The original compares with 0.99 as a 32-bit number.
    if position >= 0.9900000095367432:
        return " at the top of the plane"
    return f" approximately {whole_number(100 - 100 * position)}% down the plane"


# ---------------------------------------------------------------------- living things


def _plant(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    life, name = world.life[o], plant_name(world, o)
    if life.dead:
        return f"a dead {name}"
    bred = world.kind[o].look == "bred plant"
    if life.stage == 0:
        return f"a {plant_traits(world, o)} {name}" if bred else f"a {name}"
    text = f"a {name} in the {world.stage(o)} stage"
    if bred:
        text += plant_traits(world, o)
    if life.sick:
        text += " (that looks unwell)"
    if world.kids[o]:
        text += f". On the {name} you see: {in_line(world, world.kids[o])}. "
    return text


def _flower(world: World, o: int, detailed: bool) -> str:
    wilting = "wilting " if world.life[o].step > 0 else ""
    text = f"a {wilting}{flower_traits(world, o)} {full_name(world, o)}"
    if detailed:
        text += f". Inside the flower is: {in_line(world, world.kids[o])}"
    return " ".join(text.split())


def _pollen(world: World, o: int, detailed: bool) -> str:
    species = world.kind[world.note[o]].species if detailed else ""
    return species + full_name(world, o)


def _bee(world: World, o: int, detailed: bool) -> str:
    covered = detailed and any("pollen" in world.kind[k].tags for k in world.kids[o])
    return f"a {full_name(world, o)}{', that is covered in pollen' if covered else ''}"


# ---------------------------------------------------------------------- places


def _room(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    name = full_name(world, o)
    return f"This room is called the {name}. In it, you see: \n{_view(world, o)}"


def _outside(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    name = full_name(world, o)
    return f"This outside location is called the {name}. Here you see: \n{_view(world, o)}"


def _view(world: World, o: int) -> str:
    doors = sorted(describe_portal(world, portal, o) for portal in world.portals[o])
    listed = "".join(f"\t{door}\n" for door in doors) or "\tnothing"
    return f"{in_lines(world, world.kids[o])}You also see:\n{listed}"


def _universe(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    seen = in_lines(world, (*world.kids[o], *world.portals[o]))
    return f"A {full_name(world, o)}. In this Universe, you see: {seen}."


LOOKS: dict[str, Look] = {
    "substance": _with_article("a substance called "),
    "bare": _with_article(""),
    "a": _with_article("a "),
    "an": _with_article("an "),
    "A": _with_article("A "),
    "the": _with_article("the "),
    "pillow": _with_article("a white "),
    "colored": _colored("a ", True),
    "colored bare": _colored("", True),
    "kind bare": _colored("", False),
    "name": _name,
    "agent": _agent,
    **{"cup": _cup, "table": _table, "seat": _seat, "cupboard": _cupboard, "drawer": _drawer},
    **{"stove": _stove, "oven": _oven, "fridge": _fridge, "sink": _sink, "toilet": _toilet},
    **{"door": _portal, "drain": _portal, "thermometer": _thermometer, "stopwatch": _stopwatch},
    **{"on off": _on_off, "battery": _battery, "wire": _wire, "picture": _picture},
    **{"recipe": _titled, "paper": _paper, "book": _book, "plane": _plane},
    **{"tree": _plant, "bred plant": _plant, "flower": _flower, "pollen": _pollen},
    **{"bee": _bee, "room": _room, "outside": _outside, "universe": _universe},
}


def _animal(world: World, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return f"a {stage_name(world, o)}"


LOOKS["animal"] = _animal
