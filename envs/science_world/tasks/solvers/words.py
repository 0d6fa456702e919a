"""From an action to words that mean it, and only it where there are such words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...engine.parser import Match, clean, find_from_universe, find_within_reach, parse
from ...house.state import NONE, TERMINALS, HouseState
from ...text.references import find_container, list_names
from .actor import Intent

_TEMPLATES = {
    "go": "go to {}",
    "teleport": "teleport to {}",
    "focus": "focus on {}",
    "move": "move {} to {}",
    "pour": "pour {} into {}",
    "dunk": "dunk {} into {}",
    "use": "use {} on {}",
    "connect": "connect {} to {}",
}
_NAMES = {
    "open": "open door",
    "go": "move through door",
    "teleport": "teleport to location",
    "focus": "focus on",
    "move": "move object",
    "pour": "pour object",
    "dunk": "dunk object",
    "use": "use object",
    "connect": "connect electrically",
    "disconnect": "disconnect electrically",
}
_MAX_TRIED = 10


def write(house: HouseState, intent: Intent) -> str:
    """Return the words for an action.

    Where an object has no name of its own, the words mean several things and the house will ask
    which; :func:`answer` knows.
    """
    template = _TEMPLATES.get(intent.verb, f"{intent.verb} {{}}")
    if not intent.things:
        return intent.verb
    anywhere = intent.verb == "teleport"
    called = _Called(house, anywhere=anywhere)
    vague = ""
    for text in called.texts(template, intent.things):
        matches = parse(house, text)
        if not any(_means(match, intent) for match in matches):
            continue
        if len(matches) == 1:
            return text
        vague = vague or text
    return vague or template.format(*(called.names(thing)[0] for thing in intent.things))


def answer(house: HouseState, intent: Intent) -> str:
    """Return the answer to the house's question that means an action; an empty one if none does."""
    for number, match in enumerate(house.pending or ()):
        if _means(match, intent):
            return str(number)
    return ""


def _means(match: Match, intent: Intent) -> bool:
    name = _NAMES.get(intent.verb, intent.verb)
    return match.action.name == name and match.objects == intent.things


class _Called:
    """The names of everything that an input may mean now, and how many things have each."""

    def __init__(self, house: HouseState, *, anywhere: bool) -> None:
        self._house = house
        self._view = house.get_agent_place()
        reach = find_from_universe(house) if anywhere else find_within_reach(house)
        self._shared = Counter(name for o in reach for name in set(self._all(o)))

    def _all(self, o: int) -> list[str]:
        """Return the names of a thing, and each with those of its container; shorter ones first."""
        house = self._house
        own = sorted({clean(name) for name in list_names(house, o, self._view)}, key=_by_length)
        outer: tuple[str, ...] = ()
        if (container := find_container(house, o)) != NONE:
            outer = list_names(house, container, NONE)
        inside = sorted({clean(name) for name in outer}, key=_by_length)
        return [*own, *(f"{name} in {holder}" for holder in inside for name in own)]

    def names(self, o: int) -> list[str]:
        """Return the names of a thing, those that nothing else has first."""
        found = self._all(o)
        if o < TERMINALS:
            # The usual name first, then short ones.
            usual = [name for name in found if name.startswith("door to")]
            found = [*usual, self._house.name[o].lower(), *found]
        return sorted(dict.fromkeys(found), key=lambda name: self._shared[name] != 1)

    def texts(self, template: str, things: tuple[int, ...]) -> Iterator[str]:
        """Return the ways to put an action, the most likely ones first."""
        lists = [self.names(thing)[:_MAX_TRIED] for thing in things]
        if len(lists) == 1:
            yield from (template.format(name) for name in lists[0])
            return
        first, second = lists
        for total in range(min(len(first) + len(second) - 1, _MAX_TRIED)):
            for at in range(total + 1):
                if at < len(first) and total - at < len(second):
                    yield template.format(first[at], second[total - at])


def _by_length(name: str) -> tuple[int, str]:
    return len(name), name
