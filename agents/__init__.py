"""Whatever turns text into an action: language models behind engines, and scripted agents.

Nothing here imports torch or transformers until an engine or a model is asked for.
"""

from .engines.base import Completion, Engine, Request, Sampling
from .scripted import (
    EpisodeResult,
    ExpertPolicy,
    NullPolicy,
    RandomPolicy,
    ReplayPolicy,
    run_episode,
    scripted,
)

__all__ = [
    "Completion",
    "Engine",
    "EpisodeResult",
    "ExpertPolicy",
    "NullPolicy",
    "RandomPolicy",
    "ReplayPolicy",
    "Request",
    "Sampling",
    "run_episode",
    "scripted",
]
