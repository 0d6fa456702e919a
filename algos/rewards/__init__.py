"""Reward shaping and judges."""
