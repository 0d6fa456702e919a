"""Special tokens that a text merely spells: they are read as characters.

A page, a passage or a customer that writes ``<|im_end|>`` would otherwise close its own message and
could go on as the assistant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from .token_text import TokenText

_MARK = "\uf8f0"
"""Stands before the number of a hidden token; a private character, hidden itself where it occurs.
"""
_NUMBERS = 0xF0000  # private characters again, none of which is the mark
_ANCHOR = "a"
_SIGN = re.compile(r"[^\w\s]")  # in marks of messages, not in words and blanks that were added


class SpelledTokens:
    """Hides special tokens in a text, and encodes texts in which some are hidden.

    Args:
        tokenizer: Any transformers tokenizer; what it calls special counts.
        text: Its exact text, for what stands behind a hidden token.
        around: What stands around messages: added tokens in it count too, as not every tokenizer
            calls its template's marks special.
    """

    def __init__(self, tokenizer: Any, text: TokenText, around: str = "") -> None:
        self._tokenizer = tokenizer
        self._text = text
        found, marks = {*tokenizer.all_special_tokens}, set[str]()
        for token in _added(tokenizer):
            word = str(token.content)
            if token.special:
                found.add(word)
            elif word in around and _SIGN.search(word):
                marks.add(word)
        self._marks = marks - found
        found |= marks
        # longest first: one may begin as another does
        self._words = [_MARK, *sorted(found - {""}, key=lambda word: (-len(word), word))]
        self._ids: dict[str, list[int]] = {}

    def hide(self, text: str, only: Collection[str] | None = None) -> str:
        """Return the text with a mark in the place of every special token that it spells.

        Args:
            text: Any text.
            only: The tokens that are hidden; None for all.
        """
        for i, word in enumerate(self._words):
            if word in text and (only is None or word in only or word == _MARK):
                text = text.replace(word, f"{_MARK}{chr(_NUMBERS + i)}")
        return text

    def encode(self, text: str, encode: Callable[[str], list[int]]) -> list[int]:
        """Return the ids of a text in which tokens may be hidden: those as characters.

        Args:
            text: Of which parts went through :meth:`hide`.
            encode: Encodes what nothing hidden stands before.
        """
        first, *more = text.split(_MARK)
        ids = encode(first)
        for part in more:
            ids += self._characters(self._words[ord(part[0]) - _NUMBERS])
            ids += self._text.encode(part[1:]) if len(part) > 1 else []
        return ids

    def _characters(self, word: str) -> list[int]:
        ids = self._ids.get(word)
        if ids is None and word in self._marks:  # the tokenizer splits what it calls special alone
            ids = self._ids[word] = [i for sign in word for i in self._text.encode(sign)]
        if ids is None:
            front = self._split(_ANCHOR)
            ids = self._split(_ANCHOR + word)
            ids = ids[len(front) :] if ids[: len(front)] == front else self._split(word)
            self._ids[word] = ids
        return ids

    def _split(self, text: str) -> list[int]:
        ids = self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        return [int(i) for i in ids]


def _added(tokenizer: Any) -> list[Any]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return list(backend.get_added_tokens_decoder().values())
    return list(tokenizer.added_tokens_decoder.values())
