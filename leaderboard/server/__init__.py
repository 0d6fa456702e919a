"""The leaderboard server: site, uploads with background verification, and sealed seasons."""

from __future__ import annotations

from .accounts import new_token, revoke_tokens
from .serving import Revealed, reveal_and_replay, serve_forever
from .settings import ServerSettings

__all__ = [
    "Revealed",
    "ServerSettings",
    "new_token",
    "reveal_and_replay",
    "revoke_tokens",
    "serve_forever",
]
