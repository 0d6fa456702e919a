"""Rollouts: they decide only where the next turn is attached; the runner plays it."""

from .branch import BalancedBranch, Branch
from .chains import Chains, play_out
from .demonstrations import Demonstrations, SpokenDemonstrations
from .entropy_expand import EntropyExpand
from .episode_runner import EpisodeHandle, EpisodeRunner
from .expand import Expand
from .seeds import seed_at
from .sessions import Sessions

__all__ = [
    "BalancedBranch",
    "Branch",
    "Chains",
    "Demonstrations",
    "EntropyExpand",
    "EpisodeHandle",
    "EpisodeRunner",
    "Expand",
    "Sessions",
    "SpokenDemonstrations",
    "play_out",
    "seed_at",
]
