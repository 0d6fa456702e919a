"""``turngym train --preset NAME``: a preset's options, where they were not given beside it."""

from __future__ import annotations

from collections.abc import Sequence

from ...envs.core.errors import BadValueError

KEYED = ("--env-arg", "--recipe-arg")
"""Options that are told apart by the name in their value."""


def with_preset(words: Sequence[str]) -> list[str]:
    """The words with those of the preset they name; words without one stay as they are.

    Raises:
        UnknownNameError: No such preset.
        BadValueError: ``--preset`` without a name.
    """
    given = list(words)
    if given[:1] != ["train"]:
        return given
    name = _value(given, "--preset")
    if name is None:
        return given
    from ...algos.training.presets import preset

    taken = _taken(given)
    added: list[str] = []
    for option, value in preset(name).options():
        key = (option, value.partition("=")[0]) if option in KEYED else (option, "")
        if key not in taken:
            added += [option, value] if value else [option]
    return ["train", *added, *given[1:]]


def _value(words: list[str], option: str) -> str | None:
    for i, word in enumerate(words):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option:
            if i + 1 == len(words) or words[i + 1].startswith("--"):
                raise BadValueError(f"{option}: expected a name after it; `turngym plan` has them.")
            return words[i + 1]
    return None


def _taken(words: list[str]) -> set[tuple[str, str]]:
    """The options that were given, those of :data:`KEYED` with their names."""
    found = set()
    for i, word in enumerate(words):
        if not word.startswith("--"):
            continue
        option, equals, value = word.partition("=")
        option = "--" + option[2:].replace("_", "-").removeprefix("no-")
        if option in KEYED:
            text = value if equals else (words[i + 1] if i + 1 < len(words) else "")
            found.add((option, text.partition("=")[0]))
        else:
            found.add((option, ""))
    return found
