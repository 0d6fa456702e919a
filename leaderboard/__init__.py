"""Replaying, ranking and showing results.

Holds no code yet: what a leaderboard will stand on, the replay of recorded episodes, is
:func:`turngym.envs.replay`.
"""
