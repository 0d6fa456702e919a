"""Rollouts as one page: turns, masks, credit and tree side by side."""
