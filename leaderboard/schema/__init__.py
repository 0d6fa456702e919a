"""Schemas of everything that the leaderboard reads and writes."""
