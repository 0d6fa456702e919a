"""How PaSa compares titles and headings: by their letters."""

from __future__ import annotations


def title_key(title: str) -> str:
    """The letters of ``title`` in lower case, nothing else.

    Digits are dropped, as in PaSa's released code, so that "GPT-2" and "GPT-3" are the same.
    """
    return "".join(filter(str.isalpha, title)).lower()
