"""Digests of the published tasks (seed 0); :func:`.source.remake` makes and compares them."""

from __future__ import annotations

DIGESTS = {
    "full": {
        "train": "abdda4d075ee5b2af94737b00e21e7ff",
        "dev": "aa5931c3dfba06e6d69a3e3ef197c272",
        "test": "afae6fc2feadd29d0f393774940c0919",
        "hard": "30f059cb925e56b37b9dd8328f761ae8",
    },
    "micro": {
        "train": "31269f449dadd3076a49f3c585fdf79c",
        "dev": "03aa728127adb29848c098526ca3e323",
        "test": "74c9a3ced62dfdaf54f3d816ade2bdeb",
        "hard": "dce57fa33272dd16dae3c93d2ef6faed",
    },
}
