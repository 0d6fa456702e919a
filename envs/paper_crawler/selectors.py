"""Selectors by name, for settings that are plain values."""

from __future__ import annotations

from importlib import import_module

from ..errors import BadValueError, UnknownNameError
from .papers import Selector

OPENERS = {"lm": "turngym.agents.selector.opening:open_selector"}
"""What stands before the colon, and what opens the rest: entry points by name."""


def named_selector(name: str) -> Selector:
    """The selector that ``"lm:FOLDER"`` names: a language model that was trained to judge.

    Raises:
        UnknownNameError: No such kind of selector.
        BadValueError: No folder, or not one of a model.
        MissingExtraError: The packages that it needs are not installed.
    """
    kind, colon, rest = name.partition(":")
    if kind not in OPENERS:
        raise UnknownNameError("selector", kind, OPENERS, "PaperCrawler")
    if not (colon and rest):
        raise BadValueError(
            f"PaperCrawler: selector is {name!r}; expected {kind}:FOLDER, as 'turngym selector "
            "train' makes it."
        )
    module, _, opener = OPENERS[kind].partition(":")
    return getattr(import_module(module), opener)(rest)
