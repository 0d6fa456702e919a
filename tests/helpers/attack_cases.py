"""Cases of attacks, kept as data: one JSON object a line in ``tests/attacks/cases``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(__file__).resolve().parents[1] / "attacks" / "cases"


def cases(name: str, group: str = "") -> list[Any]:
    """The cases of a file as parameters named by what they try; ``group`` takes some of them."""
    rows = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return [
        pytest.param(row, id=ascii(row["case"])[1:-1])
        for row in rows
        if not group or row["group"] == group
    ]


def filled(given: Any) -> str:
    """A text as it stands, or ``[unit, characters]``: the unit again and again."""
    if isinstance(given, str):
        return given
    unit, length = given
    return (unit * (length // len(unit) + 1))[:length]


def joined(given: Any) -> str:
    """A text of several parts, each as :func:`filled` takes it."""
    return "".join(map(filled, given if isinstance(given, list) else [given]))
