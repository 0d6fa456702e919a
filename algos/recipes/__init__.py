"""The recipes, one file each: an algorithm as a value with its paper's settings."""

from importlib import import_module
from pkgutil import iter_modules

from .aepo import aepo
from .arpo import arpo
from .at2po import at2po
from .cispo import cispo
from .dapo import dapo
from .dppo import dppo
from .drgrpo import drgrpo
from .empg import empg
from .g2po import g2po
from .gigpo import gigpo
from .graphgpo import graphgpo
from .grpo import grpo
from .gspo import gspo
from .hcapo import hcapo
from .hgpo import hgpo
from .igpo import igpo
from .maxrl import maxrl
from .opd import opd
from .opid import opid
from .opsd import opsd
from .pasa import pasa
from .ppo import ppo
from .registry import (
    ONE_GRADIENT,
    RECIPES,
    Entry,
    SameGradient,
    find_recipe,
    make_recipe,
    recipe,
)
from .reinforcepp import reinforcepp
from .rloo import rloo
from .sampo import sampo
from .sapo import sapo
from .settings import settings_of, with_settings
from .sft import sft
from .spear import spear
from .spo import spo
from .stepdpo import stepdpo
from .tarl import tarl, tarl_ppo, tarl_turns
from .tigpo import tigpo
from .treegrpo import treegrpo

__all__ = [
    "ONE_GRADIENT",
    "RECIPES",
    "Entry",
    "SameGradient",
    "aepo",
    "arpo",
    "at2po",
    "cispo",
    "dapo",
    "dppo",
    "drgrpo",
    "empg",
    "find_recipe",
    "g2po",
    "gigpo",
    "graphgpo",
    "grpo",
    "gspo",
    "hcapo",
    "hgpo",
    "igpo",
    "make_recipe",
    "maxrl",
    "opd",
    "opid",
    "opsd",
    "pasa",
    "ppo",
    "recipe",
    "reinforcepp",
    "rloo",
    "sampo",
    "sapo",
    "settings_of",
    "sft",
    "spear",
    "spo",
    "stepdpo",
    "tarl",
    "tarl_ppo",
    "tarl_turns",
    "tigpo",
    "treegrpo",
    "with_settings",
]

for _module in iter_modules(__path__):  # a recipe is known by its file alone
    import_module(f".{_module.name}", __package__)
