"""One input after the other: parse it, do it, check the goals, let time pass."""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

from ..actions.facts import is_object
from ..actions.table import WAITS, find_actions
from ..house.state import HouseState
from ..objects.records import AnimalLife, Bloom, PlantLife, Watch
from ..physics.ticking import settle, tick_house, wake
from .action_lists import list_possible_objects
from .parser import UNKNOWN, Match, parse, write_question

NOTHING_SAID = (
    "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible "
    "object referents. "
)
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
_BLANKS = re.compile(" +")
_DIGESTED = (
    *("name", "uid", "parent", "kids", "portals", "heat", "state", "fuel", "burning", "burnt"),
    *("open", "on", "broken", "note", "life"),
)
"""Columns that play depends on."""


class Reply(NamedTuple):
    """What an input came to: the text, and whether it was understood as an action."""

    text: str
    understood: bool


def step(house: HouseState, text: str, description: str = "") -> Reply:
    """Answer one input.

    Args:
        house: The house; changes in place.
        text: What the agent typed.
        description: Text of the task, for the input "task".
    """
    asked = text.strip().lower()
    if asked == "task":
        return Reply(f"Task description:\n{description}", True)
    if asked == "help":
        return Reply(f"Possible actions: \n\t{indent_lines(list_possible_actions(house))}", True)
    if asked == "objects":
        return Reply(
            f"Possible object references: \n\t{indent_lines(list_possible_objects(house))}", True
        )
    if house.pending is not None:
        return _answer(house, text)
    matches = parse(house, text)
    if not matches:
        return Reply(UNKNOWN, False)
    if len(matches) > 1:
        house.pending = tuple(matches)
        return Reply(write_question(house, matches), True)
    return Reply(_perform(house, matches[0]), True)


def indent_lines(lines: list[str]) -> str:
    """Write lines one below the other, indented."""
    return "\n\t".join(lines)


def list_possible_actions(house: HouseState) -> list[str]:
    """Return the action templates, sorted."""
    return sorted(entry.example for entry in find_actions(house.simple))


def _answer(house: HouseState, text: str) -> Reply:
    """Take the number of a meaning as the answer to a question; anything else cancels it."""
    matches = house.pending or ()
    house.pending = None
    if _NUMBER.fullmatch(text) and 0 <= int(text) < len(matches):
        return Reply(_perform(house, matches[int(text)]), True)
    _let_pass(house, takes_time=True)
    return Reply(NOTHING_SAID, False)


def _perform(house: HouseState, match: Match) -> str:
    for o in match.objects:
        if is_object(o) and o in house.behind:
            wake(house, o)
    said = match.action.run(house, *match.objects)
    _let_pass(house, takes_time=not match.action.free)
    for _ in range(WAITS.get(match.action.words[0], 0)):
        _let_pass(house, takes_time=True)
    return _BLANKS.sub(" ", said.strip()) or NOTHING_SAID


def _let_pass(house: HouseState, *, takes_time: bool) -> None:
    goals = house.goals
    if goals is not None:
        goals.check(house)
    if takes_time:
        tick_house(house)
    if goals is not None:
        goals.check(house)


def _in_tens(heat: float) -> int:
    return int(heat // 10)


def _stage(life: Any) -> Any:
    """Return a record of life without the ticks that it counts."""
    match life:
        case PlantLife():
            return life.stage, life.sick, life.dead
        case AnimalLife():
            return life.stage, life.dead
        case Bloom():
            return life.plant, life.step > 0, life.other
        case Watch():
            return life.running > 0, life.shown
        case _:
            return life


def digest_house(house: HouseState, *, history: bool = True) -> str:
    """Return a hash of everything that play depends on; all rooms are brought up to date.

    Args:
        house: The house.
        history: Exactly so. Without it the hash names the state, however the house came there: the
            clock, the random stream, the counter of things made and the order of the agent's deeds
            are left out, temperatures count in steps of ten degrees, lives by their stages.
    """
    settle(house)
    columns = [getattr(house, name) for name in _DIGESTED]
    if not history:
        drifts = {"heat": _in_tens, "fuel": bool, "life": _stage}
        columns = [
            [drifts[name](value) for value in column] if name in drifts else column
            for name, column in zip(_DIGESTED, columns, strict=True)
        ]
    keys = [k.key for k in house.kind], [m and m.key for m in house.material]
    numbers: tuple[int, ...] = (house.focus,)
    if history:
        numbers += (house.ticks, house.next_uid, house.random.state)
    maps = [sorted(m.items()) for m in (house.wires, house.volts)]
    slides = [(plane, sorted(spots.items())) for plane, spots in sorted(house.slides.items())]
    asked = None
    if house.pending is not None:
        asked = [(match.action.name, match.objects) for match in house.pending]
    goals = ""
    if house.goals is not None:
        goals = house.goals.digest() if history else house.goals.state_digest()
    text = repr((columns, keys, numbers, sorted(house.simple), maps, slides, asked, goals))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
