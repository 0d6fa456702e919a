"""Rollouts: they decide only where the next turn is attached; the runner plays it."""

from .branch import BalancedBranch, Branch
from .chains import Chains, play_out
from .demonstrations import Demonstrations, SpokenDemonstrations
from .episode_runner import EpisodeHandle, EpisodeRunner
from .expand import Expand
from .seeds import seed_at
from .sessions import Sessions

__all__ = [
    "BalancedBranch",
    "Branch",
    "Chains",
    "Demonstrations",
    "EpisodeHandle",
    "EpisodeRunner",
    "Expand",
    "Sessions",
    "SpokenDemonstrations",
    "play_out",
    "seed_at",
]
