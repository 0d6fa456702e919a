"""A setting that a world does not have is refused by name, with the nearest that it has."""

from __future__ import annotations

import inspect
from abc import ABCMeta
from typing import Any

from .errors import UnknownNameError


class WorldType(ABCMeta):
    """Metaclass of worlds: checks the names of the settings before the constructor runs.

    Raises:
        UnknownNameError: A setting that the constructor does not take.
    """

    def __call__(cls, *args: Any, **settings: Any) -> Any:
        """Make a world."""
        known = inspect.signature(cls.__init__).parameters
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
            names = [name for name in known if name != "self"]
            for name in settings:
                if name not in names:
                    raise UnknownNameError("setting", name, names, cls.__name__)
        return super().__call__(*args, **settings)
