"""Fork an environment at its present state, through whatever wrappers stand around it.

What is read-only and too large to be copied derives from :class:`Shared`.
"""

from __future__ import annotations

import copy
from typing import Any, Self, TypeGuard

import gymnasium as gym

from .env import TextEnv
from .errors import BadValueError

_SHARED = (str, int, float, bool, bytes, type(None))


class Shared:
    """Read-only data that forks and deep copies share instead of copying it."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def is_text_env(env: object) -> TypeGuard[TextEnv[Any, Any]]:
    """Return whether it is a :class:`TextEnv`, sooner than ``isinstance`` of an abstract class."""
    return TextEnv in type(env).__mro__


def fork(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return an independent copy of ``env`` at this very state, without replaying anything.

    Wrappers are copied one by one with all they hold; what they hold of each other and of the
    environment inside becomes the copies. A wrapper that owns something that cannot be copied (an
    open file) implements ``fork_wrapper(inner) -> wrapper``.

    Raises:
        BadValueError: The innermost environment is not a :class:`TextEnv`.
    """
    wrappers: list[gym.Wrapper[Any, Any, Any, Any]] = []
    inner = env
    while isinstance(inner, gym.Wrapper):
        wrappers.append(inner)
        inner = inner.env
    if not is_text_env(inner):
        raise BadValueError(
            f"fork: {type(inner).__name__} is not a TextEnv; only text environments and gymnasium "
            "wrappers around them can be forked."
        )
    twin: gym.Env[Any, Any] = inner.fork()
    memo: dict[int, Any] = {id(inner): twin}
    for wrapper in reversed(wrappers):
        twin = _fork_wrapper(wrapper, twin, memo)
        memo[id(wrapper)] = twin
    return twin


def _fork_wrapper(
    wrapper: gym.Wrapper[Any, Any, Any, Any], inner: gym.Env[Any, Any], memo: dict[int, Any]
) -> gym.Env[Any, Any]:
    if (own := getattr(wrapper, "fork_wrapper", None)) is not None:
        return own(inner)
    twin = object.__new__(type(wrapper))
    memo[id(wrapper)] = twin
    for name, value in vars(wrapper).items():
        twin.__dict__[name] = value if isinstance(value, _SHARED) else copy.deepcopy(value, memo)
    return twin
