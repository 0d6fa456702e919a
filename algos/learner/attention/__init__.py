"""Attention over packed trees of tokens."""
