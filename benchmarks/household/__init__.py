"""Household-v0 beside the original: replayed transcripts, and both engines side by side."""
