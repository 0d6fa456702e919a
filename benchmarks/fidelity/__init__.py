"""Environments beside transcripts of their originals."""
