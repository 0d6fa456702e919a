"""Loops compiled by numba, for the engine and the learner on a CPU."""
