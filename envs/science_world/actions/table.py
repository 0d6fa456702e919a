"""All actions: the words that trigger them, what they do, and how lists of actions show them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..house.state import HouseState
from . import going, looking, mixing, moving, using, wiring

TELEPORT, NO_ELECTRICITY = "teleportAction", "noElectricalAction"
WAITS = {"wait": 10, "wait1": 1}
"""Further iterations that the waiting actions run."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    Attributes:
        name: The original's name; ambiguous actions are listed in the order of names.
        number: Template number of the original.
        words: Alternatives that begin it.
        run: What it does; takes the house and one handle per slot, and says what happened.
        slots: Objects that it names, 0 to 2.
        links: Alternatives between the two objects.
        shown: First words in the list of valid actions.
        link: Word between two objects in that list.
        refuse: Why it is refused for one object; empty text when it is not. None: never.
        free: It takes no time.
        anywhere: It may name any object in the house.
    """

    name: str
    number: int
    words: tuple[str, ...]
    run: Callable[..., str]
    slots: int = 1
    links: tuple[str, ...] = ()
    shown: str = ""
    link: str = ""
    refuse: Callable[..., str] | None = None
    free: bool = False
    anywhere: bool = False

    @property
    def example(self) -> str:
        """The template as lists of possible actions show it."""
        first = self.words[0]
        if self.slots == 0:
            return first
        return f"{first} OBJ {self.links[0]} OBJ" if self.slots == 2 else f"{first} OBJ"

    @property
    def digest(self) -> str:
        """The name stands for the record."""
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return get_action, (self.name,)


def _wait(house: HouseState) -> str:  # noqa: ARG001 - one signature
    return "You decide to wait for 10 iterations."


def _wait_once(house: HouseState) -> str:  # noqa: ARG001 - one signature
    return "You decide to wait for 1 iterations."


def _task(house: HouseState) -> str:  # noqa: ARG001 - answered before the parser
    return ""


def _refuse_close(house: HouseState, o: int) -> str:
    return going.refuse_open(house, o, close=True)


def _refuse_off(house: HouseState, o: int) -> str:
    return using.refuse_switch(house, o, off=True)


_GO = ("go", "go through", "walk through", "move through", "go to", "walk to", "move to")
_INTO = ("in", "into", "on", "to")

ACTIONS: tuple[Action, ...] = (
    Action("open door", 0, ("open",), going.open_it, refuse=going.refuse_open),
    Action("close door", 1, ("close",), going.close_it, refuse=_refuse_close),
    Action(
        "move through door",
        2,
        (*_GO, "go into", "move into"),
        going.go,
        shown="go to",
        refuse=going.refuse_go,
    ),
    Action(
        "teleport to location",
        2,
        ("teleport", "teleport to", "teleport into"),
        going.teleport,
        shown="teleport to",
        refuse=going.refuse_teleport,
        anywhere=True,
    ),
    Action("look around", 3, ("look around", "look"), looking.look_around, 0, free=True),
    Action("look at", 4, ("look at", "look on", "examine"), looking.look_at),
    Action("look in", 5, ("look in",), looking.look_in, refuse=looking.refuse_look_in),
    Action("activate", 6, ("activate", "turn on"), using.activate, refuse=using.refuse_switch),
    Action("deactivate", 7, ("deactivate", "turn off"), using.deactivate, refuse=_refuse_off),
    Action("eat", 8, ("eat", "consume"), using.eat, refuse=using.refuse_eat),
    Action(
        "move object",
        9,
        ("move", "put"),
        moving.move,
        2,
        ("to", "in", "into", "on"),
        link="to",
    ),
    Action("pour object", 10, ("pour",), moving.pour, 2, _INTO, link="into"),
    Action("focus on", 11, ("focus on", "focus"), using.focus),
    Action("reset task", 12, ("reset task",), using.reset_task, 0),
    Action("use object", 13, ("use",), using.use, 2, ("on", "with"), link="on"),
    Action("read", 14, ("read",), looking.read, refuse=looking.refuse_read),
    Action("flush", 15, ("flush",), using.flush, refuse=using.refuse_flush),
    Action(
        "connect electrically", 16, ("connect",), wiring.connect, 2, ("to", "in", "into"), link="to"
    ),
    Action(
        "disconnect electrically",
        17,
        ("disconnect",),
        wiring.disconnect,
        refuse=wiring.refuse_disconnect,
    ),
    Action("wait1", 18, ("wait1",), _wait_once, 0),
    Action("wait10", 19, ("wait",), _wait, 0),
    Action("view inventory", 20, ("inventory",), looking.inventory, 0, free=True),
    Action("pick up", 21, ("pick up", "get", "take"), moving.pick_up, refuse=moving.refuse_carry),
    Action("put down", 22, ("put down", "drop"), moving.put_down, refuse=moving.refuse_carry),
    Action("mix", 23, ("mix", "stir"), mixing.mix, refuse=mixing.refuse_mix),
    Action("task description", 24, ("task",), _task, 0, free=True),
    Action("dunk object", 26, ("dunk",), moving.dunk, 2, ("in", "into"), link="into"),
)
_BY_NAME = {entry.name: entry for entry in ACTIONS}


def get_action(name: str) -> Action:
    """Return the action of a name."""
    return _BY_NAME[name]


def find_actions(simple: frozenset[str]) -> tuple[Action, ...]:
    """Return the actions of a house under its simplifications."""
    left_out: set[int | str] = set()
    if TELEPORT not in simple:
        left_out.add("teleport to location")
    if NO_ELECTRICITY in simple:
        left_out |= {"connect electrically", "disconnect electrically"}
    known = _KNOWN.get(simple)
    if known is None:
        known = tuple(entry for entry in ACTIONS if entry.name not in left_out)
        _KNOWN[simple] = known
    return known


_KNOWN: dict[frozenset[str], tuple[Action, ...]] = {}


def find_actions_beginning(letters: str, simple: frozenset[str]) -> tuple[Action, ...]:
    """Return the actions of which some words begin with two letters."""
    key = letters, simple
    known = _BEGINNING.get(key)
    if known is None:
        known = tuple(
            entry
            for entry in find_actions(simple)
            if any(words.startswith(letters) for words in entry.words)
        )
        if len(_BEGINNING) < _MAX_BEGINNINGS:
            _BEGINNING[key] = known
    return known


_BEGINNING: dict[tuple[str, frozenset[str]], tuple[Action, ...]] = {}
_MAX_BEGINNINGS = 2_000
