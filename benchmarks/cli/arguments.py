"""``key=value`` settings on the command line, and their short form ``--env.key value``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...envs.core.errors import BadValueError

GROUPS = ("env", "recipe")


def expand_dotted(words: Sequence[str]) -> list[str]:
    """``--env.hops 2`` and ``--env.hops=2`` become ``--env-arg hops=2``; ``--recipe.`` alike.

    Raises:
        BadValueError: A dotted option without a value.
    """
    out: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        group, dot, key = word.removeprefix("--").partition(".")
        if not (word.startswith("--") and dot and group in GROUPS):
            out.append(word)
            continue
        if "=" not in key:
            if not rest or rest[0].startswith("--"):
                raise BadValueError(f"{word}: expected a value after it, as in {word} 2.")
            key = f"{key}={rest.pop(0)}"
        out += [f"--{group}-arg", key]
    return out


def pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """``["a=1", "b=x"]`` as a dictionary of texts.

    Raises:
        BadValueError: A word without ``=``, or a name given twice.
    """
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise BadValueError(f"{option} {word}: expected name=value.")
        if key in found:
            raise BadValueError(f"{option} {word}: {key} was given twice.")
        found[key] = value
    return found


def values(words: Sequence[str], option: str) -> dict[str, Any]:
    """The same with values read as JSON where they are JSON, else as text."""
    return {key: _value(text) for key, text in pairs(words, option).items()}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"None": None, "True": True, "False": False}.get(text, text)
