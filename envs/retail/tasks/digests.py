"""Digests of the published tasks (seed 0); :func:`.source.remake` makes and compares them."""

from __future__ import annotations

DIGESTS = {
    "full": {
        "train": "abb3e620277c793bebe434ca8eae12de",
        "dev": "3097700b0f3c915ee617021fb7578e7d",
        "test": "cfebe6847ff08bf1dcfd10ea16b38230",
        "hard": "a0eeaaf120a90cad5f27111cfdb4f331",
    },
    "micro": {
        "train": "31269f449dadd3076a49f3c585fdf79c",
        "dev": "03aa728127adb29848c098526ca3e323",
        "test": "74c9a3ced62dfdaf54f3d816ade2bdeb",
        "hard": "dce57fa33272dd16dae3c93d2ef6faed",
    },
}
