"""The original engine behind the same interface: its registry package, driven over Java.

A world is the list of inputs so far, and an engine that has lived through them while there is
one. A fork carries the list only, and gets an engine of its own, by replay, when it is used.
Valid actions are listed when they are asked for: the engine draws from the bees' random numbers
while it lists, so a world remembers where it did, and its forks do the same.
"""

from __future__ import annotations

from typing import Any

from ..digest import digest_of
from ..errors import EnvFault
from .engine import Reply
from .jvm_engine import borrow_engine, engine_faults, give_back
from .parser import UNKNOWN
from .source import WHERE
from .tasks.catalogue import TaskKind

_FULL = 100


class JvmWorld:
    """A world inside the engine.

    Args:
        task: Name of the task.
        variation: Its number.
        simple: Simplifications, comma-separated.
        texts: Inputs that it has lived through.
        listed: After how many of them valid actions were listed, rising.
    """

    def __init__(
        self,
        task: str,
        variation: int,
        simple: str,
        texts: tuple[str, ...] = (),
        listed: tuple[int, ...] = (),
    ) -> None:
        self.task, self.variation, self.simple = task, variation, simple
        self.texts, self.listed = texts, listed
        self.points = 0
        self.completed = False
        self.ticks = 0
        self._engine: Any = None
        self._valid: list[str] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._key(), self.listed, (self.points, self.completed, self.ticks))

    def __del__(self) -> None:
        if getattr(self, "_engine", None) is not None and give_back is not None:
            give_back(self._engine)

    def _key(self) -> tuple[str, int, str, tuple[str, ...]]:
        return self.task, self.variation, self.simple, self.texts

    @property
    def goals(self) -> JvmWorld:
        """Points and verdicts; the engine keeps the goals themselves."""
        return self

    @property
    def failed(self) -> bool:
        """Whether the score is negative."""
        return self.points < 0

    def fork(self) -> JvmWorld:
        """An independent copy, without an engine until it is used."""
        return _restored(self._key(), self.listed, (self.points, self.completed, self.ticks))

    def digest(self) -> str:
        """Hash of what the world has lived through."""
        return digest_of(self._key())

    def begin(self) -> str:
        """Start the episode; the first look."""
        engine = self._engine or borrow_engine()
        try:
            engine.load(self.task, self.variation, self.simple)
        except engine_faults() as error:
            raise EnvFault(f"{WHERE}: the Java engine broke at a start: {error}") from error
        self._engine = engine
        return self._take("look around")

    def step(self, text: str) -> Reply:
        """One input."""
        self._ready()
        said = self._take(text)
        self.texts = (*self.texts, text)
        return Reply(said, not said.startswith(UNKNOWN))

    def valid(self) -> list[str]:
        """The engine's list of valid actions, sorted."""
        self._ready()
        if self._valid is None:
            self._valid = self._list()
            if len(self.texts) not in self.listed[-1:]:
                self.listed = (*self.listed, len(self.texts))
        return list(self._valid)

    def look(self) -> str:
        """The agent's place."""
        self._ready()
        return str(self._ask("look"))

    def inventory(self) -> str:
        """What the agent carries."""
        self._ready()
        return str(self._ask("inventory"))

    def _ready(self) -> None:
        """Have an engine that has lived through the inputs so far, and listed where this did."""
        if self._engine is not None:
            return
        self.begin()
        listed = set(self.listed)
        for at, text in enumerate((*self.texts, None)):
            self._valid = self._list() if at in listed else None
            if text is not None:
                self._take(text)

    def _list(self) -> list[str]:
        return sorted(str(text) for text in self._ask("get_valid_action_object_combinations"))

    def _ask(self, method: str) -> Any:
        try:
            return getattr(self._engine, method)()
        except engine_faults() as error:
            self._engine = None
            raise EnvFault(f"{WHERE}: the Java engine broke at {method}: {error}") from error

    def _take(self, text: str) -> str:
        self._valid = None
        try:
            server = self._engine.server
            said = str(server.step(text))
            self.points = round(_FULL * server.getScore())
            self.completed = bool(server.getCompleted()) and self.points >= 0
            self.ticks = int(self._engine.get_num_moves())
        except engine_faults() as error:
            self._engine = None
            raise EnvFault(f"{WHERE}: the Java engine broke at {text!r}: {error}") from error
        return said


def _restored(
    key: tuple[str, int, str, tuple[str, ...]],
    listed: tuple[int, ...],
    reached: tuple[int, bool, int],
) -> JvmWorld:
    world = JvmWorld(*key, listed=listed)
    world.points, world.completed, world.ticks = reached
    return world


def start_jvm_world(kind: TaskKind, number: int, simple: frozenset[str]) -> tuple[JvmWorld, str]:
    """A variation in the engine, and the first look."""
    world = JvmWorld(kind.name, number, ",".join(sorted(simple)))
    return world, world.begin()
