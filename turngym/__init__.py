"""Environments, algorithms and a leaderboard for language agents that act in many turns.

Importing it registers the environments with gymnasium, so that ``gym.make("turngym:SearchQA-v0")``
needs no other import.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_HERE = Path(__file__).resolve().parent
if not (_HERE / "envs").is_dir():  # a checkout: the packages lie beside this one
    __path__.append(str(_HERE.parent))

try:
    __version__ = version("turngym")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0+source"

import_module(f"{__name__}.envs")  # registers the environments
