"""ARMAP (arXiv 2502.12130): a learned reward of whole trajectories, and planners that follow it.

The acting model stays as it is. Pairs of a better and a worse trajectory are made without people
(:mod:`.generation`), a reward model (:mod:`.reward_model`) is trained to tell them apart, and a
planner (:mod:`.planners`, :mod:`.mcts`) tries several trajectories in forks of an environment and
plays the one that the model likes best.
"""

from __future__ import annotations
