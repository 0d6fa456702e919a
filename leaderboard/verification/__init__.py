"""Replaying entries step by step, in a process with limits."""
