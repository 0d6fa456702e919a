"""Which tabular twin and which tabular arms stand for a family and its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..families import CONTROL, Family, Size
from .credit import Settings
from .learning import Arm, Clip
from .rollouts import Branches, Chains, Trees
from .twins import Boxes, Corridor, Doors, Fog, Rooms, Twin

_PLAIN = Arm(rollout=Chains(n=8))
_SINGLE = Arm(rollout=Chains(n=1))
_DUAL = Clip(dual=3.0)
ARMS: Mapping[str, Arm] = {
    "grpo": _PLAIN,
    "rloo": replace(_PLAIN, credit="rloo"),
    "treegrpo": Arm(rollout=Trees(), credit="both", clip=_DUAL),
    "arpo": Arm(rollout=Branches(), clip=_DUAL),
    "no clip": replace(_PLAIN, clip=Clip(ratio="unclipped")),
    "dapo": replace(_PLAIN, filter=True, clip=Clip(high=0.28, dual=10.0)),
    "gspo": replace(_PLAIN, clip=Clip(ratio="sequence", low=3e-4, high=4e-4)),
    "reinforcepp": replace(_SINGLE, credit="batch"),
    "ppo": replace(_SINGLE, credit="critic"),
    "spo": replace(_SINGLE, credit="tracked", pool=64, clip=Clip(high=0.28, dual=10.0)),
    "tarl": replace(_PLAIN, credit="verdict-group"),
    "tarlturns": replace(_PLAIN, credit="verdict-turns"),
    "pasa": replace(_SINGLE, credit="sessions"),
}
"""Arms by the labels of the rows that they stand for."""
MORE: Mapping[str, Mapping[str, Arm]] = {
    "Lottery": {
        "grpo n4": replace(_PLAIN, rollout=Chains(n=4)),
        "treegrpo inter": Arm(rollout=Trees(), clip=_DUAL),
        "treegrpo intra": Arm(rollout=Trees(), credit="intra", clip=_DUAL),
    },
    "Corridor": {"ppo lambda .9": replace(_SINGLE, credit="critic", settings=Settings(lam=0.9))},
    "Aliases": {
        "ppo lambda .9": replace(_SINGLE, credit="critic", settings=Settings(lam=0.9)),
        "ppo lambda .9, by observation": replace(
            _SINGLE, credit="critic", settings=Settings(lam=0.9, by_observation=True)
        ),
    },
    "Noise": {
        "grpo n4": replace(_PLAIN, rollout=Chains(n=4)),
    },
    "Fog": {"arpo beta 2": Arm(rollout=Branches(beta=2.0), clip=_DUAL)},
    "Rare": {"grpo n4": replace(_PLAIN, rollout=Chains(n=4))},
}
"""Variants that only the oracle plays, by family."""


def _lottery(luck: float = 0.8, doors: int = 3, free: int = 3) -> Twin:
    return Doors(doors=doors, free=free, luck=luck)


def _keys(rooms: int = 4, revisits: bool = True) -> Twin:
    return Rooms(rooms=rooms, fatal=not revisits)


def _aliases(rooms: int = 6, aliases: int = 3) -> Twin:
    return Rooms(rooms=rooms, dead_ends=False, aliases=aliases)


def _noise(doors: int = 4, noise: float = 1.0) -> Twin:
    return Doors(doors=doors, noise=noise)


def _judge(doors: int = 6, judged: bool = True) -> Twin:
    return Doors(doors=doors, all_or_nothing=True, judged=judged)


def _rare(doors: int = 5) -> Twin:
    return Doors(doors=doors, all_or_nothing=True)


_TWINS: Mapping[str, Callable[..., Twin]] = {
    "Lottery-v0": _lottery,
    "Corridor-v0": lambda delay=8: Corridor(delay=delay),
    "Keys-v0": _keys,
    "Aliases-v0": _aliases,
    "Noise-v0": _noise,
    "Fog-v0": lambda fog=0.3, looks=3: Fog(fog=fog, looks=looks),
    "Judge-v0": _judge,
    "Spawn-v0": lambda boxes=3, forced=False, deep=False: Boxes(
        boxes=boxes, forced=forced, deep=deep
    ),
    "Rare-v0": _rare,
}


def twin_of(family: Family, size: Size | str) -> Twin:
    """Return the tabular twin of a family's environment at a size, or of its control."""
    return _TWINS[family.env_id](**family.settings(size))


def arms_of(family: Family, size: Size | str = CONTROL) -> dict[str, Arm]:
    """Return the arms of a family at a size: its rows, and the oracle's own variants.

    Where episodes have sessions, PPO sees each session as a path of its own, and so does its
    twin here.
    """
    chosen = {label: ARMS[label] for label in family.rows} | dict(MORE.get(family.name, {}))
    if family.env_id == "Spawn-v0":
        chosen["ppo"] = replace(chosen["ppo"], credit="session-critic")
        chosen["reinforcepp"] = replace(chosen["reinforcepp"], credit="session-batch")
    return {label: replace(arm, updates=family.updates_at(size)) for label, arm in chosen.items()}
