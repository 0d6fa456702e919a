"""Exact text of token ids: what a model wrote, no more and no less, whatever the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...envs.utils.bounded_cache import BoundedCache
from ..models.starter_tokenizer import StarterTokenizer
from .text_pieces import TextPieces, text_pieces
from .token_bytes import token_bytes

_REMEMBERED = 1 << 20
"""Tokens of encoded texts that are kept, at most some 40 MB: the paths of a group read the same
observations again and again."""
_SHORT, _TEXTS = 64, 1 << 13
"""Decoded texts of at most so many tokens are kept too, at most so many of them."""

_WRAPPED = ("encode", "_encode_plus", "decode", "_decode")
_ANCHORS = ("a", "0", ".", "~", ">", "1", "e", "k", "Z")


class TokenText:
    """Encodes and decodes pieces of a longer text so that the pieces can be joined.

    Some tokenizers put a blank before a text when encoding it and drop it again when decoding.
    That is wrong for a piece from the middle, so both directions work behind an anchor: a token
    that stands in front and is cut off again.

    Args:
        tokenizer: Any transformers tokenizer, fast or slow.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._backend = _plain_backend(tokenizer)
        self._bytes = token_bytes(self._backend)
        self._pieces: TextPieces | None = None  # anchors are encoded by the tokenizer itself
        self._anchors: list[tuple[str, list[int]]] = []
        for text in _ANCHORS:
            ids = self._raw_encode(text)
            if ids and self._raw_decode(ids).strip() == text:
                self._anchors.append((text, ids))
        self._anchor = self._anchors[0][1] if self._anchors else []
        self._anchor_text = self._raw_decode(self._anchor) if self._anchor else ""
        joined = self._raw_decode(self._anchor * 2)
        front = self._anchor_text
        self._adds_blank = bool(front) and joined == f"{front} {front}"
        self._remembered: BoundedCache[str, list[int]] = BoundedCache(_REMEMBERED)
        self._decoded: BoundedCache[tuple[int, ...], str] = BoundedCache(_TEXTS)
        self._pieces = None if self._backend is None else self._backend_pieces()

    def __reduce__(self) -> tuple[type[TokenText], tuple[Any]]:
        return TokenText, (self._tokenizer,)  # a copy remembers nothing

    def encode(self, text: str) -> list[int]:
        """Return the ids of ``text`` as a continuation of other text.

        No special tokens are added.
        """
        ids = self._remembered.get(text)
        if ids is None:
            ids = self._encode(text)
            self._remembered.put(text, ids, 1 + len(ids))
        return ids.copy()

    def encode_first(self, text: str) -> list[int]:
        """Return the ids of ``text`` that nothing stands before; no special tokens are added."""
        return self._raw_encode(text)

    def _encode(self, text: str) -> list[int]:
        if self._adds_blank:
            # an anchor may merge with the text; then another one is tried
            for front, anchor in self._anchors:
                ids = self._raw_encode(front + text)
                if ids[: len(anchor)] == anchor:
                    return ids[len(anchor) :]
        return self._raw_encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids``; special tokens are spelled out, blanks are kept as they are.

        Bytes that are no complete character come out as U+FFFD.
        """
        if not len(ids):
            return ""
        if self._bytes is not None:
            return self._bytes.text(ids)
        key = tuple(map(int, ids))
        text = self._decoded.get(key)
        if text is None:
            text = self._raw_decode([*self._anchor, *key])[len(self._anchor_text) :]
            if len(key) <= _SHORT:
                self._decoded.put(key, text)
        return text

    def _raw_encode(self, text: str) -> list[int]:
        if (backend := self._backend) is not None and _unset(backend):
            if self._pieces is not None and (ids := self._pieces.encode(text)) is not None:
                return ids
            return backend.encode(text, add_special_tokens=False).ids
        return [int(i) for i in self._tokenizer.encode(text, add_special_tokens=False)]

    def _backend_pieces(self) -> TextPieces | None:
        backend = self._backend
        return text_pieces(
            backend, lambda piece: backend.encode(piece, add_special_tokens=False).ids
        )

    def _raw_decode(self, ids: Sequence[int]) -> str:
        if self._backend is not None:
            return self._backend.decode(ids, skip_special_tokens=False)
        return self._tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )


def _plain_backend(tokenizer: Any) -> Any:
    """The compiled tokenizer behind transformers' own wrapper; None where the wrapper does more.

    The wrapper costs as much as the encoding of a short text.
    """
    if isinstance(tokenizer, StarterTokenizer):
        return tokenizer.backend_tokenizer
    parts = [getattr(type(tokenizer), name, None) for name in _WRAPPED]
    home = "transformers.tokenization_utils_"
    plain = all(str(getattr(part, "__module__", "")).startswith(home) for part in parts)
    plain = plain and not getattr(tokenizer, "split_special_tokens", False)
    return getattr(tokenizer, "backend_tokenizer", None) if plain else None


def _unset(backend: Any) -> bool:
    """False while somebody has it cut, pad or split; the wrapper undoes that for one text."""
    cut, pad = backend.truncation, backend.padding
    return cut is None and pad is None and not backend.encode_special_tokens
