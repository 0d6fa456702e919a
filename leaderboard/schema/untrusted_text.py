"""Show untrusted text, on pages and in terminals, without what controls them."""

from __future__ import annotations

import unicodedata

_WHITESPACE = "\n\t"
_REPLACEMENT = "\N{SYMBOL FOR SUBSTITUTE}"


def plain(text: object) -> str:
    """Replace control and direction characters in an untrusted text."""
    return "".join(
        sign if sign in _WHITESPACE or not _is_control(sign) else _REPLACEMENT for sign in str(text)
    )


def _is_control(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")
