"""Replaying, ranking and showing results. Holds no code yet: episodes already replay through
:func:`turngym.envs.replay`, on which the leaderboard will stand.
"""
