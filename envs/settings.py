"""A setting that a world does not have is refused by name, with the nearest that it has."""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Iterable
from typing import Any

from .errors import UnknownNameError


class WorldType(ABCMeta):
    """Metaclass of worlds: checks the names of the settings before the constructor runs.

    With the setting ``server`` a world of a sealed season is made instead, which that server
    steps (:class:`turngym.envs.remote.RemoteEnv`).

    Raises:
        UnknownNameError: A setting that the constructor does not take.
    """

    def __call__(cls, *args: Any, **settings: Any) -> Any:
        """Make a world."""
        if settings.get("server") is not None:
            from .remote import remote_env

            return remote_env(cls, settings)
        check_settings(cls, settings)
        return super().__call__(*args, **settings)


def check_settings(cls: type, settings: Iterable[str]) -> None:
    """Refuse names that the constructor of ``cls`` does not take.

    Raises:
        UnknownNameError: Such a name; with the nearest that it takes.
    """
    known = inspect.signature(cls.__init__).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
        return
    names = [name for name in known if name != "self"]
    for name in settings:
        if name not in names:
            raise UnknownNameError("setting", name, names, cls.__name__)
