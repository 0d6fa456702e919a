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
        "train": "5bcdfafe17beb34694b1b5103d8e91c2",
        "dev": "499763ca181f4816d744c61b5fb20faa",
        "test": "33272239163d4565287fafc2aebca334",
        "hard": "0f58951ba60b58e62fae56f4de820f77",
    },
}
