"""Tiny environments, each testing one ability that a training algorithm must have."""
