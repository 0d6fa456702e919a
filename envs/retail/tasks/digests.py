"""Digests of the published tasks (seed 0); :func:`.source.remake` makes and compares them."""

from __future__ import annotations

DIGESTS = {
    "full": {
        "train": "32a11b0c7cf84736f8b888a014b85274",
        "dev": "678e45e721c39d053b303bd24a186cb8",
        "test": "396be5914d43172a10c1ae29b3d1dc8a",
        "hard": "fc1c6b932ed898cbb8463f0fb1f04d5e",
    },
    "micro": {
        "train": "31269f449dadd3076a49f3c585fdf79c",
        "dev": "03aa728127adb29848c098526ca3e323",
        "test": "74c9a3ced62dfdaf54f3d816ade2bdeb",
        "hard": "dce57fa33272dd16dae3c93d2ef6faed",
    },
}
