"""Commands of pages, cut short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def with_options(words: Sequence[str], instead: Mapping[str, str]) -> list[str]:
    """Give options of a command other values; those that it does not have stay away."""
    changed = list(words)
    for option, value in instead.items():
        if option in changed:
            changed[changed.index(option) + 1] = value
    return changed
