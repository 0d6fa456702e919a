"""Solvers: what to do next in each task, from the hidden state alone."""
