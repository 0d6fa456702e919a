"""What simulates the house: this package, or the original engine in a Java machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.errors import UnknownNameError
from .actions.looking import inventory, look_around
from .engine.action_lists import list_legal_actions, list_original_actions
from .engine.step import Reply, digest_house, step
from .house.build import build_house, build_micro_house
from .house.state import HouseState
from .tasks.build import start_episode
from .tasks.catalogue import WHERE, TaskKind
from .tasks.solvers.solve import plan_action

HOUSES = {"full": build_house, "micro": build_micro_house}


@dataclass(frozen=True, slots=True)
class Backend:
    """How a house of one kind is started, asked and acted in.

    Its houses have ``goals`` (``points``, ``completed``, ``failed``), ``ticks`` and ``fork()``.

    Attributes:
        start: From a task, a variation and simplifications to a house and its first look.
        step: From a house, an input and the task's text to the reply.
        legal: Actions that make sense now.
        valid: The original's list of valid actions.
        look: The agent's place.
        inventory: What the agent carries.
        plan: What the task's solver would do next; empty where there is none.
        digest: Stable hash of everything that play depends on.
        state_digest: The same without what only tells how the house came there.
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
    digest: Callable[[Any], str]
    state_digest: Callable[[Any], str]
    name: str
    size: str

    def __reduce__(self) -> tuple[Any, ...]:
        return find_backend, (self.name, self.size)


def find_backend(name: str, size: str) -> Backend:
    """Return the backend of a name.

    Raises:
        UnknownNameError: There is none, or it does not have the size.
        MissingExtraError: It needs a package that is not installed.
        BadValueError: It needs a Java runtime, and there is none.
    """
    if name == "python":
        return _make_python_backend(size)
    if name != "jvm":
        raise UnknownNameError("backend", name, ("python", "jvm"), WHERE)
    if size != "full":
        raise UnknownNameError("size of the jvm backend", size, ("full",), WHERE)
    from .jvm import check_java, start_jvm_house

    check_java()
    return Backend(
        start=start_jvm_house,
        step=lambda house, text, _: house.step(text),
        legal=lambda house: house.valid(),
        valid=lambda house: house.valid(),
        look=lambda house: house.look(),
        inventory=lambda house: house.inventory(),
        plan=lambda _: "",
        digest=lambda house: house.digest(),
        state_digest=lambda house: house.digest(),
        name=name,
        size=size,
    )


def _make_python_backend(size: str) -> Backend:
    def start(kind: TaskKind, number: int, simple: frozenset[str]) -> tuple[HouseState, str]:
        house = start_episode(kind, number, simple, HOUSES[size])
        return house, step(house, "look around").text

    return Backend(
        start=start,
        step=step,
        legal=list_legal_actions,
        valid=list_original_actions,
        look=look_around,
        inventory=inventory,
        plan=plan_action,
        digest=digest_house,
        state_digest=lambda house: digest_house(house, history=False),
        name="python",
        size=size,
    )
