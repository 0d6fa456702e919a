"""Scores of entries, boards, and the index of verdicts."""
