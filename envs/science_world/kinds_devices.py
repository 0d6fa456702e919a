"""Kinds with a switch or a use: appliances, basins, tools, instruments, electrical parts."""

from __future__ import annotations

from typing import Any

from .kinds import CLOSABLE, NO_BOX, OPEN, define

STOVE, OVEN, FURNACE, LIGHTER = 260.0, 540.0, 3000.0, 2200.0
FRIDGE, FREEZER, COLD_FREEZER = 2.0, -18.0, -86.0


def _appliances() -> None:
    fixed: dict[str, Any] = {"movable": False, "device": "switchable", "tick": "heater"}
    define("stove", box=OPEN, look="stove", words=("stove",), heats=STOVE, **fixed)
    define("hot plate", box=OPEN, look="stove", words=("hot plate",), heats=STOVE, **fixed)
    define("oven", box=CLOSABLE, look="oven", words=("oven",), heats=OVEN, **fixed)
    words = ("furnace",)
    define("blast furnace", box=CLOSABLE, look="oven", words=words, heats=FURNACE, **fixed)
    fixed |= {"starts_on": True, "tick": "cooler", "box": CLOSABLE, "look": "fridge"}
    define("fridge", words=("fridge",), cools=FRIDGE, **fixed)
    define("freezer", words=("freezer",), cools=FREEZER, **fixed)
    define("ultra low temperature freezer", words=("freezer",), cools=COLD_FREEZER, **fixed)


def _basins() -> None:
    fixed: dict[str, Any] = {"movable": False, "device": "switchable", "box": OPEN}
    define("sink", "steel", look="sink", tick="basin", tags="basin", **fixed)
    define("bathtub", "ceramic", look="sink", tick="basin", tags="basin", **fixed)
    define("toilet", "steel", look="toilet", tick="toilet", tags="basin", **fixed)


def _tools() -> None:
    tool: dict[str, Any] = {"box": NO_BOX, "device": "usable"}
    define("thermometer", "glass", look="thermometer", **tool)
    define("lighter", "metal", look="a", **tool)
    define("shovel", "steel", look="a", **tool)
    define("axe", "steel", look="an", **tool)
    watch: dict[str, Any] = {"box": NO_BOX, "device": "switchable", "tick": "stopwatch"}
    define("stopwatch", look="stopwatch", words=("watch", "timer"), **watch)


BULB_COLORS = ("red", "green", "blue", "yellow", "orange", "violet")
WIRE_COLORS = ("red", "green", "blue", "yellow", "orange", "black")


def _electrical() -> None:
    define("terminal", movable=False)
    part: dict[str, Any] = {"poles": "polar", "device": "fixed", "tick": "consumer"}
    for color in BULB_COLORS:
        words = ("light", "light bulb")
        define(f"{color} light bulb", look="on off", words=words, tags="bulb", **part)
    define("electric motor", look="on off", words=("motor",), **part)
    define("electric buzzer", look="on off", words=("buzzer",), **part)
    switch = part | {"device": "switchable", "role": "switch", "tick": ""}
    define("switch", look="on off", words=("component",), **switch)
    wire: dict[str, Any] = {"poles": "wire", "device": "fixed", "tick": "wire"}
    for color in WIRE_COLORS:
        define(f"{color} wire", "metal", look="wire", words=("component",), tags="wire", **wire)
    source = part | {"role": "generator", "tick": "generator", "words": ("generator",)}
    define("battery", look="battery", starts_on=True, tags="source", **source)
    free = source | {"tick": "outdoor generator"}
    define("solar panel", look="on off", tags="source", **free)
    define("wind generator", look="on off", tags="source", **free)
    source["device"] = "switchable"
    define("gas generator", look="on off", tags="source", **source)
    define("nuclear generator", look="on off", tags="source", **source)


_appliances()
_basins()
_tools()
_electrical()
