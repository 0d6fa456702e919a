"""The original engine behind the same interface: its registry package, driven over Java.

A house is the list of inputs so far, and an engine that has lived through them while there is
one. A fork carries the list only, and gets an engine of its own, by replay, when it is used.
Valid actions are listed when they are asked for: the engine draws from the bees' random numbers
while it lists, so a house remembers where it did, and its forks do the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..core.digest import digest_of
from ..core.errors import BadValueError, EnvFault, MissingExtraError
from .engine.parser import UNKNOWN
from .engine.step import Reply
from .tasks.catalogue import WHERE, TaskKind

_FULL = 100
OPTIONS_NAME = "JAVA_TOOL_OPTIONS"
SAME_ORDER = "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions -XX:hashCode=2"
"""The registry's engine (1.2.3) walks sets in the order of identity hashes, which Java draws at
random. With one and the same hash for all objects a set keeps the order of insertion, so that the
same inputs give the same texts in every process. Runtimes without the option ignore it."""
NO_LIMIT = 10**9
"""Steps after which the engine itself would end an episode."""
MAX_IDLE = 4
"""Engines that are kept for further houses; one takes a second to start and 200 MB and more."""
_IDLE: list[Any] = []


def check_java() -> None:
    """See that the engine can start.

    Raises:
        MissingExtraError: The engine's package is not installed.
        BadValueError: There is no Java runtime.
    """
    find_engine_class()
    if shutil.which("java") is None:
        raise BadValueError(
            f"{WHERE}: backend 'jvm' needs a Java runtime, and there is no program 'java' on the "
            "path. Install one, for example the package default-jre-headless (Debian, Ubuntu) or "
            "openjdk (conda-forge), or use backend='python', which needs none."
        )


def find_engine_class() -> Callable[..., Any]:
    """Return the package's environment.

    Raises:
        MissingExtraError: The package is not installed.
    """
    try:
        return import_module("scienceworld").ScienceWorldEnv
    except ImportError as error:
        what = f"{WHERE}: backend 'jvm'"
        raise MissingExtraError(what, "scienceworld", "science-jvm", error) from error


def start_engine() -> Any:
    """Start a fresh engine, in a Java process of its own.

    Raises:
        EnvFault: It does not start.
    """
    made = find_engine_class()
    before = os.environ.get(OPTIONS_NAME)
    os.environ[OPTIONS_NAME] = SAME_ORDER if before is None else f"{before} {SAME_ORDER}"
    try:
        return made(envStepLimit=NO_LIMIT)
    except catch_engine_faults() as error:
        raise EnvFault(f"{WHERE}: the Java engine does not start: {error}") from error
    finally:
        if before is None:
            del os.environ[OPTIONS_NAME]
        else:
            os.environ[OPTIONS_NAME] = before


def borrow_engine() -> Any:
    """Return an idle engine, or a fresh one."""
    return _IDLE.pop() if _IDLE else start_engine()


def give_back(engine: Any) -> None:
    """Keep an engine for the next house; one too many ends with its last reference."""
    if len(_IDLE) < MAX_IDLE:
        _IDLE.append(engine)


def catch_engine_faults() -> tuple[type[Exception], ...]:
    """Return what a broken engine raises."""
    try:
        return OSError, RuntimeError, import_module("py4j.protocol").Py4JError
    except ImportError:
        return OSError, RuntimeError


class JvmHouse:
    """A house inside the engine.

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
        return _restore, (self._key(), self.listed, (self.points, self.completed, self.ticks))

    def __del__(self) -> None:
        if getattr(self, "_engine", None) is not None and give_back is not None:
            give_back(self._engine)

    def _key(self) -> tuple[str, int, str, tuple[str, ...]]:
        return self.task, self.variation, self.simple, self.texts

    @property
    def goals(self) -> JvmHouse:
        """Points and verdicts; the engine keeps the goals themselves."""
        return self

    @property
    def failed(self) -> bool:
        """Whether the score is negative."""
        return self.points < 0

    def fork(self) -> JvmHouse:
        """Return an independent copy, without an engine until it is used."""
        return _restore(self._key(), self.listed, (self.points, self.completed, self.ticks))

    def digest(self) -> str:
        """Return the hash of what the house has lived through."""
        return digest_of(self._key())

    def begin(self) -> str:
        """Start the episode; return the first look."""
        engine = self._engine or borrow_engine()
        try:
            engine.load(self.task, self.variation, self.simple)
        except catch_engine_faults() as error:
            raise EnvFault(f"{WHERE}: the Java engine broke at a start: {error}") from error
        self._engine = engine
        return self._take("look around")

    def step(self, text: str) -> Reply:
        """Answer one input."""
        self._ready()
        said = self._take(text)
        self.texts = (*self.texts, text)
        return Reply(said, not said.startswith(UNKNOWN))

    def valid(self) -> list[str]:
        """Return the engine's list of valid actions, sorted."""
        self._ready()
        if self._valid is None:
            self._valid = self._list()
            if len(self.texts) not in self.listed[-1:]:
                self.listed = (*self.listed, len(self.texts))
        return list(self._valid)

    def look(self) -> str:
        """Describe the agent's place, without an action."""
        self._ready()
        return str(self._ask("look"))

    def inventory(self) -> str:
        """Describe what the agent carries."""
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
        except catch_engine_faults() as error:
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
        except catch_engine_faults() as error:
            self._engine = None
            raise EnvFault(f"{WHERE}: the Java engine broke at {text!r}: {error}") from error
        return said


def _restore(
    key: tuple[str, int, str, tuple[str, ...]],
    listed: tuple[int, ...],
    reached: tuple[int, bool, int],
) -> JvmHouse:
    house = JvmHouse(*key, listed=listed)
    house.points, house.completed, house.ticks = reached
    return house


def start_jvm_house(kind: TaskKind, number: int, simple: frozenset[str]) -> tuple[JvmHouse, str]:
    """Start a variation in the engine; return it with the first look."""
    house = JvmHouse(kind.name, number, ",".join(sorted(simple)))
    return house, house.begin()
