"""What simulates the house: this package, or the original engine in a Java machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import UnknownNameError
from .actions.looking import inventory, look_around
from .engine import Reply, step
from .house import build_house
from .house_micro import build_micro_house
from .legal import legal_actions
from .source import WHERE
from .tasks.catalogue import TaskKind
from .tasks.episode import start_world
from .valid import valid_actions
from .world import World

HOUSES = {"full": build_house, "micro": build_micro_house}


@dataclass(frozen=True, slots=True)
class Backend:
    """How a world of one kind is started, asked and acted in.

    Its worlds have ``goals`` (``points``, ``completed``, ``failed``), ``ticks``, ``fork()`` and
    ``digest()``.

    Attributes:
        start: From a task, a variation and simplifications to a world and its first look.
        step: From a world, an input and the task's text to the reply.
        legal: Actions that make sense now.
        valid: The original's list of valid actions.
        look: The agent's place.
        inventory: What the agent carries.
        plan: What the task's solver would do next; empty where there is none.
        name: ``python`` or ``jvm``.
        size: Size of the house.
    """

    start: Callable[[TaskKind, int, frozenset[str]], tuple[Any, str]]
    step: Callable[[Any, str, str], Reply]
    legal: Callable[[Any], list[str]]
    valid: Callable[[Any], list[str]]
    look: Callable[[Any], str]
    inventory: Callable[[Any], str]
    plan: Callable[[Any], str]
    name: str
    size: str

    def __reduce__(self) -> tuple[Any, ...]:
        return find_backend, (self.name, self.size)


def find_backend(name: str, size: str) -> Backend:
    """The backend of a name.

    Raises:
        UnknownNameError: There is none, or it does not have the size.
        MissingExtraError: It needs a package that is not installed.
        BadValueError: It needs a Java runtime, and there is none.
    """
    if name == "python":
        return _python(size)
    if name != "jvm":
        raise UnknownNameError("backend", name, ("python", "jvm"), WHERE)
    if size != "full":
        raise UnknownNameError("size of the jvm backend", size, ("full",), WHERE)
    from .jvm import start_jvm_world
    from .jvm_engine import check_java

    check_java()
    return Backend(
        start=start_jvm_world,
        step=lambda world, text, _: world.step(text),
        legal=lambda world: world.valid(),
        valid=lambda world: world.valid(),
        look=lambda world: world.look(),
        inventory=lambda world: world.inventory(),
        plan=lambda _: "",
        name=name,
        size=size,
    )


def _python(size: str) -> Backend:
    house = HOUSES[size]

    def start(kind: TaskKind, number: int, simple: frozenset[str]) -> tuple[World, str]:
        world = start_world(kind, number, simple, house)
        return world, step(world, "look around").text

    def plan(world: World) -> str:
        from .expert import planned

        return planned(world)

    return Backend(
        start=start,
        step=step,
        legal=legal_actions,
        valid=valid_actions,
        look=look_around,
        inventory=inventory,
        plan=plan,
        name="python",
        size=size,
    )
