"""Seeds that depend on an episode's place in its tree, never on timing."""

from __future__ import annotations

from hashlib import blake2b
from struct import pack


def seed_at(*place: int) -> int:
    """Derive a seed in [0, 2**63) from integers such as (episode seed, chain, turn).

    The same in every process and on every machine; neighbouring places give unrelated seeds.
    """
    data = pack(f"<{len(place)}q", *place)
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little") >> 1
