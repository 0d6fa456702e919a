"""Digests of the published tasks (seed 0); :func:`.source.remake` makes and compares them."""

from __future__ import annotations

DIGESTS = {
    "full": {
        "train": "2ffe167ed47b0ab531af9158ac9dd697",
        "dev": "e05d384b4e5491fc58894cd7446a302d",
        "test": "5b8635ef563da658d49de30d084089a8",
        "hard": "a5b40c4aa95a1caec32ba1d0d2094597",
    },
    "micro": {
        "train": "5bcdfafe17beb34694b1b5103d8e91c2",
        "dev": "499763ca181f4816d744c61b5fb20faa",
        "test": "33272239163d4565287fafc2aebca334",
        "hard": "0f58951ba60b58e62fae56f4de820f77",
    },
}
