"""Worlds of a dozen words, each asking for one ability that a training algorithm must have."""
