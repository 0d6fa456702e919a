"""Texts encoded from the remembered tokens of their pieces, where a tokenizer works by pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

WORDS = r" ?\p{L}+| ?\p{N}|(?:(?! ?[\p{L}\p{N}])[\s\S])+"
SIGNS = r"\p{L}+|\p{N}|\s|[^\s\p{L}\p{N}]"
_IN_ASCII = {
    WORDS: r" ?[A-Za-z]+| ?[0-9]|(?:(?! ?[A-Za-z0-9])[\s\S])+",
    SIGNS: r"[A-Za-z]+|[0-9]|\s|[^\sA-Za-z0-9]",
}
"""How the tokenizers of this library cut a text, and what that is where all letters are ASCII."""
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
_MODELS = ("BPE", "WordLevel")
_REMEMBERED = 1 << 15


class TextPieces:
    """Encodes ASCII texts as a tokenizer does that cuts them up and encodes each piece alone.

    Such tokenizers (all that this library trains) spend most of their time on the cutting. The
    tokens of a piece are the same in every text, so they are remembered.

    Args:
        encode: The tokenizer itself; encodes a piece that was not met before.
        cut: Finds the pieces of a text without added tokens.
        added: Ids of the added tokens, which are found first, by their text.
    """

    def __init__(
        self, encode: Callable[[str], list[int]], cut: re.Pattern[str], added: dict[str, int]
    ) -> None:
        self._encode, self._find, self._added = encode, cut.findall, added
        longest_first = sorted(added, key=len, reverse=True)
        self._split = re.compile(f"({'|'.join(map(re.escape, longest_first))})").split
        self._known: dict[str, list[int]] = {}  # asked for every word: no lock, no order

    def encode(self, text: str) -> list[int] | None:
        """Return the ids of ``text``; None where it holds other than ASCII characters."""
        if not text.isascii():
            return None
        ids: list[int] = []
        known = self._known
        for at, part in enumerate(self._split(text) if self._added else (text,)):
            if at % 2:
                ids.append(self._added[part])
                continue
            for piece in self._find(part):
                found = known.get(piece)
                if found is None:
                    found = self._learn(piece)
                ids += found
        return ids

    def _learn(self, piece: str) -> list[int]:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        ids = self._known[piece] = self._encode(piece)
        return ids


def text_pieces(backend: Any, encode: Callable[[str], list[int]]) -> TextPieces | None:
    """Return the encoder by pieces of a compiled tokenizer, None where it does not work by them.

    Args:
        backend: Of the ``tokenizers`` library.
        encode: Its ids of a text, without special tokens.
    """
    if backend.pre_tokenizer is None or backend.normalizer is not None:
        return None
    cuts = json.loads(backend.pre_tokenizer.__getstate__())  # without the vocabulary
    split, *rest = cuts["pretokenizers"] if cuts["type"] == "Sequence" else [cuts]
    if split["type"] != "Split" or split["behavior"] != "Isolated" or split["invert"]:
        return None
    pattern = _IN_ASCII.get(split["pattern"].get("Regex", ""))
    alone = all(_BYTES.items() <= step.items() for step in rest)
    model, added = backend.model, backend.get_added_tokens_decoder()
    known = type(model).__name__ in _MODELS and not getattr(model, "dropout", None)
    free = not any(token.single_word or token.lstrip or token.rstrip for token in added.values())
    if pattern is None or not (alone and known and free):
        return None
    ids = {token.content: number for number, token in added.items()}
    return TextPieces(encode, re.compile(pattern, re.ASCII), ids)
