"""Rollouts on a Ray cluster: actors with an engine and environments each, the learner outside.

Recipes and environments do not know: a group is a function of its start and the weights, so it is
the same wherever it is played, and however often it had to be played until it arrived.
"""

from .rollouts import RayRollouts

__all__ = ["RayRollouts"]
