"""Digests of the published tasks (seed 0); :func:`.source.remake` makes and compares them."""

from __future__ import annotations

DIGESTS = {
    "full": {
        "train": "76553002d9b970e4cfb70a1d6309a62f",
        "dev": "b6a5d49f1da9d8115925290824105bf6",
        "test": "b4eefbe3771ad3b6790973d446c0a07e",
        "hard": "0dfdc466dd005d91537ff4598e249cd5",
    },
    "micro": {
        "train": "8015340e24446c6ccd6b861131fd5ae1",
        "dev": "e4c7d8b8a3fac39b228f0701eb3c4c1b",
        "test": "3bf959374c278e755fed23a9570c221d",
        "hard": "90077f69b5cc6428f49990683ae74d1b",
    },
}
