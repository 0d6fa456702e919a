"""How customers speak: templates per act, chosen by the episode, the turn and the act alone."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from functools import lru_cache

from .templates import HELD_OUT, PLAIN, TERSE

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_POLITE = re.compile(r",? please\b|, (?:thanks|thank you)\b|\b(?:Thanks|Thank you|Please)[.,] ")
_FILLERS = (
    "So, ",
    "Well, ",
    "Right, ",
    "You see, ",
    "Let me think. ",
    "As I said to my sister, ",
    "Honestly, ",
    "Okay then. ",
)
_ENDINGS = (
    "",
    " It has been a long week.",
    " I hope that makes sense.",
    " Sorry to be a bother.",
    " The weather is awful here, by the way.",
)


def make_wording_key(seed: int, task_id: str) -> int:
    """Return the number that all of an episode's wording is chosen by."""
    return zlib.crc32(f"{seed}/{task_id}".encode())


def _draw_number(key: int, turn: int, act: str) -> int:
    """Return a number that is the same for the same episode, turn and act."""
    return zlib.crc32(f"{key}.{turn}.{act}".encode())


@lru_cache(maxsize=8192)
def expand_pattern(pattern: str) -> tuple[str, ...]:
    """Return every text of a pattern with ``[one|other]`` choices."""
    found = _CHOICE.search(pattern)
    if found is None:
        return (pattern,)
    head, tail = pattern[: found.start()], pattern[found.end() :]
    return tuple(
        text for choice in found[1].split("|") for text in expand_pattern(f"{head}{choice}{tail}")
    )


@lru_cache(maxsize=1024)
def list_templates(act: str, style: str) -> tuple[str, ...]:
    """Return the templates of an act: ``"plain"``, ``"held_out"`` or ``"terse"``."""
    table = {"plain": PLAIN, "held_out": HELD_OUT, "terse": TERSE}[style]
    return tuple(text for pattern in table[act] for text in expand_pattern(pattern))


def write_act(key: int, turn: int, act: str, style: str, slots: Mapping[str, str]) -> str:
    """Return one act in words.

    Args:
        key: What :func:`make_wording_key` returned.
        turn: The customer's turn.
        act: What is said.
        style: See :func:`list_templates`.
        slots: What stands in the braces.
    """
    options = list_templates(act, style)
    return options[_draw_number(key, turn, act) % len(options)].format_map(slots)


def add_fillers(key: int, turn: int, text: str) -> str:
    """Add what talkative people say besides."""
    number = _draw_number(key, turn, "ramble")
    filler = _FILLERS[number % len(_FILLERS)]
    ending = _ENDINGS[(number >> 8) % len(_ENDINGS)]
    second = text.partition(" ")[2][:1]
    keep = text[:2] in ("I ", "I'") or text[:1] in "#$" or second.isupper()
    lowered = text if keep else text[:1].lower() + text[1:]
    start = text if filler.endswith(". ") else lowered
    return f"{filler}{start}{ending}"


def drop_politeness(text: str) -> str:
    """Remove please and thanks."""
    return _POLITE.sub("", text) or text


def add_typos(key: int, turn: int, text: str, share: float) -> str:
    """Swap neighbouring letters in a share of the words; ids and numbers stay whole."""
    words = text.split(" ")
    for at, word in enumerate(words):
        number = _draw_number(key, turn, f"typo{at}")
        if len(word) > 4 and word.isalpha() and number % 1000 < share * 1000:
            i = 1 + (number >> 12) % (len(word) - 3)
            words[at] = f"{word[:i]}{word[i + 1]}{word[i]}{word[i + 2 :]}"
    return " ".join(words)
