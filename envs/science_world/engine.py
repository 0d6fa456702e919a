"""One input after the other: parse it, do it, check the goals, let time pass."""

from __future__ import annotations

import re
from typing import NamedTuple

from .actions.facts import is_object
from .actions.table import WAITS, actions_of
from .parser import UNKNOWN, Match, parse, question
from .physics.quiet import wake
from .physics.ticking import tick_world
from .valid import possible_objects
from .world import World

NOTHING_SAID = (
    "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible "
    "object referents. "
)
_NUMBER = re.compile(r"[+-]?[0-9]+")
_BLANKS = re.compile(" +")


class Reply(NamedTuple):
    """What an input came to: the text, and whether it was understood as an action."""

    text: str
    understood: bool


def step(world: World, text: str, description: str = "") -> Reply:
    """Answer one input.

    Args:
        world: The world; changes in place.
        text: What the agent typed.
        description: Text of the task, for the input "task".
    """
    asked = text.strip().lower()
    if asked == "task":
        return Reply(f"Task description:\n{description}", True)
    if asked == "help":
        return Reply(f"Possible actions: \n\t{tabbed(possible_actions(world))}", True)
    if asked == "objects":
        return Reply(f"Possible object references: \n\t{tabbed(possible_objects(world))}", True)
    if world.pending is not None:
        return _answer(world, text)
    matches = parse(world, text)
    if not matches:
        return Reply(UNKNOWN, False)
    if len(matches) > 1:
        world.pending = tuple(matches)
        return Reply(question(world, matches), True)
    return Reply(_perform(world, matches[0]), True)


def tabbed(lines: list[str]) -> str:
    """Lines one below the other, indented."""
    return "\n\t".join(lines)


def possible_actions(world: World) -> list[str]:
    """The action templates, sorted."""
    return sorted(entry.example for entry in actions_of(world.simple))


def _answer(world: World, text: str) -> Reply:
    """The answer to a question: the number of a meaning; anything else cancels and takes time."""
    matches = world.pending or ()
    world.pending = None
    if _NUMBER.fullmatch(text) and 0 <= int(text) < len(matches):
        return Reply(_perform(world, matches[int(text)]), True)
    _let_pass(world, takes_time=True)
    return Reply(NOTHING_SAID, False)


def _perform(world: World, match: Match) -> str:
    for o in match.objects:
        if is_object(o) and o in world.behind:
            wake(world, o)
    said = match.action.run(world, *match.objects)
    _let_pass(world, takes_time=not match.action.free)
    for _ in range(WAITS.get(match.action.words[0], 0)):
        _let_pass(world, takes_time=True)
    return _BLANKS.sub(" ", said.strip()) or NOTHING_SAID


def _let_pass(world: World, *, takes_time: bool) -> None:
    goals = world.goals
    if goals is not None:
        goals.check(world)
    if takes_time:
        tick_world(world)
    if goals is not None:
        goals.check(world)
