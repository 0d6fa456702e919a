"""Statistics of micro rooms: a handful of receptacles, a few things, short words."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ..engine.game import CLEAN, COOL, HEAT, LIGHT, SIMPLE, TWO
from .statistics import Statistics, make_statistics

SHORT_NAMES = MappingProxyType({"sinkbasin": "sink", "microwave": "oven", "desklamp": "lamp"})
"""What types are called, where it is not their own name."""
_ALWAYS = {"1": 1}
_SOMETIMES = {"0": 1, "1": 1}
_FEW = {"0": 1, "1": 2, "2": 1}
_DATA: dict[str, Any] = {
    "rooms": {
        "room": {
            "weight": 1,
            "receptacles": {
                "bed": _SOMETIMES,
                "bin": _SOMETIMES,
                "box": _ALWAYS,
                "desk": _ALWAYS,
                "fridge": _ALWAYS,
                "microwave": _ALWAYS,
                "shelf": _SOMETIMES,
                "sinkbasin": _ALWAYS,
            },
            "openable": {"box": 1.0, "fridge": 1.0, "microwave": 1.0},
            "objects": {
                "book": _SOMETIMES,
                "cup": _FEW,
                "desklamp": _SOMETIMES,
                "egg": _FEW,
                "pan": _SOMETIMES,
                "pen": _FEW,
            },
            "places": {
                "book": {"bed": 2, "bin": 1, "box": 1, "desk": 3, "shelf": 3},
                "cup": {"box": 1, "desk": 3, "fridge": 1, "microwave": 1, "shelf": 3},
                "desklamp": {"desk": 2, "shelf": 1},
                "egg": {"bin": 1, "desk": 1, "fridge": 4, "microwave": 1, "sinkbasin": 1},
                "pan": {"desk": 2, "fridge": 1, "shelf": 2, "sinkbasin": 2},
                "pen": {"bed": 1, "bin": 1, "box": 3, "desk": 4},
            },
            "goals": {
                SIMPLE: {"cup box": 1, "pen desk": 1, "book shelf": 1, "egg bin": 1, "book bed": 1},
                LIGHT: {"pen desklamp": 1, "book desklamp": 1, "cup desklamp": 1},
                CLEAN: {"cup box": 1, "egg fridge": 1, "pan shelf": 1, "cup desk": 1},
                HEAT: {"egg desk": 1, "cup box": 1, "egg fridge": 1, "cup shelf": 1},
                COOL: {"egg desk": 1, "cup microwave": 1, "egg bin": 1, "cup shelf": 1},
                TWO: {"pen box": 1, "cup shelf": 1, "pen bin": 1, "egg desk": 1, "pen bed": 1},
            },
        }
    },
    "able": {
        "pickupable": ["book", "cup", "egg", "pan", "pen"],
        "cleanable": ["cup", "egg", "pan"],
        "heatable": ["cup", "egg"],
        "coolable": ["cup", "egg", "pan"],
        "sliceable": ["egg"],
        "toggleable": ["desklamp"],
    },
    "holders": [],
    "fits": {
        "bed": ["book", "pen"],
        "bin": ["book", "egg", "pen"],
        "box": ["book", "cup", "pen"],
        "desk": ["book", "cup", "egg", "pan", "pen"],
        "fridge": ["cup", "egg", "pan"],
        "microwave": ["cup", "egg"],
        "shelf": ["book", "cup", "pan"],
        "sinkbasin": ["cup", "egg", "pan"],
    },
    "together": 0.0,
    "noted": 1.0,
}


def load_micro_statistics() -> Statistics:
    """Return the statistics that micro rooms are drawn by."""
    return make_statistics(_DATA)
