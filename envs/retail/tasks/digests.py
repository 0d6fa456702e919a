"""Digests of the published tasks (seed 0); :func:`.source.remake` makes and compares them."""

from __future__ import annotations

DIGESTS = {
    "full": {
        "train": "da0336bcac25bc1e4cef2ebe0778c4cd",
        "dev": "b583d62686cacb5c53cdaf8c2f8e67a9",
        "test": "0ac4a4f4cb07370a993fec8d2a7b2edf",
        "hard": "f15cfc28be9be866bc50605308fc8611",
    },
    "micro": {
        "train": "5bcdfafe17beb34694b1b5103d8e91c2",
        "dev": "499763ca181f4816d744c61b5fb20faa",
        "test": "33272239163d4565287fafc2aebca334",
        "hard": "0f58951ba60b58e62fae56f4de820f77",
    },
}
