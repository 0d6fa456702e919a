"""Parts of one's own: what is none of its kind, or returns something else, is refused by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Set
from functools import cache
from inspect import isawaitable
from typing import Any

import numpy as np

from ...envs.core.errors import BadValueError, UnknownNameError
from .forest import Forest, Group, Tree
from .protocols import Rollout, Shaper, Start

_COUNTS = ("max_paths", "min_paths", "max_rounds")
_NAMES = ("needs", "provides")


def check_part(part: Any, kind: type, where: str) -> None:
    """Refuse what is not a part of its kind.

    Args:
        part: The part.
        kind: Its protocol, of :mod:`turngym.algos.core.protocols`.
        where: The recipe and the field, for the message.

    Raises:
        BadValueError: A class in place of an instance, something that lacks what the kind has, or
            has it of another kind.
    """
    _check_instances(part, where)
    if missing := [name for name in _members(kind) if not _has(part, name, kind)]:
        raise BadValueError(
            f"{where} is {part!r:.100}, which has no {', '.join(missing)}; expected an object "
            f"whose class derives from turngym.algos.core.protocols.{kind.__name__}."
        )
    for name in _members(kind):
        value = getattr(part, name)
        if name in _NAMES and not isinstance(value, Set):
            raise BadValueError(
                f"{where}: {type(part).__name__}.{name} is {value!r:.100}; expected a set of "
                "names, such as frozenset({'values'})."
            )
        if name in _COUNTS and not (isinstance(value, (int, np.integer)) and value >= 1):
            raise BadValueError(
                f"{where}: {type(part).__name__}.{name} is {value!r:.100}; expected an integer of "
                "at least 1."
            )


@cache
def _members(kind: type) -> tuple[str, ...]:
    """Return the names that a protocol declares."""
    names = [*vars(kind), *vars(kind).get("__annotations__", {})]
    return tuple(dict.fromkeys(n for n in names if n == "__call__" or not n.startswith("_")))


def _has(part: Any, name: str, kind: type) -> bool:
    if name == "__call__":  # that of the protocol does nothing
        return callable(part) and type(part).__call__ is not vars(kind)[name]
    return hasattr(part, name)


def _check_instances(part: Any, where: str) -> None:
    """Refuse classes in place of instances, in a part's fields too."""
    if isinstance(part, type):
        raise BadValueError(
            f"{where} is the class {part.__name__}; expected an instance: {part.__name__}(...)."
        )
    if dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            _check_instances(getattr(part, field.name, None), f"{where}.{field.name}")


async def play_group(rollout: Rollout, runner: Any, start: Start) -> Group:
    """Return the group that a rollout plays from a start.

    Raises:
        TypeError: The rollout returned something else.
    """
    name, playing = type(rollout).__name__, rollout(runner, start)
    if not isawaitable(playing):
        raise TypeError(
            f"{name} returned a {type(playing).__name__}; expected a coroutine that returns a "
            "Group: async def __call__(self, runner, start)."
        )
    group: Any = await playing
    if not isinstance(group, Group):
        raise TypeError(
            f"{name} returned a {type(group).__name__}; expected a Group with its trees: "
            "Group(start.uid, handle.task_id, trees)."
        )
    for tree in group.trees:
        if not isinstance(tree, Tree):
            raise TypeError(
                f"{name} returned a Group with a {type(tree).__name__} among its trees; expected "
                "Trees, which runner.turn(handle, tree) adds turns to."
            )
    return group


class Streams(dict[str, Any]):
    """Arrays by name for a credit rule or a loss; one that it did not ask for is not there."""

    def __missing__(self, name: str) -> Any:
        raise UnknownNameError(
            "annotation or stream",
            name,
            sorted(self),
            advice=f"A credit rule or a loss is given what it asks for: needs = "
            f"frozenset({{{name!r}}}); a recipe in which nothing provides it is refused.",
        )


def check_shaped(shaper: Shaper, before: Forest, after: Any) -> None:
    """Refuse what a shaper returned, unless it is the forest with other rewards or verdicts.

    Raises:
        TypeError: It is no forest.
        BadValueError: Groups or paths are missing or in another order, or rewards are not one per
            action token.
    """
    name = type(shaper).__name__
    if not isinstance(after, Forest):
        raise TypeError(
            f"{name} returned a {type(after).__name__}; expected the forest that it was given, "
            "with other rewards or verdicts (see replaced in turngym.algos.rewards.shaping)."
        )
    if _shape(after) != _shape(before):
        raise BadValueError(
            f"{name} returned {after}, but was given {before}; expected the same groups and paths "
            "in the same order, with other rewards or verdicts. What is left out of training is "
            "the recipe's filter to say (GroupFilter)."
        )
    for place, (old, new) in enumerate(zip(before.groups, after.groups, strict=True)):
        for tree, (was, now) in enumerate(zip(old.trees, new.trees, strict=True)):
            for at, (first, second) in enumerate(zip(was.turns, now.turns, strict=True)):
                shape = getattr(second.rewards, "shape", None)
                if second is not first and shape != (len(first.act_ids),):
                    raise BadValueError(
                        f"{name} gave group {place}, tree {tree}, turn {at} the rewards "
                        f"{second.rewards!r:.100}; expected an array of {len(first.act_ids)}, one "
                        "for each action token (last_token_reward)."
                    )


def _shape(forest: Forest) -> tuple[Any, ...]:
    turns = [[len(tree.turns) for tree in group.trees] for group in forest.groups]
    return turns, tuple(forest.paths)
