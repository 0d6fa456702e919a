"""How objects are described: one function per look, all in the original's wording."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..house.state import TERMINALS, HouseState, get_terminal, get_terminal_owner
from .names import (
    find_other_end,
    list_flower_traits,
    list_plant_traits,
    round_number,
    write_burning_name,
    write_full_name,
    write_plant_name,
    write_stage_name,
    write_terminal_name,
)

Look = Callable[[HouseState, int, bool], str]


def describe(house: HouseState, o: int, detailed: bool = False) -> str:
    """Return what is seen of an object, at a glance or when looked at."""
    if o >= TERMINALS:
        return _terminal(house, o, detailed)
    return LOOKS[house.kind[o].look](house, o, detailed)


def sort_by_name(house: HouseState, objects: Iterable[int]) -> list[int]:
    """Return objects in the order of listings: by plain name, then as given or by creation."""
    name, uid = house.name, house.uid
    if house.by_arrival:
        return sorted(objects, key=name.__getitem__)
    return sorted(objects, key=lambda o: (name[o], uid[o]))


def describe_in_line(house: HouseState, objects: Iterable[int]) -> str:
    """Return the descriptions in one line; ``nothing`` when there are none."""
    shown = [LOOKS[house.kind[o].look](house, o, False) for o in sort_by_name(house, objects)]
    return ", ".join(shown) or "nothing"


def describe_in_lines(house: HouseState, objects: Iterable[int]) -> str:
    """Return the descriptions one a line, indented; ``nothing`` when there are none."""
    shown = [LOOKS[house.kind[o].look](house, o, False) for o in sort_by_name(house, objects)]
    return "".join(f"\t{text}\n" for text in shown) or "\tnothing"


def describe_portal(house: HouseState, portal: int, view: int) -> str:
    """Return a door or drain as seen from ``view`` (a place)."""
    opened = "open" if house.open[portal] else "closed"
    if house.kind[portal].key == "drain":
        return f"A drain, which is {opened}"
    end = find_other_end(house, portal, view)
    if end is None:
        source, target = house.note[portal]
        ends = f"{house.name[source]} to the {house.name[target]}"
        return f"A door that connects the {ends} (that is {opened})"
    return f"A door to the {house.name[end]} (that is {opened})"


def _with_article(article: str) -> Look:
    def look(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
        return article + write_full_name(house, o)

    return look


def _colored(article: str, with_color: bool) -> Look:
    def look(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
        k = house.kind[o]
        name = f"{k.color} {k.name}" if with_color else k.name
        return article + write_burning_name(house, o, name)

    return look


def _describe_name(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return house.name[o]


def _describe_agent(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return "the agent"


def _describe_cup(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return f"a {write_full_name(house, o)} (containing {describe_in_line(house, house.kids[o])})"


def _contents(house: HouseState, o: int, where: str, detailed: bool) -> str:
    name = write_full_name(house, o)
    if detailed:
        return f"{where} the {name} is: \n{describe_in_lines(house, house.kids[o])}"
    return f"{where} the {name} is: {describe_in_line(house, house.kids[o])}."


def _describe_table(house: HouseState, o: int, detailed: bool) -> str:
    return f"a {write_full_name(house, o)}. {_contents(house, o, 'On', detailed)}"


def _describe_chair(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return f"a {write_full_name(house, o)}. {_contents(house, o, 'On', False)}"


def _door_of(house: HouseState, o: int) -> str:
    return f"The {write_full_name(house, o)} door is {'open' if house.open[o] else 'closed'}. "


def _describe_cupboard(house: HouseState, o: int, detailed: bool) -> str:
    inside = _contents(house, o, "In", detailed) if house.open[o] else ""
    return f"a {write_full_name(house, o)}. {_door_of(house, o)}{inside}"


def _describe_drawer(house: HouseState, o: int, detailed: bool) -> str:
    name = f"a {write_full_name(house, o)}"
    if not detailed:
        return name
    if not house.open[o]:
        return f"{name}.  The drawer is closed."
    return f"{name}. {_contents(house, o, 'In', True)}"


def _turned(house: HouseState, o: int) -> str:
    return f", which is turned {'on' if house.on[o] else 'off'}"


def _describe_stove(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    name = house.name[o]
    inside = describe_in_line(house, house.kids[o])
    return f"a {name}{_turned(house, o)}. On the {house.kind[o].key} is: {inside}."


def _describe_oven(house: HouseState, o: int, detailed: bool) -> str:
    inside = _contents(house, o, "In", detailed) if house.open[o] else ""
    return f"a {write_full_name(house, o)}{_turned(house, o)}. {_door_of(house, o)}{inside}"


def _describe_fridge(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    off = "" if house.on[o] else _turned(house, o)
    inside = _contents(house, o, "In", False) if house.open[o] else ""
    return f"a {write_full_name(house, o)}{off}. {_door_of(house, o)}{inside}"


def _describe_sink(house: HouseState, o: int, detailed: bool) -> str:
    text = f"a {write_full_name(house, o)}{_turned(house, o)}. {_contents(house, o, 'In', False)}"
    if detailed:
        for drain in house.portals[o]:
            text += f" The drain is {'open' if house.open[drain] else 'closed'}."
    return text


def _describe_toilet(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    flushing = ", which is flushing" if house.life[o] > 0 else ""
    inside = describe_in_line(house, (*house.kids[o], *house.portals[o]))
    name = write_full_name(house, o)
    return f"a {name}{flushing}. In the {name} is: {inside}."


def _describe_portal(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return describe_portal(house, o, house.note[o].source)


def _describe_thermometer(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    reading = round_number(house.heat[o])
    reads = f"currently reading a temperature of {reading} degrees celsius"
    return f"a {write_full_name(house, o)}, {reads}"


def _describe_stopwatch(house: HouseState, o: int, detailed: bool) -> str:
    active = "activated" if house.on[o] else "deactivated"
    time = f"The time reads {house.life[o].shown} ticks." if detailed else ""
    return f"a {write_full_name(house, o)}, which is {active}. {time}"


def _connected(house: HouseState, handle: int) -> str:
    other = house.wires.get(handle)
    return "nothing" if other is None else _terminal(house, other, False)


def _terminal(house: HouseState, handle: int, detailed: bool) -> str:
    name = write_terminal_name(house, handle)
    if detailed:
        return f"a {name}.  it is connected to: {_connected(house, handle)}. "
    return f"a {name} on {house.name[get_terminal_owner(handle)]}"


def _terminals(house: HouseState, o: int) -> str:
    return "".join(
        f"its {write_terminal_name(house, handle)} is connected to: {_connected(house, handle)}. "
        for handle in (get_terminal(o, 0), get_terminal(o, 1))
    )


def _describe_on_off(house: HouseState, o: int, detailed: bool) -> str:
    text = f"a {write_full_name(house, o)}, which is {'on' if house.on[o] else 'off'}"
    return f"{text}. {_terminals(house, o)}" if detailed else text


def _describe_battery(house: HouseState, o: int, detailed: bool) -> str:
    text = f"a {write_full_name(house, o)}"
    return f"{text}. {_terminals(house, o)}" if detailed else text


def _describe_wire(house: HouseState, o: int, detailed: bool) -> str:
    # The original leaves no blank between the wire's name and its terminals.
    return f"a {write_full_name(house, o)}{_terminals(house, o) if detailed else ''}"


def _describe_picture(house: HouseState, o: int, detailed: bool) -> str:
    text = f"a {write_full_name(house, o)}"
    if not detailed:
        return text
    subject, artist = house.note[o]
    return f"{text} of {subject}.  The artist is listed as {artist}. "


def _describe_titled(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return f"A {write_full_name(house, o)} titled {house.note[o].title}"


def _describe_paper(house: HouseState, o: int, detailed: bool) -> str:
    if house.note[o] is not None and house.note[o].title:
        return _describe_titled(house, o, detailed)
    return f"A blank {write_full_name(house, o)}"


def _describe_book(house: HouseState, o: int, detailed: bool) -> str:
    return f"{_describe_titled(house, o, detailed)} by {house.note[o].author}"


def _describe_plane(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    name = f"an {write_full_name(house, o)}"
    if not house.kids[o]:
        return name
    spots = house.slides.get(o, {})
    shown = (f" a {write_full_name(house, kid)}{_spot(spots.get(kid))}" for kid in house.kids[o])
    return f"{name}, with: {','.join(shown)}"


def _spot(position: float | None) -> str:
    if position is None:
        return ""
    if position == 0.0:
        return " at the bottom of the plane"
    # The original compares with 0.99 as a 32-bit number.
    if position >= 0.9900000095367432:
        return " at the top of the plane"
    return f" approximately {round_number(100 - 100 * position)}% down the plane"


def _describe_plant(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    life, name = house.life[o], write_plant_name(house, o)
    if life.dead:
        return f"a dead {name}"
    bred = house.kind[o].look == "bred plant"
    if life.stage == 0:
        return f"a {list_plant_traits(house, o)} {name}" if bred else f"a {name}"
    text = f"a {name} in the {house.get_stage(o)} stage"
    if bred:
        text += list_plant_traits(house, o)
    if life.sick:
        text += " (that looks unwell)"
    if house.kids[o]:
        text += f". On the {name} you see: {describe_in_line(house, house.kids[o])}. "
    return text


def _describe_flower(house: HouseState, o: int, detailed: bool) -> str:
    wilting = "wilting " if house.life[o].step > 0 else ""
    text = f"a {wilting}{list_flower_traits(house, o)} {write_full_name(house, o)}"
    if detailed:
        text += f". Inside the flower is: {describe_in_line(house, house.kids[o])}"
    return " ".join(text.split())


def _describe_pollen(house: HouseState, o: int, detailed: bool) -> str:
    species = house.kind[house.note[o]].species if detailed else ""
    return species + write_full_name(house, o)


def _describe_bee(house: HouseState, o: int, detailed: bool) -> str:
    covered = detailed and any("pollen" in house.kind[k].tags for k in house.kids[o])
    return f"a {write_full_name(house, o)}{', that is covered in pollen' if covered else ''}"


def _describe_room(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    name = write_full_name(house, o)
    return f"This room is called the {name}. In it, you see: \n{_view(house, o)}"


def _describe_outside(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    name = write_full_name(house, o)
    return f"This outside location is called the {name}. Here you see: \n{_view(house, o)}"


def _view(house: HouseState, o: int) -> str:
    doors = sorted(describe_portal(house, portal, o) for portal in house.portals[o])
    listed = "".join(f"\t{door}\n" for door in doors) or "\tnothing"
    return f"{describe_in_lines(house, house.kids[o])}You also see:\n{listed}"


def _describe_universe(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    seen = describe_in_lines(house, (*house.kids[o], *house.portals[o]))
    return f"A {write_full_name(house, o)}. In this Universe, you see: {seen}."


def _describe_animal(house: HouseState, o: int, detailed: bool) -> str:  # noqa: ARG001 - one signature
    return f"a {write_stage_name(house, o)}"


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
    "name": _describe_name,
    "agent": _describe_agent,
    "cup": _describe_cup,
    "table": _describe_table,
    "seat": _describe_chair,
    "cupboard": _describe_cupboard,
    "drawer": _describe_drawer,
    "stove": _describe_stove,
    "oven": _describe_oven,
    "fridge": _describe_fridge,
    "sink": _describe_sink,
    "toilet": _describe_toilet,
    "door": _describe_portal,
    "drain": _describe_portal,
    "thermometer": _describe_thermometer,
    "stopwatch": _describe_stopwatch,
    "on off": _describe_on_off,
    "battery": _describe_battery,
    "wire": _describe_wire,
    "picture": _describe_picture,
    "recipe": _describe_titled,
    "paper": _describe_paper,
    "book": _describe_book,
    "plane": _describe_plane,
    "tree": _describe_plant,
    "bred plant": _describe_plant,
    "flower": _describe_flower,
    "pollen": _describe_pollen,
    "bee": _describe_bee,
    "room": _describe_room,
    "outside": _describe_outside,
    "universe": _describe_universe,
    "animal": _describe_animal,
}
