"""Replay entries step by step in a process with resource limits."""
