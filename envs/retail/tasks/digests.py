"""Digests of the published tasks (seed 0); :func:`.source.remake` makes and compares them."""

from __future__ import annotations

DIGESTS = {
    "full": {
        "train": "175acd44d3c9c7aee847b313d9d08e25",
        "dev": "e1d99364bcef7c7d3918d2aab19451a4",
        "test": "553cd9bd76122b5f2629940b6c64edae",
        "hard": "1aadf6ae50f8d79eda7c6af5e9fc5f1a",
    },
    "micro": {
        "train": "4ea3877b40a9ecdd7ac67d9b4a9f7f28",
        "dev": "147ff1362c68007c8fdd690d44f0d330",
        "test": "278b5dc6cf9f765686a2187972c033ad",
        "hard": "118001b140ca9a15ab693ac6cbfa95b0",
    },
}
