"""Rollouts: they decide only where the next turn hangs; the player does the rest."""

from .chains import Chains, play_out
from .player import Player, Seat
from .seeds import seed_at

__all__ = ["Chains", "Player", "Seat", "play_out", "seed_at"]
