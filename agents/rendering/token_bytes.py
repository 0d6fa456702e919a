"""The bytes of tokens, for tokenizers whose texts are nothing but those, one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

_PLAIN = (*range(33, 127), *range(161, 173), *range(174, 256))
"""Bytes that stand for themselves in the spelling of a byte-level token; the others have signs from
256 on."""
_BYTES = {chr(byte): byte for byte in _PLAIN}
_BYTES |= {chr(256 + i): byte for i, byte in enumerate(sorted({*range(256)} - {*_PLAIN}))}


class TokenBytes(dict[int, bytes]):
    """The bytes of each token by its id, worked out when they are first asked for.

    Args:
        spell: How the tokenizer spells a token; None for an id that it does not have, which has no
            text.
    """

    def __init__(self, spell: Callable[[int], str | None]) -> None:
        super().__init__()
        self._spell = spell

    def __missing__(self, token: int) -> bytes:
        signs = self._spell(token) or ""
        known = all(sign in _BYTES for sign in signs)
        found = self[token] = bytes(map(_BYTES.__getitem__, signs)) if known else signs.encode()
        return found

    def text(self, ids: Iterable[int]) -> str:
        """Return the text of ``ids``; bytes that are no complete character are U+FFFD in it."""
        return b"".join(map(self.__getitem__, ids)).decode("utf-8", "replace")


def token_bytes(backend: Any) -> TokenBytes | None:
    """Return the bytes of a compiled tokenizer's tokens, None where a text is more than those.

    Args:
        backend: Of the ``tokenizers`` library.
    """
    if backend is None or backend.decoder is None:
        return None
    decoder = json.loads(backend.decoder.__getstate__())
    return TokenBytes(backend.id_to_token) if decoder["type"] == "ByteLevel" else None
