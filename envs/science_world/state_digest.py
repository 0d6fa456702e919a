"""A stable hash of a world's state."""

from __future__ import annotations

import hashlib

from .physics.quiet import settle
from .world import World

_DIGESTED = (
    *("name", "uid", "parent", "kids", "portals", "heat", "state", "fuel", "burning", "burnt"),
    *("open", "on", "broken", "note", "life"),
)


def world_digest(world: World) -> str:
    """Hex digest of everything that play depends on, with all rooms brought up to date."""
    settle(world)
    columns = [getattr(world, name) for name in _DIGESTED]
    keys = [k.key for k in world.kind], [m and m.key for m in world.material]
    numbers = (world.focus, world.ticks, world.next_uid, world.random.state)
    maps = [sorted(m.items()) for m in (world.wires, world.volts)]
    slides = [(plane, sorted(spots.items())) for plane, spots in sorted(world.slides.items())]
    asked = None
    if world.pending is not None:
        asked = [(match.action.name, match.objects) for match in world.pending]
    goals = "" if world.goals is None else world.goals.digest()
    text = repr((columns, keys, numbers, sorted(world.simple), maps, slides, asked, goals))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
