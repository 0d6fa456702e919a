"""From text to actions: what an input may mean, and the question when it may mean several things.

A word or a name matches when the rest of the text begins with it, without regard to where words
end; the whole text must be used up. So the last object must be called exactly what is left, and
only the first of two is looked for as a beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..actions.table import Action, find_actions_beginning
from ..house.state import NONE, HouseState, get_creation_id, get_terminal
from ..physics.ticking import settle
from ..text.names import find_other_end, write_full_name
from ..text.references import clean, find_container, find_names

UNKNOWN = "No known action matches that input."
_POLES = ("terminal", "anode", "cathode")


class Match(NamedTuple):
    """One thing that an input may mean: an action and the objects in its slots."""

    action: Action
    objects: tuple[int, ...]


def parse(house: HouseState, text: str) -> list[Match]:
    """Return all that a text may mean now, by the names of actions, then in creation order."""
    text = clean(text)
    reach = _Reach(house, text)
    found: list[Match] = []
    for entry in find_actions_beginning(text[:2], house.simple):
        found += [Match(entry, objects) for objects in _match_objects(entry, text, reach)]
    if len(found) > 1:
        found.sort(key=lambda match: match.action.name)  # stable: objects stay in order
    return found


def _match_objects(entry: Action, text: str, reach: _Reach) -> list[tuple[int, ...]]:
    """Return the object tuples with which one action matches, each once."""
    found: dict[tuple[int, ...], None] = {}
    for words in entry.words:
        if not text.startswith(words):
            continue
        rest = text[len(words) :].strip()
        if entry.slots == 0:
            if not rest:
                found[()] = None
        elif entry.slots == 1:
            found.update(((o,), None) for o in reach.called(rest, entry.anywhere))
        else:
            found.update((pair, None) for pair in _match_pairs(entry, rest, reach))
    return list(found)


def _match_pairs(entry: Action, text: str, reach: _Reach) -> Iterator[tuple[int, int]]:
    for first, rest in reach.beginning(text):
        for link in entry.links:
            if rest.startswith(link):
                for second in reach.called(rest[len(link) :].strip()):
                    yield first, second


class _Reach:
    """The objects that an input may name, with their names, gathered when first needed."""

    def __init__(self, house: HouseState, text: str) -> None:
        self._house = house
        self._poles = any(word in text for word in _POLES)
        self._view = house.get_agent_place()
        self._near: list[tuple[int, tuple[str, ...]]] | None = None
        self._all: list[tuple[int, tuple[str, ...]]] | None = None
        self._called: dict[str, list[int]] = {}
        self._spots = set(house.places.values())

    def _named(self, handles: list[int]) -> list[tuple[int, tuple[str, ...]]]:
        house, view = self._house, self._view
        return [(o, find_names(house, o, view).parsed) for o in handles]

    def near(self) -> list[tuple[int, tuple[str, ...]]]:
        """Return what is within reach, in creation order."""
        if self._near is None:
            self._near = self._named(find_within_reach(self._house, terminals=self._poles))
        return self._near

    def _places(self) -> list[tuple[int, tuple[str, ...]]]:
        """Return the places; nothing else is called as they are."""
        return self._named([o for o in self._house.kids[self._house.universe] if o in self._spots])

    def everything(self) -> list[tuple[int, tuple[str, ...]]]:
        """Return what is reachable from the universe, in creation order, with its present names."""
        if self._all is None:
            settle(self._house)
            self._all = self._named(find_from_universe(self._house, terminals=self._poles))
        return self._all

    def called(self, text: str, anywhere: bool = False) -> list[int]:
        """Return the objects one of whose names is exactly ``text``."""
        if anywhere:
            return self._exactly(text, self._places()) or self._exactly(text, self.everything())
        found = self._called.get(text)
        if found is None:
            found = self._called[text] = self._exactly(text, self.near())
        return found

    def _exactly(self, text: str, candidates: list[tuple[int, tuple[str, ...]]]) -> list[int]:
        if len(text) < 2:
            return []
        inside = " in " in text or " on " in text
        return [
            o
            for o, names in candidates
            if text in names or (inside and self._in_container(o, names, text))
        ]

    def _in_container(self, o: int, names: tuple[str, ...], text: str) -> bool:
        return any(
            text[len(name) + 4 :] in self._outer(o)
            for name in names
            if text.startswith(name) and text[len(name) : len(name) + 4] in (" in ", " on ")
        )

    def _outer(self, o: int) -> tuple[str, ...]:
        container = find_container(self._house, o)
        if container == NONE:
            return ()
        return find_names(self._house, container, NONE).parsed

    def beginning(self, text: str) -> Iterator[tuple[int, str]]:
        """Return objects with a name that ``text`` begins with, and what is left of the text."""
        for o, names in self.near():
            for name in names:
                if not text.startswith(name):
                    continue
                yield o, text[len(name) :].strip()
                if text[len(name) : len(name) + 4] in (" in ", " on "):
                    after = text[len(name) + 4 :]
                    for outer in self._outer(o):
                        if after.startswith(outer):
                            yield o, after[len(outer) :].strip()


def _collect_accessible(house: HouseState, o: int, found: list[int]) -> None:
    """Return the contents of a container, of the open containers in it, and their drains."""
    found += house.portals[o]
    for kid in house.kids[o]:
        found.append(kid)
        if house.open[kid]:
            _collect_accessible(house, kid, found)


def _collect_root(house: HouseState, root: int, found: list[int]) -> None:
    found.append(root)
    for portal in house.portals[root]:
        end = find_other_end(house, portal, root)
        if end is not None:
            found.append(end)
    _collect_accessible(house, root, found)


def find_within_reach(house: HouseState, *, terminals: bool = True) -> list[int]:
    """Return what an action may name: room, doors, what is behind them, open contents, inventory.

    Hidden terminals are named as well; ``terminals`` leaves all terminals out where the text
    names none.
    """
    found: list[int] = []
    here = house.get_agent_place()
    _collect_root(house, here, found)
    _collect_root(house, house.agent, found)
    if terminals:
        beyond = set(house.portals[here])
        ends = {find_other_end(house, portal, here) for portal in beyond}
        found += [
            get_terminal(o, side)
            for o in found
            if o not in ends and "portal" not in house.kind[o].tags
            for side in (0, 1)
        ]
        return sorted(set(found), key=lambda handle: get_creation_id(house, handle))
    return sorted(set(found), key=house.uid.__getitem__)


def find_from_universe(house: HouseState, *, terminals: bool = True) -> list[int]:
    """Return what teleporting may name: everything that is not in a closed container."""
    found: list[int] = []
    _collect_root(house, house.universe, found)
    unique = set(found)
    if terminals:
        own = [o for o in unique if "portal" not in house.kind[o].tags]
        unique.update(get_terminal(o, side) for o in own for side in (0, 1))
    return sorted(unique, key=lambda handle: get_creation_id(house, handle))


MANY_ACTIONS = (
    "Ambiguous request: Multiple different possible actions were matched to this input ({}). "
    "It's possible the action space needs to be refined to remove possible duplicate/ambiguous "
    "patterns."
)
WHICH = (
    "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):\n"
)


def write_question(house: HouseState, matches: list[Match]) -> str:
    """Return the question which of several meanings was meant."""
    names = list(dict.fromkeys(match.action.name for match in matches))
    text = MANY_ACTIONS.format(", ".join(names)) if len(names) > 1 else ""
    choices = (f"{at}:\t{_choice(house, match)}\n" for at, match in enumerate(matches))
    return text + WHICH + "".join(choices)


def _choice(house: HouseState, match: Match) -> str:
    parts = [match.action.words[0]]
    for at, o in enumerate(match.objects):
        if at:
            parts.append(match.action.links[0])
        parts.append(_with_containers(house, o))
    return " ".join(parts)


def _with_containers(house: HouseState, o: int) -> str:
    here, chain = house.get_agent_place(), []
    container = find_container(house, o)
    while container != NONE:
        chain.append(f"in {house.name[container]}")
        container = NONE if container == here else house.parent[container]
    name = write_full_name(house, o)
    return f"{name} ({', '.join(chain)})" if chain else name
