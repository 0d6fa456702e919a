"""The state of one house, in columns: an object is a number, each property a list.

A fork copies the lists, whose items are immutable; so it takes microseconds. Handles are never
used again while anything may refer to them. Terminals of electrical parts are no objects of their
own: a *terminal handle* is computed from the object's (see :func:`get_terminal`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ..objects.kinds import CLOSABLE, OPEN, Kind, get_kind
from ..objects.materials import BURNS_FOR, Material
from ..objects.records import CYCLES, AnimalLife, Genes, PlantLife, Portal, Watch
from .java_random import JavaRandom

NONE = -1
"""The handle of no object."""
TERMINALS = 1 << 20
"""Terminal handles start here."""
FIRST_HOUSE_ID = 17_197
"""Where the creation ids of the house start; objects of the task were made before it."""

COLUMNS = (
    *("kind", "name", "uid", "parent", "kids", "portals", "material", "heat", "state", "fuel"),
    *("burning", "burnt", "open", "on", "broken", "done", "note", "life", "pairs"),
)


class GoalTracker(Protocol):
    """What a task keeps in the house: its goals and how far they have come."""

    @property
    def completed(self) -> bool:
        """Whether the task is done."""
        ...

    @property
    def failed(self) -> bool:
        """Whether the task is failed."""
        ...

    @property
    def points(self) -> int:
        """The score, 0 to 100, or -100 after a failure."""
        ...

    def fork(self) -> GoalTracker:
        """Return an independent copy."""
        ...

    def digest(self) -> str:
        """Return text that names the progress."""
        ...

    def state_digest(self) -> str:
        """Return text that names the progress, in whatever order it was made."""
        ...

    def check(self, house: HouseState) -> None:
        """Check the goals once."""
        ...

    def note(self, house: HouseState, deed: str, thing: int, patient: int = ...) -> None:
        """Remember that the agent used, read or looked at something."""
        ...

    def reset(self) -> None:
        """Start the goals anew."""
        ...


class HouseState:
    """Everything that changes during an episode.

    Columns (lists indexed by object handle):

    ``kind`` its :class:`Kind`; ``name``; ``uid`` creation id, the order of all listings;
    ``parent`` direct container or NONE; ``kids`` contents in id order; ``portals`` doors and
    drains; ``material`` or None; ``heat`` temperature in Celsius; ``state`` of matter; ``fuel``
    ticks that it can still burn; ``burning``; ``burnt``; ``open`` container or door is open;
    ``on`` device is active; ``broken``; ``done`` last tick that reached it; ``note`` record that
    rarely changes (genes, a document's text); ``life`` record that changes with time; ``pairs``
    cached pairs that exchange heat.

    Further attributes: ``wires`` (terminal handle to the one it is connected with), ``volts``
    (terminal handle to voltage), ``slides`` (plane to positions of what was put on it), ``focus``,
    ``ticks`` (house ticks so far), ``random``, ``next_uid``, ``early_uid``, ``simple`` (names of
    simplifications), ``universe``, ``agent``, ``inventory``, ``sewer``, ``places`` (name to
    handle), ``goals`` (owned by the task), ``pending`` (the open question of the parser),
    ``behind`` (quiet place to ticks that it has not lived through), ``caged`` (quiet place to bees
    in closed hives), ``late`` (marks of such ticks), ``spare`` (handles to use again),
    ``by_arrival`` (``kids`` stand in the order in which they came, as in engine 1.2.3).
    """

    __slots__ = (
        *COLUMNS,
        *("wires", "volts", "slides", "focus", "ticks", "random", "next_uid", "early_uid"),
        *("simple", "universe", "agent", "inventory", "sewer", "places", "goals", "pending"),
        *("behind", "caged", "late", "spare", "by_arrival"),
    )

    kind: list[Kind]
    name: list[str]
    uid: list[int]
    parent: list[int]
    kids: list[tuple[int, ...]]
    portals: list[tuple[int, ...]]
    material: list[Material | None]
    heat: list[float]
    state: list[str]
    fuel: list[int]
    burning: list[bool]
    burnt: list[bool]
    open: list[bool]
    on: list[bool]
    broken: list[bool]
    done: list[int]
    note: list[Any]
    life: list[Any]
    pairs: list[tuple[tuple[int, int, float], ...] | None]

    def __init__(self, random: JavaRandom) -> None:
        for column in COLUMNS:
            setattr(self, column, [])
        self.wires: dict[int, int] = {}
        self.volts: dict[int, float] = {}
        self.slides: dict[int, dict[int, float]] = {}
        self.focus = NONE
        self.ticks = 0
        self.random: JavaRandom = random
        self.next_uid = FIRST_HOUSE_ID
        self.early_uid = 1
        self.simple: frozenset[str] = frozenset()
        self.universe = self.agent = self.inventory = self.sewer = NONE
        self.places: dict[str, int] = {}
        self.goals: GoalTracker | None = None
        self.pending: tuple[Any, ...] | None = None
        self.behind: dict[int, int] = {}
        self.caged: dict[int, int] = {}
        self.late = -1
        self.spare: tuple[int, ...] = ()
        self.by_arrival = False

    def make(self, key: str, *, name: str = "", early: bool = False) -> int:
        """Make a new object of a kind with its parts (drawer, air), in no container yet.

        Args:
            key: Name of the kind.
            name: Its own name instead of the kind's.
            early: It was made before the house (objects of the task): its creation id is smaller
                than those of the house's objects.
        """
        k = get_kind(key)
        polar = k.poles == "polar"
        uid = (self.early_uid if early else self.next_uid) + (0 if polar else 2)
        if early:
            self.early_uid += 3
        else:
            self.next_uid += 3
        if self.spare and key == "water" and not early:
            return self._reuse(uid)
        made = self._append(k, name or k.name, uid)
        for part in k.parts:
            inside = self.make(part, early=early)
            if k.key == "bed":
                self.put(self.make("pillow", early=early), inside)
            if k.key in ("room", "outside") and part == "air":
                self.heat[inside] = 25.0
            self.put(inside, made)
        return made

    def _append(self, k: Kind, name: str, uid: int) -> int:
        made = len(self.kind)
        m = k.material
        self.kind.append(k)
        self.name.append(name)
        self.uid.append(uid)
        self.parent.append(NONE)
        self.kids.append(())
        self.portals.append(())
        self.material.append(m)
        cold = -10.0 if k.key == "ice" else 10.0
        self.heat.append(m.start if m is not None and k.key != "ice" else cold)
        self.state.append("" if m is None else m.state)
        self.fuel.append(0 if m is None or m.burnt else BURNS_FOR)
        self.burning.append(False)
        self.burnt.append(m is not None and m.burnt)
        self.open.append(k.box == OPEN)
        self.on.append(k.starts_on)
        self.broken.append(False)
        self.done.append(-1)
        self.note.append(None)
        self.life.append(_make_first_life(k))
        self.pairs.append(None)
        return made

    def _reuse(self, uid: int) -> int:
        """Make fresh water in the place of water that went down a drain."""
        *rest, water = self.spare
        self.spare = tuple(rest)
        self.uid[water] = uid
        self.name[water] = "water"
        self.heat[water], self.state[water], self.done[water] = 10.0, "liquid", -1
        self.pairs[water] = None
        return water

    def fork(self) -> HouseState:
        """Return an independent copy."""
        twin = object.__new__(HouseState)
        twin.kind = self.kind.copy()
        twin.name = self.name.copy()
        twin.uid = self.uid.copy()
        twin.parent = self.parent.copy()
        twin.kids = self.kids.copy()
        twin.portals = self.portals.copy()
        twin.material = self.material.copy()
        twin.heat = self.heat.copy()
        twin.state = self.state.copy()
        twin.fuel = self.fuel.copy()
        twin.burning = self.burning.copy()
        twin.burnt = self.burnt.copy()
        twin.open = self.open.copy()
        twin.on = self.on.copy()
        twin.broken = self.broken.copy()
        twin.done = self.done.copy()
        twin.note = self.note.copy()
        twin.life = self.life.copy()
        twin.pairs = self.pairs.copy()
        twin.wires = self.wires.copy()
        twin.volts = self.volts.copy()
        twin.slides = {plane: spots.copy() for plane, spots in self.slides.items()}
        twin.random = self.random.fork()
        twin.goals = None if self.goals is None else self.goals.fork()
        twin.behind = self.behind.copy()
        twin.caged = self.caged.copy()
        for name in _SHARED:
            setattr(twin, name, getattr(self, name))
        return twin

    def put(self, o: int, container: int) -> None:
        """Move an object into a container; nothing happens when they are the same."""
        if o == container:
            return
        if self.parent[o] != NONE:
            self.take_out(o)
        kids, uid = self.kids[container], self.uid[o]
        if not kids or self.by_arrival or self.uid[kids[-1]] < uid:
            self.kids[container] = (*kids, o)
        else:
            at = bisect_left(kids, uid, key=self.uid.__getitem__)
            self.kids[container] = (*kids[:at], o, *kids[at:])
        self.parent[o] = container
        if self.material[o] is not None:
            self.pairs[container] = None
        if self.kind[container].tick == "plane":
            self.slides.setdefault(container, {})[o] = 1.0

    def take_out(self, o: int) -> None:
        """Remove an object from its container; it is then nowhere."""
        container = self.parent[o]
        if container != NONE:
            self.kids[container] = tuple([k for k in self.kids[container] if k != o])
            if self.material[o] is not None:
                self.pairs[container] = None
            self.parent[o] = NONE

    def delete(self, o: int, *, expel: bool = False) -> None:
        """Take an object out of the house; with ``expel`` its contents stay where it was."""
        if expel and (container := self.parent[o]) != NONE:
            for kid in self.kids[o]:
                self.put(kid, container)
        self.disconnect(o)
        self.take_out(o)
        self.name[o] += " (deleted)"

    def walk_inside(self, o: int) -> Iterator[int]:
        """Return everything in an object at any depth, closed or not, parents first."""
        for kid in self.kids[o]:
            yield kid
            yield from self.walk_inside(kid)

    def walk_holders(self, o: int) -> Iterator[int]:
        """Return the direct container, its container, and so on."""
        while (o := self.parent[o]) != NONE:
            yield o

    def find_place(self, o: int) -> int:
        """Return the place (room, outside) that an object is in at any depth; NONE when in none."""
        return next((h for h in self.walk_holders(o) if "place" in self.kind[h].tags), NONE)

    def get_agent_place(self) -> int:
        """Return the agent's place."""
        return self.parent[self.agent]

    def find_named(self, name: str, within: int) -> Iterator[int]:
        """Return the objects of a plain name at any depth within ``within``."""
        return (o for o in self.walk_inside(within) if self.name[o] == name)

    def join(self, key: str, source: int, target: int, *, opened: bool = False) -> int:
        """Make a door or drain between two objects; a drain hangs on its source only."""
        portal = self.make(key)
        self.note[portal] = Portal(source, target)
        self.open[portal] = opened
        ends = (source, target) if key == "door" else (source,)
        for end in ends:
            self.portals[end] = (*self.portals[end], portal)
        return portal

    def connect(self, one: int, other: int) -> None:
        """Join two terminals (terminal handles)."""
        self.wires[one] = other
        self.wires[other] = one

    def disconnect(self, o: int) -> None:
        """Cut every connection of an object's terminals."""
        if self.wires:
            for side in (0, 1):
                other = self.wires.pop(get_terminal(o, side), NONE)
                if other != NONE:
                    self.wires.pop(other, None)

    def is_wired(self, o: int) -> bool:
        """Return whether one of an object's terminals is connected."""
        return bool(self.wires) and (
            get_terminal(o, 0) in self.wires or get_terminal(o, 1) in self.wires
        )

    def set_material(self, o: int, material: Material, *, rename: bool = False) -> None:
        """Give an object a material of its own; ``rename`` names it after its state."""
        self.material[o] = material
        container = self.parent[o]
        self.pairs[o] = None
        if container != NONE:
            self.pairs[container] = None
        if rename:
            self.state[o] = material.state_at(self.heat[o])
            self.name[o] = material.name_in(self.state[o]) or self.name[o]

    def get_stage(self, o: int) -> str:
        """Return the name of a living thing's stage ("seed", "adult"); empty for other things."""
        k = self.kind[o]
        return CYCLES[k.cycle][self.life[o].stage][0] if k.cycle else ""

    def set_stage(self, o: int, stage: str) -> None:
        """Put a living thing into a stage of its life cycle."""
        names = [name for name, _, _ in CYCLES[self.kind[o].cycle]]
        self.life[o] = self.life[o]._replace(stage=names.index(stage), met=0)

    def get_genes(self, plant: int) -> Genes | None:
        """Return a plant's genes; None for species that have none."""
        note = self.note[plant]
        return note if isinstance(note, tuple) else None

    def is_closable(self, o: int) -> bool:
        """Return whether it is a container with a lid or door."""
        return self.kind[o].box == CLOSABLE


_SHARED = (
    *("focus", "ticks", "next_uid", "early_uid", "simple", "universe", "agent", "inventory"),
    *("sewer", "places", "pending", "late", "spare", "by_arrival"),
)


def _make_first_life(k: Kind) -> Any:
    if k.cycle == "plant":
        return PlantLife()
    if k.cycle:
        return AnimalLife()
    if k.tick == "stopwatch":
        return Watch()
    return 0 if k.tick == "toilet" else None


def get_terminal(o: int, side: int) -> int:
    """Return a terminal: side 0 is terminal 1 or the anode, side 1 terminal 2 or the cathode."""
    return TERMINALS + 2 * o + side


def get_terminal_owner(handle: int) -> int:
    """Return the object that a terminal belongs to."""
    return (handle - TERMINALS) >> 1


def get_other_terminal(handle: int) -> int:
    """Return the other terminal of the same object."""
    return handle ^ 1


def get_creation_id(house: HouseState, handle: int) -> int:
    """Return the creation id of an object or terminal: the order of all listings.

    A plain object's terminals come just before it, those of a polar part just after it.
    """
    if handle < TERMINALS:
        return house.uid[handle]
    owner = get_terminal_owner(handle)
    offset = 1 if house.kind[owner].poles == "polar" else -2
    return house.uid[owner] + offset + (handle & 1)


def sort_by_creation(house: HouseState, handles: Iterable[int]) -> list[int]:
    """Return the handles of objects and terminals in creation order, each once."""
    return sorted(set(handles), key=lambda handle: get_creation_id(house, handle))


def list_all_inside(house: HouseState, o: int) -> list[int]:
    """Return all contents at any depth with their terminals, hidden ones too, in creation order.

    This is the list from which the original draws a container at random.
    """
    found = [get_terminal(o, 0), get_terminal(o, 1)]
    for inner in house.walk_inside(o):
        found += (inner, get_terminal(inner, 0), get_terminal(inner, 1))
    return sort_by_creation(house, found)
