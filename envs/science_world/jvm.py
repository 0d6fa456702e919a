"""The original engine behind the same interface: its registry package, driven over Java.

A world is the list of inputs so far, and an engine that has lived through them while there is
one. A fork carries the list only, and gets an engine of its own, by replay, when it is used. The
registry's engine (1.2.3) keeps sets in the order of addresses, so runs may differ a little from
each other; engines are kept for further worlds, since starting one takes most of a second.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..digest import digest_of
from ..errors import BadValueError, EnvFault, MissingExtraError
from .engine import Reply
from .parser import UNKNOWN
from .source import WHERE
from .tasks.catalogue import TaskKind

NO_LIMIT = 10**9
"""Steps after which the engine itself would end an episode."""
_IDLE: list[Any] = []


def check_java() -> None:
    """See that the engine can start.

    Raises:
        MissingExtraError: The engine's package is not installed.
        BadValueError: There is no Java runtime.
    """
    _engine_class()
    if shutil.which("java") is None:
        raise BadValueError(
            f"{WHERE}: backend 'jvm' needs a Java runtime, and there is no program 'java' on the "
            "path. Install one, for example the package default-jre-headless (Debian, Ubuntu) or "
            "openjdk (conda-forge), or use backend='python', which needs none."
        )


def _engine_class() -> Callable[..., Any]:
    try:
        return import_module("scienceworld").ScienceWorldEnv
    except ImportError as error:
        raise MissingExtraError(f"{WHERE}: backend 'jvm'", "scienceworld", "science-jvm") from error


def _faults() -> tuple[type[Exception], ...]:
    """What a broken engine raises."""
    try:
        return OSError, RuntimeError, import_module("py4j.protocol").Py4JError
    except ImportError:
        return OSError, RuntimeError


class JvmWorld:
    """A world inside the engine.

    Args:
        task: Name of the task.
        variation: Its number.
        simple: Simplifications, comma-separated.
        texts: Inputs that it has lived through.
    """

    def __init__(self, task: str, variation: int, simple: str, texts: tuple[str, ...] = ()) -> None:
        self.task, self.variation, self.simple, self.texts = task, variation, simple, texts
        self.points = 0
        self.completed = False
        self.ticks = 0
        self._engine: Any = None
        self._info: dict[str, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (*self._key(), self.points, self.completed, self.ticks)

    def __del__(self) -> None:
        if getattr(self, "_engine", None) is not None:
            _IDLE.append(self._engine)

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
        return _restored(*self._key(), self.points, self.completed, self.ticks)

    def digest(self) -> str:
        """Hash of what the world has lived through."""
        return digest_of(self._key())

    def begin(self) -> str:
        """Start the episode; the first look."""
        return str(self._started()[0])

    def step(self, text: str) -> Reply:
        """One input."""
        self._ready()
        said = str(self._take(text))
        self.texts = (*self.texts, text)
        return Reply(said, not said.startswith(UNKNOWN))

    def valid(self) -> list[str]:
        """The engine's list of valid actions."""
        self._ready()
        return sorted(self._info["valid"])

    def look(self) -> str:
        """The agent's place."""
        self._ready()
        return str(self._info["look"])

    def inventory(self) -> str:
        """What the agent carries."""
        self._ready()
        return str(self._info["inv"])

    def _started(self) -> tuple[str, Any]:
        if self._engine is None:
            made = _IDLE.pop() if _IDLE else _engine_class()(envStepLimit=NO_LIMIT)
            self._engine = made
        try:
            self._engine.load(self.task, self.variation, self.simple)
            room, self._info = self._engine.reset()
        except _faults() as error:
            self._engine = None
            raise EnvFault(f"{WHERE}: the Java engine broke at a start: {error}") from error
        self.points = round(self._info["score"])
        return room, self._info

    def _ready(self) -> None:
        """Have an engine that has lived through the inputs so far."""
        if self._engine is None:
            self._started()
            for text in self.texts:
                self._take(text)

    def _take(self, text: str) -> str:
        try:
            said, _, done, self._info = self._engine.step(text)
        except _faults() as error:
            self._engine = None
            raise EnvFault(f"{WHERE}: the Java engine broke at {text!r}: {error}") from error
        self.points = round(self._info["score"])
        self.completed = bool(done) and self.points >= 0
        self.ticks = int(self._info["moves"])
        return said


def _restored(  # noqa: PLR0913 - the fields of a world
    task: str,
    variation: int,
    simple: str,
    texts: tuple[str, ...],
    points: int,
    completed: bool,
    ticks: int,
) -> JvmWorld:
    world = JvmWorld(task, variation, simple, texts)
    world.points, world.completed, world.ticks = points, completed, ticks
    return world


def start_jvm_world(kind: TaskKind, number: int, simple: frozenset[str]) -> tuple[JvmWorld, str]:
    """A variation in the engine, and the first look."""
    world = JvmWorld(kind.name, number, ",".join(sorted(simple)))
    return world, world.begin()
