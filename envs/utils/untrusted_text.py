"""Show untrusted text, on pages and in terminals, without what controls them."""

from __future__ import annotations

import json
import unicodedata

_WHITESPACE = "\n\t"
_REPLACEMENT = "\N{SYMBOL FOR SUBSTITUTE}"


def plain(text: object) -> str:
    """Replace control and direction characters in an untrusted text."""
    return "".join(
        sign if sign in _WHITESPACE or not _is_control(sign) else _REPLACEMENT for sign in str(text)
    )


def escape_json(text: str) -> str:
    """Return JSON text that means the same, with these characters as escapes."""
    return "".join(
        json.dumps(sign)[1:-1] if _is_control(sign) and sign not in _WHITESPACE else sign
        for sign in text
    )


def _is_control(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")
