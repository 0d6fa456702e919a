"""Titles as they are compared: by their letters alone."""

from __future__ import annotations


def title_key(title: str) -> str:
    """The letters of a title, lower-cased; empty for one without letters.

    PaSa compares papers by this key. Digits count for nothing in it, so "GPT-2" and "GPT-3" have
    the same one: a match of ids is the stricter rule.
    """
    return "".join(filter(str.isalpha, title)).lower()


def one_line(text: str) -> str:
    """Text whose line breaks and runs of blanks are single blanks."""
    return " ".join(text.split())
